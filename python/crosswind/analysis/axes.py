"""Cells' places along a factor: numbers from the cells as sent, not from a level's text."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from crosswind.analysis.cells import CellData
from crosswind.catalog import KeyType
from crosswind.catalog.factors import FactorScale, catalogue_key, factor_scale
from crosswind.catalog.path_effect import DIRECTIONS

Number = TypeVar("Number")

_COUNTED = re.compile(r"(.*-)([0-9]{1,3})")
_QUANTITIES = (KeyType.INTEGER, KeyType.NUMBER, KeyType.QUEUE)


@dataclass(frozen=True)
class Axis:
    """Some cells' places along one factor.

    Attributes: title: without the unit. unit: the places'; None if they only count levels. is_ordered: whether one
        level is more than another, with something between them. places: cell index to place.
    """

    title: str
    unit: str | None
    is_ordered: bool
    places: dict[int, float]


def axis_of(key: str, cells: Sequence[CellData]) -> Axis:
    """Some cells' places along the factor `key`.

    Shares in %, times in ms, rates in Mbit/s, sizes in bytes; a time for both directions, as `path.delay`, is added up.
    A factor without numbers, or an unlimited rate, is counted: 0, 1, 2 in the order of its levels.
    """
    scale = factor_scale(key)
    numbers = None if scale is None else _numbers(scale, cells)
    if scale is None or numbers is None:
        order: dict[str, int] = {}
        for cell in cells:
            order.setdefault(cell.levels.get(key, ""), len(order))
        places = {cell.cell: float(order[cell.levels.get(key, "")]) for cell in cells}
        setting = catalogue_key(key)
        is_ordered = _are_rungs(key, order) if setting is None else setting.type in _QUANTITIES
        return Axis(key.rsplit(".", 1)[-1].replace("_", " "), None, is_ordered, places)
    # To twelve digits: 0.07 in percent is 7, not 7.000000000000001.
    places = {cell: float(f"{number / scale.divisor:.12g}") for cell, number in numbers.items()}
    return Axis(scale.title, scale.unit, True, places)


def _are_rungs(key: str, levels: Iterable[str]) -> bool:
    """Whether non-numeric levels are counted by their names: ladder-0, ladder-1, ladder-2."""
    matches = [_COUNTED.fullmatch(level) for level in levels]
    named = [match for match in matches if match is not None]
    numbers = [int(match[2]) for match in named]
    return (
        key.endswith(".network")
        and len(named) == len(matches)
        and numbers == sorted(numbers)
        and (len({match[1] for match in named}) == 1)
    )


def losses_of(key: str, cells: Sequence[CellData]) -> dict[int, float]:
    """Some cells' loss, as a fraction: in the direction in `key`, or the first with a difference."""
    ways = [way for way in DIRECTIONS if way in key.split(".")] or DIRECTIONS
    rows = [{cell.cell: getattr(cell.effect, way).loss for cell in cells} for way in ways]
    return _varying(rows)


def _numbers(scale: FactorScale, cells: Sequence[CellData]) -> dict[int, float] | None:
    """Each cell's number as sent; None where a cell has none, as an unlimited rate."""
    rows = [{cell.cell: _sent(cell, place, scale) for cell in cells} for place in scale.places]
    sums = {cell: _sum([row[cell] for row in rows]) for cell in rows[0]} if scale.is_added else _varying(rows)
    known = {cell: number for cell, number in sums.items() if number is not None}
    return known if len(known) == len(sums) else None


def _varying(rows: Sequence[dict[int, Number]]) -> dict[int, Number]:
    """The first direction with a difference: a key for both may be overridden in one."""
    return next((row for row in rows if len(set(row.values())) > 1), rows[0])


def _sent(cell: CellData, place: Sequence[str], scale: FactorScale) -> float | None:
    section: Any = cell.parameters
    for name in place:
        if isinstance(section, list):
            section = next((entry for entry in section if entry.get("name") == name), {})
        else:
            section = section.get(name) or {}
    number = section.get(scale.key.name, scale.key.default)
    return float(number) if isinstance(number, int | float) else None


def _sum(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
