"""What virtual time cannot measure: a study that asks for it in such cells is refused before anything runs."""

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from crosswind.cell.check import CheckedCell
from crosswind.errors import StudyError
from crosswind.metrics import Place, metric_named
from crosswind.study.claims import Claim
from crosswind.study.design import Study
from crosswind.study.presentation import Equivalence, Figure, Fit, Published
from crosswind.study.questions import Question
from crosswind.study.thresholds import Threshold
from crosswind.study.toml_text import Location

_HINT = 'run on the real clock (host.clock = "real"; `crosswind doctor` says what that takes), or leave it out'


def refuse_unmeasured(study: Study, checked: Sequence[CheckedCell], *, profile: bool = False) -> None:
    """Refuses profiles and processor time of cells in virtual time, where computing takes no time.

    Args:   profile: whether the command line asks for profiles.
    Raises: StudyError with the place that asks.
    """
    virtual = {cell.cell.index for cell in checked if cell.is_virtual}
    if not virtual:
        return
    if study.profile:
        _refuse(study, ("study", "profile"), "a profile", virtual, len(checked))
    if profile:
        raise StudyError(f"--cpu-profile: {_reason('a profile', virtual, len(checked))}", hint=_HINT)
    for location, asked in _asked(study, checked):
        metric = metric_named(asked["metric"])
        assert metric is not None  # The study was checked.
        concerned = virtual.intersection(asked["cells"])
        if metric.place is Place.PROCESSOR and concerned:
            _refuse(
                study, (*location, "fail_if" if "fail_if" in asked else "metric"), metric.name, concerned, len(checked)
            )


def _asked(study: Study, checked: Sequence[CheckedCell]) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Whatever names a metric and the cells in which it is wanted, with its place in the study."""
    cells = [cell.cell for cell in checked]
    tables: dict[str, Sequence[Published | Figure | Fit | Equivalence | Claim | Question | Threshold]] = {
        "published": study.published,
        "figure": study.figures,
        "fit": study.fits,
        "equivalence": study.equivalences,
        "claim": study.claims,
        "question": study.questions,
        "threshold": study.thresholds,
    }
    for name, asked in tables.items():
        for number, table in enumerate(asked):
            yield (name, number), table.as_dict(cells)


def _refuse(study: Study, location: Location, what: str, virtual: set[int], cells: int) -> NoReturn:
    raise study.origin.error(study.document, location, _reason(what, virtual, cells), _HINT)


def _reason(what: str, virtual: set[int], cells: int) -> str:
    some = "" if cells == 1 else f" ({len(virtual)} of {cells} cells)"
    return f"{what} is not measured in virtual time, where computing takes no time{some}"
