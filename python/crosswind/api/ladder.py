"""A study over a ladder of ever worse networks: `crosswind run STUDY --ladder`."""

from collections.abc import Iterator

from crosswind.api.first_look import asks_the_machine, has_kernel
from crosswind.catalog import catalog
from crosswind.catalog.metrics import METRICS
from crosswind.study.design import Study
from crosswind.study.edits import Appended, Assigned
from crosswind.study.keys import owner_of
from crosswind.study.networks import NETWORKS
from crosswind.study.parts import Part
from crosswind.study.precision import main_metric

RUNGS = tuple(name for name in NETWORKS if name.startswith("ladder-"))
"""The networks of the ladder, the best first."""

_NETWORK, _CLOCK, _OPTION = "path.network", "host.clock", "--ladder"
NOTE = "The ladder runs in virtual time; --clock real runs it on the machine's clock."


def over_ladder(study: Study, *, clock: str | None = None) -> tuple[Study, tuple[str, ...]]:
    """A study whose cells run on each rung of the ladder, in virtual time wherever that answers as well.

    Args:    clock: that the caller chose; None where nobody did.
    Returns: the study, and what differs from what is written, in sentences.
    Raises:  StudyError where the study sets its network itself.
    """
    for part in study.parts:
        for key in _network_keys(part):
            message = f"{key} is set beside {_OPTION}, whose rungs set the network"
            hint = "leave it out; a [[ladder]] in the study names a factor of its own as the rungs"
            raise study.origin.error(study.document, part.location_of(key), message, hint)
    made = study.edited(
        Assigned({_NETWORK: list(RUNGS)}, {_NETWORK: _OPTION}),
        Appended(("ladder",), [{"factor": _NETWORK}], [_OPTION]),
        Appended(("figure",), list(_figures(study))),
    )
    if clock is None and not asks_the_machine(made) and has_kernel(made):
        return made.with_overrides({_CLOCK: "virtual"}, flags={_CLOCK: _OPTION}), (NOTE,)
    return made, ()


def _network_keys(part: Part) -> Iterator[str]:
    """The keys of a part that say what its network is, which are all of the path but those of both hosts."""
    of_directions = {key.study for key in catalog().direction_keys}
    for key in part.settings:
        of_network = key == _NETWORK or owner_of(key) is not None or key.rpartition(".")[2] in of_directions
        if of_network and key.startswith("path."):
            yield key


def _figures(study: Study) -> Iterator[dict[str, str]]:
    """A chart over the rungs for the main metric of each kind of workload."""
    metrics = dict.fromkeys(main_metric(cell.workload) for cell in study.cells())
    series = next(iter(study.factors), None)
    for metric in filter(None, metrics):
        title = f"{METRICS[metric].title} over the ladder"
        yield {"title": title, "metric": metric, "x": _NETWORK, **({} if series is None else {"series": series})}
