"""Whether the levels of a factor make a difference that matters: a study's claims, each against its margin."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from crosswind.analysis.cells import CellData, mean_of
from crosswind.analysis.comparisons import fixed_of
from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import Equivalence, EquivalencePair, Interval
from crosswind.record import RunRecord
from crosswind.stats import Equivalence as Tested
from crosswind.stats import TooFewSamples, holm, margin_of_ratio, refused, tost, tost_ratio, tost_shares

ALPHA = 0.05


def equivalences_of(record: RunRecord, data: Sequence[CellData]) -> list[Equivalence]:
    """The claims of a run. One whose factor does not vary, as in a quick variant, is left out."""
    made = (_equivalence(entry, data) for entry in record.equivalences)
    return [claim for claim in made if claim.pairs]


def _equivalence(entry: Mapping[str, Any], data: Sequence[CellData]) -> Equivalence:
    metric, factor, wanted = str(entry["metric"]), str(entry["factor"]), set(entry["cells"])
    is_ratio, bound = bool(entry["is_ratio"]), float(entry["bound"])
    groups: dict[tuple[tuple[str, str], ...], list[CellData]] = {}
    for one in data:
        if one.cell in wanted and factor in one.levels and METRICS[metric].applies(one.workload):
            groups.setdefault(tuple(fixed_of(one, factor).items()), []).append(one)
    pairs = [
        _pair(metric, factor, reference, other, bound=bound, is_ratio=is_ratio)
        for group in groups.values()
        for reference, other in combinations(group, 2)
    ]
    low, high = margin_of_ratio(bound) if is_ratio else (-bound, bound)
    return Equivalence(
        title=str(entry["title"]),
        metric=metric,
        factor=factor,
        margin=str(entry["margin"]),
        scale="ratio" if is_ratio else "difference",
        unit="1" if is_ratio else METRICS[metric].unit,
        low=low,
        high=high,
        alpha=ALPHA,
        note=entry.get("note") or None,
        pairs=_corrected(pairs),
    )


def _pair(
    metric: str, factor: str, reference: CellData, other: CellData, *, bound: float, is_ratio: bool
) -> EquivalencePair:
    tested: Tested | None = None
    try:
        tested = _tested(metric, reference, other, bound=bound, is_ratio=is_ratio)
        effect = Interval.of(tested.estimate)
    except TooFewSamples as error:
        n = sum(one.samples[metric].values.size for one in (reference, other) if metric in one.samples)
        effect = Interval.of(
            refused(error.message, n=n, level=1 - 2 * ALPHA, method="two one-sided tests", unit=METRICS[metric].unit)
        )
    return EquivalencePair(
        reference=reference.levels[factor],
        other=other.levels[factor],
        fixed=fixed_of(reference, factor),
        reference_cell=reference.cell,
        other_cell=other.cell,
        effect=effect,
        p=tested.p if tested else None,
        p_holm=None,
        p_beyond=tested.p_beyond if tested else None,
        p_beyond_holm=None,
        verdict="cannot tell",
    )


def _tested(metric: str, reference: CellData, other: CellData, *, bound: float, is_ratio: bool) -> Tested:
    absent = [one for one in (reference, other) if metric not in one.samples]
    if absent:
        raise TooFewSamples("not enough samples: a cell has none")
    if METRICS[metric].share:
        return tost_shares(reference.shares[metric], other.shares[metric], margin=bound, alpha=ALPHA)
    pair = mean_of(reference.resampled[metric]), mean_of(other.resampled[metric])
    if is_ratio:
        return tost_ratio(*pair, margin=bound, alpha=ALPHA)
    return tost(*pair, margin=bound, unit=METRICS[metric].unit, alpha=ALPHA)


def _corrected(pairs: list[EquivalencePair]) -> list[EquivalencePair]:
    """With Holm's correction, each of the two claims by itself: of a pair only one of them can be wrong."""
    known = [one for one in pairs if one.p is not None]
    within = holm([one.p or 0.0 for one in known])
    beyond = holm([one.p_beyond or 0.0 for one in known])
    adjusted = {id(one): both for one, *both in zip(known, within, beyond, strict=True)}
    return [
        one.model_copy(
            update={"p_holm": adjusted[id(one)][0], "p_beyond_holm": adjusted[id(one)][1]}
            | {"verdict": _verdict(*adjusted[id(one)])}
        )
        if id(one) in adjusted
        else one
        for one in pairs
    ]


def _verdict(within: float, beyond: float) -> Literal["equivalent", "differs", "cannot tell"]:
    if within < ALPHA:
        return "equivalent"
    return "differs" if beyond < ALPHA else "cannot tell"
