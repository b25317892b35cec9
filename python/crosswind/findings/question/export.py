"""Answers to questions, and verdicts on documents' statements, as data frames."""

import polars as pl

from crosswind.analysis.result import Result
from crosswind.findings.question.result import Answer, AnswerCase
from crosswind.report.export import limited
from crosswind.report.text.format import levels

_ANSWER_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(
        ("asks", "sentence", "answer", "case", "verdict", "metric", "statistic", "scale", "unit"), pl.String
    ),
    **dict.fromkeys(("reference", "other"), pl.String),
    **dict.fromkeys(("reference_value", "other_value", "effect", "effect_low", "effect_high"), pl.Float64),
    **dict.fromkeys(("p_yes", "p_no"), pl.Float64),
    **dict.fromkeys(("repetitions", "needed"), pl.Int64),
}
_STATEMENT_COLUMNS = ("verdict", "says", "source", "metric", "statistic", "scale", "sentence")


def answers_frame(result: Result) -> pl.DataFrame:
    """One row for each case of each question; one with null numbers for a question without cases.

    Columns: asks, sentence and answer (the question's), case (its other levels), verdict (the case's), metric,
    statistic, the effect's scale and unit, reference and other (levels), reference_value and other_value in the
    metric's unit, effect with its limits, p_yes and p_no (Holm), repetitions, needed (to decide).
    """
    rows = [
        {
            "asks": answer.asks,
            "sentence": answer.sentence,
            "answer": answer.verdict,
            "metric": answer.metric,
            "statistic": answer.statistic,
            "scale": answer.scale,
            "unit": answer.unit,
            **of_case,
        }
        for answer in result.of(Answer)
        if not answer.source
        for of_case in ([_of_case(case) for case in answer.cases] or [{"verdict": "cannot tell"}])
    ]
    return pl.DataFrame(rows, schema=_ANSWER_COLUMNS)


def _of_case(case: AnswerCase) -> dict[str, object]:
    return {
        "case": levels(case.fixed) if case.fixed else "",
        "verdict": case.verdict,
        **_of_sides(case),
        **limited("effect", case.effect),
        "p_yes": case.p_yes,
        "p_no": case.p_no,
        "repetitions": case.pairs,
        "needed": case.needed,
    }


def _of_sides(case: AnswerCase) -> dict[str, object]:
    if case.reference is None:
        return {}
    return {
        key: value
        for name, side in zip(("reference", "other"), case.sides, strict=True)
        for key, value in {name: side.level, f"{name}_value": side.value.value}.items()
    }


def statements_frame(result: Result) -> pl.DataFrame:
    """One row for each statement of a document: verdict, says, source, metric, statistic, scale, sentence."""
    rows = [
        {
            "verdict": answer.verdict,
            "says": answer.asks,
            "source": answer.source,
            "metric": answer.metric,
            "statistic": answer.statistic,
            "scale": answer.scale,
            "sentence": answer.sentence,
        }
        for answer in result.of(Answer)
        if answer.source
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(_STATEMENT_COLUMNS, pl.String))
