"""A study over a ladder of ever worse networks: `crosswind run STUDY --ladder`."""

from collections.abc import Iterator

from crosswind.api.first_look import asks_the_machine, has_kernel
from crosswind.catalog import catalog
from crosswind.catalog.metrics import METRICS
from crosswind.study.design import Study
from crosswind.study.edits import Appended, Assigned
from crosswind.study.keys import table_of_key
from crosswind.study.networks import NETWORKS
from crosswind.study.parts import Part
from crosswind.study.precision import main_metric

RUNGS = tuple(name for name in NETWORKS if name.startswith("ladder-"))
"""The ladder's networks, the best first."""

_NETWORK, _CLOCK, _OPTION = "path.network", "host.clock", "--ladder"
NOTE = "The ladder runs in virtual time; --clock real runs it on the machine's clock."


def over_ladder(study: Study, *, clock: str | None = None) -> tuple[Study, tuple[str, ...]]:
    """A study with its cells on each rung, in virtual time wherever it answers as well.

    Args:    clock: the caller's choice, if any.
    Returns: the study, and its changes, in sentences.
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
    if clock is None and not asks_the_machine(made) and has_kernel():
        return made.with_overrides({_CLOCK: "virtual"}, flags={_CLOCK: _OPTION}), (NOTE,)
    return made, ()


def _network_keys(part: Part) -> Iterator[str]:
    """The keys in a part for its network: all path keys but the hosts'."""
    of_directions = {key.study for key in catalog().direction.keys}
    for key in part.settings:
        of_network = key == _NETWORK or table_of_key(key) is not None or key.rpartition(".")[2] in of_directions
        if of_network and key.startswith("path."):
            yield key


def _figures(study: Study) -> Iterator[dict[str, str]]:
    """A chart over the rungs for each workload kind's main metric."""
    metrics = dict.fromkeys(main_metric(cell.workload) for cell in study.cells())
    series = next(iter(study.factors), None)
    for metric in filter(None, metrics):
        title = f"{METRICS[metric].title} over the ladder"
        yield {"title": title, "metric": metric, "x": _NETWORK, **({} if series is None else {"series": series})}
