"""`crosswind exec` on the machine's clock: a user's command on a path, as if it had been called without Crosswind."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from conftest import requires
from e2e_cli import Cli, Ended, hosts_file, running_cells, wait_until
from processes import descendants_of, is_running

PYTHON = [sys.executable, "-I", "-S", "-c"]
ECHO_SERVER = (
    "import socket, sys\n"
    "listener = socket.create_server(('', int(sys.argv[1])))\n"
    "while True:\n"
    "    connection, _ = listener.accept()\n"
    "    while data := connection.recv(65536): connection.sendall(data)\n"
)
ECHO_CLIENT = (
    "import socket, sys\n"
    "with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:\n"
    "    connection.sendall(b'hello')\n"
    "    print(connection.recv(5).decode())\n"
    "    print(socket.gethostbyname('server'), socket.gethostbyname('client'), file=sys.stderr)\n"
)


@pytest.fixture
def server(crosswind: Cli) -> str:
    """The command of a TCP echo server."""
    script = crosswind.cwd / "server.py"
    script.write_text(ECHO_SERVER, encoding="utf-8")
    return f"{sys.executable} -I -S {script} {{port}}"


def summary(ended: Ended) -> dict[str, Any]:
    """What --json printed, which is the last line of standard error."""
    return dict(json.loads(ended.err.splitlines()[-1]))


def test_no_program_gets_the_token_of_two_machines(crosswind: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_TOKEN", "0123456789abcdef0123456789abcdef")
    kept = 'tr "\\0" "\\n" < /proc/1/environ; env'
    client = ["sh", "-c", f"({kept}) | grep TOKEN || echo none"]
    server = f"sh -c '({kept}) > server; exec {sys.executable} -m http.server {{port}}'"
    ended = crosswind("exec", "--server", server, "--", *client)
    assert (ended.status, ended.out) == (0, "none\n")
    assert "TOKEN" not in (crosswind.cwd / "server").read_text(encoding="utf-8")


def test_output_and_status_are_the_clients_and_the_summary_follows(crosswind: Cli, server: str) -> None:
    client = [*PYTHON, ECHO_CLIENT + "sys.exit(3)", "{address}", "{port}"]
    ended = crosswind("exec", "--delay", "10ms", "--server", server, "--", *client)
    assert ended.status == 3
    assert ended.out == "hello\n"
    names, head, forward, reverse, again, connection, fidelity, *_ = ended.err.splitlines()
    assert names == "198.18.0.2 198.18.0.1"
    assert head.startswith("crosswind: exit status 3 after ")
    assert head.endswith(", real time")
    # A busy machine may make TCP send something again. tests/virtual/test_exec.py has exact numbers.
    assert re.match(r"  client to server: \d+ packets, \d+ B \(", forward)
    assert re.match(r"  server to client: \d+ packets, \d+ B \(", reverse)
    assert "dropped by" not in forward + reverse
    assert re.fullmatch(r"  TCP retransmissions: client \d+, server \d+", again)
    assert connection.startswith("  tcp to port 8000: ")
    assert fidelity.startswith(("  fidelity: within budget", "  NOT VALID: "))


def test_the_summary_as_json_counts_packets_and_drops(crosswind: Cli) -> None:
    ping = [requires("ping"), "-n", "-c", "3", "-i", "0.2", "-W", "1", "{address}"]
    ended = crosswind("exec", "--forward-loss", "100%", "--json", "--", *ping)
    assert ended.status == 1
    assert "3 packets transmitted, 0 received" in ended.out
    said = summary(ended)
    (only,) = said["repetitions"]
    assert (said["exit_status"], said["clock"]) == (1, "real")
    assert (only["forward"]["packets"], only["forward"]["dropped"], only["reverse"]["packets"]) == (3, {"loss": 3}, 0)
    assert only["time_ns"] > 1_000_000_000


def test_lost_segments_are_counted_as_retransmissions(crosswind: Cli) -> None:
    client = [*PYTHON, "import socket, sys; socket.create_connection((sys.argv[1], 9), 1.5)", "{address}"]
    ended = crosswind("exec", "--loss", "100%", "--json", "--", *client)
    assert ended.status == 1
    # The first SYN is sent again after one second (RFC 6298).
    assert summary(ended)["repetitions"][0]["tcp_retransmits"] == {"client": 1, "server": 0}


def test_ipv6_and_the_servers_name(crosswind: Cli, server: str) -> None:
    six = server.replace("server.py", "six.py")
    script = ECHO_SERVER.replace("(('', int(sys.argv[1])))", "(('::', int(sys.argv[1])), family=socket.AF_INET6)")
    (crosswind.cwd / "six.py").write_text(script, encoding="utf-8")
    client = [*PYTHON, ECHO_CLIENT.rpartition("    print(")[0], "server", "{port}"]
    ended = crosswind("exec", "--family", "ipv6", "--server", six, "--json", "--", *client)
    assert (ended.status, ended.out) == (0, "hello\n"), ended.err


def test_standard_input_is_the_clients(crosswind: Cli) -> None:
    command = crosswind.command("exec", "--", "cat")
    done = subprocess.run(command, env=crosswind.env, input="one", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "one")


def test_a_client_that_a_signal_ends(crosswind: Cli) -> None:
    ended = crosswind("exec", "--", "sh", "-c", "kill -9 $$")
    assert ended.status == 128 + signal.SIGKILL
    assert "crosswind: signal 9 (SIGKILL) after " in ended.err


def test_a_program_ends_its_own_process_group_alone(crosswind: Cli) -> None:
    server = f"sh -c 'trap : TERM; kill 0; exec {sys.executable} -m http.server {{port}}'"
    own = f"{sys.executable} -IS -c 'import os; print(os.getpgrp() == os.getppid())'"
    client = ["sh", "-c", f'trap "echo caught" TERM; kill 0; {own}; :']
    ended = crosswind("exec", "--server", server, "--", *client)
    assert (ended.status, ended.out) == (0, "caught\nTrue\n"), ended.err


def test_a_client_that_takes_too_long(crosswind: Cli) -> None:
    ended = crosswind("exec", "--timeout", "300ms", "--", "sleep", "1000")
    assert ended.status == 124
    assert "crosswind: the command was ended at its timeout" in ended.err


def test_a_client_that_forks_leaves_nothing(crosswind: Cli) -> None:
    script = "sleep 1000 & echo $!; exec sleep 1000 & exit 0"
    process = crosswind.start("exec", "--", "sh", "-c", script)
    ended = crosswind.end(process)  # Its end is that of whatever holds its output, too.
    assert ended.status == 0
    assert "crosswind: exit status 0 after " in ended.err


def test_a_client_that_writes_much_is_followed_by_its_reader(crosswind: Cli) -> None:
    command = crosswind.command("exec", "--", "head", "-c", "300000000", "/dev/zero")
    with subprocess.Popen(
        command, env=crosswind.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        count = 0
        while data := process.stdout.read(1 << 20):
            count += len(data)
    assert (count, process.returncode) == (300_000_000, 0)


def test_a_reader_that_leaves_ends_the_client(crosswind: Cli) -> None:
    words = ["sh", "-c", '"$@" | head -c 10; :', "sh", *crosswind.command("exec", "--", "yes")]
    done = subprocess.run(words, env=crosswind.env, capture_output=True, text=True, check=False)
    assert done.stdout == "y\n" * 5
    assert "crosswind: signal 13 (SIGPIPE) after " in done.stderr


@pytest.mark.parametrize("errors", ["2>/dev/full", "2>&-", "2>&1"])
def test_a_summary_that_nobody_reads_changes_no_exit_status(crosswind: Cli, errors: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = ["sh", "-c", f'exec "$@" {errors}', "sh", *crosswind.command("exec", "--", "sh", "-c", "exit 7")]
    done = subprocess.run(words, env=crosswind.env, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == 7


@pytest.mark.parametrize(("program", "status"), [("no-such-program", 127), ("./script", 126)])
def test_what_is_no_program(crosswind: Cli, program: str, status: int) -> None:
    (crosswind.cwd / "script").write_text("echo", encoding="utf-8")
    for words in (["--", program], ["--server", program, "--", "true"]):
        ended = crosswind("exec", *words)
        assert (ended.status, ended.out) == (status, "")
        message, hint = ended.err.splitlines()
        assert message.startswith("error: cannot ")
        assert program in message
        assert hint.startswith("hint: ")


def test_a_server_that_ends_at_once(crosswind: Cli) -> None:
    words = ["--server", "sh -c 'echo no such file: {port} >&2; exit 4'", "--", "true"]
    ended = crosswind("exec", *words)
    assert ended.status == 125
    message, _ = ended.err.splitlines()
    assert message == "error: the server program ended at once: exit status 4: no such file: 8000"


GETS_READY = """
import http.server, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        self.send_response(503 if Handler.asked < 3 else 200)
        self.end_headers()
        self.wfile.write(str(Handler.asked).encode())
        if Handler.asked == 3: print("serves", flush=True)
    def log_message(self, *_): pass
