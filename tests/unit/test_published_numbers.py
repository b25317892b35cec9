"""Numbers of documents: how a study writes them, and beside those of a run."""

import pytest

from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.findings.pipeline import analyse
from crosswind.study.design import Study
from records import MS, echoes, parted, record, runs
from study_texts import study

PUBLISHED = {"source": "Table 1", "metric": "rtt", "unit": "ms", "levels": {"path.delay": "10ms"}, "mean": 20.0}


def published(entry: dict, rtts: list[int], **changes):
    tables = [echoes(part) for part in parted(rtts, 5)] if len(rtts) >= 30 else [echoes(rtts)]
    made = runs(0, tables, {"path.delay": "10 ms"})
    (found,) = analyse(record(*made, published=[entry], **changes)).published
    return found


def test_a_published_number_inside_our_interval() -> None:
    found = published(PUBLISHED, [20 * MS - 500 + 20 * index for index in range(50)])
    assert (found.theirs, found.unit, found.cell, found.inside) == (20 * MS, "ns", 0, True)
    assert found.remark == "theirs lies in our interval"
    assert found.ratio == pytest.approx(1, abs=1e-5)


def test_a_published_number_outside_our_interval_with_and_without_its_own() -> None:
    rtts = [30 * MS + index for index in range(50)]
    assert published(PUBLISHED, rtts).remark == "outside our interval; ours is 1.5 times theirs"
    assert published(PUBLISHED | {"ci": 11.0}, rtts).remark == "the intervals overlap; ours is 1.5 times theirs"
    # 20 ms and 21 either way: an interval that holds times below 0 says nothing.
    assert published(PUBLISHED | {"ci": 21.0}, rtts).remark == (
        "outside our interval; ours is 1.5 times theirs; their interval reaches below 0, where no such number is"
    )


def test_a_published_number_without_one_of_ours() -> None:
    assert published(PUBLISHED, [20 * MS] * 3).remark == (
        "ours is as much as theirs; an interval of a mean needs 3 repetitions, there is 1: 2 more"
    )
    assert published(PUBLISHED | {"metric": "goodput"}, [20 * MS] * 30).remark == "this cell has no such metric"
    missing = published(PUBLISHED | {"levels": {"path.delay": "30ms"}}, [20 * MS] * 30)
    assert (missing.cell, missing.remark) == (None, "no cell of this run has these levels")


def test_a_published_level_may_be_a_fixed_setting_of_the_study() -> None:
    entry = PUBLISHED | {"levels": {"path.delay": "10ms", "path.family": "ipv6"}}
    rtts = [20 * MS + index for index in range(50)]
    assert published(entry, rtts, study={"path": {"family": "ipv6"}}).cell == 0
    assert published(entry, rtts, study={"path": {"family": "ipv4"}}).cell is None


def test_the_plan_says_which_cells_a_published_number_belongs_to() -> None:
    entry = PUBLISHED | {"levels": {"path.delay": "written otherwise"}, "cells": [0]}
    rtts = [20 * MS + index for index in range(50)]
    assert published(entry, rtts).cell == 0
    assert published(PUBLISHED | {"cells": []}, rtts).cell is None


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(ValueError, match="unknown unit 'furlong'"):
        published(PUBLISHED | {"unit": "furlong"}, [20 * MS] * 30)


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
