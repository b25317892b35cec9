"""Curves through the cells of a run, fitted as a published report fitted its own, so that coefficients can be compared.

    cells of one level of `by` and one of `over` -> means at each loss -> a, b, c -> averages over the levels of `over`

Least squares on means, each weighted by its samples, has the same solution as on the samples themselves.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosswind.analysis.axes import losses_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import Fit, FitCurve, FitPublished, FitRow, Interval
from crosswind.models import caia
from crosswind.record import RunRecord
from crosswind.stats import Exponential, TooFewSamples, aicc, fit_exponential
from crosswind.stats.estimate import Array

RESAMPLES = 999
LEAST_REPETITIONS = 3
METHOD = (
    f"Least squares on every sample of a curve. Intervals are percentiles of {RESAMPLES} fits to resampled "
    "repetitions, drawn within each cell, n − 1 of n (Rao & Wu 1988)."
)
_BY_PERCENTILE = "least squares; percentile bootstrap over repetitions"
_CLEAR = 2.0  # AICc of models less than 2 apart: both have substantial support (Burnham & Anderson 2002)


def fits_of(record: RunRecord, data: Sequence[CellData], *, level: float) -> list[Fit]:
    """The fits of a run; refused coefficients are null with a reason."""
    return [_fit(entry, data, level) for entry in record.fits]


def _fit(entry: Mapping[str, Any], data: Sequence[CellData], level: float) -> Fit:
    metric, by, over = (str(entry[key]) for key in ("metric", "by", "over"))
    wanted = set(entry["cells"])
    own = [one for one in data if one.cell in wanted]
    losses = losses_of(str(entry["x"]), own)
    rows = []
    for name, cells in _grouped(own, by).items():
        series = [
            _series(over_level, members, metric, losses, level) for over_level, members in _grouped(cells, over).items()
        ]
        rows.append(_row(name, cells, series, entry, level))
    nanoseconds = METRICS[metric].unit == "ns"
    return Fit(
        title=str(entry["title"]),
        model=str(entry["model"]),
        formula=caia.FORMULA,
        metric=metric,
        unit="s" if nanoseconds else METRICS[metric].unit,
        x=str(entry["x"]),
        by=by,
        over=over,
        method=METHOD,
        published_method=caia.HOW_FITTED,
        note=entry.get("note") or None,
        rows=rows,
    )


def _grouped(cells: Sequence[CellData], key: str) -> dict[str | None, list[CellData]]:
    groups: dict[str | None, list[CellData]] = {}
    for one in cells:
        groups.setdefault(one.levels.get(key), []).append(one)
    return groups


@dataclass(frozen=True)
class _Series:
    """One curve: `best` and `drawn` are the fits to its samples and to resamples of them, None where it was refused.

    within: squares of the samples about their cell's mean. n: samples.
    """

    curve: FitCurve
    best: Exponential | None
    drawn: Exponential | None
    within: float
    n: int


def _series(
    name: str | None, cells: Sequence[CellData], metric: str, losses: Mapping[int, float], level: float
) -> _Series:
    scale = 1e-9 if METRICS[metric].unit == "ns" else 1.0
    n = sum(one.samples[metric].values.size for one in cells if metric in one.samples)
    try:
        _check(cells, metric, losses)
        parts = [_Repetitions.of(one, metric, scale) for one in cells]
        x = [losses[one.cell] for one in cells]
        weights = [part.counts.sum() for part in parts]
        means = np.array([part.sums.sum() / part.counts.sum() for part in parts])
        best = fit_exponential(x, means[None, :], weights)
        if best.total[0] <= 1e-24 * float(means @ means):
            raise TooFewSamples("the times are the same at every loss")
        _check_repetitions(parts)
        drawn = fit_exponential(x, np.stack([part.resampled() for part in parts], axis=1), weights)
    except TooFewSamples as error:
        nothing = _refused(error.message, n, level)
        empty = FitCurve(level=name, a=nothing, b=nothing, c=nothing, r_squared=None, aicc_straight=None, shape=None)
        return _Series(empty, None, None, 0.0, n)
    within = sum(part.within for part in parts)
    straight = _aicc_straight(best, within, n)
    curve = FitCurve(
        level=name,
        **_coefficients([best], [drawn], n, level),
        r_squared=1 - float(best.unexplained[0] / best.total[0]),
        aicc_straight=straight,
        shape=_shape(straight),
    )
    return _Series(curve, best, drawn, within, n)


def _check(cells: Sequence[CellData], metric: str, losses: Mapping[int, float]) -> None:
    empty = sum(metric not in one.samples for one in cells)
    if empty:
        raise TooFewSamples(f"{empty} of {len(cells)} cells have no samples")
    if len({losses[one.cell] for one in cells}) < len(cells):
        raise TooFewSamples("cells of the same loss differ in something else: name one level of it in `where`")


def _check_repetitions(parts: "Sequence[_Repetitions]") -> None:
    fewest = min(part.sums.size for part in parts)
    if fewest < LEAST_REPETITIONS:
        raise TooFewSamples(
            f"an interval needs {LEAST_REPETITIONS} repetitions of each cell, one has {fewest}",
            needed=LEAST_REPETITIONS,
        )


@dataclass(frozen=True)
class _Repetitions:
    """Sum and number of a cell's samples in each of its repetitions, shape (repetitions,)."""

    sums: Array
    counts: Array
    within: float
    seed: int

    @classmethod
    def of(cls, one: CellData, metric: str, scale: float) -> "_Repetitions":
        samples = one.samples[metric]
        values = samples.values * scale
        _, member = np.unique(samples.repetitions, return_inverse=True)
        within = float(np.sum((values - values.mean()) ** 2))
        seed = zlib.crc32(f"fit {one.cell} {metric}".encode())
        sums = np.bincount(member, weights=values).astype(np.float64, copy=False)
        return cls(sums, np.bincount(member).astype(np.float64), within, seed)

    def resampled(self) -> Array:
        """Means of resamples, shape (RESAMPLES,): n - 1 of n, so that their variance is that of the mean."""
        n = self.sums.size
        drawn = np.random.default_rng(self.seed).integers(0, n, size=(RESAMPLES, n - 1))
        return np.asarray(self.sums[drawn].sum(axis=1) / self.counts[drawn].sum(axis=1))