http.server.HTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.parametrize("ready", ["run:curl -sf http://{address}:{port}/", "log:serves"])
def test_listening_is_not_readiness(crosswind: Cli, ready: str) -> None:
    requires("curl")
    (crosswind.cwd / "server.py").write_text(GETS_READY, encoding="utf-8")
    # The sign in its output comes of somebody else's questions.
    asks = "for n in 1 2 3; do until curl -s http://127.0.0.1:{port}/; do sleep 0.1; done; done & "
    before = asks if ready.startswith("log") else ""
    server = f"sh -c '{before} exec {sys.executable} -IS server.py {{port}}'"
    client = ["curl", "-sf", "http://server:{port}/"]
    ended = crosswind("exec", "--ready", ready, "--server", server, "--", *client)
    assert (ended.status, ended.out) == (0, "4"), ended.err


def test_a_question_that_is_never_answered_well_is_quoted(crosswind: Cli) -> None:
    words = ["--ready", "run:echo not {port} >&2; false", "--start-timeout", "300ms", "--server", "sleep 1000"]
    ended = crosswind("exec", *words, "--output", "kept", "--", "true")
    question = "echo not 8000 >&2; false"
    said = f"within 0.3 s `{question}` has not ended with exit status 0: not 8000"
    message, hint = ended.err.splitlines()
    assert (ended.status, ended.out) == (125, "")
    assert message == f"error: the server program did not become ready (run:{question}): {said}"
    assert "--start-timeout" in hint
    assert not list((crosswind.cwd / "kept").rglob("*.answer"))


