"""Random cells over TCP, for checks of what their time is said to be spent on.

Both checks are run over some cells by the suite, and over any number by hand:

    python tests/virtual/random_cells.py 5000
"""

import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from crosswind.catalog.spent import CHANGES
from crosswind.execution.virtual import VirtualCell, virtual
from crosswind.report.text.changed import changed_text

MS = 1_000_000
WINDOWS = ("congestion_window", "slow_start_after_idle", "reduced_window", "reordering")
RECOVERIES = (
    "fast_recovery", "tail_loss_probe", "retransmission_timer", "persist_timer", "syn_timer",
    "reduced_window", "head_of_line",
)  # fmt: skip
CHANGE_OF = {
    "recovery": "without_loss",
    "receive_window": "without_receive_window",
    "send_buffer": "without_send_buffer",
    "link": "at_twice_the_rate",
}
TICK_NS = MS
"""Of the kernel's clock, in which it counts what limits a socket."""


@dataclass(frozen=True)
class RandomCell:
    """A cell's settings."""

    path: Mapping[str, object]
    workload: Mapping[str, object]
    host: Mapping[str, object]
    seed: int

    def run(self) -> VirtualCell:
        """Runs it in virtual time."""
        return virtual(self.path, workload=self.workload, host=self.host, seed=self.seed)

    @property
    def delay_ms(self) -> int:
        """One way."""
        return int(str(self.path["delay"]).removesuffix("ms"))


def random_cells(count: int, seed: int) -> Iterator[RandomCell]:
    """Transfers of a size, and echoes one after the other, over a path with what may hold them up."""
    chance = random.Random(seed)
    for number in range(count):
        path: dict[str, object] = {"delay": f"{chance.choice([5, 20, 50, 100])}ms"}
        host: dict[str, object] = {"congestion_control": chance.choice(["cubic", "reno"])}
        if chance.random() < 0.6:
            path["rate"] = f"{chance.choice([2, 10, 50, 200])}mbit"
            path["queue"] = f"{chance.choice([20, 100, 1000])}p"
        if chance.random() < 0.4:
            path["loss"] = f"{chance.choice([0.2, 1, 3])}%"
        if chance.random() < 0.4:
            host["receive_buffer"] = f"{chance.choice([16, 64, 256, 1024])}KiB"
        if chance.random() < 0.25:
            host["send_buffer"] = f"{chance.choice([16, 64, 256])}KiB"
        if chance.random() < 0.3:
            host["nodelay"] = False
        workload: dict[str, object] = {
            "transport": "tcp",
            "kind": "transfer",
            "size": f"{chance.choice([30, 200, 1000, 4000])}kB",
        }
        if chance.random() < 0.3:
            workload = {
                "transport": "tcp",
                "kind": "echo",
                "messages": 10,
                "size": f"{chance.choice([100, 2000, 30_000])}B",
            }
            workload["writes"] = chance.choice([1, 2])
        yield RandomCell(path, workload, host, seed=number + 1)


def told_ns(cell: VirtualCell) -> dict[str, int]:
    """What all exchanges together spent on each cause."""
    row = cell.spent.drop("exchange", "whole_ns").sum().row(0, named=True)
    return {name.removesuffix("_ns"): int(ns) for name, ns in row.items() if ns}


def changed_ns(cell: VirtualCell) -> dict[str, int]:
    """What all exchanges together would take with each change, by the model, where it knows all of them."""
    knows_all = cell.limits.height == cell.spent.height
    return {change.name: int(cell.limits[f"{change.name}_ns"].sum()) for change in CHANGES if knows_all}


def whole_ns(cell: VirtualCell) -> int:
    """What all exchanges took together."""
    return int(cell.spent["whole_ns"].sum())


# ---- The receiver's window, against what the kernel counts


