"""What a model is: its name, what it predicts of which cells, how, and where it holds."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from crosswind.catalog.metrics import METRICS
from crosswind.models.situation import Situation

MOST_PACKETS, _FEWEST_PACKETS = 50_000, 1_000  # up to half a second, and ten milliseconds
_PACKETS_OF_ALL = 1_000_000


@dataclass(frozen=True)
class SimulatedMean:
    """The mean of simulated runs, in the metric's unit.

    Attributes: limits: 95 % interval; None where chance touched too few runs, or none. runs: simulated. touched: runs
        with a packet lost at random.
    """

    value: float
    limits: tuple[float, float] | None
    runs: int
    touched: int


@dataclass(frozen=True)
class Model:
    """One model. A file of its own defines it; `registry` lists it.

    Attributes:
        name: in studies and on the command line. title: heading. source: where the formula is from.
        metric: what it predicts (crosswind.catalog.metrics), as a mean. assumptions, valid_range: where it holds, in
            words.
        applies: whether it says anything about a cell's workload. predicted: its number, in the metric's unit; raises
            ValueError where the formula has none. violated: which assumptions a cell breaks, in words.
        simulated: the mean of runs with so many simulated packets in all, for a slow model; `predicted` is its value.
        without_loss: what is predicted of a path without loss, and how that is said, where the formula has no number.
    """

    name: str
    title: str
    source: str
    metric: str
    assumptions: str
    valid_range: str
    applies: Callable[[Situation], bool]
    predicted: Callable[[Situation], float]
    violated: Callable[[Situation], list[str]]
    without_loss: Callable[[Situation], tuple[float | None, str]] | None = None
    simulated: Callable[[Situation, int], SimulatedMean] | None = None

    @property
    def is_slow(self) -> bool:
        """Whether a prediction takes longer than a moment."""
        return self.simulated is not None

    @property
    def unit(self) -> str:
        """The unit of what it predicts."""
        return METRICS[self.metric].unit.name


def packets_of_each(cells: int) -> int:
    """How many packets a prediction for each of some cells may simulate: all of them in some ten seconds."""
    return min(MOST_PACKETS, max(_FEWEST_PACKETS, _PACKETS_OF_ALL // cells))


def of_transfers(cell: Situation) -> bool:
    """Whether a cell transfers over TCP."""
    return cell.kind == "transfer" and cell.transport == "tcp"


def of_sized_transfers(cell: Situation) -> bool:
    """Whether a cell transfers files of a size over TCP."""
    return of_transfers(cell) and bool(cell.size_bytes)


def window_of(cell: Situation) -> float:
    """The window that limits a sender, segments; infinite where it is autotuned."""
    return cell.window_segments or math.inf


def known(number: float | None) -> float:
    """A number that the formula needs. Raises: ValueError when it is not known: only round trips may be unknown."""
    if number is None:
        raise ValueError("the model needs a round-trip time")
    return number


def link_and_window(cell: Situation) -> tuple[float | None, str]:
    """Goodput of a path without loss, bit/s, and what limits it; None where nothing is known to."""
    limits = {"link": cell.link_goodput_bps, "window": cell.window_goodput_bps}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    if not known:
        return None, "the model gives no number without loss, and neither link nor window is limited"
    name = min(known, key=lambda name: known[name])
    carried = "the link can carry" if name == "link" else "the window allows in each round trip"
    return known[name], f"the model gives no number without loss; predicted is what {carried}"
