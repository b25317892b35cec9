"""Statements that a document's own numbers decide: the arithmetic, its mistakes, and where the verdicts are shown."""

from collections.abc import Callable
from typing import Any

import pytest

from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.findings.check.arithmetic import FormulaError, Number, value_of
from crosswind.findings.pipeline import analyse
from crosswind.report.run_page import render as render_html
from crosswind.study.design import Study
from records import MS, echoes, record, run
from screens import render

TABLE = """
[path]
delay = ["5ms", "15ms"]
[workload]
kind = "echo"
transport = ["tcp", "udp"]
"""
PUBLISHED = """
[[published]]
source = "A paper, table 1"
metric = "rtt"
unit = "ms"
levels = { "workload.transport" = "tcp" }
columns = ["path.delay", "mean", "sd"]
rows = [["5ms", 20, 1.0], ["15ms", 60, 1.0]]
[[published]]
source = "A paper, table 2"
metric = "rtt"
unit = "ms"
levels = { "workload.transport" = "udp" }
columns = ["path.delay", "mean", "sd"]
rows = [["5ms", 10, 1.0], ["15ms", 31, 1.0]]
"""
GIVEN = 'given.tcp = { "workload.transport" = "tcp" }\ngiven.udp = { "workload.transport" = "udp" }\n'
CHECK = '[[check]]\nsays = "TCP takes twice as long."\nsource = "A paper"\nwhat = "TCP over UDP"\n'


def study(check: str) -> Study:
    return Study.from_toml(TABLE + PUBLISHED + CHECK + check, name="my", file="my.toml")


def checked(check: str) -> dict[str, Any]:
    (made,) = presentation(study(check))["asked"]["check"]
    return dict(made)


@pytest.mark.parametrize(
    ("bounds", "verdict", "needed"),
    [
        ("at_least = 1.9\nat_most = 2.1\n", "holds", "1.9 to 2.1"),
        ("at_least = 1.95\n", "does not hold", "at least 1.95"),
        ("at_most = 2\n", "holds", "at most 2"),
        ("at_most = 1.99\n", "does not hold", "at most 1.99"),
    ],
)
def test_a_check_holds_where_every_number_lies_in_its_range(bounds: str, verdict: str, needed: str) -> None:
    made = checked(GIVEN + 'value = "tcp / udp"\n' + bounds)
    assert made["verdict"] == verdict
    assert made["sentence"] == (
        f"{verdict.capitalize()}: “TCP takes twice as long”: TCP over UDP is 2 (delay 5ms) and 1.935 (delay 15ms); the "
        f"statement needs {needed}."
    )


def test_published_numbers_are_chosen_by_levels_however_written_by_source_and_by_field() -> None:
    made = checked(
        'given.a = { "path.delay" = "15000us" }\ngiven.b = { source = "A paper, table 2" }\n'
        'given.c = { field = "sd" }\ngiven.d = { field = "n" }\nvalue = "a - b + count(c) + count(d)"\nat_most = 99\n'
    )
    assert [number["value"] for number in made["numbers"]] == [60.0 - 10.0 + 4, 31.0 - 31.0 + 4]


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("2 + 3 * 4 ** 2 / 8 - -1", 9.0),
        ("log(exp(2)) + sqrt(9) + log10(100) + abs(-1) + ceil(1.2)", 10.0),
        ("x - 1", [0.0, 1.0, 3.0]),
        ("x * x", [1.0, 4.0, 16.0]),
        ("count(x) + mean(x) + least(x) + most(x)", 3 + 7 / 3 + 1 + 4),
        ("slope(2 * x + 5, x)", 2.0),
        ("is_in(x, 2)", [0.0, 1.0, 0.0]),
    ],
)  # fmt: skip
def test_formulas(formula: str, value: Number) -> None:
    assert value_of(formula, {"x": [1.0, 2.0, 4.0]}) == pytest.approx(value)


