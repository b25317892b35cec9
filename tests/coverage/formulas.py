"""Intervals of the coefficients that `crosswind fit` prints, of cells whose mean times follow a formula.

The cells are transfers of three sizes at three losses over two rates and two round trips. Their seeds are shared.
"""

import numpy as np

from coverage.tally import Tally
from coverage.worlds import SHARED, Size, World
from crosswind.models.fitting import FORMS, Cells, Form, MeasuredCells, fit
from crosswind.models.fitting.fit import SCATTER
from crosswind.stats.design import Amount, Design, Tail, coefficient_shortage
from crosswind.stats.estimate import Interval, refused
from effects import situation
from records import MS, path

COEFFICIENTS = tuple(f"{form.name}: {one.name}" for form in FORMS.values() for one in form.coefficients)
_LEVEL = 0.95
_CELLS = Cells.of([
    situation(
        {
            "workload": {"kind": "transfer", "transport": "tcp", "direction": "download", "size_bytes": size},
            "path": path(loss=loss, delay_ns=delay_ms * MS, rate_bps=rate),
        },
        None,
    )
    for size in (64_000, 256_000, 1_000_000)
    for loss in (0.01, 0.03, 0.07)
    for delay_ms in (10, 30)
    for rate in (5_000_000, 20_000_000)
])  # fmt: skip


def formulas(world: World, size: Size, *, trials: int, seed: int) -> dict[str, Tally]:
    """What came of each coefficient. Args: size: of one transfer a repetition."""
    rng = np.random.default_rng([seed, size.units])
    found = {name: Tally() for name in COEFFICIENTS}
    # Whoever fits has cells with losses, whatever their times are like.
    design = Design(Tail.SKEWED, world.design.rate) if world.design.tail is Tail.LIGHT else world.design
    short = coefficient_shortage([Amount(design, size.units, size.units)])
    for form in FORMS.values():
        true = form.starts
        for _ in range(trials):
            made = _estimates(form, world, size, rng) if short is None else [_refused(size)] * true.size
            for one, estimate, truth in zip(form.coefficients, made, true, strict=True):
                found[f"{form.name}: {one.name}"].add(estimate, float(truth))
    return found


def _estimates(form: Form, world: World, size: Size, rng: np.random.Generator) -> list[Interval]:
    """The coefficients fitted to one run."""
    times = form.times(_CELLS, form.starts)
    # No formula is exact: cells lie about it by what a fit takes them to.
    off = np.exp(SCATTER * rng.standard_normal(times.size))
    common = rng.standard_normal(size.units)
    scores = SHARED * common + (1 - SHARED**2) ** 0.5 * rng.standard_normal((times.size, size.units))
    seconds = (times * off)[:, None] * world.of_score(scores) / world.mean
    made = fit(form, MeasuredCells(_CELLS, tuple(seconds)))
    assert made.limits is not None
    return [
        _refused(size)
        if one.name in made.at_bound
        else Interval(float(value), float(low), float(high), size.units, _LEVEL, "")
        for one, value, low, high in zip(form.coefficients, made.values, *made.limits, strict=True)
    ]


def _refused(size: Size) -> Interval:
    return refused("", n=size.units, level=_LEVEL)