def test_a_command_waits_for_what_runs_beside_it(crosswind: Cli) -> None:
    """A program that prepares something, and one whose server takes its time."""
    asks = f"until {requires('curl')} -s http://server:8000/prepared; do sleep 0.05; done"
    prepares = f"program --ready exit -- sh -c '{asks}; echo 1 > prepared'"
    server = f"sh -c 'sleep 1; touch up; exec {sys.executable} -m http.server {{port}}'"
    company = f'program --server "{server}" -- sleep 100 {{port}}'
    own = f"{sys.executable} -m http.server {{port}}"
    words = ["--server", own, "--beside", prepares, "--beside", company]
    ended = crosswind("exec", *words, "--", "sh", "-c", "cat prepared; ls up")
    assert (ended.status, ended.out) == (0, "1\nup\n"), ended.err


FAILS_BESIDE = {
    "its server": (
        "program --server 'sh -c \"echo no {port} >&2; exit 3\"' -- sleep 100 {port}",
        "program, beside the workload, failed: the server program ended at once: exit status 3: no 7001",
    ),
    "its client": (
        f"program --server '{sys.executable} -m http.server {{port}}' -- sh -c 'echo no {{port}} >&2; exit 7'",
        "program, beside the workload, failed: the client program ended with exit status 7: no 7001",
    ),
    "what it prepares": (
        "program --ready exit -- sh -c 'echo no >&2; exit 9'",
        "program, beside the workload, failed: the client program ended at once: exit status 9: no",
    ),
}


