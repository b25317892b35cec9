"""A factor's levels as numbers, in the catalogue's unit for its key: their places on an axis."""

from dataclasses import dataclass

from crosswind.catalog import CellUnit, Key, catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.text.quantities import RATE, SHARE, SIZE, TIME

_SCALES = {
    CellUnit.PROBABILITY: (SHARE, "%"),
    CellUnit.NANOSECONDS: (TIME, "ms"),
    CellUnit.BITS_PER_SECOND: (RATE, "Mbit/s"),
    CellUnit.BYTES: (SIZE, "bytes"),
}


_LISTS: dict[tuple[str, ...], str] = {("path", "hop"): "hops", ("path", "at"): "changes"}
"""Repeatable tables in a study, and their lists in a cell."""


@dataclass(frozen=True)
class FactorScale:
    """A factor's numbers.

    Attributes:
        place: the cell's sections with its key; for `path.delay`, both directions. key: the catalogue's. unit: the
            axis's.
        divisor: from the cell's unit. owner: its hop's or change's name; empty for other keys.
    """

    places: tuple[tuple[str, ...], ...]
    key: Key
    unit: str
    divisor: float
    owner: str = ""

    @property
    def is_added(self) -> bool:
        """Whether both directions' numbers are added: a delay applies there and back."""
        is_of_change = self.places[0][:2] == ("path", "changes")
        return len(self.places) > 1 and self.key.unit is CellUnit.NANOSECONDS and not is_of_change

    @property
    def title(self) -> str:
        """Its name, without the unit."""
        name = " ".join(filter(None, [self.owner, self.key.study.replace("_", " ")]))
        return f"{name} there and back" if self.is_added else name


def factor_scale(factor: str) -> FactorScale | None:
    """A factor's numbers, as for `path.forward.loss`; None where its levels are none."""
    key = catalogue_key(factor)
    if key is None or key.unit not in _SCALES:
        return None
    unit, label = _SCALES[key.unit]
    sections = tuple(factor.split(".")[:-1])
    owner = ""
    if sections[:2] in _LISTS:
        owner = sections[2]
        sections = ("path", _LISTS[sections[:2]], *sections[2:])
    both = sections[0] == "path" and sections[-1] not in DIRECTIONS and key in catalog().direction.keys
    places = tuple((*sections, way) for way in DIRECTIONS) if both else (sections,)
    return FactorScale(places, key, label, unit.scales[label], owner)


def catalogue_key(factor: str) -> Key | None:
    """A factor's catalogue key; None for a factor other than a setting, as `part`."""
    table, name = factor.partition(".")[0], factor.rpartition(".")[-1]
    known = catalog()
    keys = {
        "path": (*known.path.keys, *known.direction.keys, *known.changes.keys),
        "host": known.host.keys,
        "workload": tuple(key for workload in known.workloads.values() for key in workload.keys),
    }
    return next((key for key in keys.get(table, ()) if key.study == name), None)
