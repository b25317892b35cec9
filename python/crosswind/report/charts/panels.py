"""Charts, and their selection for a page."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crosswind.analysis.result import CellResult
from crosswind.report.charts.style import DASHES, LOG_SPREAD, PALETTE
from crosswind.report.page import Panels
from crosswind.report.text.format import factor_and_level

MAX_PANELS = 12
"""Maximum panels drawn of one kind; the rest is counted."""

MAX_BARS = 40
"""Maximum cells in a chart with a line or a bar for each."""

COLOUR_FIRST = ("workload.transport", "host.congestion_control")
"""Factors shown by colour wherever they vary."""


NO_PANELS = Panels([], 0)


@dataclass(frozen=True)
class Roles:
    """Factors by their display: colour, dash, panels."""

    colour: str | None
    dash: str | None
    panels: tuple[str, ...]

    def level(self, key: str | None, of_cell: Mapping[str, str]) -> str:
        """A cell's level of one factor; the factor's absence is one level."""
        return of_cell.get(key, "all") if key else "all"

    def panel(self, of_cell: Mapping[str, str]) -> str:
        """The caption of a cell's panel."""
        return " · ".join(factor_and_level(key, of_cell[key]) for key in self.panels if key in of_cell)


def roles_of(cells: Iterable[Mapping[str, str]]) -> Roles:
    """Colour for transport or congestion control if they vary, dash for the next factor, panels for the rest."""
    roles: dict[str, dict[str, None]] = {}
    for of_cell in cells:
        for key, value in of_cell.items():
            roles.setdefault(key, {})[value] = None
    varied = [key for key, values in roles.items() if len(values) > 1]
    fitting = [key for key in (*COLOUR_FIRST, *varied) if key in varied and len(roles[key]) <= len(PALETTE)]
    colour = fitting[0] if fitting else None
    dashed = [key for key in varied if key != colour and len(roles[key]) <= len(DASHES)]
    dash = dashed[0] if dashed else None
    return Roles(colour, dash, tuple(key for key in varied if key not in (colour, dash)))


def panel_factors(cells: Sequence[Mapping[str, str]], most: int) -> tuple[str, ...]:
    """The factors dividing cells into panels of at most `most`: those with the fewest levels first.

    The one with the most levels is never among them, so a panel has a comparison.
    """
    factors: dict[str, set[str]] = {}
    for of_cell in cells:
        for key, value in of_cell.items():
            factors.setdefault(key, set()).add(value)
    varied = [key for key, values in factors.items() if len(values) > 1]
    chosen: list[str] = []
    for key in sorted(varied, key=lambda key: (key in COLOUR_FIRST, len(factors[key])))[:-1]:
        sizes = Counter(tuple(of_cell.get(part) for part in chosen) for of_cell in cells)
        if max(sizes.values()) <= most:
            break
        chosen.append(key)
    return tuple(key for key in varied if key in chosen)


def separating(cells: Sequence[CellResult], sizes: Mapping[int, float], most: int) -> tuple[str, ...]:
    """The factors in `panel_factors`, and those separating cells with bars too small beside others.

    Args: sizes: each cell's bar, by index. A bar has no logarithmic axis: beyond LOG_SPREAD it vanishes.
    """
    chosen = panel_factors([cell.levels for cell in cells], most)
    keys = dict.fromkeys(key for cell in cells for key in cell.levels)
    varied = [key for key in keys if len({cell.levels.get(key) for cell in cells}) > 1]

    def worst(factors: tuple[str, ...]) -> float:
        panels: dict[tuple[str | None, ...], list[float]] = {}
        for cell in cells:
            panels.setdefault(tuple(cell.levels.get(key) for key in factors), []).append(sizes[cell.cell])
        return max(max(values) / min(values) if min(values) > 0 else math.inf for values in panels.values())

    while worst(chosen) > LOG_SPREAD:
        others = [(*chosen, key) for key in varied if key not in chosen]
        best = min(others, key=worst, default=chosen)
        if len(best) >= len(varied) or worst(best) > worst(chosen) / 2:
            break
        chosen = best
    return tuple(key for key in varied if key in chosen)


def into_panels(
    cells: Sequence[CellResult], factors: tuple[str, ...], most: int = MAX_BARS
) -> list[tuple[str, list[CellResult]]]:
    """Captions and cells of the panels by some factors; a panel over `most` cells is cut."""
    panels: dict[str, list[CellResult]] = {}
    for cell in cells:
        panels.setdefault(Roles(None, None, factors).panel(cell.levels), []).append(cell)
    cut = []
    for caption, members in panels.items():
        for start in range(0, len(members), most):
            part = members[start : start + most]
            range_of = f"cells {start + 1} to {start + len(part)}" if len(part) < len(members) else ""
            cut.append((" · ".join(filter(None, (caption, range_of))), part))
    return cut


def row_levels(cells: Sequence[CellResult], factors: tuple[str, ...]) -> dict[int, dict[str, str]]:
    """The levels for naming each cell in a panel, by index: those with differences in the panel.

    Without differences, all but those in `factors`, since the panel's caption names them.
    """
    levels: dict[str, set[str | None]] = {
        key: {other.levels.get(key) for other in cells} for cell in cells for key in cell.levels if key not in factors
    }
    varied = [key for key, values in levels.items() if len(values) > 1] or list(levels)
    return {cell.cell: {key: cell.levels[key] for key in varied if key in cell.levels} for cell in cells}
