"""pytest-crosswind as those who use it see it: tests of theirs, run by a pytest of their own."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

PEERS = """
import socket, time

def serve(address, port):
    with socket.create_server((address, port)) as listener:
        while True:
            connection, _ = listener.accept()
            while data := connection.recv(65536):
                connection.sendall(data)

def ask(address, port):
    times = []
    with socket.create_connection((address, port)) as connection:
        for _ in range(20):
            begun = time.perf_counter()
            connection.sendall(b"x")
            connection.recv(1)
            times.append(time.perf_counter() - begun)
    print("asked")
    return {"times_s": times}

def send_datagrams(address, port):
    with socket.socket(type=socket.SOCK_DGRAM) as sender:
        for _ in range(5):
            sender.sendto(b"x", (address, port))

async def wait(address, port):
    import asyncio
    await asyncio.sleep(100)
    return [address, port]

def break_down(address, port):
    raise ValueError("this is broken")

def return_a_set(address, port):
    return {1}
"""

Run = Callable[..., pytest.RunResult]


BEFORE = """
import json, os, pytest
from pytest_crosswind import ms, s
from peers import *
"""


@pytest.fixture
def run(plugin: None, pytester: pytest.Pytester) -> Run:
    """Runs the tests of a text, which find the functions above in `peers`, in a pytest with the plugin."""
    pytester.makepyfile(peers=PEERS)

    def run_tests(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_theirs=BEFORE + text)
        return pytester.runpytest_subprocess("-p", "pytest_crosswind.plugin", "-p", "no:cacheprovider", "-v", *options)

    return run_tests


def passes(result: pytest.RunResult, count: int) -> None:
    result.assert_outcomes(passed=count)


def test_a_result_has_times_packets_drops_and_output(run: Run) -> None:
    passes(
        run(
            """
def test_echoes(net):
    result = net.run(client=ask, server=serve, delay="20ms")
    assert result.status == 0
    assert result.output == "asked\\n"
    times = result.value["times_s"]
    assert len(times) == 20
    assert all(40 * ms <= time < 40.1 * ms for time in times)
    # The handshake and 20 round trips; closing takes none.
    assert 21 * 40 * ms <= result.time < 21 * 40 * ms + 1 * ms
    assert result.times == [result.time]
    assert result.drops == {} and result.retransmissions == 0
    # SYN, ACK, 20 requests and FIN; an acknowledgement of a reply travels with the next request.
    assert result.forward.packets >= 23 and result.packets == result.forward.packets + result.reverse.packets
    assert result.clock == "virtual" and result.valid

def test_drops(net):
    result = net.run(client=send_datagrams, forward_loss="100%")
    assert (result.forward.packets, result.forward.drops, result.reverse.packets) == (5, {"loss": 5}, 0)
    assert (result.value, result.output) == (None, "")

def test_an_async_function(net):
    result = net.run(client=wait)
    assert 100 * s <= result.time < 101 * s
    assert result.value == ["198.18.0.2", 8000]

def test_commands(net):
    result = net.run(["echo", "{address}", "{port}"], port=99)
    assert result.output == "198.18.0.2 99\\n"
    assert net.run(client="sh -c 'echo no >&2; exit 3'", check=False).status == 3
    slow = net.run(client=["sleep", "100"], timeout="2s", check=False)
    assert (slow.status, slow.time, slow.repetitions[0].timed_out) == (124, None, True)

def test_company(net):
    path = dict(rate="1mbit", delay="10ms", queue="20p")
    alone = net.run(client=ask, server=serve, **path)
    company = net.run(client=ask, server=serve, beside=["transfer --transport tcp --congestion-control reno"], **path)
    assert company.time > 2 * alone.time
    assert [flow["name"] for flow in company.flows] == ["the command", "transfer"]
    assert sum(flow["forward"]["delivered_bytes"] for flow in company.flows) == company.forward.delivered_bytes
    assert alone.flows == []
"""
        ),
        5,
    )


NUMBERS = """
@pytest.mark.network(loss="5%", delay="20ms")
def test_numbers(net):
    for seed in (1, 2):
        result = net.run(client=ask, server=serve, seed=seed, repetitions=2)
        times = [one.value["times_s"] for one in result.repetitions]
        with open(os.environ["NUMBERS"], "a") as file:
            print(json.dumps([times, result.times, result.packets, result.bytes, result.drops]), file=file)
"""


def test_the_same_seed_gives_the_same_numbers(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBERS", str(tmp_path / "numbers"))
    for _ in range(2):
        passes(run(NUMBERS), 1)
    first, other, *again = (tmp_path / "numbers").read_text(encoding="utf-8").splitlines()
    assert again == [first, other]
    assert first != other
    times = json.loads(first)[0]
    assert times[0] != times[1]  # Repetitions meet other losses.


def test_a_bound_is_kept_by_the_whole_interval(run: Run) -> None:
    passes(
        run(
            """
