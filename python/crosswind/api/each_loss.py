"""A study that loses each packet of its cells in turn: `crosswind run STUDY --each-loss`."""

from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.edits import Appended

_CLOCK, _OPTION = "host.clock", "--each-loss"


def losing_each(study: Study, *, clock: str | None = None, repetitions: int | None = None) -> Study:
    """A study with all its cells in virtual time, once without loss, and once for each packet.

    Args:    clock: the caller's choice, if any. repetitions: without loss, each with another seed; None for one.
    Raises:  StudyError for the machine's clock, or a study with loss of its own.
    """
    if clock not in (None, "virtual"):
        message = f"{_OPTION} runs in virtual time, where the loss of a packet costs the same every time"
        raise StudyError(message, hint=f"leave out --clock {clock}")
    made = study.with_overrides({_CLOCK: "virtual", "study.repetitions": repetitions or 1}, flags={_CLOCK: _OPTION})
    return made.edited(Appended(("each_loss",), [{}], [_OPTION]))
