"""Where the time of programs' connections went, in virtual time, where it is known."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crosswind
from conftest import requires
from deaf import GIVES_UP, NEVER_ACCEPTS
from e2e_cli import Cli
from virtual.conftest import requires_kernel

MS = 1_000_000
RTT_MS = 40

SERVER = """
import socket, sys, time
listening = socket.create_server(("", int(sys.argv[1])))
while True:
    connection, _ = listening.accept()
    wanted = connection.recv(1000).decode().split()
    time.sleep(float(wanted[0]))
    connection.sendall(bytes(int(wanted[1])))
    connection.close()
"""
"""Answers after some seconds with some bytes."""

CLIENT = """
import socket, sys
connection = socket.socket()
if int(sys.argv[5]):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(sys.argv[5]))
connection.connect((sys.argv[1], int(sys.argv[2])))
connection.sendall(f"{sys.argv[3]} {sys.argv[4]}".encode())
while connection.recv(1 << 20):
    pass
"""

LINES = """
import socket, sys
listening = socket.create_server(("", int(sys.argv[1])))
connection, _ = listening.accept()
for line in connection.makefile("rb"):
    connection.sendall(b"ok\\n")
"""
"""Answers each line."""

TWO_WRITES = """
import socket
connection = socket.create_connection(("server", 8000))
lines = connection.makefile("rb")
for _ in range(20):
    connection.sendall(b"head ")
    connection.sendall(b"body\\n")
    lines.readline()
"""

SINK = """
import socket, sys
connection, _ = socket.create_server(("", int(sys.argv[1]))).accept()
while connection.recv(1 << 16):
    pass
"""

READS_LATE = """
import socket, sys, time
with socket.socket() as listening:
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
    listening.bind(("", int(sys.argv[1])))
    listening.listen()
    connection, _ = listening.accept()
time.sleep(1)
while connection.recv(1 << 16):
    pass
"""
"""Reads after a second, until when its window is closed."""

SOURCE = """
import socket
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
connection.connect(("server", 8000))
connection.sendall(bytes(3_000_000))
"""

GATEWAY = """
import socket, sys, threading, time
connection, client = socket.create_server(("", int(sys.argv[1]))).accept()
store = socket.create_connection((client[0], 9000))
rows = store.makefile("rb")
for line in connection.makefile("rb"):
    if line == b"nap\\n":
        napping = threading.Thread(target=time.sleep, args=[0.05])
        napping.start()
        napping.join()
    else:
        store.sendall(line)
        rows.readline()
    connection.sendall(b"done\\n")
"""
"""Answers a line once another thread has slept, or once a store at the client's host has answered."""

ASKER = """
import socket, threading, time
listening = socket.create_server(("", 9000))
def keep():
    store, _ = listening.accept()
    for line in store.makefile("rb"):
        time.sleep(0.03)
        store.sendall(b"row\\n")
threading.Thread(target=keep, daemon=True).start()
connection = socket.create_connection(("server", 8000))
answers = connection.makefile("rb")
for line in [b"nap\\n", b"query\\n", b"nap\\n"]:
    connection.sendall(line)
    answers.readline()
"""

PUBLISHER = """
import paho.mqtt.client as mqtt
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
client.max_inflight_messages_set(10)
client.on_connect = lambda *_: [client.publish("topic", b"x" * 20, qos=1) for _ in range(60)]
left = list(range(60))
client.on_publish = lambda *_: left.pop() or client.disconnect()
client.connect("server", 8000)
client.loop_forever()
"""
"""60 messages of quality of service 1, ten at a time."""

RESOLVER = """
import socket
listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listening.bind(("", 53))
while True:
    query, client = listening.recvfrom(4096)
    record = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\1\\0\\4\\xc6\\x12\\0\\2"
    listening.sendto(query[:2] + b"\\x81\\x80\\0\\1\\0\\1\\0\\0\\0\\0" + query[12:] + record, client)
"""