def test_bounds(net):
    result = net.run(client=ask, server=serve, delay="20ms", loss="5%", repetitions=6)
    assert result.median < 41 * ms and result.median > 39 * ms and 41 * ms > result.median
    assert not result.median < 39 * ms and not result.median > 41 * ms
    # Some of them waited for a retransmission, which takes 200 ms at least.
    assert result.mean.low < 60 * ms < result.mean.value
    assert not result.mean < 60 * ms and not result.mean > 60 * ms
    assert (result.median.n, result.median.repetitions) == (120, 6)
    assert (result.p95.low, result.p95.high) == (pytest.approx(40 * ms, rel=1e-3), None)
    for comparison in (lambda: result.median == 0.04, lambda: result.median < result.mean, lambda: result.mean < "1"):
        with pytest.raises(TypeError):
            comparison()
    with pytest.raises(AssertionError) as beyond:
        assert result.median < 39 * ms
    assert "median client's own exchange time 40.00" in str(beyond.value)
    assert "ms (n = 120, 6 repetitions) < 39 ms\\n" in str(beyond.value)
    assert "Fail: median client's own exchange time is 40.00" in str(beyond.value)
    with pytest.raises(AssertionError) as beyond:
        assert 1 * s >= result.p95
    assert "(n = 120, 6 repetitions) <= 1 s\\n" in str(beyond.value)
    assert "; an interval of p95 needs 20 repetitions, there are 6: 14 more" in str(beyond.value)
"""
        ),
        1,
    )


def test_mistakes_fail_the_test_with_what_to_do(run: Run) -> None:
    result = run(
        """
def test_exception(net):
    net.run(client=break_down)
def test_no_json(net):
    net.run(client=return_a_set)
def test_server_exception(net):
    net.run(client=ask, server=break_down)
def test_lambda(net):
    net.run(client=lambda address, port: None)
def test_not_found(net):
    net.run(client=["no-such-program"])
def test_deaf(net):
    net.run(client=["true"], server=["sleep", "{port}"])
def test_unknown(net):
    net.run(client=["true"], los="2%")
def test_wrong(net):
    net.run(client=["true"], loss="2x%")
def test_several(net):
    net.run(client=["true"], loss=["0%", "2%"])
def test_placeholder(net):
    net.run(client=["echo", "{adress}"])
def test_status(net):
    net.run(client=["sh", "-c", "echo last words >&2; exit 4"])
"""
    )
    result.assert_outcomes(failed=11)
    result.stdout.fnmatch_lines(
        [
            "E *ClientFailedError: the client ended with exit status 1",
            "E *, line *, in break_down",
            "E *ValueError: this is broken",
            "E *return_a_set returned {1}, which cannot be written as JSON: *",
            "E *Failed: the server program ended at once: exit status 1: *",
            "E *the server's standard error:",
            "E *ValueError: this is broken",
            "E *Failed: the client test_lambda.<locals>.<lambda> cannot be called in a process of its own*",
            "E *hint: a lambda, *",
            "E *Failed: cannot find the program no-such-program",
            "E *hint: is it installed, and on the PATH?",
            "E *Failed: the server program does not listen on port 8000: nobody did within 30 s",
            "E *Failed: net.run() has no setting 'los'",
            'E *hint: did you mean "loss"?',
            'E *Failed: loss 2x%: "2x%": *',
            "E *Failed: net.run() runs on one path, and loss has several values: *",
            "E *hint: @pytest.mark.network(loss=*) runs the test once for each of them",
            "E *Failed: client has {adress}, which is not a placeholder",
            "E *ClientFailedError: the client ended with exit status 4",
            "E *last words",
        ]
    )
    assert "pytest_crosswind/net.py" not in result.stdout.str()  # Whoever wrote the test sees the test alone.


def test_a_machine_that_can_run_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def test_it(net):\n    net.run(client=['true'])\n"
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path))
    result = run(text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *Failed: there is no kernel of virtual time in *", "E *hint: *make kernel*"])
    skipped = run(text, "--crosswind-skip", "-rs")
    skipped.assert_outcomes(skipped=1)
    skipped.stdout.fnmatch_lines(["SKIPPED * there is no kernel of virtual time in *"])
    monkeypatch.setenv("CROSSWIND_CELL", str(tmp_path / "absent"))
    missing = run(text)
    missing.stdout.fnmatch_lines(["E *Failed: CROSSWIND_CELL is *, which is not a program that can be run"])


FACTORS = """
@pytest.mark.network(delay="20ms", repetitions=2)
class TestFactors:
    @pytest.mark.network(loss=["0%", "100%"], family=["ipv6"])
    def test_levels(self, net, request):
        result = net.run(client=["true"], loss="0%")
        assert result.drops == {} and len(result.repetitions) == 2
        assert request.node.name in ("test_levels[loss=0%,family=ipv6]", "test_levels[loss=100%,family=ipv6]")

