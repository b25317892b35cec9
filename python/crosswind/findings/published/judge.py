"""Published numbers beside ours, with a remark that is computed and not chosen."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from crosswind.analysis.result import CellResult, Interval, ResultModel
from crosswind.decisions.statement import LevelText, Stored
from crosswind.findings.judged import Context, Judging
from crosswind.metrics import METRICS
from crosswind.quantities import UNITS, Unit


class AskedNumber(Stored):
    """A published number to set beside ours. `mean`, `sd`, `ci` and `functions` are in `unit`.

    `cells` is None in runs of an early version: then `levels` have to be those of a cell.
    """

    source: str
    metric: str
    statistic: str = "mean"
    unit: str
    levels: dict[str, LevelText]
    mean: float
    sd: float | None = None
    ci: float | None = None
    note: str | None = None
    functions: dict[str, float] = Field(default={})
    cells: frozenset[int] | None = None


class PublishedComparison(ResultModel):
    """A published number beside ours.

    `ratio` is ours / theirs, `inside` whether theirs lies in our interval, `observed` our smallest and largest sample.
    `functions`: the functions of a program among which the source divides it, in `unit`.
    """

    source: str
    metric: str
    statistic: str
    unit: str
    levels: dict[str, str]
    cell: int | None
    theirs: float
    theirs_sd: float | None
    theirs_ci: float | None
    ours: Interval | None
    observed: tuple[float, float] | None
    ratio: float | None
    inside: bool | None
    remark: str
    note: str | None
    functions: dict[str, float] = Field(default={})


_BELOW_ZERO = "their interval reaches below 0, where no such number is"


def judge_published(context: Context) -> list[PublishedComparison]:
    """Every published number beside every cell that it belongs to; alone when there is none.

    Raises: ValueError when a number's unit is unknown.
    """
    rows: list[PublishedComparison] = []
    for number in map(AskedNumber.model_validate, context.record.asked.get("published", ())):
        belonging = (cell for cell in context.cells if _belongs(number, cell, context.record.study))
        matching: list[CellResult | None] = [*belonging]
        rows.extend(_beside(number, cell) for cell in matching or [None])
    return rows


def _belongs(number: AskedNumber, cell: CellResult, design: Mapping[str, Any]) -> bool:
    """Whether the plan named the cell; in runs whose plan names none, whether the levels read alike."""
    if number.cells is not None:
        return cell.cell in number.cells
    wanted = number.levels.items()
    return all(_comparable(cell.levels.get(key, _dotted(design, key))) == _comparable(value) for key, value in wanted)


def _dotted(design: Mapping[str, Any], key: str) -> object:
    """The value of a dotted key in a study; None where it is not set."""
    value: object = design
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _comparable(value: object) -> str:
    return str(value).replace(" ", "").casefold()


def _beside(number: AskedNumber, cell: CellResult | None) -> PublishedComparison:
    unit, scale = _scale(number.unit)
    theirs = number.mean * scale
    ci = None if number.ci is None else number.ci * scale
    estimates = cell.estimates.get(number.metric) if cell else None
    ours = None
    if estimates is not None and estimates.unit == unit.name:
        ours = estimates.statistic(number.statistic)
    inside = ours.low <= theirs <= ours.high if ours and ours.low is not None and ours.high is not None else None
    return PublishedComparison(
        source=number.source,
        metric=number.metric,
        statistic=number.statistic,
        unit=unit.name,
        levels=number.levels,
        cell=cell.cell if cell else None,
        theirs=theirs,
        theirs_sd=None if number.sd is None else number.sd * scale,
        theirs_ci=ci,
        ours=ours,
        observed=(estimates.smallest, estimates.largest) if ours and estimates else None,
        ratio=ours.value / theirs if ours and ours.value is not None and theirs else None,
        inside=inside,
        remark="no cell of this run has these levels"
        if cell is None
        else _remark(theirs, ci, ours, inside=inside, is_positive=METRICS[number.metric].is_positive),
        note=number.note,
        functions={name: part * scale for name, part in number.functions.items()},
    )


def _scale(name: str) -> tuple[Unit, float]:
    """The unit of results that a unit is a scale of, and how many of it make one."""
    for unit in UNITS.values():
        if name in unit.scales:
            return unit, unit.scales[name]
    known = ", ".join(scale for unit in UNITS.values() for scale in unit.scales)
    raise ValueError(f"unknown unit {name!r} of a published number; known are {known}")


def _remark(theirs: float, ci: float | None, ours: Interval | None, *, inside: bool | None, is_positive: bool) -> str:
    if ours is None or ours.value is None or not theirs:
        return "this cell has no such metric" if ours is None else ours.reason or "theirs is 0"
    if ours.is_exact:
        return _exact_remark(theirs, ci, ours.value, is_positive=is_positive)
    ratio = _times(ours.value / theirs)
    if ours.low is None or ours.high is None:
        return f"ours is {ratio}; {ours.reason}"
    if inside:
        return "theirs lies in our interval"
    overlap = ci is not None and theirs - ci <= ours.high and ours.low <= theirs + ci
    if overlap and is_positive and theirs < (ci or 0):
        return f"outside our interval; ours is {ratio}; {_BELOW_ZERO}"
    return f"the intervals overlap; ours is {ratio}" if overlap else f"outside our interval; ours is {ratio}"


def _exact_remark(theirs: float, ci: float | None, ours: float, *, is_positive: bool) -> str:
    ratio = f"ours is exact, {_times(ours / theirs)}"
    if ci is None:
        return ratio
    if is_positive and theirs < ci:
        return f"{ratio}; {_BELOW_ZERO}"
    return f"{ratio}, {'within' if theirs - ci <= ours <= theirs + ci else 'outside'} their interval"


def _times(ratio: float) -> str:
    """A ratio in words: "1.03 times theirs", "as much as theirs", below a tenth "1/100 of theirs"."""
    if 0.995 <= ratio < 1.005:
        return "as much as theirs"
    return f"{ratio:.3g} times theirs" if not 0 < ratio < 0.1 else f"1/{1 / ratio:.0f} of theirs"


JUDGING = Judging("published", "published", PublishedComparison, judge_published)
