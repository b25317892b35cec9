"""In which unit, and how finely, the numbers of a metric are read."""

from collections.abc import Iterable

from crosswind.analysis.result import CellResult
from crosswind.report.text.format import MOST_DECIMALS, scale_of

_DECIMALS = {"ms": 3, "µs": 3, "ns": 0}
"""Of times, decimals at most: a microsecond, and of what is read in microseconds a nanosecond."""


def scale_of_metric(name: str, cells: Iterable[CellResult]) -> tuple[float, str]:
    """The one scale of all that shows a metric of some cells: that of their means and medians.

    Returns: as `scale_of`. At least one cell has the metric.
    """
    of_cells = [cell.estimates[name] for cell in cells if name in cell.estimates]
    middles = [part.value for estimates in of_cells for part in (estimates.median, estimates.mean) if part.value]
    # Where most exchanges timed out, there is no median, and the timeout is the smallest number that is known.
    middles = middles or [estimates.median.low for estimates in of_cells if estimates.median.low]
    return scale_of(middles or [estimates.smallest for estimates in of_cells], of_cells[0].unit)


def finest_of(unit: str) -> int:
    """How many decimals a number has at most that is read in a unit."""
    return _DECIMALS.get(unit, MOST_DECIMALS)
