"""Statements of documents: the verdict on each, and the numbers behind it."""

from crosswind.analysis.result import ClaimResult, Result
from crosswind.report.tables.table import Shown, Table, names, numbers, sentences, words
from crosswind.report.text.claims import VERDICTS, claim_sentence, compared, decisive, effect_text, needed
from crosswind.report.text.format import NOTHING, levels

_HOW_TO_READ = (
    "Each verdict follows from a rule that the study declares, by the bounds of intervals. “Holds”: in every "
    "comparison the whole 95 % interval lies in the range that the statement needs. “Does not hold”: in at least one "
    "the whole interval, widened for the number of comparisons (Bonferroni), lies outside of it. “Cannot tell”: "
    "inconclusive. Each claim is judged separately."
)


def claim_tables(result: Result) -> list[Table]:
    """A table of all verdicts, which a terminal has as sentences, and one of every comparison behind them."""
    if not result.claims:
        return []
    rows = [
        [VERDICTS[claim.verdict], claim_sentence(claim).split(": ", 1)[1], _source(claim)] for claim in result.claims
    ]
    columns = [*names("verdict"), *sentences("statement, and what was measured", "source")]
    verdicts = Table("Claims", columns, rows, footnotes=[_HOW_TO_READ], shown=Shown.PAGE)
    parts = [row for claim in result.claims for row in _rows(claim)]
    if not parts:
        return [verdicts]
    heads = [*names("statement", "at", "compared"), *numbers("measured [95 %]", "needed"), *words("verdict")]
    return [verdicts, Table("Every comparison of the claims", heads, parts, shown=Shown.FOLDED)]


def _source(claim: ClaimResult) -> str:
    return ". ".join(filter(None, (claim.source, claim.note))) or NOTHING


def _rows(claim: ClaimResult) -> list[list[str]]:
    first = decisive(claim)
    ordered = sorted(claim.parts, key=lambda part: part is not first)
    return [
        [
            claim.says,
            levels(part.fixed) if part.fixed else NOTHING,
            compared(claim, part),
            effect_text(claim, part),
            needed(claim),
            part.verdict,
        ]
        for part in ordered
    ]
