"""Warnings for a result's readers, although it is valid."""

from enum import Enum

from pydantic import BaseModel, ConfigDict


class ResultWarning(BaseModel):
    """One warning.

    Attributes: name: its kind: one of `WarningKind`, or of crosswind-cell's (docs/result.md). text: for the reader.
        hint: the remedy, if any.
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
    """The analysis's warnings: name, text and hint of each. A cell has its own (crates/workload/src/warning.rs)."""

    DAMAGED = (
        "damaged",
        "{damage}",
        "`crosswind run --resume RUN` sets it aside, and executes again what is left out",
    )
    INCOMPLETE = (
        "incomplete",
        "the run is incomplete: {executed} of {planned} repetitions were executed",
        "`crosswind run --resume RUN` executes the rest",
    )
    MACHINES = (
        "machines",
        "cells on the machine's clock were measured on {count} machines: {names}",
        "a cell on the machine's clock is the machine's: run the study on one, or in virtual time",
    )
    DRIFT = (
        "drift",
        "{metric} drifts over the repetitions: its rank correlation with their order is {correlation:.2f}, "
        "so its intervals may be too narrow",
        "more repetitions, or virtual time, where a drift is chance alone",
    )
    LAG = (
        "lag",
        "{metric} of a repetition resembles that of the one before: their correlation is {correlation:.2f}, "
        "so its intervals may be too narrow",
        "more repetitions: those that are alike are worth fewer than they are",
    )
    OVERVIEW = (
        "overview",
        "an overview of {cells:,} cells: means and medians without intervals{but}; levels are not compared{precision}",
        "`crosswind report RUN --cell N` shows a cell in depth, `--all` every one, which takes long",
    )
    FRUITLESS = "exchanges_failed", "{repetitions}: {why}", None
    EXCHANGES_FAILED = "exchanges_failed", "{failed} of {exchanges} exchanges failed: {counts}", None
    INTERRUPTED = (
        "interrupted",
        "not exact: the machine decided when threads ran. {process} computed for a second without a system call, and "
        "was interrupted, since it may have waited for another thread; interruptions: {count}",
        "a thread that waits for another one in a loop should call sched_yield, or wait for it as mutexes do",
    )
    PROGRAM_FAILED = "program_failed", "{problem}", None
    PROGRAM_REPORT = "program_report", "what the client printed: {remark}", None

    def warning(self, **values: object) -> ResultWarning:
        """This kind's warning, with the values in its text."""
        name, text, hint = self.value
        return ResultWarning(name=name, text=text.format(**values), hint=hint)
