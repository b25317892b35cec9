"""Where cells stand along a factor: numbers taken from the cells as they were sent, not from the text of a level."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.analysis.cells import CellData


@dataclass(frozen=True)
class Axis:
    """The places of some cells along one factor.

    Attributes:
        title: what it is, without the unit. unit: of the places; None where they only count the levels.
        places: cell index to place.
    """

    title: str
    unit: str | None
    places: dict[int, float]


def axis_of(key: str, cells: Sequence[CellData]) -> Axis:
    """The places of some cells along the factor `key`.

    Loss in %, delay in ms, rates in Mbit/s, sizes in bytes; `path.delay` stands for the round trip, both ways added.
    A factor without numbers, or an unlimited rate, is counted: 0, 1, 2 in the order of its levels.
    """
    name = key.rsplit(".", 1)[-1]
    known = _numbers(key, cells) if name in _SCALES else None
    if known is None:
        order: dict[str, int] = {}
        for one in cells:
            order.setdefault(one.levels.get(key, ""), len(order))
        return Axis(name.replace("_", " "), None, {one.cell: float(order[one.levels.get(key, "")]) for one in cells})
    unit, scale = _SCALES[name]
    title = "round trip of the path (twice the delay each way)" if key == "path.delay" else name
    # To twelve digits: 100 * 0.07 is 7, not 7.000000000000001.
    return Axis(title, unit, {cell: float(f"{number * scale:.12g}") for cell, number in known.items()})


def losses_of(key: str, cells: Sequence[CellData]) -> dict[int, float]:
    """Loss of some cells, as a fraction, by `path.loss` or the key of one direction."""
    return _numbers(key, cells) or {}


_SCALES: Mapping[str, tuple[str, float]] = {
    "loss": ("%", 100.0), "delay": ("ms", 1e-6), "rate": ("Mbit/s", 1e-6), "size": ("bytes", 1.0),
}  # fmt: skip
_FIELDS = {"loss": "loss", "delay": "delay_ns", "rate": "rate_bps"}


def _numbers(key: str, cells: Sequence[CellData]) -> dict[int, float] | None:
    """Each cell's number as sent; None where one has none, as an unlimited rate."""
    table, *way, name = key.split(".")
    if key == "workload.size":
        readings: list[Callable[[CellData], Any]] = [lambda one: one.workload.get("size_bytes")]
    elif table != "path" or name not in _FIELDS:
        return None
    elif key == "path.delay":
        readings = [lambda one: _way(one, "forward", "delay_ns") + _way(one, "reverse", "delay_ns")]
    else:
        # `path.loss` may be overridden in one direction: then the other one is what varies.
        ways = way or ["forward", "reverse"]
        readings = [lambda one, way=way: _way(one, way, _FIELDS[name]) for way in ways]  # type: ignore[misc]
    rows = [{one.cell: reading(one) for one in cells} for reading in readings]
    found = next((row for row in rows if len(set(row.values())) > 1), rows[0])
    return None if None in found.values() else {cell: float(number) for cell, number in found.items()}


def _way(one: CellData, way: str, field: str) -> Any:
    number = ((one.parameters.get("path") or {}).get(way) or {}).get(field)
    return 0 if number is None and field != "rate_bps" else number