def _row(
    name: str | None, cells: Sequence[CellData], series: list[_Series], entry: Mapping[str, Any], level: float
) -> FitRow:
    n = sum(one.n for one in series)
    fitted = [(one.best, one.drawn) for one in series if one.best is not None and one.drawn is not None]
    failed = {one.curve.level: one.curve.c.reason for one in series if one.best is None}
    if failed:
        where = ", ".join(filter(None, failed)) if len(failed) < len(series) else ""
        reasons = "; ".join(dict.fromkeys(filter(None, failed.values())))
        nothing = _refused(f"{where}: {reasons}" if where else reasons, n, level)
        coefficients = {"a": nothing, "b": nothing, "c": nothing}
        r_squared = straight = None
    else:
        coefficients = _coefficients([best for best, _ in fitted], [drawn for _, drawn in fitted], n, level)
        total = sum(float(best.total[0]) for best, _ in fitted)
        r_squared = 1 - sum(float(best.unexplained[0]) for best, _ in fitted) / total
        each = [one.curve.aicc_straight for one in series if one.curve.aicc_straight is not None]
        straight = sum(each) if each else None
    own = {one.cell for one in cells}
    published = [
        _published(theirs, coefficients["b"], coefficients["c"])
        for theirs in entry.get("published") or []
        if (own & set(theirs["cells"]) if theirs.get("cells") is not None else str(theirs["level"]) == name)
    ]
    return FitRow(
        level=name,
        **coefficients,
        r_squared=r_squared,
        aicc_straight=straight,
        shape=_shape(straight),
        published=published,
        series=[one.curve for one in series],
    )


def _coefficients(best: list[Exponential], drawn: list[Exponential], n: int, level: float) -> dict[str, Interval]:
    """a, b and c averaged over curves, each with the percentiles of the same average of resamples.

    c is refused where the search for it ended at an end of its range, a and b also where c may be 0: of a straight line
    they have no value.
    """
    loose = np.any([one.at_end for one in drawn], axis=0)
    if any(bool(one.at_end[0]) for one in best) or float(loose.mean()) > 1 - level:
        share = float(loose.mean())
        said = (
            f"the samples do not bound c: in {share:.0%} of the resamples no curve between a step at the least loss "
            "and a step at the largest fits best"
        )
        nothing = _refused(said, n, level)
        return {"a": nothing, "b": nothing, "c": nothing}
    tails = (1 - level) / 2, (1 + level) / 2

    def averaged(part: Callable[[Exponential], Array]) -> Interval:
        value = float(np.mean([part(one)[0] for one in best]))
        low, high = (float(q) for q in np.quantile(np.mean([part(one) for one in drawn], axis=0), tails))
        return Interval(
            value=value, low=min(low, value), high=max(high, value), n=n, level=level, method=_BY_PERCENTILE
        )

    found = {"a": averaged(lambda one: one.a), "b": averaged(lambda one: one.b), "c": averaged(lambda one: one.c)}
    crossing = [one for one in drawn if np.quantile(one.c, tails[0]) <= 0 <= np.quantile(one.c, tails[1])]
    if crossing:
        some = "" if len(drawn) == 1 else f" in {len(crossing)} of {len(drawn)} curves"
        nothing = _refused(f"c may be 0{some}: of a straight line a and b have no value", n, level)
        found |= {"a": nothing, "b": nothing}
    return found


def _refused(reason: str, n: int, level: float) -> Interval:
    return Interval(value=None, low=None, high=None, n=n, level=level, method=_BY_PERCENTILE, reason=reason)


def _aicc_straight(best: Exponential, within: float, n: int) -> float | None:
    """By how much AICc prefers the curve (3 parameters) to the straight line (2)."""
    least = 1e-24 * float(best.total[0])
    curve = aicc(max(float(best.unexplained[0]) + within, least), n, 3)
    line = aicc(max(float(best.straight[0]) + within, least), n, 2)
    return line - curve if math.isfinite(line) and math.isfinite(curve) else None


def _shape(straight: float | None) -> str | None:
    if straight is None:
        return None
    return "exponential" if straight >= _CLEAR else "straight line" if straight <= -_CLEAR else "undecided"


def _published(theirs: Mapping[str, Any], b: Interval, c: Interval) -> FitPublished:
    def ratio(ours: Interval, key: str) -> float | None:
        return ours.value / float(theirs[key]) if ours.value is not None and theirs.get(key) else None

    def inside(ours: Interval, key: str) -> bool | None:
        if ours.low is None or ours.high is None or theirs.get(key) is None:
            return None
        return ours.low <= float(theirs[key]) <= ours.high

    a, their_b, their_c = (None if theirs.get(key) is None else float(theirs[key]) for key in ("a", "b", "c"))
    return FitPublished(
        source=str(theirs["source"]),
        a=a,
        b=their_b,
        c=their_c,
        b_ratio=ratio(b, "b"),
        c_ratio=ratio(c, "c"),
        b_inside=inside(b, "b"),
        c_inside=inside(c, "c"),
        note=theirs.get("note") or None,
    )
