"""Cells with peers on the machine's clock: what they measure, what is said when one fails, and that nothing is left."""

import os
import uuid
from collections.abc import Callable

import pytest

from conftest import requires
from linux.lab import KEPT_BYTES, Lab, Object, left_out_warning, ms, processes_with, wait_until
from peer_scripts import ECHO, client, example, good_server, server, silent_server

DELAY: Object = {"forward": {"delay_ns": ms(2)}, "reverse": {"delay_ns": ms(3)}}


def echo(**ends: Object) -> Object:
    return {**ECHO, **ends}


@pytest.mark.parametrize(
    "ends", [{"client": client()}, {"server": good_server()}, {"client": client(), "server": good_server()}]
)
def test_each_end_can_be_a_peer(lab: Lab, ends: dict[str, Object]) -> None:
    ran = lab.run(echo(**ends), **DELAY)
    assert ran.samples()["outcome"].to_list() == ["ok"] * 3
    took = ran.samples()["received_ns"] - ran.samples()["sent_ns"]
    assert took.min() >= ms(5) and ran.samples()["connect_ns"][0] >= ms(5)
    peers = ran.result["peers"]
    assert peers["verified_transport"] == "tcp"
    names = {end: ends[end]["name"] if end in ends else "native" for end in ("client", "server")}
    assert {end: peers[end]["name"] for end in names} == names
    implementations = {"test-client": "Test 1", "test-server": "Test 2", "native": "Crosswind 0.1.0"}
    assert all(peers[end]["implementation"] == implementations[name] for end, name in names.items())
    waits = {end: peers[end]["processor_wait_ns"] is not None for end in names}
    assert waits == {end: end in ends for end in names}
    # The handshake of TCP, which is over when the first exchange begins.
    assert ran.result["traffic"]["setup"]["reverse"]["packets"] == 1


def test_a_client_has_its_directory_and_its_errors_are_kept(lab: Lab) -> None:
    body = """
import pathlib
pathlib.Path(job["directory"], "note").write_text(json.dumps(job["workload"]))
print("by the way", file=sys.stderr)
all_of_it()"""
    ran = lab.run(echo(client=client(body)))
    assert ran.result["samples"]["ok"] == 3
    assert ran.text("client.err") == "by the way\n"
    told = ran.text("client/note")
    assert '"size_bytes": 10' in told and '"client"' not in told


@pytest.mark.parametrize("how", [silent_server("tcp:{port}"), silent_server("log:serving", "now serving echoes")])
def test_a_server_without_the_protocol_is_ready_by_its_port_or_by_a_text(lab: Lab, how: Object) -> None:
    # Such a server gets no job that it would read: the test's own does, to know its address.
    ran = lab.run(echo(server=how))
    assert ran.result["samples"]["ok"] == 3
    assert ran.result["peers"]["server"]["implementation"] is None
    assert (ran.directory / "server.out").exists()


BAD_CLIENTS: dict[str, tuple[str, str]] = {
    "crash": (
        "ready(); connect(); raise SystemExit('out of luck')",
        'the client bad ended with exit status 1 before it printed "finished": out of luck',
    ),
    "killed": (
        "ready(); os.kill(os.getpid(), 9)",
        'the client bad ended with signal 9 (SIGKILL) before it printed "finished"',
    ),
    "silent": ("", 'the client bad ended with exit status 0 before it printed "finished"'),
    "half": (
        "ready(); c = connect(); exchange(c, 0); say('finished')",
        "the client bad broke the peer protocol: it finished after it had reported 1 of 3 exchanges",
    ),
    "no JSON": (
        "print('hello', flush=True); time.sleep(60)",
        "the client bad broke the peer protocol: line 1 of its output: it is no JSON object: hello",
    ),
    "endless": (
        "while True: sys.stdout.write('x' * 65536)",
        "the client bad broke the peer protocol: line 1 of its output: it has more than 65536 bytes",
    ),
    "other transport": (
        "ready(); connect('tls')",
        "the client bad broke the peer protocol: "
        "line 2 of its output: connection 0 is tls, where the cell asks for tcp",
    ),
    "other clock": (
        "ready(time.monotonic_ns()); c = connect(); exchange(c, 0)",
        "in the future: is monotonic_ns right, and is it nanoseconds?",
    ),
    "late crash": ("all_of_it(); sys.exit(3)", "the client bad ended with exit status 3 after it had finished"),
}


