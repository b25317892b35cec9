"""Intervals of the coefficients that `crosswind fit` prints, of cells whose mean times follow a formula.

The cells are transfers of three sizes at three losses over two rates and two round trips. Their seeds are shared.
"""

import numpy as np

from coverage.tally import Tally
from coverage.worlds import SHARED, Size, World
from crosswind.models import situation
from crosswind.models.fitting import FORMS, Cells, Measured
from crosswind.models.fitting.fit import SCATTER, fit
from crosswind.stats import Estimate
from records import MS, path

NAMES = ("pftk-kappa", "power-law")
"""The models that are fitted in about a second. The others take up to half a minute for one fit with its intervals."""
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
    """What came of the coefficients of each model, all of one together. Args: size: of one transfer a repetition."""
    rng = np.random.default_rng([seed, size.units])
    found = {name: Tally() for name in NAMES}
    for name in NAMES:
        form = FORMS[name]
        true = np.array([coefficient.start for coefficient in form.coefficients])
        times = form.times(_CELLS, true)
        for _ in range(trials):
            # No formula is exact: cells lie about it by what a fit takes them to.
            off = np.exp(SCATTER * rng.standard_normal(times.size))
            common = rng.standard_normal(size.units)
            scores = SHARED * common + (1 - SHARED**2) ** 0.5 * rng.standard_normal((times.size, size.units))
            seconds = (times * off)[:, None] * world.of_score(scores) / world.mean
            made = fit(form, Measured(_CELLS, tuple(seconds)))
            assert made.limits is not None
            for value, low, high, truth in zip(made.values, *made.limits, true, strict=True):
                found[name].add(
                    Estimate(float(value), float(low), float(high), size.units, _LEVEL, "", "1"), float(truth)
                )
    return found
