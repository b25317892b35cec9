"""Colours: one for each level of a factor, the same in every chart of a report."""

from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from crosswind.report.charts.style import PALETTE
from crosswind.report.text.format import factor_name

MOST = len(PALETTE)
"""Levels of a factor with their own colour."""


class Colours:
    """Each level's colour, by its order among all cells in a run."""

    def __init__(self, cells: Iterable[Mapping[str, str]]) -> None:
        levels: dict[str, dict[str, None]] = {}
        for of_cell in cells:
            for factor, level in of_cell.items():
                levels.setdefault(factor, {})[level] = None
        self._places = {factor: {level: at for at, level in enumerate(own)} for factor, own in levels.items()}

    def range_of(self, factor: str | None, names: Sequence[str]) -> list[str]:
        """Each name's colour: its level's; names other than levels by their order."""
        places = self._places.get(factor or "", {})
        known = [places[name] for name in names if name in places]
        numbers = known if len(known) == len(names) else range(len(names))
        return [PALETTE[place % MOST] for place in numbers]

    def by(self, field: str, factor: str | None, names: Iterable[str], *, labelled: bool = False) -> alt.Color:
        """The colour for a field with the values `names`, with a legend for several.

        Args: labelled: whether each mark has its name beside it: a legend would only repeat them.
        """
        domain = list(dict.fromkeys(names))
        title = factor_name(factor) if factor else None
        legend = alt.Legend(title=title, orient="top") if len(domain) > 1 and not labelled else None
        scale = alt.Scale(domain=domain, range=self.range_of(factor, domain))
        return alt.Color(f"{field}:N", scale=scale, legend=legend)
