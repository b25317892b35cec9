"""Keys that are set anew over a study: `--set`, the options of a command line, `[quick]`."""

import pytest

from cells import delays_ns
from crosswind.errors import StudyError
from crosswind.study.design import Study
from study_texts import ISSUE_EXAMPLE, PARTS, study


def test_overrides_take_the_same_keys_and_values() -> None:
    read = study(ISSUE_EXAMPLE).with_overrides(
        {"path.loss": "0%,2%,5%", "workload.transport": "tcp", "study.repetitions": "2", "host.sack": "false"}
    )
    assert read.factors == {"path.loss": ("0%", "2%", "5%"), "workload.size": ("1", "1000")}
    assert read.repetitions == 2
    assert next(read.cells()).settings["host.sack"].value is False
    assert study(ISSUE_EXAMPLE).factors["path.loss"] == ("0%", "5%")


def test_an_override_reaches_every_part_that_sets_the_key() -> None:
    read = study(PARTS).with_overrides({"workload.size": "5", "path.delay": "2ms", "part.small.workload.messages": "9"})
    assert {cell.settings["workload.size"].value for cell in read.cells()} == {5}
    assert {sum(delays_ns(cell).values()) for cell in read.cells()} == {4_000_000}
    messages = [cell.settings.get("workload.messages") for cell in read.cells()]
    assert [level and level.value for level in messages] == [9, 9, None, None]


def test_a_direction_can_be_overridden_beside_the_whole() -> None:
    read = study(PARTS).with_overrides({"path.forward.delay": "8ms", "path.delay": "2ms"})
    assert {"path.forward": 8_000_000, "path.reverse": 2_000_000} in [delays_ns(cell) for cell in read.cells()]


@pytest.mark.parametrize(("text", "series"), [("0", (0,)), ("[3]", (3,)), ("[0, 3]", (0, 3)), ("0,3", (0, 3))])
def test_a_series_is_a_list_as_in_a_file_or_numbers(text: str, series: tuple[int, ...]) -> None:
    (cell, *_) = study(PARTS).with_overrides({"path.forward.lose": text}).cells()
    assert cell.settings["path.forward.lose"].value == series


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"path.loss": "0%,200%"}, '--set path.loss=0%,200%: "200%" is more than 100%'),
        ({"path.loss": "0%,,2%"}, "--set path.loss=0%,,2%: path.loss: a level is empty"),
        ({"path.los": "1%"}, '--set path.los=1%: there is no key "path.los"'),
        ({"part.smal.workload.size": "1"}, '--set part.smal.workload.size=1: there is no part "smal"'),
        ({"study.seed": "x"}, '--set study.seed=x: "x" is wrong'),
        ({"workload.client": "'"}, "--set workload.client=': \"'\" is not a client"),
        ({"workload.client": "{ a"}, '--set workload.client={ a: "{ a" is not a value of TOML'),
    ],
)
def test_mistakes_in_overrides_name_the_option(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(PARTS).with_overrides(overrides)
    assert caught.value.message == message


def test_adhoc_studies() -> None:
    options = {"workload.transport": "tcp,udp", "path.delay": "10ms", "path.loss": "0%,5%", "workload.size": "1,1000"}
    read = Study.adhoc("echo", options)
    assert len(read) == 8
    assert read.name == "echo"
    with pytest.raises(StudyError) as caught:
        Study.adhoc("echo", {"path.loss": "101%"}, flags={"path.loss": "--loss"})
    assert caught.value.message == '--loss 101%: "101%" is more than 100%'
    with pytest.raises(StudyError, match=': "\'" is not a command: No closing quotation'):
        Study.adhoc("program", {"workload.client": "'"})
    with pytest.raises(StudyError, match='"eco" is not one of echo'):
        Study.adhoc("eco", {})


def test_quick() -> None:
    read = study(PARTS + '[quick]\n"workload.messages" = 1\n"part.bulk.workload.size" = "1kB"\n').quick()
    assert len(read) == 4
    assert read.factors["path.loss"] == ("0%", "5%")
    assert next(read.cells()).settings["workload.messages"].value == 1