@pytest.mark.parametrize("case", FAILS_BESIDE)
def test_a_command_without_the_company_that_was_asked_for_is_no_run(crosswind: Cli, case: str) -> None:
    beside, said = FAILS_BESIDE[case]
    ended = crosswind("exec", "--beside", beside, "--", "sleep", "1000")
    assert (ended.status, ended.out) == (125, "")
    message, hint = ended.err.splitlines()
    assert message.startswith(f"error: {said}")
    assert hint.startswith("hint: ")


def test_programs_have_variables_ports_and_a_certificate(crosswind: Cli) -> None:
    requires("openssl")
    server = "openssl s_server -quiet -accept {port:tls} -cert {cert} -key {key} -www"
    script = 'echo "$A|$B"; curl -sS -o /dev/null -w "%{ssl_verify_result}" --cacert "$CA" https://server:{port:tls}/'
    variables = ["--env", "A=1", "--env", "B=2 {port:tls}", "--env", "CA={ca}"]
    words = ["--ready", "tcp:{port:tls}", *variables, "--server", server, "--", "sh", "-c", script]
    ended = crosswind("exec", *words)
    assert (ended.status, ended.out) == (0, "1|2 8001\n0"), ended.err


def test_programs_run_as_another_user(crosswind: Cli) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may run programs as another user")
    ended = crosswind("exec", "--user", "nobody", "--", "sh", "-c", 'id -un; echo "$USER"; id -G')
    assert (ended.status, ended.out) == (0, "nobody\nnobody\n65534\n")
    ended = crosswind("exec", "--user", "no-such-user", "--", "true")
    assert ended.status == 125
    assert ended.err.startswith("error: cannot run programs as no-such-user: there is no such user\nhint: ")


def test_each_program_has_its_own_variables_and_user(crosswind: Cli) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may run programs as another user")
    script = '(id -un; printf "%s %s " "$ALL" "$SIDE"; head -c 10 {key}) > {output}/"$SIDE"'
    words = ["--env", "SIDE=both", "--env", "ALL=1", "--client-env", "SIDE=client", "--server-env", "SIDE=server"]
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        for number, (users, expected) in enumerate(USERS_OF_ENDS):
            output = Path(directory, str(number))
            server = ["--ready", "exit", "--server", f"sh -c '{script}'"]
            ended = crosswind("exec", "--output", str(output), *users, *words, *server, "--", "sh", "-c", script)
            assert ended.status == 0, ended.err
            for end, user in zip(("client", "server"), expected, strict=True):
                (file,) = output.glob(f"cells/*/output/{end}")
                assert file.read_text(encoding="utf-8") == f"{user}\n1 {end} -----BEGIN"


USERS_OF_ENDS = [
    (["--server-user", "nobody"], ("root", "nobody")),
    (["--user", "nobody", "--client-user", "root"], ("root", "nobody")),
    (["--user", "nobody", "--server-user", "daemon"], ("nobody", "daemon")),
]
"""Options, and as whom the client and the server run."""


