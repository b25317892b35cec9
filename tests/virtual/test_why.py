"""What two runs differ by, and at which packet they part, where both are known."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import crosswind
from crosswind.cli.compare import command
from crosswind.errors import StoreError
from crosswind.study.design import Study
from virtual.conftest import requires_kernel

SETTINGS = {
    "host.clock": "virtual",
    "host.congestion_control": "cubic",
    "study.repetitions": "1",
    "workload.messages": "10",
    "workload.transport": "tcp",
    "path.delay": "20ms",
}


@pytest.fixture(autouse=True)
def _kernel() -> None:
    requires_kernel()


def run(place: Path, *, packets: bool = True, **changed: object) -> Path:
    settings = SETTINGS | {key.replace("__", "."): value for key, value in changed.items()}
    return crosswind.run(Study.adhoc("echo", settings), output=place, packets=packets).directory


def compared(a: Path, b: Path, *options: str) -> Result:
    return CliRunner().invoke(command, [str(a), str(b), "--why", *options])


def sentences(result: Result) -> str:
    assert result.exception is None, result.exception
    return " ".join(result.output.split())


def test_a_lost_packet_is_where_two_runs_part(tmp_path: Path) -> None:
    a = run(tmp_path / "a")
    (tmp_path / "lost").write_text("4\n")
    # Packet 0 and 1 open the connection; 4 is the request of exchange 1, behind the acknowledgement of reply 0.
    b = run(tmp_path / "b", path__forward__lose=f"@{tmp_path / 'lost'}")
    said = sentences(compared(a, b))
    assert "1 of 10 pairs of exchanges differ." in said
    assert "is exchange" in said and "more of it is the tail loss probe" in said
    assert "part at packet 4 to the server" in said and "delivered in A, dropped by loss in B." in said


def test_a_longer_way_is_named_with_its_exact_length(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a"), run(tmp_path / "b", path__forward__delay="25ms")
    said = sentences(compared(a, b))
    assert (
        "Exchanges take 5 ms longer in B: 5 ms propagation to the server. 10 of 10 pairs of exchanges differ." in said
    )
    assert "part at packet 0 to the server, during exchange 0: 20 ms in the path in A, 25 ms in B." in said


def test_without_packets_the_parts_are_known_alone(tmp_path: Path) -> None:
    a, b = (run(tmp_path / name, packets=False, path__delay=delay) for name, delay in (("a", "20ms"), ("b", "30ms")))
    said = sentences(compared(a, b))
    assert (
        "Exchanges take 20 ms longer in B: 10 ms propagation to the server and 10 ms propagation to the client." in said
    )
    assert "At which packet they part is not known: run both with --packets." in said


def test_the_same_run_again_differs_in_nothing(tmp_path: Path) -> None:
    said = sentences(compared(run(tmp_path / "a"), run(tmp_path / "b")))
    assert "Every exchange takes as long in B as in A: 10 pairs of exchanges." in said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"path__loss": "5%", "study__seed": "7"}, "no repetition has the same seed in A and B"),
        ({"path__backend": "direct", "path__delay": "0"}, "nothing tells what the time of exchanges of B was spent on"),
    ],
)
def test_what_cannot_be_paired_is_said(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    a = run(tmp_path / "a", path__loss="5%")
    b = run(tmp_path / "b", packets="path__backend" not in changed, **changed)
    error = compared(a, b).exception
    assert isinstance(error, StoreError)
    assert error.message == f"--why: {said}" and error.hint
