"""Thresholds: as written, what is refused, the verdict on data whose truth is known, and where it is shown."""

from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pytest

from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.findings.pipeline import analyse
from crosswind.report.junit import junit_text
from crosswind.study.design import Study
from records import MS, echoes, record, run, runs
from study_texts import PARTS, study

GRID = '[path]\nloss = ["0%", "2%"]\n[workload]\nkind = "echo"\ntransport = ["tcp", "udp"]\n'
SPREAD = (-0.02, 0.01, 0.0, 0.02, -0.01, 0.005, -0.005, 0.015)


def threshold(text: str, **more: str) -> str:
    return "\n".join(["[[threshold]]", f'fail_if = "{text}"', *(f"{key} = {value}" for key, value in more.items()), ""])


def asked(text: str) -> dict[str, Any]:
    (found,) = presentation(study(GRID + threshold(text)))["asked"]["threshold"]
    return found


# --- as written -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "statistic", "low", "high", "is_open", "cells"),
    [
        ("p95(rtt) > 200ms", "p95", None, 200e6, False, [0, 1, 2, 3]),
        ("mean( rtt )>=1.5 s", "mean", None, 1.5e9, True, [0, 1, 2, 3]),
        ("median(rtt) < 3us where path.loss = 2%", "median", 3000, None, False, [2, 3]),
        ("share(lost) <= 1% where loss=0.02, transport = tcp", "mean", 0.01, None, True, [2]),
        ("share(lost)  > 0 where loss = 2.0% and workload.transport = udp", "mean", None, 0, False, [3]),
        ("loss > 1%", "mean", None, 0.01, False, [0, 1, 2, 3]),
    ],
)
def test_what_a_threshold_means(
    text: str, statistic: str, low: float | None, high: float | None, *, is_open: bool, cells: list[int]
) -> None:
    """A threshold is the statement that its bound is kept."""
    found = asked(text)
    assert (found["statistic"], found["low"], found["high"], found["is_open"], found["cells"]) == (
        statistic, low, high, is_open, cells,
    )  # fmt: skip


def test_where_may_be_a_table_and_a_part() -> None:
    (found,) = presentation(study(GRID + threshold("mean(rtt) > 1s", where='{ "path.loss" = "2%" }')))["asked"][
        "threshold"
    ]
    assert found["cells"] == [2, 3]
    (found,) = presentation(study(PARTS + threshold("mean(rtt) > 1s where part = small")))["asked"]["threshold"]
    assert found["cells"] == [0, 1]


WRONG = [
    ("p95(rtt)", '"p95(rtt)" is not a threshold', "share(lost) > 1%"),
    ("p95 rtt > 2ms", "is not a threshold", "as "),
    ("p95(rt) > 2ms", '"rt" is not a metric', 'did you mean "rtt"?'),
    ("share(rtt) > 2%", "rtt has no share", "it has median, mean"),
    ("p95(lost) > 2%", "lost has no p95", "it has share"),
    ("p95(rtt) > 2parsecs", "2parsecs is not an amount of rtt", "one of ns, us, ms, s"),
    ("p95(rtt) > 2", "2 is not an amount of rtt", "one of ns"),
    ("p95(rtt) > 2ms where los = 2%", 'there is no key "los"', 'did you mean "loss"?'),
    ("p95(rtt) > 2ms where loss", '"loss" is not key = level', "as "),
    ("p95(rtt) > 2ms where loss = lots", "fail_if: ", None),
    ("p95(rtt) > 2ms where loss = 7%", "no cell has path.loss = 7%", "write levels of this study"),
    ("mean(goodput) < 1Mbit/s", "no cell of it has the metric goodput", "name a metric of this workload"),
    ("p95(rtt) > 2ms where part = a", 'there is no part "a"', "this study has no parts"),
]


