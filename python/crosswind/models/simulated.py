"""The simulation of transfers as a model: its mean stands beside the measured one."""

from functools import lru_cache
from typing import TYPE_CHECKING

from crosswind.models.model import MOST_PACKETS, Model, SimulatedMean, known, of_sized_transfers, other_recovery
from crosswind.models.situation import Situation

if TYPE_CHECKING:
    from crosswind.models.simulation import Simulated

SOURCE = "RFC 5681, 6298, 6675, 6937, 8985 and 9438 as Linux implements them; docs/models.md"
_SEED = 1
_MOST_RUNS, _FEWEST_RUNS = 3000, 2


@lru_cache(maxsize=1024)
def simulated_transfers(
    cell: Situation, *, runs: int | None = None, packets: int = MOST_PACKETS, seed: int = _SEED
) -> "Simulated":
    """Simulated transfers: so many `runs`, or as many as `packets` suffice for; one where nothing is left to chance.

    Raises: ValueError as `simulate`.
    """
    from crosswind.models.simulation import simulate  # unneeded by the other models

    if runs is None:
        afforded = packets // max(1, (cell.size_bytes or 0) // cell.mss_bytes)
        runs = min(_MOST_RUNS, max(_FEWEST_RUNS, afforded)) if cell.loss or cell.loss_back else 1
    return simulate(cell, runs=runs, seed=seed)


def _simulated(cell: Situation, packets: int = MOST_PACKETS) -> SimulatedMean:
    known(cell.rtt_s)
    made = simulated_transfers(cell, packets=packets)
    limits = None if made.limits_s is None else (1e9 * made.limits_s[0], 1e9 * made.limits_s[1])
    return SimulatedMean(1e9 * made.mean_s, limits, made.times.size, made.touched)


def _violated(cell: Situation) -> list[str]:
    broken = []
    if cell.congestion_control not in ("reno", "cubic"):
        broken.append(f"the simulation has Reno and CUBIC, not {cell.congestion_control}: Reno is used instead")
    if not cell.sack:
        broken.append("the simulation has selective ACKs")
    return broken + other_recovery(cell)


MODEL = Model(
    name="simulated",
    title="Simulated packet by packet",
    source=SOURCE,
    metric="transfer_time",
    assumptions="one flow of Linux's TCP with SACK, RACK-TLP and PRR, alone on its link",
    valid_range="any loss; Reno and CUBIC",
    applies=of_sized_transfers,
    predicted=lambda cell: _simulated(cell).value,
    violated=_violated,
    simulated=_simulated,
)
