"""What a reader of a result should know although it is valid."""

from enum import Enum

from pydantic import BaseModel, ConfigDict


class ResultWarning(BaseModel):
    """One of them.

    Attributes: name: what kind it is: one of `WarningKind`, or of crosswind-cell's (docs/result.md). text: what
        a reader should know. hint: what to do about it; None where there is nothing to do.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    text: str
    hint: str | None

    @property
    def sentence(self) -> str:
        """The text and the hint, in one line."""
        return f"{self.text} (hint: {self.hint})" if self.hint else self.text


class WarningKind(Enum):
    """The warnings of the analysis: the name and the hint of each. A cell has its own (crates/workload)."""

    DAMAGED = "damaged", "`crosswind run --resume RUN` executes those repetitions again"
    INCOMPLETE = "incomplete", "`crosswind run --resume RUN` executes the rest"
    MACHINES = "machines", "a cell on the machine's clock is the machine's: run the study on one, or in virtual time"
    DRIFT = "drift", "more repetitions, or virtual time, in which nothing drifts"
    LAG = "lag", "more repetitions: those that are alike are worth fewer than they are"
    OVERVIEW = "overview", "`crosswind report RUN --cell N` shows a cell in depth, `--all` every one, which takes long"
    EXCHANGES_FAILED = "exchanges_failed", None
    PROGRAM_FAILED = "program_failed", None
    PROGRAM_REPORT = "program_report", None
    EARLIER = "earlier", None

    def warning(self, text: str) -> ResultWarning:
        """A warning of this kind."""
        name, hint = self.value
        return ResultWarning(name=name, text=text, hint=hint)


def from_earlier(given: object) -> object:
    """What stands for a warning in the result of a version that wrote it as a text."""
    return WarningKind.EARLIER.warning(given) if isinstance(given, str) else given
