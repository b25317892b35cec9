"""Thresholds: each one's verdict, and each of its cells'."""

from collections.abc import Iterator

from crosswind.analysis.result import Result
from crosswind.findings.threshold.result import ThresholdResult
from crosswind.findings.threshold.sentence import WORDS, cell_sentence, threshold_value_text
from crosswind.report.page import VERDICT_TONES, Section, Sentence, Tone
from crosswind.report.showing import JUnitCase, Showing
from crosswind.report.tables.table import Shown, Table, names, numbers
from crosswind.report.text.deciding import rounded
from crosswind.report.text.format import NOTHING, count, count_of, named_levels

_MOST_SENTENCES = 5
_HOW_TO_READ = (
    "A cell passes if its whole 95 % interval is within the bound. It fails if the whole interval, after Holm's "
    "correction over the cells of all thresholds, is beyond the bound. The last column says how many more repetitions "
    "would probably decide an inconclusive cell."
)


def threshold_table(result: Result) -> Table | None:
    """A row for each threshold's cells."""
    rows = [
        [
            WORDS[cell.verdict],
            threshold.fail_if,
            named_levels(cell.levels) or NOTHING,
            threshold_value_text(cell.value, threshold.unit),
            str(cell.value.units or NOTHING),
            NOTHING if cell.needed is None else count(rounded(cell.needed)),
        ]
        for threshold in result.of(ThresholdResult)
        for cell in threshold.cells
    ]
    columns = [*names("verdict", "fail if", "at"), *numbers("measured [95 %]", "repetitions", "more needed")]
    return Table("Thresholds", columns, rows, footnotes=[_HOW_TO_READ], shown=Shown.HTML) if rows else None


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    del has_charts
    if table := threshold_table(result):
        yield Section(table.title, tables=[table])


def _banners(result: Result) -> Iterator[Sentence]:
    """A sentence for each threshold; among many, one for all kept ones."""
    thresholds = result.of(ThresholdResult)
    kept = [threshold for threshold in thresholds if threshold.verdict == "pass"]
    is_short = len(thresholds) > _MOST_SENTENCES and len(kept) > 1
    for threshold in thresholds:
        if not (is_short and threshold.verdict == "pass"):
            yield Sentence(threshold.sentence, VERDICT_TONES[threshold.verdict])
    if is_short:
        number = count_of(len(kept), "threshold")
        yield Sentence(f"Pass: {number}, each listed in the table of thresholds.", Tone.GOOD)


def _cases(result: Result) -> Iterator[JUnitCase]:
    for threshold in result.of(ThresholdResult):
        for judged in threshold.cells:
            said = cell_sentence(threshold, judged)
            yield JUnitCase(f"not {threshold.fail_if}", judged.verdict, said, judged.levels)
        if not threshold.cells:
            yield JUnitCase(f"fail if {threshold.fail_if}", "error", threshold.sentence)


SHOWING = Showing(_sections, _banners, cases=_cases)
