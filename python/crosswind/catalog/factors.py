"""What the levels of a factor are as numbers, by the catalogue's unit of its key: how they stand on an axis."""

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
"""Tables of a study of which there are several, and the list of a cell in which each is."""


@dataclass(frozen=True)
class FactorScale:
    """The numbers of a factor.

    Attributes:
        place: the sections of a cell that have its key; of `path.delay`, which stands for both directions, the two.
        key: of the catalogue. unit: of the axis. divisor: how many of the cell's unit that is.
        owner: the hop or the change that it is of, by its name; empty for other keys.
    """

    places: tuple[tuple[str, ...], ...]
    key: Key
    unit: str
    divisor: float
    owner: str = ""

    @property
    def is_added(self) -> bool:
        """Whether the numbers of both directions are added: what takes time there does so again back."""
        is_of_change = self.places[0][:2] == ("path", "changes")
        return len(self.places) > 1 and self.key.unit is CellUnit.NANOSECONDS and not is_of_change

    @property
    def title(self) -> str:
        """What it is, without the unit."""
        name = " ".join(filter(None, [self.owner, self.key.study.replace("_", " ")]))
        return f"{name} there and back" if self.is_added else name


def factor_scale(factor: str) -> FactorScale | None:
    """The numbers of a factor, as `path.forward.loss`; None where its levels are none."""
    key = catalogue_key(factor)
    if key is None or key.unit not in _SCALES:
        return None
    unit, label = _SCALES[key.unit]
    sections = tuple(factor.split(".")[:-1])
    owner = ""
    if sections[:2] in _LISTS:
        owner = sections[2]
        sections = ("path", _LISTS[sections[:2]], *sections[2:])
    both = sections[0] == "path" and sections[-1] not in DIRECTIONS and key in catalog().direction_keys
    places = tuple((*sections, way) for way in DIRECTIONS) if both else (sections,)
    return FactorScale(places, key, label, unit.scales[label], owner)


def catalogue_key(factor: str) -> Key | None:
    """The key of the catalogue that a factor sets; None for one that is not a setting, as `part`."""
    table, name = factor.partition(".")[0], factor.rpartition(".")[-1]
    known = catalog()
    keys = {
        "path": (*known.path.keys, *known.direction_keys, *known.changes.keys),
        "host": known.host.keys,
        "workload": tuple(key for workload in known.workloads.values() for key in workload.keys),
    }
    return next((key for key in keys.get(table, ()) if key.study == name), None)