@pytest.mark.parametrize("name", BAD_CLIENTS)
def test_a_client_that_fails_is_a_failed_cell_with_its_last_words(lab: Lab, name: str) -> None:
    body, message = BAD_CLIENTS[name]
    error = lab.run(echo(client=client(body, "bad"))).error
    assert message in error["message"]
    assert error["hint"] == "the cell's directory keeps what it wrote, in client.err"


def test_a_client_that_says_what_is_wrong_is_quoted_with_its_hint(lab: Lab) -> None:
    body = 'say("error", message="there is no browser", hint="apt install one"); sys.exit(1)'
    error = lab.run(echo(client=client(body, "bad"))).error
    assert error["message"] == "the client bad cannot go on: there is no browser"
    assert error["hint"].startswith("apt install one; ")


BAD_SERVERS: dict[str, tuple[Object, str]] = {
    "at once": (
        server("raise SystemExit('address in use')", "bad"),
        "the server bad ended before its time, with exit status 1: address in use",
    ),
    "after the first message": (
        server("def after(data): os._exit(4)\nlisten(); say('listening', implementation='x'); sys.stdin.read()", "bad"),
        "the server bad ended before its time, with exit status 4",
    ),
    "by a port that never opens": (
        server("sys.exit(2)", "bad", ready="tcp:{port}"),
        "the server bad ended before its time, with exit status 2",
    ),
    "by a text that never comes": (
        server("print('hello')", "bad", ready="log:serving"),
        "the server bad ended before its time, with exit status 0: hello",
    ),
    "with a word of its own": (
        server("say('error', message='no certificate')", "bad"),
        "the server bad cannot go on: no certificate",
    ),
}


@pytest.mark.parametrize("name", BAD_SERVERS)
@pytest.mark.parametrize("other", [None, client()])
def test_a_server_that_fails_is_a_failed_cell_whoever_the_client_is(lab: Lab, name: str, other: Object | None) -> None:
    bad, message = BAD_SERVERS[name]
    ends = {"server": bad} if other is None else {"server": bad, "client": other}
    error = lab.run({**echo(**ends), "messages": 200}, **DELAY).error
    # A client that is a peer may see the end of its server first.
    seen_first = name == "after the first message" and other is not None and "the client" in error["message"]
    assert message in error["message"] or seen_first


def test_a_program_that_is_not_there_is_named(lab: Lab) -> None:
    error = lab.run(echo(client={"name": "x", "command": ["/no/such/program"]})).error
    assert "cannot start /no/such/program" in error["message"]


def test_errors_without_end_do_not_fill_the_disk(lab: Lab) -> None:
    body = "[os.write(2, b'x' * 65536) for _ in range(1024)]; all_of_it()"
    ran = lab.run(echo(client=client(body)))
    assert ran.result["samples"]["ok"] == 3
    assert ran.result["warnings"] == [left_out_warning("client", "err", left_out=(64 << 20) - 2 * KEPT_BYTES)]
    assert (ran.directory / "client.err").stat().st_size < 2 * KEPT_BYTES + 100


STAYING: dict[str, Callable[[str], Object]] = {
    "a child of the client": lambda more: echo(
        client=client(f"{more}\nif os.fork() == 0:\n    time.sleep(600)\nall_of_it()")
    ),
    "a child of its own session": lambda more: echo(
        client=client(f"{more}\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nall_of_it()")
    ),
    "a server that ignores its end": lambda more: echo(
        server=server(
            f"{more}\nimport signal\nsignal.signal(15, signal.SIG_IGN); listen()\n"
            "say('listening', implementation='x')\nthreading.Event().wait()"
        )
    ),
    "a client that fails": lambda more: echo(
        client=client(f"{more}\nif os.fork() == 0:\n    time.sleep(600)\nsys.exit(1)")
    ),
}


