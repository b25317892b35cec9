"""`[[exclude]]`: combinations that are no cells, in the design, the plan and the report."""

import json
from pathlib import Path

import pytest

from cells import checked
from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.study.design import Study
from crosswind.study.plan import Plan
from fixture_types import Crosswind
from study_texts import ECHO, LIMITS, PARTS, study

GRID = '[path]\nloss = ["0%", "5%"]\ndelay = ["1ms", "5ms", "9ms"]\n' + ECHO
ONE = '[[exclude]]\nwhere = { "path.loss" = "5%", "path.delay" = "9000us" }\nreason = "It takes too long."\n'


def levels(found: Study) -> list[tuple[str, ...]]:
    return [tuple(cell.levels.values()) for cell in found.cells()]


def test_a_combination_that_is_excluded_is_no_cell() -> None:
    found = study(GRID + ONE)
    assert levels(found) == [("1ms", "0%"), ("1ms", "5%"), ("5ms", "0%"), ("5ms", "5%"), ("9ms", "0%")]
    assert [cell.index for cell in found.cells()] == [0, 1, 2, 3, 4]
    assert len(found) == 5
    assert {item.cell.index for item in Plan.of(found)} == {0, 1, 2, 3, 4}
    assert len(checked(found)) == 5
    (exclusion,) = found.exclusions
    assert exclusion.text == "1 of 6 combinations: path.loss = 5% and path.delay = 9000us (It takes too long)"


def test_several_tables_may_fit_the_same_combination() -> None:
    found = study(GRID + ONE + '[[exclude]]\nwhere = { "path.delay" = "9ms" }\n')
    assert len(found) == 4
    assert [exclusion.matched for exclusion in found.exclusions] == [1, 2]
    # A level of which nothing is left is no level of the factor.
    assert found.factors == {"path.delay": ("1ms", "5ms"), "path.loss": ("0%", "5%")}


def test_a_part_can_be_named() -> None:
    found = study(PARTS + '[[exclude]]\nwhere = { part = "bulk", "workload.size" = "1000kB" }\n')
    assert [cell.part for cell in found.cells()] == ["small", "small", "bulk", "bulk"]
    assert found.exclusions[0].text == "2 of 6 combinations: part = bulk and workload.size = 1000kB"


def test_what_cannot_be_is_not_checked_where_it_is_excluded() -> None:
    text = '[workload]\nkind = "echo"\ntransport = ["tcp", "udp"]\nsize = [1, "100kB"]\n'
    with pytest.raises(StudyError, match="udp"):
        checked(study(text))
    fits = study(text + '[[exclude]]\nwhere = { "workload.transport" = "udp", "workload.size" = "100kB" }\n')
    assert len(checked(fits)) == 3


def test_what_is_excluded_is_part_of_what_is_measured_and_its_reason_is_not() -> None:
    plain, one = study(GRID), study(GRID + ONE)
    assert plain.digest() != one.digest()
    assert Study.from_canonical(one.canonical()).digest() == one.digest()
    assert levels(Study.from_toml(one.to_toml(), name="s")) == levels(one)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('where = { "path.loss" = "7%" }', "8: exclude[1].where: no combination has path.loss = 7%", "write levels"),
        ('where = { "path.rate" = "1mbit" }', "no combination has path.rate = 1mbit", "leave out the table"),
        ('where = { "path.los" = "5%" }', 'exclude[1].where."path.los": there is no key', 'did you mean "path.loss"?'),
        ('where = { "path.loss" = "lots" }', '"lots" is not a probability', "from 0% to 100%"),
        ('where = { part = "x" }', 'there is no part "x"', "this study has no parts"),
        ("where = {}", "exclude[1].where: {} is wrong", "at least 1 item"),
        ('reason = "none"', "exclude[1].where: is missing", "write where ="),
        ('where = { "path.loss" = ["0%", "5%"] }', "is wrong", ""),
        ('where = { "path.loss" = "5%" }\nwhy = "x"', "exclude[1].why: unknown key", "known: where, reason"),
        (
            'where = { "path.loss" = "5%" }\n[[exclude]]\nwhere = { "path.loss" = 0 }',
            "7: exclude[1]: all 6 combinations are excluded",
            "leave out a table, or add a key to it",
        ),
    ],
)
def test_a_mistake_in_a_table_has_a_place_and_a_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(GRID + "# the tables\n[[exclude]]\n" + text)
    assert message in caught.value.message
    assert caught.value.message.startswith("my.toml:")
    assert hint in str(caught.value.hint)


def test_a_limit_for_what_is_excluded_is_a_mistake() -> None:
    excluded = '[[exclude]]\nwhere = { part = "bulk", "workload.size" = "1000kB" }\n'
    with pytest.raises(StudyError, match=r"no cell has part = bulk, workload.size = 1000kB"):
        study(PARTS + LIMITS + excluded)


def test_a_table_for_what_was_set_away_is_ignored() -> None:
    changed = study(GRID + ONE).with_overrides({"path.delay": "1ms,5ms"})
    assert len(changed) == 4
    assert changed.exclusions == ()
    quick = study(GRID + ONE + '[quick]\n"path.loss" = "0%"\n').quick()
    assert len(quick) == 3
    with pytest.raises(StudyError, match="the one combination is excluded"):
        study(GRID + ONE).with_overrides({"path.delay": "9ms", "path.loss": "5%"})


def test_the_plan_and_the_report_say_what_was_excluded(crosswind: Crosswind) -> None:
    Path("s.toml").write_text(GRID + ONE, encoding="utf-8")
    said = "1 of 6 combinations: path.loss = 5% and path.delay = 9000us (It takes too long)"
    assert f"excluded  {said}" in crosswind("plan", "s.toml")[1]
    assert f"excluded     {said}\n" in crosswind("show", "s.toml")[1]
    (table,) = json.loads(crosswind("plan", "s.toml", "--json")[1])["excluded"]
    where = {"path.loss": "5%", "path.delay": "9000us"}
    assert table == {"where": where, "reason": "It takes too long.", "combinations": 1}
    assert presentation(study(GRID + ONE))["notes"] == [f"Excluded: {said}."]
    assert presentation(study(GRID))["notes"] == []
