"""The tables of a study file that say what its report shows: numbers, figures, fits, claims. As pydantic models."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Level = str | int | float | bool
Where = dict[str, Level]
Bound = str | int | float
StatisticName = Literal["mean", "trimmed_mean", "median", "p95", "p99"]
RuleName = Literal[
    "value",
    "ratio",
    "difference",
    "equivalent",
    "differs",
    "rises",
    "falls",
    "power-law",
    "slope",
    "model",
    "model-error",
]


class Table(BaseModel):
    """A table of the file: unknown keys are errors, and nothing is converted silently."""

    # Deferred: only the model of the whole document is ever built, the inner ones as parts of it.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class PublishedTable(Table):
    """One published number, shown beside the measured one."""

    source: str = Field(description="the document and its table")
    metric: str = Field(description="rtt, total, response, connect, request, reply, transfer_time, goodput, ...")
    unit: str = Field(description="unit of mean, sd and ci: ns, us, ms, s, bit/s, kbit/s, Mbit/s, Gbit/s")
    levels: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells it belongs to"
    )
    mean: float
    sd: float | None = None
    ci: float | None = Field(default=None, description="half width of the published interval")
    n: int | None = None
    inferred: bool = Field(default=False, description="not printed as a number in the source")
    functions: dict[str, float] | None = Field(
        default=None, description="parts of the mean by function, as a profile in the source has them; in its unit"
    )
    note: str = ""


class FigureTable(Table):
    """One figure of the report: a metric over the levels of a factor."""

    title: str = Field(description="shown above the figure; {workload.size} stands for the sizes of its cells")
    metric: str = Field(description="what is drawn, as of a published number")
    statistic: StatisticName | None = Field(
        default=None, description="what is drawn of it; without it the mean, and where there is none the median"
    )
    x: str = Field(description="dotted key of the factor along the axis")
    series: str | None = Field(default=None, description="dotted key of the factor that has a line for each level")
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are drawn"
    )
    models: list[str] = Field(default_factory=list, description="models to draw beside the measurement")
    scale: Literal["auto", "linear", "log"] = Field(
        default="auto", description="of the metric's axis: linear, log, or auto: log where values are 100 times apart"
    )
    note: str = ""


class FitPublishedTable(Table):
    """The published coefficients of one fitted curve."""

    source: str = Field(description="the document and its table")
    level: str | int | float | bool = Field(description="the level of `by` they belong to")
    a: float | None = None
    b: float | None = None
    c: float | None = None
    note: str = ""


class FitTable(Table):
    """One curve that is fitted to the cells, with a result for each level of a factor."""

    title: str = Field(description="shown above the results")
    model: Literal["caia-exponential"] = Field(description="caia-exponential: t = a + b e^(c p), p the loss")
    metric: str = Field(description="what is fitted, as of a published number")
    x: str = Field(description="dotted key of the factor along the curve: path.loss, or that of one direction")
    by: str = Field(description="dotted key of the factor that has a result for each level")
    over: str = Field(description="dotted key of the factor whose levels are fitted one by one, and then averaged")
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are fitted"
    )
    note: str = ""
    published: list[FitPublishedTable] = Field(default_factory=list)


class EquivalenceTable(Table):
    """One claim that the levels of a factor make no difference that matters, tested for every two of them."""

    title: str = Field(description="shown above the results")
    metric: str = Field(description="what is compared, as of a published number")
    statistic: StatisticName = Field(default="mean", description="what is compared of it")
    factor: str = Field(description="dotted key of the factor whose levels are compared, two at a time")
    margin: str = Field(
        description="the smallest difference that matters: 5ms, 100kbit/s; 25% is from 1/1.25 to 1.25 times, "
        "and of a share 25 percentage points"
    )
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are compared"
    )
    note: str = ""


class ClaimTable(Table):
    """One statement of a document, which the data decide by a rule: it holds, it does not, or they cannot tell."""

    says: str = Field(description="the statement, as one sentence")
    source: str = Field(default="", description="the document and its place that makes it")
    metric: str = Field(description="what is measured, as of a published number")
    statistic: StatisticName = Field(default="mean", description="what is compared of it")
    rule: RuleName = Field(
        description="what has to lie within at_least and at_most, or within the margin, for the statement to hold"
    )
    factor: str | None = Field(default=None, description="dotted key of the factor whose levels are compared, or part")
    compare: list[Level] = Field(
        default_factory=list, description="levels of the factor, the reference first; without it all of them"
    )
    model: str | None = Field(default=None, description="of the rules model and model-error: the model that predicts")
    at_least: Bound | None = Field(default=None, description="the least that the statement allows")
    at_most: Bound | None = Field(default=None, description="the most that the statement allows")
    margin: str | None = Field(
        default=None,
        description="of equivalent and differs: the smallest difference that matters, as of an equivalence",
    )
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells it is about"
    )
    note: str = ""


class CheckTable(Table):
    """One statement that a document's own numbers decide, by arithmetic and without a run."""

    says: str = Field(description="the statement, as one sentence")
    source: str = Field(description="the document and the place of the statement and its numbers")
    given: dict[str, int | float | list[int | float] | Where] = Field(
        description="the numbers by name: a number, a list, or the levels of published numbers, whose `source` and "
        "`field` (mean, sd, ci, n) may be named too"
    )
    value: str = Field(description="a formula over the names: + - * / ** and the functions of docs/study.md")
    what: str = Field(description="what it gives, in words that begin a sentence on it: the gap")
    of: list[str] = Field(default_factory=list, description="of what each number is; without it, by its levels")
    unit: str = Field(default="", description="unit of the value and of its bounds, as text")
    at_least: int | float | None = Field(default=None, description="the least that every number may be")
    at_most: int | float | None = Field(default=None, description="the most that every number may be")
    note: str = ""


class ThresholdTable(Table):
    """When the study fails: a number that is beyond a bound in some cell."""

    fail_if: str = Field(
        description='STATISTIC(METRIC) > BOUND, or <: "p95(rtt) > 200ms", "share(lost) > 1% where loss = 2%"'
    )
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells it is about"
    )
    note: str = ""


class QuestionTable(Table):
    """One question that the study is run for, which its report answers first: yes, no, or that nobody can tell yet."""

    asks: str = Field(description="the question, as one sentence that ends with ?")
    metric: str = Field(description="what is compared, as of a published number; or lost, the share of exchanges lost")
    statistic: Literal["mean", "trimmed_mean", "median", "p95", "p99", "share"] = Field(
        default="mean", description="what is compared of it; of a share of exchanges, share"
    )
    factor: str = Field(description="dotted key of the factor whose levels are compared, or part")
    compare: list[Level] = Field(
        description="levels of the factor: the reference first, then the one or the ones that are compared with it"
    )
    yes: Literal["less", "more", "different", "same"] | None = Field(
        default=None,
        description="what a level has to be beside the reference for the answer to be yes; without it what is better: "
        "more of a rate, less of anything else",
    )
    scale: Literal["ratio", "difference"] | None = Field(
        default=None, description="how the answer says it; without it, as the margin, else ratio where there can be one"
    )
    margin: str | None = Field(
        default=None, description="the smallest difference that matters, as of an equivalence; same needs one"
    )
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are compared"
    )
    figure: str | None = Field(
        default=None, description="title of the figure that shows it; without it one is drawn of what is compared"
    )
    note: str = ""
