"""Where a study breaks on a ladder: from the outcomes of its cells, its thresholds and its answers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from crosswind.analysis.result import CellResult, MetricEstimates
from crosswind.catalog.metrics import METRICS
from crosswind.decisions.statement import Note, Stored
from crosswind.findings.judged import Context, Judging
from crosswind.findings.ladder.result import Ladder, LadderBreak, LadderClimb, LadderRung, LadderTurn
from crosswind.findings.ladder.sentence import climb_sentence, failed_text, threshold_text, turn_sentence, unusable_text
from crosswind.findings.question.result import Answer, AnswerCase
from crosswind.findings.threshold.result import ThresholdResult


class AskedLadder(Stored):
    """A ladder as the plan has it. `metrics`: the main one of each cell."""

    factor: str
    rungs: tuple[str, ...]
    note: Note = None
    cells: frozenset[int]
    metrics: Mapping[str, str]


def judge_ladders(context: Context) -> list[Ladder]:
    """A run's ladders, without those with a single rung."""
    asked = map(AskedLadder.model_validate, context.record.asked.get("ladder", ()))
    made = (_ladder(ladder, context) for ladder in asked)
    return [ladder for ladder in made if len(ladder.rungs) > 1]


def _ladder(asked: AskedLadder, context: Context) -> Ladder:
    matching = [cell for cell in context.cells if cell.cell in asked.cells and asked.factor in cell.levels]
    rungs = [rung for rung in asked.rungs if any(cell.levels[asked.factor] == rung for cell in matching)]
    thresholds = [finding for finding in context.found.get("threshold", ()) if isinstance(finding, ThresholdResult)]
    answers = [finding for finding in context.found.get("question", ()) if isinstance(finding, Answer)]
    return Ladder(
        factor=asked.factor,
        rungs=rungs,
        climbs=[_climb(asked, levels, cells, thresholds) for levels, cells in _groups(asked, rungs, matching)],
        turns=[turn for answer in answers for turn in _turns(answer, asked.factor, rungs)],
        note=asked.note,
    )


def _groups(
    asked: AskedLadder, rungs: Sequence[str], cells: Sequence[CellResult]
) -> Iterator[tuple[dict[str, str], list[CellResult]]]:
    """Cells on different rungs only, from the best rung to the worst, and their common levels."""
    groups: dict[tuple[tuple[str, str], ...], list[CellResult]] = {}
    for cell in cells:
        levels = tuple((key, level) for key, level in cell.levels.items() if key != asked.factor)
        groups.setdefault(levels, []).append(cell)
    for levels, own in groups.items():
        yield dict(levels), sorted(own, key=lambda cell: rungs.index(cell.levels[asked.factor]))


def _climb(
    asked: AskedLadder, levels: dict[str, str], cells: Sequence[CellResult], thresholds: Sequence[ThresholdResult]
) -> LadderClimb:
    metric = asked.metrics.get(str(cells[0].cell))
    means = [_estimates(cell, metric) for cell in cells]
    has_means = all(estimates is None or estimates.mean.value is not None for estimates in means)
    statistic: Literal["mean", "median"] = "mean" if has_means else "median"
    rungs = [_rung(cell, asked.factor, metric, statistic) for cell in cells]
    climb = LadderClimb(
        levels=levels,
        metric=metric,
        statistic=statistic,
        unit="" if metric is None else METRICS[metric].unit.name,
        rungs=rungs,
        breaks=[
            *_failures(rungs),
            *(made for threshold in thresholds if (made := _missed(threshold, rungs)) is not None),
        ],
    )
    return climb.model_copy(update={"sentence": climb_sentence(climb)})


def _estimates(cell: CellResult, metric: str | None) -> MetricEstimates | None:
    return None if metric is None else cell.estimates.get(metric)


def _rung(cell: CellResult, factor: str, metric: str | None, statistic: str) -> LadderRung:
    estimates = _estimates(cell, metric)
    value = None if estimates is None else estimates.statistic(statistic)
    return LadderRung(
        rung=cell.levels[factor], cell=cell.cell, n=cell.n, lost=cell.lost, value=value, reason=cell.reason
    )


def _failures(rungs: Sequence[LadderRung]) -> Iterator[LadderBreak]:
    """From where exchanges fail, and from where none succeeds."""
    first = next((at for at, rung in enumerate(rungs) if rung.lost > 0), None)
    if first is not None:
        yield _break("failed", rungs, first, failed_text(rungs, first))
    last = next((at for at in range(len(rungs)) if all(rung.lost == rung.n for rung in rungs[at:])), None)
    if last is not None:
        yield _break("unusable", rungs, last, unusable_text(rungs, last))


def _missed(threshold: ThresholdResult, rungs: Sequence[LadderRung]) -> LadderBreak | None:
    """From where a threshold fails; None where it fails on no rung."""
    by_cell = {cell.cell: cell for cell in threshold.cells}
    rung_cells = [by_cell.get(rung.cell) for rung in rungs]
    first = next((at for at, cell in enumerate(rung_cells) if cell is not None and cell.verdict == "fail"), None)
    return (
        None
        if first is None
        else _break("threshold", rungs, first, threshold_text(threshold, rungs, rung_cells, first))
    )


def _break(kind: str, rungs: Sequence[LadderRung], first: int, text: str) -> LadderBreak:
    before = None if first == 0 else rungs[first - 1].rung
    return LadderBreak.model_validate({"kind": kind, "rung": rungs[first].rung, "before": before, "text": text})


def _turns(answer: Answer, factor: str, rungs: Sequence[str]) -> Iterator[LadderTurn]:
    """Where the answer to a question is another one than on the rungs before."""
    groups: dict[tuple[tuple[str, str], ...], dict[str, AnswerCase]] = {}
    for case in answer.cases:
        if factor in case.fixed and case.reference is not None and case.other is not None:
            levels = {key: level for key, level in case.fixed.items() if key != factor}
            levels |= {str(answer.factor): case.other.level}
            groups.setdefault(tuple(levels.items()), {})[case.fixed[factor]] = case
    for of_group, cases in groups.items():
        decided = [(rung, cases[rung]) for rung in rungs if rung in cases and cases[rung].verdict != "cannot tell"]
        turned = next(
            (pair for pair in decided[1:] if pair[1].verdict != decided[0][1].verdict),
            None,
        )
        if turned is not None:
            rung, case = turned
            yield LadderTurn(
                asks=answer.asks,
                levels=dict(of_group),
                rung=rung,
                answers={rung: cases[rung].verdict for rung in rungs if rung in cases},
                sentence=turn_sentence(answer, rung, case, decided[0]),
            )


JUDGING = Judging("ladder", "ladders", Ladder, judge_ladders)
