"""Claims of equivalence: every pair of levels against the margin that the study declared."""

from collections.abc import Sequence

from crosswind.analysis.result import EquivalenceClaim, EquivalencePair, Result
from crosswind.metrics import METRICS
from crosswind.quantities import SHARE
from crosswind.report.tables.metrics import method_name
from crosswind.report.tables.reasons import merged
from crosswind.report.tables.table import Table, names, numbers, words
from crosswind.report.text.format import (
    EXACT,
    NOTHING,
    count,
    count_of,
    factor_name,
    interval,
    levels,
    p_value,
    percent,
    plural_of,
    scale_of,
)
from crosswind.report.text.headline import margin_text, tally
from crosswind.report.text.sentences import varied_levels

_HOW_TO_READ = (
    "Two one-sided tests (Schuirmann 1987), by the 90 % intervals shown, each by itself. p is that of a difference "
    "beyond the margin where the verdict is “differs”, else that of equivalence, and is corrected by Holm's method "
    "over all pairs of the study's claims. “Cannot tell”: inconclusive."
)


def equivalence_tables(result: Result) -> list[Table]:
    """A table for each claim."""
    return [_table(claim) for claim in result.equivalences]


def _table(claim: EquivalenceClaim) -> Table:
    effects = [pair.effect for pair in claim.pairs]
    known = [part for effect in effects for part in (effect.value, effect.high) if part is not None]
    divisor, unit = (1.0, "") if claim.scale == "ratio" else scale_of(known, claim.unit)
    unit = "percentage points" if claim.unit == SHARE.name and unit else unit
    varied = varied_levels(pair.fixed for pair in claim.pairs)
    what, factor = _what(claim), factor_name(claim.factor)
    rows = [_row(pair, varied, divisor) for pair in claim.pairs]
    narrow = [
        [at, f"{pair.other} / {pair.reference}", effect, verdict]
        for pair, (at, _, _, effect, _, verdict) in zip(claim.pairs, rows, strict=True)
    ]
    notes = _footnotes(claim)
    heading = f"{what}{f', {unit}' if unit else ''} [90 %]"
    columns = [*names("at", factor), *numbers("n", heading, "p (Holm)"), *words("verdict")]
    small = Table(claim.title, [*names("at", factor), *numbers(what), *words("verdict")], narrow, footnotes=notes)
    return Table(claim.title, columns, rows, footnotes=notes, narrow=small)


def _row(pair: EquivalencePair, varied: Sequence[str], divisor: float) -> list[str]:
    p = pair.p_beyond_holm if pair.verdict == "differs" else pair.p_holm
    at = {key: pair.fixed[key] for key in varied if key in pair.fixed}
    return [
        levels(at) if at else NOTHING,
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
    effects = [pair.effect for pair in claim.pairs if not pair.constant]
    methods = dict.fromkeys(method_name(effect.method) for effect in effects if effect.value is not None)
    reasons = merged((effect.reason, str(index)) for index, effect in enumerate(effects) if effect.reason)
    sizes = sorted({pair.effect.units for pair in claim.pairs if pair.constant})
    groups = {size: [pair for pair in claim.pairs if pair.constant and pair.effect.units == size] for size in sizes}
    return [
        f"{METRICS[claim.metric].title}: {tally(claim)}.",
        *([claim.note] if claim.note else []),
        f"Margin: {margin_text(claim)}. {_HOW_TO_READ}",
        *(f"Intervals: {method}." for method in methods),
        *(_every_time(pairs, repetitions) for repetitions, pairs in groups.items()),
        *(f"{count(len(of))} without an interval: {why}." for why, of in reasons.items()),
    ]


def _every_time(pairs: Sequence[EquivalencePair], repetitions: int) -> str:
    """How pairs of levels are judged whose effect is the same in every repetition."""
    all_of_them = count(repetitions)
    said = (
        f"{count_of(len(pairs), 'pair')} of levels with the same effect in all {all_of_them} repetitions: without "
        f"spread, no mean can be tested. A sign test of {all_of_them} pairs judges most repetitions; at most "
        f"{percent(pairs[0].exceptions_at_most)} of them have another effect, with 95 % confidence."
    )
    needed = [pair.needed - repetitions for pair in pairs if pair.needed is not None]
    if needed:
        more = count_of(max(needed), "more repetition")
        said += f" An inconclusive pair needs {more}, with the correction for all claims."
    if any(pair.verdict == "cannot tell" and pair.needed is None for pair in pairs):
        said += " No number of repetitions decides an effect just at the margin."
    return said