Connections = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def connections(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Connections:
    """Runs `crosswind exec` over 20 ms, and returns the connections of its summary."""
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)

    def run(*arguments: str, lost: str = "") -> list[dict[str, Any]]:
        (tmp_path / "lost").write_text(lost, encoding="utf-8")
        ended = crosswind("exec", "--clock", "virtual", "--delay", "20ms", "--json", *arguments)
        (repetition,) = json.loads(ended.err.splitlines()[-1])["repetitions"]
        found: list[dict[str, Any]] = repetition["connections"]["longest"]
        for connection in found:
            assert sum(part["time_ns"] for part in connection["parts"]) == connection["whole_ns"]
        return found

    return run


def client(wait_s: float, size: int, buffer: int = 0) -> list[str]:
    """What asks the server for a size, after a time, with a receive buffer or the kernel's own."""
    return ["--", sys.executable, "-c", CLIENT, "server", "{port}", str(wait_s), str(size), str(buffer)]


def server() -> list[str]:
    return ["--server", f"{sys.executable} -c '{SERVER}' {{port}}"]


def in_ms(connection: dict[str, Any]) -> dict[str, int]:
    """What took half a millisecond or more, in whole milliseconds."""
    of_parts: dict[str, int] = {}
    for part in connection["parts"]:
        of_parts[part["part"]] = of_parts.get(part["part"], 0) + part["time_ns"]
    return {part: round(ns / MS) for part, ns in of_parts.items() if ns >= MS / 2}


SETUP = {"tcp_handshake": RTT_MS, "propagation_forward": 20, "propagation_reverse": 20, "closing": 20}
"""A connection with a request and an answer, which the server closes."""


def test_a_request_takes_two_round_trips_and_the_servers_time(connections: Connections) -> None:
    (asked,) = connections(*server(), *client(0.0, 1000))
    assert in_ms(asked) == SETUP
    assert (asked["turns"], asked["beginning"], asked["ending"]) == (1, "handshake", "closed")
    (slept,) = connections(*server(), *client(0.3, 1000))
    assert in_ms(slept) == {**SETUP, "server_timer": 300}


def test_what_a_server_waits_for_before_it_answers_is_said(connections: Connections) -> None:
    asked, _ = connections("--server", f"{sys.executable} -c '{GATEWAY}' {{port}}", "--", sys.executable, "-c", ASKER)
    spent, named = in_ms(asked), {part["part"]: part["waited_for"] for part in asked["parts"] if part["waited_for"]}
    # Two naps of 50 ms, and a query of a round trip and 30 ms.
    assert (spent["server_timer"], spent["server_connection"]) == (100, RTT_MS + 30)
    assert named == {"server_timer": Path(sys.executable).name, "server_connection": "port 9000"}
    # It reads the first line once it is connected to the store: what a thread acts upon is what it read last.
    assert spent["server_host"] == RTT_MS


def test_a_small_receive_buffer_is_what_a_transfer_waits_for(connections: Connections, tmp_path: Path) -> None:
    (found,) = connections("--output", str(tmp_path / "run"), *server(), *client(0.0, 400_000, buffer=20_000))
    (window,) = [part for part in found["parts"] if part["part"] == "receive_window"]
    assert (window["data"], window["times"]) == ("reverse", 16)
    assert round(window["time_ns"] / MS) == window["times"] * RTT_MS
    # The kernel doubles what is asked for, and more than half of that is window.
    assert 20_000 < window["window_bytes"] < 25_000
    assert found["sentence"].startswith("tcp to port 8000: 82 % of 780 ms waited for the receiver's window of at most ")
    # A report has the same, of the program as a whole.
    result = crosswind.analyse(crosswind.load(tmp_path / "run"))
    means = {name: estimates.mean.value for name, estimates in result.cells[0].estimates.items()}
    assert means["spent_receive_window"] == window["time_ns"]
    assert means["spent"] == means["program_time"]


def test_a_server_that_never_accepts_is_what_a_client_waits_for(connections: Connections) -> None:
    (found,) = connections(
        "--server", f"{sys.executable} -c '{NEVER_ACCEPTS}' {{port}}",
        "--", sys.executable, "-c", GIVES_UP, "server", "{port}", "2",
    )  # fmt: skip
    # The client's kernel lets its timer of 2 s expire 2 ms late.
    assert in_ms(found) == {"tcp_handshake": RTT_MS, "propagation_forward": 20, "server_host": 1982, "closing": RTT_MS}
    assert found["ending"] == "reset"
    assert found["sentence"].endswith(" was spent by the server's program")


