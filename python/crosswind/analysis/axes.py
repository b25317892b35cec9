"""Where cells stand along a factor: numbers taken from the cells as they were sent, not from the text of a level."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crosswind.analysis.cells import CellData
from crosswind.analysis.settings import CellSettings, DirectionSettings
from crosswind.catalog import KeyType, catalog
from crosswind.quantities import RATE, SHARE, SIZE, TIME, Unit


@dataclass(frozen=True)
class Axis:
    """The places of some cells along one factor.

    Attributes:
        title: what it is, without the unit. unit: of the places; None where they only count the levels.
        is_ordered: whether one level is more than another, so that there is something between them.
        places: cell index to place.
    """

    title: str
    unit: str | None
    is_ordered: bool
    places: dict[int, float]


def axis_of(key: str, cells: Sequence[CellData]) -> Axis:
    """The places of some cells along the factor `key`.

    Loss in %, delay in ms, rates in Mbit/s, sizes in bytes; `path.delay` stands for the round trip, both ways added.
    A factor without numbers, or an unlimited rate, is counted: 0, 1, 2 in the order of its levels.
    """
    name = key.rsplit(".", 1)[-1]
    numbers = _numbers(key, cells)
    if numbers is None:
        order: dict[str, int] = {}
        for cell in cells:
            order.setdefault(cell.levels.get(key, ""), len(order))
        places = {cell.cell: float(order[cell.levels.get(key, "")]) for cell in cells}
        return Axis(name.replace("_", " "), None, _is_ordered(key), places)
    unit, label = _UNITS[name]
    title = "round trip of the path" if key == "path.delay" else name
    # To twelve digits: 0.07 in percent is 7, not 7.000000000000001.
    places = {cell: float(f"{number / unit.scales[label]:.12g}") for cell, number in numbers.items()}
    return Axis(title, label, True, places)


def _is_ordered(key: str) -> bool:
    """Whether the values of a key are quantities."""
    known, (table, _, rest) = catalog(), key.partition(".")
    groups = {
        "path": (*known.path.keys, *known.direction_keys),
        "host": known.host.keys,
        "workload": tuple(own for workload in known.workloads.values() for own in workload.keys),
    }
    name = rest.rpartition(".")[-1]
    return any(own.study == name and own.type in _QUANTITIES for own in groups.get(table, ()))


def losses_of(key: str, cells: Sequence[CellData]) -> dict[int, float]:
    """Loss of some cells, as a fraction, by `path.loss` or the key of one direction."""
    return _numbers(key, cells) or {}


_QUANTITIES = (KeyType.INTEGER, KeyType.NUMBER, KeyType.QUEUE)

_UNITS: Mapping[str, tuple[Unit, str]] = {
    "loss": (SHARE, "%"),
    "delay": (TIME, "ms"),
    "rate": (RATE, "Mbit/s"),
    "size": (SIZE, "bytes"),
}
"""By the last word of a key: the unit in which its numbers are sent, and that of its axis."""

_OF_DIRECTION: Mapping[str, Callable[[DirectionSettings], float | None]] = {
    "loss": lambda direction: direction.loss,
    "delay": lambda direction: direction.delay_ns,
    "rate": lambda direction: direction.rate_bps,
}


def _numbers(key: str, cells: Sequence[CellData]) -> dict[int, float] | None:
    """Each cell's number as sent; None where a cell has none, as an unlimited rate."""
    rows = [{cell.cell: reading(cell.settings) for cell in cells} for reading in _readings(key)]
    if not rows:
        return None
    found = next((row for row in rows if len(set(row.values())) > 1), rows[0])
    known = {cell: float(number) for cell, number in found.items() if number is not None}
    return known if len(known) == len(found) else None


def _readings(key: str) -> list[Callable[[CellSettings], float | None]]:
    """How a factor's number is read from a cell. Of several ways, the first in which cells differ counts."""
    if key == "workload.size":
        return [lambda settings: settings.number("size_bytes")]
    if key == "path.delay":
        return [lambda settings: settings.forward.delay_ns + settings.reverse.delay_ns]
    # `part` is the one key without a table before it.
    table, _, rest = key.partition(".")
    direction, _, name = rest.rpartition(".")
    if table != "path" or name not in _OF_DIRECTION:
        return []
    number = _OF_DIRECTION[name]
    both: dict[str, Callable[[CellSettings], float | None]] = {
        "forward": lambda settings: number(settings.forward),
        "reverse": lambda settings: number(settings.reverse),
    }
    # `path.loss` may be overridden in one direction: then the other one is what varies.
    return [both[direction]] if direction else list(both.values())
