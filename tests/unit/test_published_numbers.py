"""What documents print: numbers beside those of a run, statements that these decide, and how both are written."""

from collections.abc import Callable
from typing import Any

import pytest

from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.findings.pipeline import analyse
from crosswind.findings.published.arithmetic import FormulaError, Number, value_of
from crosswind.report.run_page import render as render_html
from crosswind.study.design import Study
from records import MS, echoes, parted, record, run, runs
from screens import render
from study_texts import study

PUBLISHED = {
    "source": "Table 1", "metric": "rtt", "unit": "ms", "levels": {"path.delay": "10ms"}, "mean": 20.0, "cells": [0],
}  # fmt: skip


def published(entry: dict, rtts: list[int]):
    tables = [echoes(part) for part in parted(rtts, 5)] if len(rtts) >= 30 else [echoes(rtts)]
    (found,) = analyse(record(*runs(0, tables, {"path.delay": "10 ms"}), published=[entry])).published
    return found


def remark(entry: dict, rtts: list[int]) -> str:
    (beside,) = published(entry, rtts).numbers
    return beside.remark


def test_a_published_number_inside_our_interval() -> None:
    found = published(PUBLISHED, [20 * MS - 500 + 20 * index for index in range(50)])
    (beside,) = found.numbers
    assert (found.theirs, found.unit, found.verdict, beside.cell, beside.inside) == (20 * MS, "ns", None, 0, True)
    assert beside.remark == "theirs lies in our interval"
    assert beside.ratio == pytest.approx(1, abs=1e-5)


def test_a_published_number_outside_our_interval_with_and_without_its_own() -> None:
    rtts = [30 * MS + index for index in range(50)]
    assert remark(PUBLISHED, rtts) == "outside our interval; ours is 1.5 times theirs"
    assert remark(PUBLISHED | {"ci": 11.0}, rtts) == "the intervals overlap; ours is 1.5 times theirs"
    # 20 ms and 21 either way: an interval that holds times below 0 says nothing.
    assert remark(PUBLISHED | {"ci": 21.0}, rtts) == (
        "outside our interval; ours is 1.5 times theirs; their interval reaches below 0, where no such number is"
    )


def test_a_published_number_without_one_of_ours() -> None:
    assert remark(PUBLISHED, [20 * MS] * 3) == (
        "ours is as much as theirs; an interval of a mean needs 3 repetitions, there is 1: 2 more"
    )
    assert remark(PUBLISHED | {"metric": "goodput", "unit": "Mbit/s"}, [20 * MS] * 30) == (
        "this cell has no such metric"
    )
    (alone,) = published(PUBLISHED | {"cells": []}, [20 * MS] * 30).numbers
    assert (alone.cell, alone.ours, alone.remark) == (None, None, "no cell of this run has these levels")


@pytest.mark.parametrize(("theirs_ms", "where"), [(24.0, "within"), (31.0, "outside")])
def test_a_number_of_a_single_run_stands_beside_where_one_more_of_ours_lies(theirs_ms: float, where: str) -> None:
    """Five runs of 18 to 22 ms: the mean is narrower than their spread, which one run has."""
    rtts = [mean * MS for _ in range(10) for mean in (18, 19, 20, 21, 22)]
    several, single = PUBLISHED | {"mean": theirs_ms}, PUBLISHED | {"mean": theirs_ms, "runs": 1}
    assert remark(several, rtts).startswith("outside our interval; ")
    assert remark(single, rtts) == (
        f"{where} what one more run of ours gives, 15.7 ms to 25.4 ms; ours is {20 / theirs_ms:.3g} times theirs"
    )
    (beside,) = published(single, rtts).numbers
    assert (beside.next_run.units, beside.next_run.level) == (5, 0.95)


# --- as a study writes them -------------------------------------------------------------------------------------------

STUDY = """
[path]
loss = ["0%", "5%"]
[workload]
kind = "echo"
size = [1, 100]
transport = ["tcp", "udp"]
[[published]]
source = "A paper, table 2"
metric = "rtt"
unit = "ms"
"""


def rows_of(text: str) -> list[dict]:
    made = study(STUDY + text)
    assert Study.from_toml(made.to_toml(), name="my").canonical() == made.canonical()
    return [
        {key: value for key, value in row.items() if key not in ("source", "metric", "unit")}
        for row in presentation(made)["asked"]["published"]
    ]


