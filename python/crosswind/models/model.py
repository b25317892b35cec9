"""A model: its name, metric, formula and valid range."""

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
    """One model. Its own file defines it; `registry` lists it.

    Attributes:
        name: in studies and on the command line. title: heading. source: the formula's.
        metric: predicted (crosswind.catalog.metrics), as a mean. assumptions, valid_range: in words.
        applies: whether it predicts for a cell's workload. predicted: its number, in the metric's unit; raises
            ValueError where the formula has none. violated: assumptions broken by a cell, in words.
        simulated: a slow model's mean over runs with so many packets in all; `predicted` is its value.
        without_loss: the prediction for a path without loss, and its note, where the formula has no number.
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
        """The predicted unit."""
        return METRICS[self.metric].unit.name


def packets_of_each(cells: int) -> int:
    """Packets to simulate for each cell's prediction: all cells in some ten seconds."""
    return min(MOST_PACKETS, max(_FEWEST_PACKETS, _PACKETS_OF_ALL // cells))


def of_transfers(cell: Situation) -> bool:
    """Whether a cell transfers over TCP."""
    return cell.kind == "transfer" and cell.transport == "tcp"


def of_sized_transfers(cell: Situation) -> bool:
    """Whether a cell transfers sized files over TCP."""
    return of_transfers(cell) and bool(cell.size_bytes)


def window_of(cell: Situation) -> float:
    """The sender's limiting window, segments; infinite if autotuned."""
    return cell.window_segments or math.inf


def other_control(cell: Situation, control: str, *, what: str = "model", versions: bool = False) -> list[str]:
    """The assumption broken by another congestion control, if so.

    Args: control: as it is written, CUBIC. what: describes it. versions: whether names with a number behind it fit.
    """
    here, name = cell.congestion_control, control.lower()
    is_it = here.startswith(name) if versions else here == name
    return [] if is_it else [f"the {what} describes {control}, not {here}"]


def too_lossy(cell: Situation, most: float, why: str) -> list[str]:
    """The assumption broken by more loss than the formula is for, if so."""
    return [] if cell.loss <= most else [f"{100 * cell.loss:.3g} % of loss is above {why}"]


def other_recovery(cell: Situation) -> list[str]:
    """The assumptions of a modern TCP's transfer, the first of its host, that a cell breaks."""
    if cell.loss == 0:
        return []
    return [
        *([] if cell.rack else ["losses are found without RACK (tcp_recovery), and the model has it"]),
        *remembered(cell),
    ]


def remembered(cell: Situation) -> list[str]:
    """The assumption broken by a memory of earlier connections, if so."""
    if not cell.remembers:
        return []
    return [
        "a lossy transfer shortens the next one's slow start (tcp_metrics), and the model takes each to be the first"
    ]


def known(number: float | None) -> float:
    """A number required by the formula. Raises: ValueError if unknown: only round trips may be unknown."""
    if number is None:
        raise ValueError("the model needs a round-trip time")
    return number


def link_and_window(cell: Situation) -> tuple[float | None, str]:
    """Goodput of a path without loss, bit/s, and its limit; None without a known limit."""
    limits = {"link": cell.link_goodput_bps, "window": cell.window_goodput_bps}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    if not known:
        return None, "the model gives no number without loss, and neither link nor window is limited"
    name = min(known, key=lambda name: known[name])
    carried = "the link can carry" if name == "link" else "the window allows in each round trip"
    return known[name], f"the model gives no number without loss; predicted is what {carried}"
