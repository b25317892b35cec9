"""A study that loses each packet of its cells in turn, or holds it back: `--each-loss`, `--each-hold`."""

from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.edits import Appended

_CLOCK = "host.clock"


def disturbing_each(
    study: Study, *, loss: bool, hold: str | None = None, clock: str | None = None, repetitions: int | None = None
) -> Study:
    """A study with all its cells in virtual time, once undisturbed, and once for each packet.

    Args:    loss: whether each packet is lost. hold: how long each is held back, as "1ms"; None: none is.
             clock: the caller's choice, if any. repetitions: undisturbed, each with another seed; None for one.
    Raises:  StudyError for the machine's clock, a malformed time, or a study with loss of its own.
    """
    option = "--each-loss" if loss else "--each-hold"
    if clock not in (None, "virtual"):
        message = f"{option} runs in virtual time, where a packet costs the same every time"
        raise StudyError(message, hint=f"leave out --clock {clock}")
    made = study.with_overrides({_CLOCK: "virtual", "study.repetitions": repetitions or 1}, flags={_CLOCK: option})
    tables: list[tuple[dict[str, str], str]] = [({}, "--each-loss")] if loss else []
    tables += [({"hold": hold}, "--each-hold")] if hold is not None else []
    return made.edited(Appended(("each_packet",), [table for table, _ in tables], [label for _, label in tables]))
