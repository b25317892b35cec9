"""Networks that are replayed from files, in place of a name: formats, what is refused, what a study says of them."""

from pathlib import Path
from typing import Any

import pytest

from cells import checked
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.network_files import TRACES
from study_texts import ECHO, study

DELIVERIES, TABLE, LIGHT = "1\n1\n5\n", "time,rate,delay\n0,10,20\n1,5,30\n", "0 20 0 5\n1000 30 0 7\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.up": DELIVERIES, "a.down": "2\n", "a.csv": TABLE, "light": LIGHT, "b c.csv": "0 5\n"}.items():
        Path(name).write_text(text, encoding="utf-8")


def path_of(network: str, more: str = "") -> dict[str, Any]:
    (cell,) = checked(study(f"[path]\nnetwork = {network}\n{more}{ECHO}"))
    return dict(cell.parameters["path"])


def test_a_file_of_deliveries_is_a_link_of_its_direction() -> None:
    path = path_of('{ up = "a.up", down = "a.down" }', 'delay = "3ms"\n')
    assert (path["forward"]["delivery_trace"], path["reverse"]["delivery_trace"]) == ([1, 1, 5], [2])
    assert path["forward"]["delay_ns"] == 3_000_000
    both = path_of('{ trace = "a.up" }')
    assert both["forward"]["delivery_trace"] == both["reverse"]["delivery_trace"] == [1, 1, 5]


def test_a_table_changes_the_path_over_time() -> None:
    (change,) = path_of('{ trace = "a.csv" }')["changes"]
    assert (change["trace"], change["of"]) == (str(Path("a.csv").absolute()), "both")
    (change,) = path_of('{ down = "bus" }')["changes"]
    assert (change["trace"], change["of"]) == (str(TRACES / "bus.csv"), "reverse")
    # A hop may have such a network as well.
    hops = '[[path.hop]]\nname = "air"\nnetwork = { trace = "a.csv" }\n[[path.hop]]\nname = "line"\nnetwork = "lan"\n'
    (cell,) = checked(study(hops + ECHO))
    assert [change["hop"] for change in cell.parameters["path"]["changes"]] == ["air"]


def test_a_recording_of_cellreplay_has_light_and_busy_deliveries() -> None:
    path = path_of('{ up_light = "light", up = "a.up", down = "a.down" }')
    assert path["forward"]["delivery_trace"] == [1, 1, 5]
    (change,) = path["changes"]
    assert (change["trace"], change["of"]) == (str(Path("light").absolute()), "forward")


def test_the_command_line_says_the_same_in_a_text() -> None:
    adhoc = Study.adhoc("echo", {"path.network": "up=a.up down=a.down"}, flags={"path.network": "--network"})
    (cell,) = checked(adhoc)
    assert cell.parameters["path"] == path_of('{ up = "a.up", down = "a.down" }')
    levels = study('[path]\nnetwork = ["4g", "trace=a.csv", { trace = "b c.csv" }]\n' + ECHO)
    assert levels.factors == {"path.network": ("4g", "trace=a.csv", "trace='b c.csv'")}
    assert Study.from_toml(levels.to_toml(), name="my").factors == levels.factors


def test_a_note_names_the_files() -> None:
    (note,) = study(f'[path]\nnetwork = {{ trace = "a.csv" }}\n{ECHO}').network_notes
    assert note == (
        "Network trace=a.csv (a recorded network) sets path.at.trace = (trace a.csv, of both). Numbers: trace: "
        "trace=a.csv."
    )


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("{ trase = 'a.csv' }", '"trase" is no key of a network'),
        ("{ trace = 5 }", "5 is not the path of a file"),
        ("{}", "the network names no file"),
        ("{ trace = 'a.csv', up = 'a.up' }", "trace is of both directions, and up or down of one"),
        ("'trace=a.csv bus'", '"trace=a.csv bus" is not trace=FILE'),
        ('"trace=\'a.csv"', "cannot be split: No closing quotation"),
        ("'teleport'", '"teleport" is no network'),
    ],
)
def test_what_is_no_network_of_files_is_refused(network: str, message: str) -> None:
    with pytest.raises(StudyError, match=r"^my.toml:2: path.network: ") as caught:
        path_of(network)
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 is the last, and there is no row before it"),
        ("0 1\n0 2\n", "line 2 has the time 0, which is not after the one before it"),
        ("1\n2\nx\n", "has no number in line 3 of "),
        ("3\n1\n", "has 1 as number 2, which is before the 3 in front of it"),
        ("0 20 0 5\n3 x\n", "line 2 has x for a time in ms"),
        ("\x00\x01PK", "line 1 has no column beside the time"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_its_line(text: str, message: str) -> None:
    Path("bad").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=r"^my.toml:2: path.network \(trace=bad\): ") as caught:
        path_of('{ trace = "bad" }')
    assert message in caught.value.message
    with pytest.raises(StudyError, match="cannot be read from"):
        path_of('{ trace = "none.csv" }')