def test_half_widths_of_one_sample_size_and_level_are_told_from_others() -> None:
    # 1.96 / sqrt(10) of each, and Student's t of 10 values at 95 %: 2.262 / sqrt(10).
    normal, student = [1.26, 1.72, 1.55, 0.45], [1.46, 1.99, 1.79, 0.52]
    for half_widths in (normal, student):
        given: dict[str, Number] = {"sd": [2.04, 2.78, 2.50, 0.73], "ci": half_widths}
        assert value_of("explained(ci, sd)", given) == 1.0
        assert value_of("possible(ci, sd)", given) == [1.0] * 4
    mixed: dict[str, Number] = {"sd": [3.51, 0.46, 1.21, 0.43], "ci": [2.09, 0.27, 0.72, 0.31]}
    assert value_of("explained(ci, sd)", mixed) == 0.5
    # No conventional size and level gives 2.09 of 3.51: 1.96 / sqrt(11) is 2.07, t of 13 values 2.12.
    assert value_of("possible(ci, sd)", mixed) == [0.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("x +", "it is not a formula"),
        ("y + 1", "y is not among the given numbers"),
        ("x.real", "'x.real' is not arithmetic"),
        ("__import__('os')", "is not arithmetic"),
        ("sqrt(x, 1)", "sqrt takes 1 numbers, not 2"),
        ("x / 0", "it has no value"),
        ("9 ** 9 ** 9", "it has no value"),
        ("log(0)", "it has no value"),
        ("x + z", "it combines 2 and 3 rows"),
        ("1 + " * 100 + "1", "more than 300 characters"),
        ("(" * 150 + "1" + ")" * 149, "it is not a formula"),
        ("x and 1", "is not arithmetic"),
    ],
)
def test_what_is_no_arithmetic_is_said_so(formula: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        value_of(formula, {"x": [1.0, 2.0], "z": [1.0, 2.0, 3.0]})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (GIVEN + 'value = "tcp / udp"\n', "check[1].at_least: a check needs at_least, at_most or both"),
        (GIVEN + 'value = "tcp / udp"\nat_least = 2\nat_most = 1\n', "at_least 2 is more than at_most"),
        (GIVEN + 'value = "tcp"\nat_least = 2\n', 'check[1].given.udp: "udp" is not in the formula'),
        (GIVEN + 'value = "tcp / udp / x"\nat_least = 2\n', "x is not among the given numbers"),
        (GIVEN + 'value = "tcp / udp"\nof = ["a"]\nat_least = 2\n', "`of` names 1 numbers, but the formula gives 2"),
        ('given.a = { field = "median" }\nvalue = "a"\nat_least = 2\n', '"median" is not a field'),
        ('given.a = { source = "A book" }\nvalue = "a"\nat_least = 2\n', 'no published number is from "A book"'),
        ('given.a = { "path.dealy" = "5ms" }\nvalue = "a"\nat_least = 2\n', 'there is no key "path.dealy"'),
        ('given.mean = [1, 2]\nvalue = "mean"\nat_least = 2\n', "mean is a function of formulas"),
        ('given.a = { field = "n" }\nvalue = "a"\nat_least = 2\n', '"a" has no value'),
        ('given.a = "many"\nvalue = "a"\nat_least = 2\n', "check[1].given.a"),
        (f'given.a = {[1] * 201}\nvalue = "a"\nat_least = 2\n', "it has 201 numbers"),
    ],
)  # fmt: skip
def test_mistakes_name_their_place(check: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(check)
    assert message in caught.value.message
    assert caught.value.message.startswith("my.toml:")


def test_verdicts_are_shown_before_a_run_and_in_every_report(
    crosswind: Callable[..., tuple[int, str, str]],
) -> None:
    status, out, _ = crosswind("show", "queue-size")
    assert status == 0
    said = "the time through 10 packets divided by that through 100 is 4.194 (delay 15ms)"
    assert said in out
    checks = presentation(study(GIVEN + 'value = "tcp / udp"\nat_most = 1.99\n'))["asked"]["check"]
    made = record(run(0, echoes([20 * MS] * 10)), checks=checks)
    result = analyse(made)
    (check,) = result.checks
    assert (check.verdict, [(number.of, number.value) for number in check.numbers]) == (
        "does not hold", [("delay 5ms", 2.0), ("delay 15ms", pytest.approx(60 / 31))],
    )  # fmt: skip
    assert "TCP over UDP is 2 (delay 5ms)" in " ".join(render(result, everything=True).split())
    assert "TCP over UDP is 2 (delay 5ms)" in render_html(made, result)


def test_checks_are_of_the_whole_document_whichever_parts_are_run() -> None:
    parts = '[[part]]\nname = "a"\n[part.path]\nloss = "0%"\n[[part]]\nname = "b"\n[part.path]\nloss = "1%"\n'
    of_parts = PUBLISHED.replace(
        'levels = { "workload.transport" = "udp"', 'levels = { part = "b", "workload.transport" = "udp"'
    )
    text = TABLE + parts + of_parts + CHECK + GIVEN + 'value = "tcp / udp"\nat_most = 2\n'
    whole = Study.from_toml(text, name="my")
    some = whole.with_overrides({"study.parts": "a"})
    assert [number["source"] for number in presentation(some)["asked"]["published"]] == ["A paper, table 1"] * 2
    assert presentation(some)["asked"]["check"] == presentation(whole)["asked"]["check"]
