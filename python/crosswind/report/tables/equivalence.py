"""Claims of equivalence: every pair of levels against the margin that the study declared."""

from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import Equivalence, EquivalencePair, Result
from crosswind.report.tables.tables import Table, method
from crosswind.report.text.format import NOTHING, factor_name, interval, levels, p_value, scale_of
from crosswind.report.text.headline import margin, number_of, tally

_HOW_TO_READ = (
    "Two one-sided tests (Schuirmann 1987), by the 90 % intervals shown, each by itself. p is corrected by Holm's "
    "method over all pairs of the table, and that of the verdict, else of equivalence. “Cannot tell”: neither is shown."
)


def equivalence_tables(result: Result) -> list[Table]:
    """A table for each claim."""
    return [_table(claim) for claim in result.equivalences]


def _table(claim: Equivalence) -> Table:
    effects = [pair.effect for pair in claim.pairs]
    known = [part for one in effects for part in (one.value, one.high) if part is not None]
    divisor, unit = (1.0, "") if claim.scale == "ratio" else scale_of(known, claim.unit)
    what = "ratio of means" if claim.scale == "ratio" else "difference of means"
    if METRICS[claim.metric].share:
        what = "difference of shares"
    heads = f"{what}{f', {unit}' if unit else ''} [90 %]"
    rows, narrow = [], []
    for pair in claim.pairs:
        two = f"{pair.other} against {pair.reference}"
        at, found = levels(pair.fixed) if pair.fixed else NOTHING, interval(pair.effect, divisor)
        rows.append([at, two, number_of(pair.effect.n), found, p_value(_p(pair)), pair.verdict])
        narrow.append([at, f"{pair.other} / {pair.reference}", found, pair.verdict])
    reasons: dict[str, int] = {}
    for one in effects:
        if one.reason:
            reasons[one.reason] = reasons.get(one.reason, 0) + 1
    notes = [
        f"{METRICS[claim.metric].title}: {tally(claim)}.",
        *([claim.note] if claim.note else []),
        f"Margin: {margin(claim)}. {_HOW_TO_READ}",
        *dict.fromkeys(f"Intervals: {method(one.method)}." for one in effects if one.value is not None),
        *(f"{number_of(count)} without an interval: {why}" for why, count in reasons.items()),
    ]
    factor = factor_name(claim.factor)
    small = Table(claim.title, ["at", factor, what, "verdict"], narrow, 2, footnotes=notes)
    return Table(claim.title, ["at", factor, "n", heads, "p (Holm)", "verdict"], rows, 2, footnotes=notes, narrow=small)


def _p(pair: EquivalencePair) -> float | None:
    return pair.p_beyond_holm if pair.verdict == "differs" else pair.p_holm