@pytest.mark.parametrize(("text", "message", "hint"), WRONG)
def test_what_is_refused(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(StudyError) as caught:
        study(GRID + threshold(text))
    assert ":7: " in caught.value.message
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")
    with pytest.raises(StudyError) as caught:
        study(GRID).with_thresholds([text])
    assert f"--fail-if {text!r}: " in caught.value.message


def test_a_level_that_was_set_anew_leaves_a_threshold_of_the_file_without_cells() -> None:
    written = study(GRID + threshold("mean(rtt) > 1s where loss = 2%"))
    other = written.with_overrides({"path.loss": "5%"})
    (found,) = presentation(other)["asked"]["threshold"]
    assert found["cells"] == []
    assert other.digest() == study(GRID).with_overrides({"path.loss": "5%"}).digest(), "it is not what is measured"
    with pytest.raises(StudyError, match=r"no cell has path\.loss = 2%"):
        other.with_thresholds(["mean(rtt) > 1s where loss = 2%"])


# --- the verdict ------------------------------------------------------------------------------------------------------


def cell(index: int, mean_ms: float, *, spread: float = 1.0, lost: int = 0) -> list[Any]:
    """Eight repetitions of a hundred echoes each. Args: spread: times 2 %. lost: of each hundred."""
    tables = []
    for offset in np.random.default_rng(index).permutation(SPREAD) * spread:
        tables.append(echoes([None] * lost + [round(mean_ms * MS * (1 + offset))] * (100 - lost)))
    return runs(index, tables, {"path.loss": f"{index}%"})


# --- where it is shown ------------------------------------------------------------------------------------------------


def test_junit_has_a_case_for_each_cell_and_each_cell_of_each_threshold() -> None:
    limits = [asked(text) | {"cells": [0, 1]} for text in ("mean(rtt) > 20ms", "mean(rtt) > 25.05ms")]
    bad = run(2, None, {"path.loss": "\x01<2>%"})
    result = analyse(record(*cell(0, 15), *cell(1, 25), bad, thresholds=limits))
    for require_answer, failures, skipped in ((False, 1, 1), (True, 2, 0)):
        root = Xml.fromstring(junit_text(result, require_answer=require_answer))
        (suite,) = root
        assert root.tag == "testsuites"
        counts = {"tests": "7", "failures": str(failures), "errors": "1", "skipped": str(skipped)}
        assert suite.attrib == {"name": "crosswind a-study"} | counts
        assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
            ("is measured (loss 0%)", []),
            ("is measured (loss 1%)", []),
            ("is measured (loss \ufffd<2>%)", ["error"]),
            ("not mean(rtt) > 20ms (loss 0%)", ["system-out"]),
            ("not mean(rtt) > 20ms (loss 1%)", ["failure"]),
            ("not mean(rtt) > 25.05ms (loss 0%)", ["system-out"]),
            ("not mean(rtt) > 25.05ms (loss 1%)", ["failure" if require_answer else "skipped"]),
        ]
    message = suite.findall("testcase/failure")[1].get("message") or ""
    assert "more repetitions would decide" in message
    assert "8 repetitions" in message


def test_a_threshold_without_a_cell_is_an_error_in_junit() -> None:
    result = analyse(record(*cell(0, 15), thresholds=[asked("mean(rtt) > 20ms") | {"cells": []}]))
    (error,) = Xml.fromstring(junit_text(result, require_answer=False)).findall("testsuite/testcase/error")
    assert "the run has no cell that it is about" in (error.get("message") or "")


def test_a_run_is_judged_by_further_thresholds_whatever_its_levels_were_set_to() -> None:
    asks = '[[question]]\nasks = "Is it?"\nmetric = "rtt"\nfactor = "path.loss"\ncompare = ["0%", "2%"]\n'
    overridden = study(GRID + asks).with_overrides({"path.loss": "5%"})
    kept = Study.from_canonical(overridden.canonical())
    (found,) = presentation(kept.with_thresholds(["mean(rtt) > 1s where loss = 5%"]))["asked"]["threshold"]
    assert found["cells"] == [0, 1]
    with pytest.raises(StudyError, match=r"no cell has path\.loss = 2%"):
        kept.with_thresholds(["mean(rtt) > 1s where loss = 2%"])