def test_a_table_has_a_number_for_each_row() -> None:
    table = """
levels = { "workload.size" = "1B" }
n = 10
note = "one run each"
columns = ["workload.transport", "path.loss", "mean", "sd", "n", "inferred", "note"]
rows = [
  ["tcp", 0, 20, 1.5, "", false, ""],
  ["udp", "5%", 31.5, "", 20, true, "from the figure"],
  ["udp", "0%", "", "", "", "", "the document has none"],
]
"""
    levels = {"workload.size": "1B", "workload.transport": "tcp", "path.loss": "0"}
    # Loss 0 %: cells 0, 1 (tcp: 1 and 100 bytes), 2, 3 (udp); loss 5 %: 4 to 7.
    assert rows_of(table) == [
        {"levels": levels, "mean": 20.0, "sd": 1.5, "n": 10, "inferred": False, "note": "one run each", "cells": [0]},
        {"levels": levels | {"workload.transport": "udp", "path.loss": "5%"}, "mean": 31.5, "n": 20, "inferred": True,
         "note": "from the figure", "cells": [6]},
    ]  # fmt: skip


def test_a_table_may_have_a_column_of_means_for_each_level() -> None:
    table = """
columns = [{ "workload.size" = [1, 100] }, "path.loss", "n"]
rows = [
  [20, 21, "0%", 5],
  ["", { mean = 31, ci = 2.5, n = 6, note = "misprinted", functions = { mask = 30 } }, "5%", 5],
]
"""
    first, second, third = rows_of(table)
    assert [(row["levels"]["workload.size"], row["mean"], row["n"]) for row in (first, second, third)] == [
        ("1", 20.0, 5), ("100", 21.0, 5), ("100", 31.0, 6),
    ]  # fmt: skip
    assert (first["cells"], second["cells"], third["cells"]) == ([0, 2], [1, 3], [5, 7])
    assert (third["ci"], third["note"], third["functions"]) == (2.5, "misprinted", {"mask": 30.0})


def test_one_number_is_a_table_with_its_mean() -> None:
    alone = rows_of("mean = 20\nci = 1.5\n")
    assert alone == [{"levels": {}, "mean": 20.0, "ci": 1.5, "inferred": False, "note": "", "cells": list(range(8))}]
    assert rows_of('columns = ["mean", "ci"]\nrows = [[20, 1.5]]\n') == alone