@pytest.mark.parametrize("name", STAYING)
def test_nothing_of_a_peer_is_left(lab: Lab, name: str) -> None:
    marker = f"CROSSWIND_TEST={uuid.uuid4()}"
    key, _, value = marker.partition("=")
    directory = lab.directory()
    cell = {"schema": "crosswind.cell/1", "workload": STAYING[name]("pass"), "output": {"directory": str(directory)}}
    ended = lab.end(lab.start(cell, env={**os.environ, key: value}), directory)
    assert ended.names[-1] == ("error" if name == "a client that fails" else "finished"), ended.out
    wait_until(lambda: not list(processes_with(marker)))


def test_a_client_that_stays_after_it_has_finished_is_a_warning(lab: Lab) -> None:
    ran = lab.run(echo(client=client("all_of_it(); time.sleep(600)")))
    warning = "the client did not end within 5 s after it had finished, and was killed"
    assert {"name": "client_outlived", "text": warning, "hint": None} in ran.result["warnings"]


def test_peers_of_other_workloads(lab: Lab) -> None:
    body = """
ready()
for number in range(work["count"]):
    begun = time.monotonic_ns()
    connection = socket.create_connection((job["address"], job["port"]), 5)
    took = time.monotonic_ns() - begun
    say("connected", connection=number, transport="tcp", setup_ns=took, transport_ns=took)
    say("sample", exchange=number, connection=number, sent_ns=begun, received_ns=begun + took, sent_bytes=0,
        received_bytes=0, outcome="ok")
    connection.close()
say("finished", facts={"tries": 4})"""
    ran = lab.run({"kind": "connect", "transport": "tcp", "count": 4, "client": client(body)}, **DELAY)
    samples = ran.samples()
    assert samples["connection"].to_list() == [0] * 4
    assert samples["connect_ns"].min() >= ms(5) and samples["transport_ns"].null_count() == 0
    assert ran.result["peers"]["client"]["facts"] == {"tries": 4.0}


def test_a_peer_gets_a_certificate_for_the_address_and_a_server_its_key(lab: Lab) -> None:
    body = """
import ssl
context = ssl.create_default_context(cadata=job["certificate_pem"])
def connect_secure():
    plain = socket.create_connection((job["address"], job["port"]), 5)
    connection = context.wrap_socket(plain, server_hostname=job["address"])
    say("connected", connection=0, transport="tls", setup_ns=1)
    return connection
ready(); assert job["private_key_pem"] is None
connection = connect_secure()
for number in range(work["messages"]):
    sent = time.monotonic_ns()
    connection.sendall(bytes(work["size_bytes"]))
    left = work["size_bytes"]
    while left: left -= len(connection.recv(left))
    say("sample", exchange=number, connection=0, sent_ns=sent, received_ns=time.monotonic_ns(), sent_bytes=10,
        received_bytes=10, outcome="ok")
say("finished")"""
    secure_server = server("""
import ssl, tempfile
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
with tempfile.NamedTemporaryFile("w") as file:
    file.write(job["private_key_pem"] + job["certificate_pem"]); file.flush()
    context.load_cert_chain(file.name)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    def get_request(self):
        connection, address = super().get_request()
        return context.wrap_socket(connection, server_side=True), address
listen(); say("listening", implementation="Test 2"); sys.stdin.read()""")
    workload = {**ECHO, "transport": "tls"}
    for ends in (
        {"client": client(body)},
        {"server": secure_server},
        {"client": client(body), "server": secure_server},
    ):
        for family in ("ipv4", "ipv6"):
            if family == "ipv6" and "server" in ends:
                continue  # Python's socketserver is IPv4's unless told otherwise.
            ran = lab.run({**workload, **ends}, family=family)
            assert ran.result["samples"]["ok"] == 3, ran.result["samples"]


@pytest.mark.parametrize("client_name", ["native", "echo_client.py", "echo_client.mjs"])
@pytest.mark.parametrize("server_name", ["native", "echo_server.py", "echo_server.mjs"])
def test_the_examples_of_the_documentation_work_with_each_other(lab: Lab, client_name: str, server_name: str) -> None:
    if any(name.endswith(".mjs") for name in (client_name, server_name)):
        requires("node")
    names = {"client": client_name, "server": server_name}
    ends = {end: example(name) for end, name in names.items() if name != "native"}
    ran = lab.run(echo(**ends), **DELAY)
    assert ran.samples()["outcome"].to_list() == ["ok"] * 3