@pytest.mark.network(forward_loss=["0%", "100%"])
def test_drops(net, request):
    drops = net.run(client=send_datagrams).forward.dropped
    assert drops == (5 if "100%" in request.node.name else 0)
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "xdist"])
def test_a_marker_sets_factors(run: Run, options: tuple[str, ...]) -> None:
    result = run(FACTORS, *options)
    passes(result, 4)
    result.stdout.fnmatch_lines_random(
        [
            "*test_levels?loss=100%,family=ipv6? *PASSED*"
            if not options
            else "*PASSED*test_levels?loss=100%,family=ipv6?*"
        ]
    )


def test_a_wrong_marker_is_refused_before_anything_runs(run: Run) -> None:
    result = run("@pytest.mark.network(los='2%')\ndef test_it(net):\n    pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_it: the marker network has no setting 'los'", 'hint: did you mean "loss"?'])


KEPT = """
def test_passes(net):
    net.run(client=["true"])
    net.run(client=["true"])
@pytest.mark.network(loss=["2%"])
def test_fails(net):
    net.run(client=["false"])
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "xdist"])
def test_reports_are_kept_where_asked(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    reports = tmp_path / "reports"
    for _ in range(1 if options else 2):  # A second session replaces the runs of the first.
        result = run(KEPT, f"--crosswind-report={reports}", *options)
        result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"network tests: {reports}/index.html"])
    kept = sorted(path.name for path in reports.iterdir() if path.is_dir())
    assert [name.rpartition("-")[0] for name in kept] == [
        "test_theirs.py-test_fails-loss=2",
        "test_theirs.py-test_passes",
        "test_theirs.py-test_passes-" + kept[1].rpartition("-")[2],
    ]
    for name in kept:
        page = (reports / name / "report.html").read_text(encoding="utf-8")
        assert "test_theirs.py::test_" in page
    listed = rows_of((reports / "index.html").read_text(encoding="utf-8"))
    assert [(test.split()[0], verdict, links) for test, verdict, links in listed] == [
        ("test_theirs.py::test_fails[loss=2%]", "failed", {"run 1": kept[0]}),
        ("test_theirs.py::test_passes", "passed", {"run 1": kept[1], "run 2": kept[2]}),
    ]
    assert "the client ended with exit status 1" in listed[0][0]


def test_a_test_that_crashes_its_process_is_listed_with_its_run(run: Run, tmp_path: Path) -> None:
    text = "def test_crashes(net):\n    net.run(client=['true'])\n    os._exit(1)\ndef test_other():\n    os._exit(1)\n"
    run(text, f"--crosswind-report={tmp_path}", "-p", "xdist", "-n", "1").assert_outcomes(failed=2)
    ((test, verdict, links),) = rows_of((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert (test.split()[0], verdict, list(links)) == ("test_theirs.py::test_crashes", "failed", ["run 1"])
    assert "crashed while running" in test


def rows_of(page: str) -> list[tuple[str, str, dict[str, str]]]:
    """The rows of a page of reports: test and why it failed, verdict, and the directory that each link leads into."""
    found = []
    for row in re.findall(r"<tr.*?</tr>", page.partition("<tbody>")[2], re.DOTALL):
        test, verdict, reason, links = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        named = re.findall(r'<a href="([^"]*)/report.html">([^<]*)</a>', links)
        text = " ".join(html.unescape(re.sub("<[^>]*>", " ", f"{test} {reason}")).split())
        found.append((text, verdict, {words: unquote(place) for place, words in named}))
    return found


def test_else_the_runs_of_failing_tests_are_kept(run: Run, tmp_path: Path) -> None:
    result = run(KEPT, "--basetemp", str(tmp_path / "base"))
    result.assert_outcomes(passed=1, failed=1)
    (kept,) = {path.parent.resolve() for path in (tmp_path / "base").glob("*/*/manifest.json")}
    assert kept.parent.name.startswith("test_fails")
    result.stdout.fnmatch_lines([f"crosswind report {kept}"])


def test_round_trips_of_a_client_are_counted(run: Run) -> None:
    result = run(
        """
def test_trips(net):
    result = net.run(ask, serve, delay="5ms")
    # One for the connection, and twenty questions.
    assert round(result.round_trips.trips, 3) == 21
    assert result.round_trips.delays == ("15ms", "35ms", "105ms")
    assert result.round_trips.deviation < 1e-4

def test_of_a_network(net):
    net.run(ask, serve, network="lan").round_trips
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*result.round_trips varies delay, and network sets another*"])
