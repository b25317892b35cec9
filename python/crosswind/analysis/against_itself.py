"""A against A: how often identical cells seem to differ.

Cells measured alike form families: the first against each other one, compared and corrected like levels in a report.
Nothing differs, so every shown difference is a false alarm. Families are drawn from a run's repetitions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.analysis.cells import CellData, collect
from crosswind.catalog.metrics import STATISTICS
from crosswind.cell.record import RunRecord
from crosswind.decisions.families import ALPHA, LEVELS
from crosswind.decisions.judge import adjust_exploratory
from crosswind.stats.differences import Side, difference
from crosswind.stats.effect import ComparedStatistic
from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.repetitions import RepetitionKey
from crosswind.stats.significance import two_sided_p

ALLOWED = 0.07
"""Share of families with an alarm: the level, 5 %, and the excess from few repetitions' tests."""

REPETITIONS = (2, 5, 8, 20)
"""In each cell."""
DRAWN_FAMILIES = 500
"""Drawn for each test."""
METRIC = "rtt"

_ONE_SIDED = 1.645  # normal quantile of 95 %


@dataclass(frozen=True)
class Alarms:
    """Families with one size, and their alarms.

    Attributes: repetitions: in each cell. paired: whether a family's cells share their seeds. families: drawn. alarms:
        among these. independent: families behind the share. Families with common seeds keep a cell's peculiarity in
        this run, so only those without a common repetition are independent; with other seeds in every cell, chance
        alone deals them out.
    """

    repetitions: int
    paired: bool
    families: int
    alarms: int
    independent: int

    @property
    def share(self) -> float:
        """Families with an alarm."""
        return self.alarms / self.families

    @property
    def allowed(self) -> float:
        """The largest share without a finding: ALLOWED, and 95 % of chance."""
        return min(1.0, ALLOWED + _ONE_SIDED * float(np.sqrt(ALLOWED * (1 - ALLOWED) / self.independent)))

    @property
    def is_finding(self) -> bool:
        """Whether there are more than chance explains."""
        return self.share > self.allowed


@dataclass(frozen=True)
class SelfTest:
    """One test between a run's own cells.

    Attributes: title: the test. text: its outcome. is_finding: whether it is a fault. alarms: from drawn families, else
        None.
    """

    title: str
    text: str
    is_finding: bool
    alarms: Alarms | None = None


def self_tests(record: RunRecord, clock: str) -> list[SelfTest]:
    """All tests for a run of `against-itself`, on one clock."""
    groups: dict[str, list[CellData]] = {}
    for cell in collect(record):
        groups.setdefault(cell.levels["path.loss"], []).append(cell)
    return [finding for loss, cells in groups.items() for finding in _of_group(cells, f"{clock} clock, {loss} loss")]


def _of_group(cells: Sequence[CellData], title: str) -> Iterator[SelfTest]:
    sides = [cell.side(METRIC) for cell in cells]
    virtual = any(cell.parameters["host"].get("clock") == "virtual" for cell in cells)
    if virtual:
        same = all(_same(sides[0], side) for side in sides)
        text = "the same to the last bit" if same else "not the same"
        yield SelfTest(f"{title}: {len(cells)} cells with the same seeds", text, not same)
        if any(cell.is_exact for cell in cells):
            return
    for name in ("mean", "median"):
        statistic: ComparedStatistic = STATISTICS[name].quantile or "mean"
        for paired in (False,) if virtual else (True, False):
            for repetitions in REPETITIONS:
                alarms = count_alarms(
                    sides, statistic, repetitions=repetitions, paired=paired, families=DRAWN_FAMILIES, seed=repetitions
                )
                if alarms is not None:
                    how = "same seeds" if paired else "other seeds"
                    yield _counted(f"{title}: {name} of {repetitions} repetitions, {how}", alarms)


def _counted(title: str, alarms: Alarms) -> SelfTest:
    text = f"{100 * alarms.share:.1f} % of {alarms.families} families alarm, at most {100 * alarms.allowed:.1f} % may"
    return SelfTest(title, text, alarms.is_finding, alarms)


def _same(one: Side, other: Side) -> bool:
    return one.units.keys == other.units.keys and np.array_equal(one.units.values, other.units.values)


def count_alarms(
    cells: Sequence[Side], statistic: ComparedStatistic, *, repetitions: int, paired: bool, families: int, seed: int
) -> Alarms | None:
    """Draws families and counts those with a shown difference.

    Args: cells: measured alike, with the same repetitions. repetitions: in each cell.
    Returns: None with too few repetitions for one family.
    """
    common = sorted(set.intersection(*(set(cell.units.keys) for cell in cells)))
    needed = repetitions if paired else repetitions * len(cells)
    if len(common) < needed:
        return None
    rng = np.random.default_rng(seed)
    drawn = (rng.permutation(len(common))[:needed] for _ in range(families))
    alarms = sum(_alarms(_family(cells, [common[place] for place in places], paired), statistic) for places in drawn)
    return Alarms(repetitions, paired, families, alarms, len(common) // needed if paired else families)


def _family(cells: Sequence[Side], keys: Sequence[RepetitionKey], paired: bool) -> list[Side]:
    """Every cell with the same repetitions, or each with others."""
    each = len(keys) if paired else len(keys) // len(cells)
    starts = (0 if paired else number * each for number in range(len(cells)))
    return [
        Side(cell.units.chosen(sorted(keys[start : start + each])), cell.design)
        for cell, start in zip(cells, starts, strict=True)
    ]


def _alarms(family: Sequence[Side], statistic: ComparedStatistic) -> bool:
    """Whether a family of identical cells shows a difference."""
    return any(p is not None and p < ALPHA for p in adjust_exploratory(_p_values(family, statistic), LEVELS))


def _p_values(family: Sequence[Side], statistic: ComparedStatistic) -> Iterator[float]:
    first, *others = family
    for other in others:
        try:
            p = two_sided_p(difference(first, other, statistic))
        except TooFewSamples:
            continue
        if p is not None:
            yield p
