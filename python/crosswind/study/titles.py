"""Titles with levels: `{workload.size}` stands for the sizes in a title's cells.

So a title is true for the quick variant, too, and with keys set anew.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from crosswind.errors import did_you_mean
from crosswind.study.cells import Cell
from crosswind.study.errors import DesignError
from crosswind.study.keys import SETTINGS
from crosswind.study.levels import Level
from crosswind.study.toml_text import Location
from crosswind.text.lists import listed

_PLACEHOLDER = re.compile(r"\{((?:path|host|workload)\.[a-z0-9_.-]+)\}")
_NUMBER_AND_UNIT = re.compile(r"(?P<number>[0-9.]+) ?(?P<unit>[A-Za-z%]*)")
_UNITS = {"kbit": "kbit/s", "mbit": "Mbit/s", "gbit": "Gbit/s"}
_MOST_LISTED = 4


def check_title(title: str, place: Location) -> None:
    """Raises: DesignError for an unknown placeholder."""
    for key in _PLACEHOLDER.findall(title):
        if key not in SETTINGS:
            raise DesignError(
                place, f"the title names {{{key}}}, and there is no such key", did_you_mean(key, SETTINGS)
            )


def keys_named_in(title: str) -> list[str]:
    """A title's dotted keys."""
    return _PLACEHOLDER.findall(title)


def filled_title(title: str, cells: Iterable[Cell]) -> str:
    """A title with its cells' levels: "10 MB", "0, 3 and 30 ms"; from five on, "1 B to 10 MB"."""
    if not _PLACEHOLDER.search(title):
        return title
    cells_of_study = list(cells)
    return _PLACEHOLDER.sub(lambda match: _levels_of(match[1], cells_of_study), title)


def _levels_of(key: str, cells: Sequence[Cell]) -> str:
    by_value = {cell.settings[key].value: cell.settings[key] for cell in cells if key in cell.settings}
    levels = list(by_value.values())
    numbers = [level for level in levels if isinstance(level.value, int | float | Decimal)]
    if len(numbers) < len(levels):
        return listed([level.text for level in levels])
    numbers.sort(key=_number)
    texts = [_readable(key, level) for level in numbers]
    if len(texts) > _MOST_LISTED:
        return f"{' '.join(texts[0])} to {' '.join(texts[-1])}".strip()
    units = {unit for number, unit in texts if number != "0"} or {unit for _, unit in texts}
    if len(units) == 1:
        return f"{listed([number for number, _ in texts])} {units.pop()}".strip()
    return listed([" ".join(text).strip() for text in texts])


def _number(level: Level) -> Decimal:
    assert isinstance(level.value, int | float | Decimal)  # Others are not sorted.
    return Decimal(level.value)


def _readable(key: str, level: Level) -> tuple[str, str]:
    """Number and unit of a level as people write them: "10MB" -> ("10", "MB"), "6mbit" -> ("6", "Mbit/s")."""
    amount = _NUMBER_AND_UNIT.fullmatch(level.text)
    if amount is None:
        return level.text, ""
    unit = amount["unit"] or ("B" if key.endswith("size") else "")
    return amount["number"], _UNITS.get(unit, unit)
