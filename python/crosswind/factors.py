"""What the levels of a factor are as numbers, by the catalogue's unit of its key: how they stand on an axis."""

from dataclasses import dataclass

from crosswind.catalog import Key, catalog
from crosswind.catalog import Unit as CellUnit
from crosswind.effect import DIRECTIONS
from crosswind.quantities import RATE, SHARE, SIZE, TIME

_SCALES = {
    CellUnit.PROBABILITY: (SHARE, "%"),
    CellUnit.NANOSECONDS: (TIME, "ms"),
    CellUnit.BITS_PER_SECOND: (RATE, "Mbit/s"),
    CellUnit.BYTES: (SIZE, "bytes"),
}


@dataclass(frozen=True)
class Scale:
    """The numbers of a factor.

    Attributes:
        place: the sections of a cell that have its key; of `path.delay`, which stands for both directions, the two.
        key: of the catalogue. unit: of the axis. divisor: how many of the cell's unit that is.
    """

    places: tuple[tuple[str, ...], ...]
    key: Key
    unit: str
    divisor: float

    @property
    def is_added(self) -> bool:
        """Whether the numbers of both directions are added: what takes time there does so again back."""
        return len(self.places) > 1 and self.key.unit is CellUnit.NANOSECONDS

    @property
    def title(self) -> str:
        """What it is, without the unit."""
        name = self.key.study.replace("_", " ")
        return f"{name} there and back" if self.is_added else name


def factor_scale(factor: str) -> Scale | None:
    """The numbers of a factor, as `path.forward.loss`; None where its levels are none."""
    key = key_of(factor)
    if key is None or key.unit not in _SCALES:
        return None
    unit, label = _SCALES[key.unit]
    sections = tuple(factor.split(".")[:-1])
    both = sections == ("path",) and key in catalog().direction_keys
    places = tuple(("path", way) for way in DIRECTIONS) if both else (sections,)
    return Scale(places, key, label, unit.scales[label])


def key_of(factor: str) -> Key | None:
    """The key of the catalogue that a factor sets; None for one that is not a setting, as `part`."""
    table, _, rest = factor.partition(".")
    known = catalog()
    keys = {
        "path": (*known.path.keys, *known.direction_keys),
        "host": known.host.keys,
        "workload": tuple(key for workload in known.workloads.values() for key in workload.keys),
    }
    name = rest.rpartition(".")[-1]
    return next((key for key in keys.get(table, ()) if key.study == name), None)