@pytest.mark.parametrize("place", ["/tmp", "/var/lib"])
def test_each_host_has_a_name_and_files_of_its_own(crosswind: Cli, place: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("/run and /var/lib are root's")
    with tempfile.TemporaryDirectory(dir=place) as cwd:
        here = Cli(Path(cwd), crosswind.capture)
        name = f"{here.cwd.name}-own"
        ended = here("exec", "--ready", "exit", "--server", hosts_file(name), "--", "sh", "-c", hosts_file(name)[7:-1])
        assert ended.status == 0, ended.err
        assert ended.out.splitlines() == ["client", "198.18.0.1      client", "one of one", "found"]
        # What they write where people look for it is there.
        assert sorted(path.read_text(encoding="utf-8") for path in here.cwd.iterdir()) == ["client\n", "server\n"]
    assert not any(Path(own, name).exists() for own in ("/run", "/var/lib", "/var/run"))


def test_repetitions_have_a_line_each(crosswind: Cli, server: str) -> None:
    client = [*PYTHON, ECHO_CLIENT.rpartition("    print(")[0], "{address}", "{port}"]
    ended = crosswind("exec", "--repetitions", "2", "--server", server, "--output", "kept", "--", *client)
    assert (ended.status, ended.out) == (0, "hello\nhello\n")
    head, first, second, *_ = ended.err.splitlines()
    assert re.fullmatch(r"crosswind: 2 repetitions, 0 of them failed, .* to .*, median .*, real time", head)
    assert first.startswith("  #1: exit status 0 after ")
    assert second.startswith("  #2: exit status 0 after ")
    assert crosswind("report", "kept").status == 0


def test_a_capture_has_the_clients_packets(crosswind: Cli) -> None:
    ping = [requires("ping"), "-n", "-c", "1", "{address}"]
    ended = crosswind("exec", "--capture", "here.pcapng", "--", *ping)
    assert ended.status == 0
    text = (crosswind.cwd / "here.pcapng").read_bytes()
    assert text[:4] == b"\x0a\x0d\x0d\x0a"  # A section header block (pcapng, section 4.1).
    assert text.count(bytes([198, 18, 0, 1, 198, 18, 0, 2])) == 1  # The request.


def test_a_capture_goes_into_a_pipe_and_not_to_standard_output(crosswind: Cli, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Read and written to, so that neither end waits for the other.
    ends = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    ended = crosswind("exec", "--capture", str(pipe), "--", requires("ping"), "-c", "1", "server")
    read = os.read(ends, 65536)
    os.close(ends)
    assert (ended.status, pipe.is_fifo()) == (0, True), ended.err
    assert read[:4] == bytes.fromhex("0a0d0d0a")
    ended = crosswind("exec", "--capture", "-", "--", "true")
    assert (ended.status, ended.err.splitlines()[0]) == (2, "error: --capture -: standard output is the command's own")


def test_a_machine_without_a_kernel_of_virtual_time(crosswind: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_KERNELS", str(crosswind.cwd))
    ended = crosswind("exec", "--clock", "virtual", "--", "true")
    assert (ended.status, ended.out) == (125, "")
    message, hint, *_ = ended.err.splitlines()
    assert message.startswith("error: ")
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_ends_it_ends_everything(
    crosswind: Cli, server: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    temporary = crosswind.cwd / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    process = crosswind.start("exec", "--server", server, "--", "sh", "-c", "sleep 1000; :")
    wait_until(lambda: running_cells(process) and any(_name(one) == "sleep" for one in descendants_of(process.pid)))
    everything = descendants_of(process.pid)
    process.send_signal(number)
    ended = crosswind.end(process)
    assert (ended.status, ended.err) == ((-9, "") if number == signal.SIGKILL else (130, "interrupted\n"))
    wait_until(lambda: not any(map(is_running, everything)))
    # What SIGKILL ends cannot remove its files: those of the command, and the keys of its programs. The next one does.
    assert len(list(temporary.iterdir())) == (2 if number == signal.SIGKILL else 0)
    assert crosswind.end(crosswind.start("exec", "--", "true")).status == 0
    assert list(temporary.iterdir()) == []


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def test_nothing_is_kept_unless_asked(crosswind: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = crosswind.cwd / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    assert crosswind("exec", "--", "true").status == 0
    assert list(temporary.iterdir()) == []
    assert list(crosswind.cwd.iterdir()) == [temporary]