BY_SIZE = 'columns = ["workload.transport", { "workload.size" = [1, 100] }]\nrows = [\n  ["tcp", 20, 21],\n'
BY_ROW = 'columns = ["workload.transport", "mean"]\nrows = [["tcp", 20]]\n'


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("", 8, "mean: is missing", "or columns = [...] and rows"),
        (BY_SIZE + '  ["udp", 30],\n]', 15, "rows[2]: it has 2 values for 3 columns", '"" where'),
        (BY_SIZE + "  # no row\n\n  [],\n]", 17, "rows[2]: it has 0 values for 3 columns", "one value for"),
        (BY_SIZE + '  ["upd", 30, 31],\n]', 15, 'rows[2][1]: "upd" is not one of', 'did you mean "udp"?'),
        (BY_SIZE + '  ["udp", "30ms", 31],\n]', 15, 'rows[2][2]: "30ms" is not a number', "mean is a"),
        (BY_SIZE + '  ["udp", true, 31],\n]', 15, "rows[2][2]: true is not a number", "mean is a"),
        (BY_SIZE + '  ["udp", { men = 30 }, 31],\n]', 15, "rows[2][2].mean: is missing", "mean ="),
        (BY_SIZE + '  ["udp", { mean = 30, m = 1 }, 31],\n]', 15, "rows[2][2].m: unknown key", "known"),
        (BY_SIZE + '  ["udp", { mean = "30" }, 31],\n]', 15, 'rows[2][2].mean: "30" is wrong', "a number"),
        (BY_SIZE + '  ["udp", [30], 31],\n]', 15, "rows[2][2]: [30] is wrong", ""),
        (BY_SIZE + "]\nmean = 5", 16, "mean: mean is of one number", "name a column"),
        (BY_SIZE + ']\nlevels = { "workload.size" = 1 }',
         12, 'columns[2]."workload.size"[1]: workload.size is among the levels of the whole table', "leave it"),
        (BY_SIZE.replace("[1, 100]", '[1, "1"]') + "]", 12, 'columns[2]."workload.size"[2]: workload.size = '
         "1 is a column already", "once"),
        (BY_SIZE.replace("[1, 100]", "[]") + "]", 12, "columns[2]: {", "as {"),
        (BY_SIZE.replace('"workload.size" =', '"mean" =') + "]", 12, 'columns[2].mean[1]: "mean" is not a '
         "column", "known"),
        (BY_SIZE.replace('"workload.transport"', '"sd"') + "]", 12, "columns[1]: sd is of one number",
         "{ mean = ..., sd = ... }"),
        (BY_SIZE.replace('"workload.transport"', '"mean"') + "]",
         12, 'columns[2]."workload.size"[2]: "mean" and "workload.size" both have means', "among the levels"),
        (BY_ROW.replace('"mean"', '"men"'), 12, 'columns[2]: "men" is not a column', '"mean"?'),
        (BY_ROW.replace('"mean"', '"path.dely"'), 12, 'columns[2]: "path.dely" is not', '"path.delay"?'),
        (BY_ROW.replace('"mean"', '"workload.transport"'), 12, "columns[2]: workload.transport is a column "
         "already", "once"),
        (BY_ROW.replace('"mean"', '"path.loss"'), 12, "columns: no column has means", "mean"),
        (BY_ROW.replace('"mean"]', '"mean", "n"]').replace("20", "20, 1.5"), 13, "rows[1][3]: 1.5 is not a "
         "whole number", "n is"),
        (BY_ROW.partition("rows")[0], 8, "rows: is missing", "go together"),
        ('rows = [["tcp", 20]]', 8, "columns: is missing", "go together"),
        (BY_ROW.replace('"tcp", 20', '"tcp"], 5, ["udp"'), 13, "rows[2]: 5 is wrong", "a list"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_table_names_its_row(text: str, line: int, message: str, hint: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(STUDY + text)
    assert caught.value.message.startswith(f"my.toml:{line}: published[1].{message}")
    assert hint in (caught.value.hint or "")


def test_a_unit_of_another_metric_is_refused_in_a_table_too() -> None:
    with pytest.raises(StudyError, match=r'published\[1\]\.unit: "ms" is not a unit of goodput'):
        study(STUDY.replace('"rtt"', '"goodput"') + BY_ROW)


# --- statements that a document's own numbers decide ------------------------------------------------------------------

DESIGN = """
[path]
delay = ["5ms", "15ms"]
[workload]
kind = "echo"
transport = ["tcp", "udp"]
"""
TABLES = """
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
SAYS = '[[published]]\nsays = "TCP takes twice as long."\nsource = "A paper"\nwhat = "TCP over UDP"\n'


def stated(text: str) -> Study:
    return study(DESIGN + TABLES + SAYS + text)


def kept(made: Study) -> dict[str, Any]:
    """The statement as a plan keeps it."""
    (statement,) = [each for each in presentation(made)["asked"]["published"] if "asks" in each]
    return dict(statement)


@pytest.mark.parametrize(
    ("bounds", "verdict", "needed"),
    [
        ("at_least = 1.9\nat_most = 2.1\n", "Holds", "1.9 to 2.1"),
        ("at_least = 1.95\n", "Does not hold", "at least 1.95"),
        ("at_most = 2\n", "Holds", "at most 2"),
        ("at_most = 1.99\n", "Does not hold", "at most 1.99"),
    ],
)
def test_a_statement_holds_where_every_number_lies_in_its_range(bounds: str, verdict: str, needed: str) -> None:
    (*_, statement) = stated(GIVEN + 'value = "tcp / udp"\n' + bounds).findings["published"]
    assert statement.summary == (
        f"{verdict}: TCP takes twice as long. TCP over UDP is 2 (delay 5ms) and 1.935 (delay 15ms); the "
        f"statement needs {needed}. (A paper)"
    )


def test_published_numbers_are_chosen_by_levels_however_written_by_source_and_by_field() -> None:
    made = kept(stated(
        'given.a = { "path.delay" = "15000us" }\ngiven.b = { source = "A paper, table 2" }\n'
        'given.c = { field = "sd" }\ngiven.d = { field = "n" }\nvalue = "a - b + count(c) + count(d)"\nat_most = 99\n'
    ))  # fmt: skip
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
    ("text", "message"),
    [
        (GIVEN + 'value = "tcp / udp"\n', "published[3].at_least: a statement needs at_least, at_most or both"),
        (GIVEN + 'value = "tcp / udp"\nat_least = 2\nat_most = 1\n', "at_least 2 is more than at_most"),
        (GIVEN + 'value = "tcp"\nat_least = 2\n', 'published[3].given.udp: "udp" is not in the formula'),
        (GIVEN + 'value = "tcp / udp / x"\nat_least = 2\n', "x is not among the given numbers"),
        (GIVEN + 'value = "tcp / udp"\nof = ["a"]\nat_least = 2\n', "`of` names 1 numbers, but the formula gives 2"),
        ('given.a = { field = "median" }\nvalue = "a"\nat_least = 2\n', '"median" is not a field'),
        ('given.a = { source = "A book" }\nvalue = "a"\nat_least = 2\n', 'no published number is from "A book"'),
        ('given.a = { "path.dealy" = "5ms" }\nvalue = "a"\nat_least = 2\n', 'there is no key "path.dealy"'),
        ('given.mean = [1, 2]\nvalue = "mean"\nat_least = 2\n', "mean is a function of formulas"),
        ('given.a = { field = "n" }\nvalue = "a"\nat_least = 2\n', '"a" has no value'),
        ('given.a = "many"\nvalue = "a"\nat_least = 2\n', "published[3].given.a"),
        (f'given.a = {[1] * 201}\nvalue = "a"\nat_least = 2\n', "it has 201 numbers"),
        (GIVEN + "at_least = 2\n", "published[3].value: is missing"),
        (GIVEN + 'value = "tcp / udp"\nat_least = 2\nmean = 5\n', "published[3].mean: a statement has no mean"),
        ('given.a = 1\nvalue = "a"\nat_least = 2\n[[published]]\nsource = "s"\nmetric = "rtt"\nunit = "ms"\n'
         "mean = 1\nat_most = 2\n", "published[4].at_most: at_most is of a statement, which has says"),
        ('given.a = 1\nvalue = "a"\nat_least = 2\n[[published]]\nsource = "s"\nunit = "ms"\nmean = 1\n',
         "published[4].metric: is missing"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_statement_names_its_place(text: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        stated(text)
    assert message in caught.value.message
    assert caught.value.message.startswith("my.toml:")


def test_verdicts_are_shown_before_a_run_and_in_every_report(
    crosswind: Callable[..., tuple[int, str, str]],
) -> None:
    status, out, _ = crosswind("show", "queue-size")
    assert status == 0
    said = "The time through 10 packets divided by that through 100 is 4.194 (delay 15ms)"
    assert said in out
    statement = kept(stated(GIVEN + 'value = "tcp / udp"\nat_most = 1.99\n'))
    made = record(run(0, echoes([20 * MS] * 10)), published=[statement])
    result = analyse(made)
    (found,) = result.published
    assert (found.verdict, [(number.of, number.ours.value, number.inside) for number in found.numbers]) == (
        "no", [("delay 5ms", 2.0, False), ("delay 15ms", pytest.approx(60 / 31), True)],
    )  # fmt: skip
    assert "TCP over UDP is 2 (delay 5ms)" in " ".join(render(result, everything=True).split())
    assert "TCP over UDP is 2 (delay 5ms)" in render_html(made, result)


def test_statements_are_of_the_whole_document_whichever_parts_are_run() -> None:
    parts = '[[part]]\nname = "a"\n[part.path]\nloss = "0%"\n[[part]]\nname = "b"\n[part.path]\nloss = "1%"\n'
    of_parts = TABLES.replace(
        'levels = { "workload.transport" = "udp"', 'levels = { part = "b", "workload.transport" = "udp"'
    )
    text = DESIGN + parts + of_parts + SAYS + GIVEN + 'value = "tcp / udp"\nat_most = 2\n'
    whole = study(text)
    some = whole.with_overrides({"study.parts": "a"})
    assert [number.table.source for number in some.findings["published"]] == [*["A paper, table 1"] * 2, "A paper"]
    assert kept(some) == kept(whole)