def test_a_full_link_is_what_a_transfer_waits_for(connections: Connections) -> None:
    (found,) = connections("--rate", "10mbit", *server(), *client(0.0, 1_000_000))
    first = found["parts"][0]
    assert first["part"] == "serialisation_reverse"
    # 691 segments with 52 bytes of headers each; what waited for the first windows was on the wire meanwhile.
    on_the_wire_ms = (1_000_000 + 691 * 52) * 8 / 10_000
    assert on_the_wire_ms * 0.95 < first["time_ns"] / MS <= on_the_wire_ms


def test_what_a_lost_request_waits_for_is_its_timer(connections: Connections) -> None:
    lost = ["--tail-loss-probe", "false", "--forward-lose", "@lost"]
    (found,) = connections(*lost, *server(), *client(0.0, 1000), lost="2 3")
    timer = found["parts"][0]
    assert (timer["part"], found["lost_forward"], found["again_forward"]) == ("retransmission_timer", 2, 2)
    # 200 ms and a round trip, then twice that, each rounded up by the wheel of timers.
    assert 3 * (200 + RTT_MS) <= timer["time_ns"] / MS < 3 * (200 + RTT_MS) * 1.125
    assert {part: ms for part, ms in in_ms(found).items() if part != "retransmission_timer"} == SETUP


def test_what_a_connection_that_is_not_set_up_waits_for_is_said(connections: Connections) -> None:
    (late,) = connections("--forward-lose", "@lost", *server(), *client(0.0, 1000), lost="0")
    assert late["parts"][0]["part"] == "syn_timer"
    assert 1000 <= late["parts"][0]["time_ns"] / MS < 1000 * 1.125
    (refused,) = connections("--port", "81", "--", requires("curl"), "-sS", "http://server/")
    assert (refused["beginning"], in_ms(refused)) == ("refused", {"tcp_handshake": RTT_MS})


def test_a_stream_window_of_http_2_between_programs_has_its_name(connections: Connections) -> None:
    serve = "require('http2').createServer().on('stream', (s) => s.end(Buffer.alloc(1000000))).listen(8000)"
    fetch = (
        "const c = require('http2').connect('http://server:8000'); const r = c.request({});"
        "r.on('data', () => {}).on('end', () => c.close()).end()"
    )
    node = requires("node")
    (found,) = connections("--port", "8000", "--server", f'{node} -e "{serve}"', "--", node, "-e", fetch)
    # The request takes a round trip, and so does GOAWAY. After slow start, data take one for each 65 535 bytes.
    assert found["turns"] == 3
    spent = in_ms(found)
    assert spent["propagation_forward"] == spent["propagation_reverse"] == 2 * RTT_MS / 2
    assert spent["stream_window"] == 13 * RTT_MS
    assert "waited for the flow control of a stream of at most 65\u202f535 bytes, 13 times" in found["sentence"]


def test_an_upload_by_curl_over_http_2_ends_with_its_answer(connections: Connections, tmp_path: Path) -> None:
    serve = (
        "require('http2').createServer().on('stream', (s) => s.resume().on('end', () => s.end('had it'))).listen(8000)"
    )
    (tmp_path / "body").write_bytes(bytes(400_000))
    upload = [requires("curl"), "-s", "--http2-prior-knowledge", "--data-binary", f"@{tmp_path / 'body'}"]
    (found,) = connections(
        "--port", "8000", "--server", f'{requires("node")} -e "{serve}"', "--", *upload, "http://server:8000/"
    )  # fmt: skip
    # It polls a socket that can always be written to while it waits for a window, and then sets a timer of no time.
    spent = in_ms(found)
    assert spent["stream_window"] == 5 * RTT_MS
    assert not {"client_host", "server_host"} & spent.keys()


