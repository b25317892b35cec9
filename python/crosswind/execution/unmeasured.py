"""What virtual time cannot measure.

A study that asks for it in such cells is refused before anything runs. Where it asks for more, what only such cells
would show is left out, and a note says so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from crosswind.catalog.metrics import MetricPlace, metric_named
from crosswind.cell.check import CheckedCell
from crosswind.errors import StudyError
from crosswind.study.declared import declarations
from crosswind.study.design import Study
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
    left_out = left_out_in_virtual_time(study)
    for location, asked in _asked(study):
        concerned = virtual.intersection(asked["cells"])
        if _is_of_processors(asked) and concerned and location not in left_out:
            key = "metric" if "metric" in declarations()[str(location[0])].model.model_fields else "fail_if"
            _refuse(study, (*location, key), asked["metric"], concerned, len(checked))


def left_out_in_virtual_time(study: Study) -> list[Location]:
    """The places of what a study asks about processor time of cells that are all in virtual time.

    None where it asks nothing else. A threshold is never left out: a study would pass without it.
    """
    cells = tuple(study.cells())
    virtual = {cell.index for cell in cells if (clock := cell.settings.get("host.clock")) and clock.value == "virtual"}
    if not virtual:
        return []
    asked = {location: table for location, table in _asked(study) if declarations()[str(location[0])].may_be_left_out}
    locations = [
        location
        for location, table in asked.items()
        if _is_of_processors(table) and table["cells"] and virtual.issuperset(table["cells"])
    ]
    return locations if len(locations) < len(asked) else []


def note_on_left_out(left_out: Sequence[Location]) -> str:
    """What a report says of them, with their number."""
    kinds = Counter(str(kind) for kind, _ in left_out)
    named = " and ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in kinds.items())
    verb = "is" if len(left_out) == 1 else "are"
    return (
        f"Processor time is not measured in virtual time, where computing takes no time: {named} about it {verb} "
        "left out. --clock real measures it."
    )


def _is_of_processors(asked: Mapping[str, Any]) -> bool:
    metric = metric_named(asked["metric"])
    assert metric is not None  # The study was checked.
    return metric.place is MetricPlace.PROCESSOR


def _asked(study: Study) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Whatever names a metric and the cells in which it is wanted, with its place in the study."""
    cells = tuple(study.cells())
    for kind, declared in study.findings.items():
        for number, each in enumerate(declared):
            plain = each.as_dict(cells)
            if "metric" in plain:
                # Several numbers may stand in one table.
                yield getattr(each, "place", (kind, number)), plain


def _refuse(study: Study, location: Location, what: str, virtual: set[int], cells: int) -> NoReturn:
    raise study.origin.error(study.document, location, _reason(what, virtual, cells), _HINT)


def _reason(what: str, virtual: set[int], cells: int) -> str:
    some = "" if cells == 1 else f" ({len(virtual)} of {cells} cells)"
    return f"{what} is not measured in virtual time, where computing takes no time{some}"