def window_problem(cell: RandomCell) -> str:
    """Why what is told of the receiver's window is not what the kernel counted; empty if it is."""
    ran = cell.run()
    told = sum(ns for part, ns in told_ns(ran).items() if part in ("receive_window", "zero_window"))
    sockets = ran.tcp.filter(pl.col("last") == 1)
    counted = int(sockets["receive_window_limited_ns"].sum())
    busy = int(sockets["busy_ns"].sum())
    pieces = ran.pieces.filter(pl.col("part").is_in(["receive_window", "zero_window"]))
    round_trip_ns = 2 * cell.delay_ms * MS
    queueing_ns = int(ran.packets["queueing_ns"].max() or 0)
    most = counted + pieces.height * (round_trip_ns + queueing_ns + TICK_NS)
    if told and not counted:
        return f"{told / MS:.1f} ms are told, and the kernel counted none"
    if told > most:
        return f"{told / MS:.1f} ms are told, and the kernel counted {counted / MS:.1f}"
    link = sum(ns for part, ns in told_ns(ran).items() if part.startswith("serialisation"))
    if counted >= 0.2 * busy and not told and link < 0.5 * whole_ns(ran):
        return f"the kernel counted {counted / MS:.1f} of {busy / MS:.1f} ms, and none is told"
    return ""


# ---- What is saved without a cause, against what was told


def without(cell: RandomCell, cause: str) -> RandomCell | None:
    """The same cell without a cause, or over a link twice as fast; none if it cannot be taken away."""
    if cause in ("receive_window", "zero_window"):
        return replace(cell, host={**cell.host, "receive_buffer": "32MiB"})
    if cause == "send_buffer":
        return replace(cell, host={**cell.host, "send_buffer": "32MiB"})
    if cause == "nagle":
        return replace(cell, host={**cell.host, "nodelay": True})
    path = dict(cell.path)
    if cause == "recovery":
        # What is lost by chance, and what a short queue drops.
        path.pop("loss", None)
        return replace(cell, path=path | ({"queue": "10000p"} if "rate" in path else {}))
    if cause == "link" and "rate" in path:
        return replace(cell, path=path | {"rate": f"{2 * int(str(path['rate']).removesuffix('mbit'))}mbit"})
    return None


def causes(told: Mapping[str, int]) -> dict[str, int]:
    """Removable causes, each with its told cost."""
    groups = {
        "receive_window": ("receive_window", "zero_window"),
        "send_buffer": ("send_buffer",),
        "nagle": ("nagle", "delayed_acknowledgement"),
        "recovery": RECOVERIES,
        "link": ("serialisation_forward", "serialisation_reverse"),
    }
    return {name: sum(told.get(part, 0) for part in parts) for name, parts in groups.items()}


@dataclass(frozen=True)
class Counterfactual:
    """What taking a cell's largest cause away has saved, as a share of the whole, and what was told of it."""

    cell: RandomCell
    cause: str
    told: float
    saved: float

    @property
    def error(self) -> float:
        """How far the two are apart."""
        return abs(self.told - self.saved)


def counterfactual(cell: RandomCell) -> Counterfactual | None:
    """Takes the largest cause away. None where none takes a tenth of the time."""
    ran = cell.run()
    whole = whole_ns(ran)
    cause, told = max(causes(told_ns(ran)).items(), key=lambda it: it[1])
    other = without(cell, cause)
    if told < 0.1 * whole or other is None or other == cell:
        return None
    expected = told / 2 if cause == "link" else told
    # Where another limit lies behind, a sentence says what the change would leave.
    if cause in CHANGE_OF and changed_text(whole, told_ns(ran), changed_ns(ran)):
        expected = whole - changed_ns(ran)[CHANGE_OF[cause]]
    return Counterfactual(cell, cause, expected / whole, (whole - whole_ns(other.run())) / whole)


def main(count: int) -> None:
    """Prints both checks' counts, and what fails them."""
    problems = [(cell, problem) for cell in random_cells(count, 1) if (problem := window_problem(cell))]
    for cell, problem in problems[:20]:
        print(f"window: {problem}: {cell}")
    print(f"receive window: {count - len(problems)} of {count} cells are as the kernel counts")
    found = [it for cell in random_cells(count, 2) if (it := counterfactual(cell)) is not None]
    far = [it for it in found if it.error > 0.1]
    for it in far[:40]:
        print(f"{it.cause}: told {it.told:.3f}, saved {it.saved:.3f}: {it.cell}")
    for cause in sorted({it.cause for it in found}):
        own = [it for it in found if it.cause == cause]
        print(f"{cause}: {sum(it.error <= 0.1 for it in own)} of {len(own)} within a tenth of the whole")
    print(f"counterfactuals: {len(found) - len(far)} of {len(found)} within a tenth of the whole")


if __name__ == "__main__":
    main(int(sys.argv[1]))
