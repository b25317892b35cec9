"""The levels of which a statement was declared and which the cells of a study do not have.

A quick variant, `--set`, or a program that is not here leaves levels out. A statement of all cells of a study that was
borne out in some of them has not been shown.
"""

from collections.abc import Iterable, Sequence

from crosswind.study.cells import Cell, Where
from crosswind.study.claims import Claim
from crosswind.study.presentation import Equivalence
from crosswind.study.thresholds import Threshold

Statement = Claim | Equivalence | Threshold


def missing_levels(
    statement: Statement, cells: Sequence[Cell], declared: Iterable[Statement], declared_cells: Sequence[Cell]
) -> list[str]:
    """As "path.delay 50ms", in the order of the study as it was declared. Args: declared: its statements."""
    first = next((one for one in declared if one.table == statement.table), None)
    own = _about(statement, cells)
    if first is None or not own:
        return []
    kinds = {cell.kind for cell in own}
    before = [cell for cell in _about(first, declared_cells) if cell.kind in kinds]
    keys = dict.fromkeys(key for cell in before for key in cell.levels)
    return [text for key in keys for text in _missing(key, own, before)]


def _about(statement: Statement, cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a statement; where it names the levels that it compares, those with one of them."""
    own = statement.where.among(cells)
    compare: tuple[Where, ...] = getattr(statement, "compare", ())
    return [cell for cell in own if any(level.matches(cell) for level in compare)] if compare else own


def _missing(key: str, own: Sequence[Cell], declared: Sequence[Cell]) -> list[str]:
    known = {_value(key, cell) for cell in own}
    found = {_value(key, cell): cell.levels[key] for cell in declared if key in cell.levels}
    return [f"{key} {text}" for value, text in found.items() if value not in known]


def _value(key: str, cell: Cell) -> object:
    if key == "part":
        return cell.part
    return cell.settings[key].value if key in cell.settings else None
