"""What a study asks its report to show: published numbers, figures, fits, claims, questions and thresholds.

A record holds them as the plan's manifest does (crosswind.study.presentation); this module alone reads that JSON.
`cells` are the indices of the cells that each of them is about; `missing` are levels that it was declared for and that
the run does not have, as a quick variant.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from crosswind.record import RunRecord

Level = Annotated[str, BeforeValidator(str)]
"""A level as a study has it, which may be a number or a truth value there."""

Note = Annotated[str | None, BeforeValidator(lambda text: text or None)]


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class AskedNumber(_Asked):
    """A published number to set beside ours. `mean`, `sd`, `ci` and `functions` are in `unit`.

    `cells` is None in runs of an early version: then `levels` have to be those of a cell.
    """

    source: str
    metric: str
    statistic: str = "mean"
    unit: str
    levels: dict[str, Level]
    mean: float
    sd: float | None = None
    ci: float | None = None
    note: str | None = None
    functions: dict[str, float] = {}
    cells: frozenset[int] | None = None


class AskedFigure(_Asked):
    """A metric to draw over the levels of `x`, a line for each level of `series`."""

    title: str
    metric: str
    statistic: str | None = None
    x: str
    series: str | None = None
    models: tuple[str, ...] = ()
    scale: Literal["auto", "linear", "log"] = "auto"
    note: Note = None
    cells: frozenset[int]


class AskedFitLevel(_Asked):
    """Published coefficients for a level of a fit's `by`."""

    source: str
    level: Level
    a: float | None = None
    b: float | None = None
    c: float | None = None
    note: Note = None
    cells: frozenset[int] | None = None


class AskedFit(_Asked):
    """A curve to fit over `x`, once for each level of `over`, a row for each level of `by`."""

    title: str
    model: str
    metric: str
    x: str
    by: str
    over: str
    note: Note = None
    published: tuple[AskedFitLevel, ...] = ()
    cells: frozenset[int]


class AskedEquivalence(_Asked):
    """A claim that the levels of `factor` differ by less than a margin.

    `margin` is as written, `bound` its number: in the metric's unit, or of a ratio what is above 1.
    """

    title: str
    metric: str
    statistic: str = "mean"
    factor: str
    margin: str
    is_ratio: bool
    bound: float
    note: Note = None
    missing: tuple[str, ...] = ()
    cells: frozenset[int]


class AskedLevel(_Asked):
    """A level that a claim or a question compares, and the cells that have it."""

    level: Level
    cells: frozenset[int]


class AskedClaim(_Asked):
    """A statement of a document with its rule; crosswind.study.claims says what its fields mean."""

    says: str
    source: str = ""
    metric: str
    statistic: str = "mean"
    rule: str
    factor: str | None = None
    compare: tuple[AskedLevel, ...] = ()
    model: str | None = None
    low: float | None = None
    high: float | None = None
    is_ratio: bool
    note: Note = None
    where: dict[str, Level] = {}
    missing: tuple[str, ...] = ()
    cells: frozenset[int]


class AskedQuestion(_Asked):
    """A question of a study; crosswind.study.questions says what its fields mean.

    `margin` is as written, `bound` its number: in the metric's unit, or of a ratio what is above 1.
    """

    asks: str
    metric: str
    statistic: str
    factor: str
    compare: tuple[AskedLevel, ...]
    yes: Literal["less", "more", "different", "same"]
    is_ratio: bool
    margin: str | None = None
    bound: float | None = None
    figure: str | None = None
    note: Note = None
    where: dict[str, Level] = {}
    cells: frozenset[int]


class AskedThreshold(_Asked):
    """When the study fails; crosswind.study.thresholds says what its fields mean."""

    fail_if: str
    metric: str
    statistic: str
    bound: float
    above: bool
    at_bound: bool
    note: Note = None
    where: dict[str, Level] = {}
    missing: tuple[str, ...] = ()
    cells: frozenset[int]


def absence_of(missing: tuple[str, ...], cells: frozenset[int], executed: set[int]) -> str | None:
    """What a run lacks of the cells that a statement was declared for; None where it has all.

    Args: cells: of the statement in this run's study. executed: of all.
    """
    if missing:
        return f"this run has no cell with {' or '.join(missing)}"
    left = len(cells - executed)
    return f"{left} of its {len(cells)} cells {'was' if left == 1 else 'were'} not executed" if left else None


class Asked(_Asked):
    """All that a study asks for."""

    published: tuple[AskedNumber, ...]
    figures: tuple[AskedFigure, ...]
    fits: tuple[AskedFit, ...]
    equivalences: tuple[AskedEquivalence, ...]
    claims: tuple[AskedClaim, ...]
    questions: tuple[AskedQuestion, ...]
    thresholds: tuple[AskedThreshold, ...]


def asked_of(record: RunRecord) -> Asked:
    """What the study of a run asks for."""
    return Asked.model_validate({
        "published": record.published,
        "figures": record.figures,
        "fits": record.fits,
        "equivalences": record.equivalences,
        "claims": record.claims,
        "questions": record.questions,
        "thresholds": record.thresholds,
    })  # fmt: skip
