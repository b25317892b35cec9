"""The simulation of transfers as a model: its mean stands beside the measured one."""

from functools import lru_cache

from crosswind.models.model import Model, known, of_sized_transfers
from crosswind.models.numbers import Array
from crosswind.models.situation import Situation

SOURCE = "RFC 5681, 6298, 6675, 6937, 8985 and 9438 as Linux implements them; docs/models.md"
_SEED = 1
_MOST_RUNS, _FEWEST_RUNS = 400, 10
_PACKETS = 40_000  # about half a second


@lru_cache(maxsize=1024)
def distribution(cell: Situation, runs: int | None = None, seed: int = _SEED) -> Array:
    """Simulated transfer times, s, ascending, shape (runs,); as many as take about half a second where not said.

    Raises: ValueError as `simulated_times`.
    """
    from crosswind.models.simulation import simulated_times  # which the other models need not wait for

    packets = max(1, (cell.size_bytes or 0) // cell.mss_bytes)
    times = simulated_times(cell, runs=runs or min(_MOST_RUNS, max(_FEWEST_RUNS, _PACKETS // packets)), seed=seed)
    times.sort()
    return times


def _predicted(cell: Situation) -> float:
    known(cell.rtt_s)
    return 1e9 * float(distribution(cell).mean())


def _violated(cell: Situation) -> list[str]:
    broken = []
    if cell.congestion_control not in ("reno", "cubic"):
        broken.append(f"the simulation has Reno and CUBIC, not {cell.congestion_control}: Reno stands for it")
    if not cell.sack:
        broken.append("the simulation has selective ACKs")
    return broken


MODEL = Model(
    name="simulated",
    title="Simulated packet by packet",
    source=SOURCE,
    metric="transfer_time",
    assumptions="one flow of Linux's TCP with SACK, RACK-TLP and PRR, alone on its link",
    valid_range="any loss; Reno and CUBIC",
    applies=of_sized_transfers,
    predicted=_predicted,
    violated=_violated,
    is_slow=True,
)
