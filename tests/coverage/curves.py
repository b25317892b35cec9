"""Intervals of the coefficients of a curve a + b·e^(c·loss) through cells.

These share no seeds, since cells are resampled apart: where they share them, means that vary together move the curve
less than the resamples do.
"""

import math
from typing import Any

import numpy as np

from coverage.tally import Tally
from coverage.worlds import Size, World, scores_of_cell
from crosswind.analysis.cells import CellData
from crosswind.analysis.designs import design_of
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import METRICS
from crosswind.findings.fit.curves import fit_curve
from crosswind.stats.estimate import Interval
from crosswind.stats.repetitions import Repetitions
from effects import effect_of
from records import path, run

TRUE = {"a": 0.02, "b": 0.01, "c": 20.0}
"""In s, s and 1: the mean grows from 30 ms without loss to 94 ms at 10 %."""
LOSSES = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)
_DESIGNS: dict[str, dict[str, Any]] = {
    "normal": {"workload": {"kind": "echo", "transport": "udp"}},
    "LN1": {"workload": {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}, "path": path(loss=0.1)},
    "mix": {"workload": {"kind": "echo", "transport": "tcp"}, "path": path(loss=0.1)},
    "LN2": {"workload": {"kind": "echo", "transport": "tcp"}, "path": path(loss=0.2)},
}
"""Cells of which a study knows what it knows of each distribution."""
_LEVEL = 0.95


def fitted(world: World, size: Size, *, trials: int, seed: int) -> dict[str, Tally]:
    """What came of each coefficient. Args: world: of every cell, in which all values are as many times as long."""
    rng = np.random.default_rng([seed, size.units, size.messages, round(100 * size.icc)])
    means_ns = [1e9 * (TRUE["a"] + TRUE["b"] * math.exp(TRUE["c"] * loss)) / world.mean for loss in LOSSES]
    assert (
        design_of(METRICS["rtt"], CellSettings.of(_DESIGNS[world.name], effect_of(_DESIGNS[world.name]))).tail
        is world.design.tail
    )
    runs = [run(cell, None, parameters=_DESIGNS[world.name]) for cell in range(len(LOSSES))]
    found = {name: Tally() for name in TRUE}
    for _ in range(trials):
        cells = []
        for cell, scale in enumerate(means_ns):
            values = scale * world.of_score(scores_of_cell(rng, 1, size))
            units = Repetitions.of(values.ravel(), np.repeat(np.arange(size.units), size.messages))
            cells.append(CellData(cell, {}, [runs[cell]], {"rtt": units}))
        curve = fit_curve(None, cells, "rtt", dict(enumerate(LOSSES)), level=_LEVEL).curve
        for name, true in TRUE.items():
            made = getattr(curve, name)
            found[name].add(Interval(made.value, made.low, made.high, made.n, _LEVEL, made.method), true)
    return found
