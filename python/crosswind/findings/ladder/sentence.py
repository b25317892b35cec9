"""Where a study breaks on a ladder, in sentences."""

from collections.abc import Sequence

from crosswind.catalog.metrics import METRICS
from crosswind.findings.ladder.result import LadderClimb, LadderRung
from crosswind.findings.question.result import Answer, AnswerCase
from crosswind.findings.question.words import effect_text
from crosswind.findings.threshold.result import ThresholdCell, ThresholdResult
from crosswind.findings.threshold.sentence import threshold_value_text
from crosswind.report.text.format import NOTHING, count, interval, named_levels, percent, scale_of, with_unit


def climb_sentence(climb: LadderClimb) -> str:
    """The failures, if any; and the metric's change from the first rung to the last."""
    valid = [rung for rung in climb.rungs if rung.reason is None]
    failures = "; ".join(failure.text for failure in climb.breaks) or _no_failure(climb.rungs)
    name = named_levels(climb.levels)
    grows = _growth(climb, valid[0], valid[-1]) if len(valid) > 1 else ""
    text = f"{failures}{f'; {grows}' if grows else ''}."
    return f"On the ladder with {name}: {text}" if name else f"On the ladder: {text}"


def _no_failure(rungs: Sequence[LadderRung]) -> str:
    """How far no exchange fails, and which rungs tell nothing."""
    invalid = [rung.rung for rung in rungs if rung.reason is not None or not rung.n]
    known = [rung.rung for rung in rungs if rung.rung not in invalid]
    if not known:
        return "no rung has a valid cell"
    said = f"no exchange fails up to {known[-1]}"
    return f"{said}; {', '.join(invalid)} {'is' if len(invalid) == 1 else 'are'} invalid" if invalid else said


def failed_text(rungs: Sequence[LadderRung], first: int) -> str:
    """The first rung with failed exchanges."""
    rung, last = rungs[first], rungs[-1]
    how_many = f"{_share(rung)} on {rung.rung}"
    if last is not rung:
        how_many += f", {_share(last)} on {last.rung}"
    since = "exchanges fail on the first rung already" if first == 0 else f"exchanges fail from {rung.rung} on"
    return f"{since} ({how_many})"


def unusable_text(rungs: Sequence[LadderRung], first: int) -> str:
    """The first rung without a successful exchange."""
    return "no exchange succeeds on any rung" if first == 0 else f"none succeeds from {rungs[first].rung} on"


def threshold_text(
    threshold: ThresholdResult, rungs: Sequence[LadderRung], cells: Sequence[ThresholdCell | None], first: int
) -> str:
    """The first rung over a threshold, with the number there and on the rung before."""
    cell, before = cells[first], cells[first - 1] if first else None
    assert cell is not None  # It has failed.
    there = f"{threshold_value_text(cell.value, threshold.unit)} on {rungs[first].rung}"
    if before is not None:
        there += f", {threshold_value_text(before.value, threshold.unit)} on {rungs[first - 1].rung}"
    where = "the first rung already" if first == 0 else f"{rungs[first].rung}"
    return f"“{threshold.fail_if}” fails from {where} on ({there})"


def turn_sentence(answer: Answer, rung: str, case: AnswerCase, before: tuple[str, AnswerCase]) -> str:
    """The answer's turning point, with the deciding numbers on both sides."""
    of = "ratio" if answer.scale == "ratio" else "difference"
    now, then = (f"{of} {effect_text(answer, answered.effect)}" for answered in (case, before[1]))
    levels = {key: level for key, level in case.fixed.items() if level != rung}
    where = f" ({named_levels(levels)})" if levels else ""
    return (
        f"The answer to “{answer.asks}”{where} turns on {rung}: {case.verdict} there ({now}), "
        f"{before[1].verdict} on {before[0]} ({then})."
    )


def rung_value(climb: LadderClimb, rung: LadderRung) -> str:
    """The metric on a rung, with its interval and unit."""
    if rung.value is None or rung.value.value is None:
        return NOTHING
    divisor, unit = scale_of([rung.value.value], climb.unit)
    return with_unit(interval(rung.value, divisor), unit)


def failed_on(rung: LadderRung) -> str:
    """Failed exchanges on a rung: "12 of 1 000 (1.2 %)"."""
    return f"{count(rung.lost)} of {count(rung.n)}" + (f" ({percent(rung.lost / rung.n)})" if rung.lost else "")


def _share(rung: LadderRung) -> str:
    return f"{failed_on(rung)}" if rung.n else "none of them ran"


def _growth(climb: LadderClimb, first: LadderRung, last: LadderRung) -> str:
    if climb.metric is None:
        return ""
    texts = [rung_value(climb, rung) for rung in (first, last)]
    title = METRICS[climb.metric].title
    if NOTHING in texts:
        return ""
    return f"{climb.statistic} {title[0].lower()}{title[1:]} {texts[0]} on {first.rung}, {texts[1]} on {last.rung}"