def test_two_small_writes_wait_for_nagle_and_not_for_the_server(connections: Connections) -> None:
    # Each of 20 requests takes a round trip more for its second write. All but the first few wait for a late
    # acknowledgement.
    (found,) = connections(
        "--server", f"{sys.executable} -c '{LINES}' {{port}}", "--", sys.executable, "-c", TWO_WRITES
    )
    spent = in_ms(found)
    assert spent["nagle"] == 20 * RTT_MS and spent["delayed_acknowledgement"] >= 15 * 40
    assert spent["propagation_forward"] + spent["propagation_reverse"] == 20 * RTT_MS
    assert not spent.keys() & {"client_host", "server_host", "congestion_window", "send_buffer"}


def test_messages_of_mqtt_in_flight_wait_for_nagle(connections: Connections, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("listener 8000\nallow_anonymous true\n", encoding="utf-8")
    broker = f"{requires('mosquitto')} -c {tmp_path / 'broker.conf'}"
    (found,) = connections("--port", "8000", "--server", broker, "--", sys.executable, "-c", PUBLISHER)
    # Ten messages take three round trips: the first leaves alone, the others when it is acknowledged, and likewise
    # their answers. But for Nagle's algorithm on both sides, 60 would take six round trips.
    assert in_ms(found)["nagle"] >= 2 * 6 * RTT_MS
    assert found["parts"][0]["part"] == "nagle" and "(Nagle's algorithm)" in found["sentence"]


def test_a_peer_that_falls_silent_is_a_wait_for_the_timer(connections: Connections) -> None:
    (found,) = connections(
        "--at", "silence start=500ms for=20s loss=100%", "--server", f"{sys.executable} -c '{LINES}' {{port}}",
        "--", sys.executable, "-c", TWO_WRITES,
    )  # fmt: skip
    assert found["parts"][0]["part"] == "retransmission_timer"
    assert found["parts"][0]["time_ns"] > 0.8 * found["whole_ns"]


def test_a_program_with_a_small_send_buffer_waits_for_it(connections: Connections) -> None:
    (found,) = connections("--server", f"{sys.executable} -c '{SINK}' {{port}}", "--", sys.executable, "-c", SOURCE)
    assert found["parts"][0]["part"] == "send_buffer"


def test_a_lost_window_update_is_a_wait_for_the_persist_timer(connections: Connections) -> None:
    programs = ["--server", f"{sys.executable} -c '{READS_LATE}' {{port}}", "--", sys.executable, "-c", SOURCE]
    (told,) = connections(*programs)
    (probed,) = connections("--reverse-lose", "@lost", *programs, lost="13")
    spent, without = in_ms(probed), in_ms(told)
    # The server begins to sleep when the handshake is complete. What its update takes is the window's, lost or not.
    assert spent["zero_window"] == without["zero_window"] and "persist_timer" not in without
    assert probed["whole_ns"] - told["whole_ns"] == pytest.approx(spent["persist_timer"] * MS, abs=MS)
    assert spent["persist_timer"] > 200 and probed["lost_reverse"] == 1
    assert "% waited for the persist timer after a window update was lost (1 packet lost)" in probed["sentence"]


def test_a_fin_may_be_the_tail_loss_probe(connections: Connections) -> None:
    # Packet 2 to the client is the answer, packet 3 the FIN behind it. Sent again, the FIN tells of the answer.
    (found,) = connections("--reverse-lose", "@lost", *server(), *client(0.0, 1000), lost="2 3")
    spent = in_ms(found)
    assert spent.pop("tail_loss_probe") >= 2 * RTT_MS
    assert spent == {**SETUP, "fast_recovery": RTT_MS}


def test_a_query_whose_datagram_is_lost_is_sent_again_after_five_seconds(connections: Connections) -> None:
    resolver = ["--port", "53", "--resolver", "{address}", "--server", f"{sys.executable} -c '{RESOLVER}'"]
    (found,) = connections(
        *resolver, "--forward-lose", "@lost", "--", requires("getent"), "ahostsv4", "www.example.org", lost="0"
    )
    assert found["parts"][0]["part"] == "datagram_loss"
    assert 5000 <= found["parts"][0]["time_ns"] / MS < 5010
    assert in_ms(found)["propagation_forward"] == in_ms(found)["propagation_reverse"] == 20
