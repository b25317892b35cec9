"""Words of reports: ratios, outcomes, numbers that are not there, runs of one cell."""

import pytest

from crosswind.findings.pipeline import analyse
from crosswind.report.text.format import NOTHING, about, levels, outcome_text, ratio_in_words, with_unit
from crosswind.report.text.headline import headline_sentences
from records import MS, echoes, finished, record, run, runs
from screens import render


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        ((3.2, 3.1, 3.4), ("3.20 times", "3.10 to 3.40")),
        ((0.5, 0.4, 0.6), ("0.50 times", "0.40 to 0.60")),
        ((0.01, 0.0091, 0.0105), ("1/100 of", "1/110 to 1/95")),
        ((0.06,), ("1/17 of", "– to –")),
        ((0.0004, -0.1, 0.01), ("1/2\u202f500 of", "0 to 1/100")),
        ((0.0,), ("0.000 times", "– to –")),
    ],
)
def test_a_small_ratio_is_one_part_in_so_many(ratio: tuple[float, ...], said: tuple[str, str]) -> None:
    assert ratio_in_words(*ratio) == said


def test_an_outcome_says_what_happened_to_the_exchanges() -> None:
    assert outcome_text("timeout", 1200) == "1\u202f200 timed out"
    assert outcome_text("new-one", 3) == "3 new-one"


def test_what_is_not_there_has_no_unit() -> None:
    assert (with_unit("20.1", "ms"), with_unit(NOTHING, "ms")) == ("20.1 ms", NOTHING)


def test_a_cell_without_others_needs_no_name() -> None:
    assert (levels({}), about({}, "late"), about({"path.loss": "5%"}, "late")) == ("all", "late", "5%: late")


@pytest.mark.parametrize("everything", [True, False])
def test_a_report_of_one_cell_does_not_count_it_or_call_it_the_only_one(*, everything: bool) -> None:
    bad = finished(valid=False, reasons=["late"])
    text = render(analyse(record(run(0, echoes([20 * MS, None]), {}, end=bad))), everything=everything)
    assert "the only cell" not in text
    assert "1 of 1" not in text
    assert "This run is invalid: repetition 1: late" in " ".join(text.split())


def test_a_level_that_is_much_faster_is_one_part_in_so_many() -> None:
    slow, fast = (
        runs(cell, [echoes([rtt_ns] * 30) for rtt_ns in times_ns], {"workload.transport": f"t{cell}"})
        for cell, times_ns in ((0, [300 * MS, 301 * MS, 303 * MS]), (1, [3 * MS, 3 * MS + 9000, 3 * MS + 30_000]))
    )
    texts = headline_sentences(analyse(record(*slow, *fast)))
    said = "t1 is 1/100.01 of (95 % interval 1/100.06 to 1/99.96 of) that with t0"
    assert any(said in text for text in texts)
