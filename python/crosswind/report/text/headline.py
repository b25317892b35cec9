"""What a run says, in a few sentences: all computed from the result, none chosen by hand."""

import math
from collections import Counter

from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import Equivalence, LevelComparison, Result
from crosswind.report.text.format import factor_name, levels, number, quantity

_SHOWN = 4


def verdict(result: Result) -> tuple[str, str]:
    """Whether to trust the run: ("good" | "doubtful" | "bad", one sentence)."""
    bad = [cell for cell in result.cells if not cell.valid]
    if not result.cells:
        return "bad", "No cell was executed."
    if bad:
        return "bad", f"{len(bad)} of {counted(len(result.cells), 'cell')} must not be trusted: {_first_reason(result)}"
    if not result.complete:
        return (
            "doubtful",
            f"Incomplete: {result.executed} of {result.planned} repetitions were executed; those are valid.",
        )
    if any(cell.warnings for cell in result.cells):
        return "doubtful", "Every packet is accounted for and emulation kept its budget, with warnings."
    return "good", "Every packet is accounted for, and emulation kept its budget in every cell."


def sentences(result: Result) -> list[str]:
    """The run in sentences: its extent, then the largest differences between levels, then what was not shown."""
    exchanges = sum(cell.n for cell in result.cells)
    lost = sum(cell.lost for cell in result.cells)
    extent = (
        f"{counted(len(result.cells), 'cell')}, {counted(result.executed, 'repetition')}, "
        f"{counted(exchanges, 'exchange')}, {number_of(lost)} of them lost."
    )
    return [extent, *equivalences(result), *differences(result)]


def equivalences(result: Result) -> list[str]:
    """What came of each claim of equivalence."""
    return [f"{claim.title}{'' if claim.title.endswith('?') else ':'} {tally(claim)}." for claim in result.equivalences]


def tally(claim: Equivalence) -> str:
    """How many pairs of a claim are equivalent, how many differ, and of how many neither was shown."""
    found = Counter(pair.verdict for pair in claim.pairs)
    equivalent, differing, open_ = (number_of(found[one]) for one in ("equivalent", "differs", "cannot tell"))
    pairs = f"{equivalent} of {counted(len(claim.pairs), 'pair')} of levels of {factor_name(claim.factor)}"
    return f"{pairs} equivalent within {margin(claim)}, {differing} that differ by more, {open_} that cannot be told"


def margin(claim: Equivalence) -> str:
    """What a claim allows: "±5 ms", "±4 percentage points", "0.8 to 1.25 times"."""
    if claim.scale == "ratio":
        return f"{claim.low:.3g} to {claim.high:.3g} times"
    points = f"{100 * claim.high:.3g} percentage points"
    return f"±{points if claim.unit == '1' else quantity(claim.high, claim.unit)}"


def differences(result: Result) -> list[str]:
    """The largest ratio for each factor and metric, and how many comparisons of it showed nothing."""
    families: dict[tuple[str, str], list[LevelComparison]] = {}
    for one in result.comparisons:
        families.setdefault((one.metric, one.factor), []).append(one)
    said = [_family(metric, factor, family) for (metric, factor), family in families.items()]
    said.sort(key=lambda pair: -pair[0])
    return [text for _, text in said[:_SHOWN]]


def number_of(count: int) -> str:
    """A count with thin spaces: 24 000."""
    return f"{count:,}".replace(",", "\u202f")


def _family(metric: str, factor: str, family: list[LevelComparison]) -> tuple[float, str]:
    title = METRICS[metric].title
    shown = [one for one in family if one.verdict in ("larger", "smaller") and one.ratio.value]
    untested = sum(one.p is None for one in family)
    if not shown:
        if untested == len(family):
            return 0.0, f"{title}: too few samples to compare levels of {factor_name(factor)}."
        return 0.0, f"{title}: no difference shown between levels of {factor_name(factor)}."
    top = max(shown, key=lambda one: abs(math.log(one.ratio.value or 1.0)))
    r = top.ratio
    half = None if r.low is None or r.high is None else (r.high - r.low) / 2
    low, high = (number(part, resolution=half) for part in (r.low, r.high))
    where = ", ".join(f"{factor_name(key)} {level}" for key, level in top.fixed.items())
    where = f" (at {where})" if where else ""
    text = (
        f"{title} with {factor_name(factor)} {top.other} is {number(r.value, resolution=half)} times that with "
        f"{top.reference}{where}; 95 % interval {low} to {high}."
    )
    if len(family) > 1:
        text += f" {len(shown)} of {len(family)} comparisons of {factor_name(factor)} show a difference."
    return abs(math.log(r.value or 1.0)), text


def counted(count: int, noun: str) -> str:
    """A count of things: 1 cell, 24 000 cells."""
    return f"{number_of(count)} {noun}{'' if count == 1 else 's'}"


def _first_reason(result: Result) -> str:
    cell = next(cell for cell in result.cells if not cell.valid)
    return f"{levels(cell.levels)}: {cell.reason}"
