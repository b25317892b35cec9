"""Words of reports: ratios, outcomes, numbers that are not there, runs of one cell."""

import pytest

from crosswind.report.text.format import NOTHING, about, levels, outcome_text, ratio_in_words, with_unit


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
