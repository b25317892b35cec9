"""Claims of equivalence: every pair of levels against the margin that the study declared."""

from collections import Counter

from crosswind.analysis.result import EquivalenceClaim, EquivalencePair, Result
from crosswind.metrics import METRICS
from crosswind.report.tables.metrics import method_name
from crosswind.report.tables.table import Table, names, numbers, words
from crosswind.report.text.format import (
    EXACT,
    NOTHING,
    count,
    factor_name,
    interval,
    levels,
    p_value,
    plural_of,
    scale_of,
)
from crosswind.report.text.headline import margin_text, tally

_HOW_TO_READ = (
    "Two one-sided tests (Schuirmann 1987), by the 90 % intervals shown, each by itself. p is that of a difference "
    "beyond the margin where the verdict is “differs”, else that of equivalence, and is corrected by Holm's method "
    "over all pairs of the study's claims. “Cannot tell”: neither is shown."
)


def equivalence_tables(result: Result) -> list[Table]:
    """A table for each claim."""
    return [_table(claim) for claim in result.equivalences]


def _table(claim: EquivalenceClaim) -> Table:
    effects = [pair.effect for pair in claim.pairs]
    known = [part for effect in effects for part in (effect.value, effect.high) if part is not None]
    divisor, unit = (1.0, "") if claim.scale == "ratio" else scale_of(known, claim.unit)
    what, factor = _what(claim), factor_name(claim.factor)
    rows = [_row(pair, divisor) for pair in claim.pairs]
    narrow = [
        [at, f"{pair.other} / {pair.reference}", effect, verdict]
        for pair, (at, _, _, effect, _, verdict) in zip(claim.pairs, rows, strict=True)
    ]
    notes = _footnotes(claim)
    heading = f"{what}{f', {unit}' if unit else ''} [90 %]"
    columns = [*names("at", factor), *numbers("n", heading, "p (Holm)"), *words("verdict")]
    small = Table(claim.title, [*names("at", factor), *numbers(what), *words("verdict")], narrow, footnotes=notes)
    return Table(claim.title, columns, rows, footnotes=notes, narrow=small)


def _row(pair: EquivalencePair, divisor: float) -> list[str]:
    p = pair.p_beyond_holm if pair.verdict == "differs" else pair.p_holm
    return [
        levels(pair.fixed) if pair.fixed else NOTHING,
        f"{pair.other} against {pair.reference}",
        count(pair.effect.n),
        interval(pair.effect, divisor),
        EXACT if pair.effect.is_exact else p_value(p),
        pair.verdict,
    ]


def _what(claim: EquivalenceClaim) -> str:
    if METRICS[claim.metric].is_share:
        return "difference of shares"
    return f"{claim.scale} of {plural_of(claim.statistic)}"


def _footnotes(claim: EquivalenceClaim) -> list[str]:
    effects = [pair.effect for pair in claim.pairs]
    methods = dict.fromkeys(method_name(effect.method) for effect in effects if effect.value is not None)
    reasons = Counter(effect.reason for effect in effects if effect.reason)
    return [
        f"{METRICS[claim.metric].title}: {tally(claim)}.",
        *([claim.note] if claim.note else []),
        f"Margin: {margin_text(claim)}. {_HOW_TO_READ}",
        *(f"Intervals: {method}." for method in methods),
        *(f"{count(number)} without an interval: {why}" for why, number in reasons.items()),
    ]
