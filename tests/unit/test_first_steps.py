"""A first command line: nothing at all, a study on standard input, `--quick` of a study without `[quick]`."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.study.precision import FIRST_LOOK
from fixture_types import Crosswind
from study_texts import ECHO, study


class Input(io.TextIOWrapper):
    """A standard input with these bytes. Args: terminal: whether somebody sits at it."""

    def __init__(self, data: bytes, *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(data))
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Puts bytes on standard input."""
    return lambda data: monkeypatch.setattr("sys.stdin", Input(data))


def test_no_command_at_all_prints_the_help(crosswind: Crosswind) -> None:
    status, out, err = crosswind()
    assert (status, err) == (0, "")
    assert out == crosswind("--help")[1]
    assert "Commands:" in out


def test_a_study_comes_from_standard_input(crosswind: Crosswind, type_in: Callable[[bytes], None]) -> None:
    text = (ECHO + 'size = [1, 2]\n[path]\ndelay = "1ms"\n').encode()
    type_in(text)
    plan = json.loads(crosswind("plan", "-", "--json", "--loss", "1%")[1])
    assert (plan["name"], len(plan["cells"])) == ("stdin", 2)
    type_in(text)
    assert crosswind("show", "-", "--toml")[1].startswith("[workload]\n")


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b"", "standard input: there is no study", "crosswind run - < my-study.toml"),
        (b" \n\n", "standard input: there is no study", "crosswind run - < my-study.toml"),
        (b"\xff\xfe", "standard input:1: not UTF-8 text", "save the file as UTF-8"),
        (ECHO.encode() + b"sise = 1\n", "standard input:3: workload.sise: unknown key", 'did you mean "size"?'),
        (b"title = ", "standard input:1: not TOML", "a line is"),
        (b"#" * 1_000_001, "standard input: more than 1,000,000 bytes", "a study is a short text"),
    ],
)
def test_a_wrong_standard_input_is_named(
    crosswind: Crosswind, type_in: Callable[[bytes], None], data: bytes, message: str, hint: str
) -> None:
    type_in(data)
    status, out, err = crosswind("run", "-")
    assert (status, out) == (2, "")
    first, second = err.splitlines()
    assert first.startswith(f"error: {message}")
    assert second.startswith(f"hint: {hint}")
    assert not Path("crosswind-runs").exists()


def test_nobody_waits_for_a_study_that_is_typed(crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Input(b"", terminal=True))
    assert crosswind("plan", "-")[2].startswith("error: standard input is a terminal, not a study\n")
    monkeypatch.setattr("sys.stdin", None)
    assert crosswind("plan", "-")[2].startswith("error: standard input is a terminal, not a study\n")


MANY = ECHO + "[study]\nrepetitions = 30\n"
PRECISE = MANY + 'repetitions_max = 90\n[[precision]]\ntarget = "5%"\n'


def test_quick_without_a_table_takes_two_repetitions_and_no_precision() -> None:
    quick = study(MANY).quick()
    assert quick.repetitions == 2
    said = "the study has no [quick] table, so each cell runs twice"
    assert study(MANY).quick_without_table == said
    assert quick.notes == (f"Quick variant: {said}.",)
    precise = study(PRECISE)
    assert precise.looks_of(next(precise.cells()))[0] == 30 > FIRST_LOOK
    assert precise.quick().repetitions_of(next(precise.cells())) == 2
    assert precise.quick_without_table == f"{said}, whatever [[precision]] asks for"
    # What is measured differs, so that a quick run is never gone on with as a full one.
    assert precise.quick().digest() != precise.digest()


def test_quick_may_change_nothing_and_says_so() -> None:
    assert study(ECHO).quick().digest() == study(ECHO + "[study]\nrepetitions = 1\n").digest()
    assert study(ECHO).quick_without_table == (
        "the study has no [quick] table and one repetition of each cell, so --quick changes nothing"
    )
    assert "and 2 repetitions of each cell" in str(study(ECHO + "[study]\nrepetitions = 2\n").quick_without_table)
    assert study(MANY + '[quick]\n"study.repetitions" = 3\n').quick_without_table is None


def test_the_command_line_says_what_quick_does_without_a_table(crosswind: Crosswind) -> None:
    Path("s.toml").write_text(MANY, encoding="utf-8")
    status, out, err = crosswind("plan", "s.toml", "--quick", "--json", "--clock", "real")
    assert (status, json.loads(out)["runs"]) == (0, 2)
    assert err == "quick: the study has no [quick] table, so each cell runs twice\n"
    assert "quick        the study has no [quick] table" in crosswind("show", "s.toml")[1]
    assert "quick:" not in crosswind("plan", "quickstart", "--quick")[2]
