"""Published numbers beside ours with a computed remark, and published statements with a computed verdict."""

from collections import Counter
from collections.abc import Iterable, Mapping

from pydantic import Field

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import MEAN, CellResult
from crosswind.catalog.metrics import METRICS
from crosswind.decisions.model import ResultModel
from crosswind.decisions.statement import Range, Verdict
from crosswind.findings.judged import Context, Judging
from crosswind.findings.published.statement import OwnNumber, PublishedStatement
from crosswind.report.text.format import quantity
from crosswind.stats.estimate import Interval, exactly
from crosswind.stats.prediction import next_value


class PublishedNumber(ResultModel):
    """Our number beside a document's: a cell's, or one computed from the document's own numbers.

    `of`: its name among several. `observed`: our smallest and largest sample. `ratio`: ours / theirs. `inside`: whether
    theirs lies in our interval; for the document's own, whether it lies in the range. `next_run`: of a single run,
    where one more of ours would lie, at 95 % for all numbers of its source together. Without a cell at the levels, one
    without `ours` says so.
    """

    cell: int | None = None
    of: str = ""
    ours: Interval | None
    observed: tuple[float, float] | None = None
    ratio: float | None = None
    inside: bool | None
    next_run: Interval | None = Field(default=None)
    remark: str = ""


class PublishedResult(ResultModel):
    """A document's number (`theirs`) beside ours in the cells with its `levels`, or a statement.

    A statement (`says`) is a yes if every number in its formula (`value`), in words `what`, lies from `low` to `high`,
    null without such an end; no measurement enters. `sentence`: all of it in words. `functions`: a program's, with the
    document's split of its number, in `unit`. Fields of the other kind are empty or null.
    """

    source: str
    says: str
    metric: str
    statistic: str
    unit: str
    levels: dict[str, str]
    theirs: float | None
    theirs_sd: float | None
    theirs_ci: float | None
    functions: dict[str, float] = Field(default={})
    value: str
    what: str
    low: float | None
    high: float | None
    numbers: list[PublishedNumber]
    verdict: Verdict | None
    sentence: str | None
    note: str | None


_BELOW_ZERO = "their interval reaches below 0, where no such number is"


def judge_published(context: Context) -> list[PublishedResult]:
    """Every published number beside each of its cells, and every statement."""
    asked = [PublishedStatement.model_validate(each) for each in context.record.asked.get("published", ())]
    data = {cell.cell: cell for cell in context.data}
    of_source = Counter(each.source for each in asked if each.runs == 1 and each.cells & data.keys())
    made = []
    for statement in asked:
        level = 1 - (1 - context.level) / max(1, of_source[statement.source])
        next_runs = {cell: _next_run(statement, data[cell], level) for cell in statement.cells & data.keys()}
        made.append(_result(statement, context.cells, next_runs, context.level))
    return made


def _next_run(statement: PublishedStatement, cell: CellData, level: float) -> Interval | None:
    """Where one more run of a cell would lie; None for numbers of several runs, and for exact cells."""
    if statement.runs != 1 or statement.statistic != MEAN or cell.is_exact or statement.metric not in cell.samples:
        return None
    return next_value(cell.samples[statement.metric].means, level=level)


def _result(
    statement: PublishedStatement, cells: Iterable[CellResult], next_runs: Mapping[int, Interval | None], level: float
) -> PublishedResult:
    is_number = statement.theirs is not None
    if is_number:
        own = [cell for cell in cells if cell.cell in statement.cells]
        beside = [_beside(statement, cell, next_runs.get(cell.cell)) for cell in own] or [_NOWHERE]
    else:
        beside = [_own(statement, number, level) for number in statement.numbers]
    same = statement.model_dump(
        include={"source", "metric", "statistic", "levels", "value", "what", "low", "high", "note"}
    )
    return PublishedResult(
        **same,
        says=statement.asks,
        unit=METRICS[statement.metric].unit.name if is_number else statement.unit,
        theirs=statement.theirs,
        theirs_sd=statement.in_metric(statement.sd),
        theirs_ci=statement.in_metric(statement.ci),
        functions={name: statement.in_metric(part) or 0.0 for name, part in statement.functions.items()},
        numbers=beside,
        verdict=None if is_number else statement.verdict,
        sentence=None if is_number else statement.sentence,
    )


_NOWHERE = PublishedNumber(ours=None, inside=None, remark="no cell of this run has these levels")


def _own(statement: PublishedStatement, number: OwnNumber, level: float) -> PublishedNumber:
    ours = exactly(number.value, n=1, level=level)
    return PublishedNumber(of=number.of, ours=ours, inside=statement.holds_of(number.value))


def _beside(statement: PublishedStatement, cell: CellResult, next_run: Interval | None) -> PublishedNumber:
    estimates, theirs = cell.estimates.get(statement.metric), statement.theirs
    ours = None if estimates is None else estimates.statistic(statement.statistic)
    return PublishedNumber(
        cell=cell.cell,
        ours=ours,
        observed=None if estimates is None else (estimates.smallest, estimates.largest),
        ratio=None if ours is None else ours.over(theirs),
        inside=None if ours is None else ours.meets(theirs, theirs),
        next_run=next_run,
        remark=_remark(statement, ours, next_run),
    )


def _remark(statement: PublishedStatement, ours: Interval | None, next_run: Interval | None) -> str:
    theirs, ci = statement.theirs, statement.in_metric(statement.ci)
    if ours is None or ours.value is None or not theirs:
        return "this cell has no such metric" if ours is None else ours.reason or "theirs is 0"
    ratio = _times(ours.value / theirs)
    if next_run is not None and next_run.is_whole:
        low, high = (quantity(end, METRICS[statement.metric].unit.name) for end in (next_run.low, next_run.high))
        is_like = next_run.meets(theirs, theirs)
        return f"{'within' if is_like else 'outside'} what one more run of ours gives, {low} to {high}; ours is {ratio}"
    own = None if ci is None else Range(theirs - ci, theirs + ci)
    is_below_zero = ci is not None and theirs < ci and METRICS[statement.metric].is_positive
    below = f"; {_BELOW_ZERO}" if is_below_zero else ""
    if ours.is_exact:
        is_within = own is not None and own.encloses(ours.value, ours.value)
        where = "" if own is None else f", {'within' if is_within else 'outside'} their interval"
        return f"ours is exact, {ratio}{below or where}"
    if not ours.is_whole:
        return f"ours is {ratio}; {ours.reason}"
    if not statement.range.misses(ours.low, ours.high):
        return "theirs lies in our interval"
    overlap = own is not None and not own.misses(ours.low, ours.high)
    where = "the intervals overlap" if overlap and not below else "outside our interval"
    return f"{where}; ours is {ratio}{below if overlap else ''}"


def _times(ratio: float) -> str:
    """A ratio in words: "1.03 times theirs", "as much as theirs", below a tenth "1/100 of theirs"."""
    if 0.995 <= ratio < 1.005:
        return "as much as theirs"
    return f"{ratio:.3g} times theirs" if not 0 < ratio < 0.1 else f"1/{1 / ratio:.0f} of theirs"


JUDGING = Judging("published", "published", PublishedResult, judge_published)
