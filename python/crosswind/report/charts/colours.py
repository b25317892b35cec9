"""The colours of levels: one for each level of a factor, the same in every chart of a report."""

from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from crosswind.report.charts.style import PALETTE
from crosswind.report.text.format import factor_name

MOST = len(PALETTE)
"""Levels of a factor that have a colour of their own."""


class Colours:
    """Which colour each level has, by the order of the levels among all cells of a run."""

    def __init__(self, cells: Iterable[Mapping[str, str]]) -> None:
        levels: dict[str, dict[str, None]] = {}
        for of_cell in cells:
            for factor, level in of_cell.items():
                levels.setdefault(factor, {})[level] = None
        self._places = {factor: {level: at for at, level in enumerate(own)} for factor, own in levels.items()}

    def range_of(self, factor: str | None, names: Sequence[str]) -> list[str]:
        """The colour of each name: its level's; of names that are not levels of the factor, by their order."""
        places = self._places.get(factor or "", {})
        known = [places[name] for name in names if name in places]
        numbers = known if len(known) == len(names) else range(len(names))
        return [PALETTE[place % MOST] for place in numbers]

    def by(self, field: str, factor: str | None, names: Iterable[str], *, labelled: bool = False) -> alt.Color:
        """The colour of a field whose values are `names`, with a legend where there are several.

        Args: labelled: whether each mark has its name beside it, so that a legend would only repeat them.
        """
        domain = list(dict.fromkeys(names))
        title = factor_name(factor) if factor else None
        legend = alt.Legend(title=title, orient="top") if len(domain) > 1 and not labelled else None
        scale = alt.Scale(domain=domain, range=self.range_of(factor, domain))
        return alt.Color(f"{field}:N", scale=scale, legend=legend)
