"""A plan: the cells and repetitions of a study, in a seeded order of randomised complete blocks.

One block is one repetition: it holds every cell once, in an order of its own, so that a drift of the machine cannot
pass for a difference between cells. All cells of a repetition share one path seed and so meet the same random
decisions, packet by packet (common random numbers); every repetition has a fresh one. Both come from SHA-256, so they
are the same on every machine and version.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

from crosswind.cells import Cell, WorkloadParameters
from crosswind.study import Study

__all__ = ["Cell", "Plan", "PlanItem", "path_seed"]

SETUP_NS = 300_000_000
EXCHANGE_NS = 100_000
RETRANSMISSION_NS = 200_000_000
PROGRAM_NS = 10_000_000_000
FASTEST_BPS = 2_000_000_000
SEGMENT_BYTES = 1448


@dataclass(frozen=True)
class PlanItem:
    """One run of one cell. `order` counts from 0 over the plan; `block` is the repetition, from 0.

    `key` names cell and repetition (`c003-r02`) and is the same in every plan of the same study.
    """

    order: int
    cell: Cell
    repetition: int
    block: int
    seed: int
    key: str


@dataclass(frozen=True)
class Plan:
    """Every run of a study, in the order in which to run them."""

    study: Study
    items: tuple[PlanItem, ...]

    @classmethod
    def of(cls, study: Study) -> "Plan":
        """The plan of a study: as many items as cells times repetitions."""
        cells = tuple(study.cells())
        items: list[PlanItem] = []
        for repetition in range(study.repetitions):
            seed = path_seed(study.seed, repetition)
            for cell in sorted(cells, key=lambda cell: _rank(study.seed, repetition, cell.index)):
                key = f"c{cell.index:03d}-r{repetition:02d}"
                items.append(PlanItem(len(items), cell, repetition, repetition, seed, key))
        return cls(study, tuple(items))

    def __iter__(self) -> Iterator[PlanItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @staticmethod
    def expected_ns(item: PlanItem) -> int:
        """Predicted duration of one run in nanoseconds, for the progress display; not a claim about the protocol.

        With R the round-trip delay plus 0.1 ms, p the chance of loss somewhere in a round trip, T what a loss costs
        (0.2 s + R for tcp, the timeout for udp), an unlimited link taken as 2 Gbit/s, and 0.3 s of set-up for each run:

        - echo, closed: messages per connection x (R + time on the link + R again for a new tcp connection + p T)
        - echo, open:   messages / rate + R + T if there is loss
        - transfer:     its duration; or count x (2 R + R for each doubling of slow start + time on the link
                        + segments x p T / 4, because several losses share a round)
        - connect:      count per connection x (R + p 1 s)
        - program:      10 s
        """
        return SETUP_NS + int(_work_ns(item.cell))


def path_seed(study_seed: int, repetition: int) -> int:
    """The seed that all cells of a repetition share, in [0, 2^53), which every JSON reader holds exactly."""
    return int.from_bytes(_hash("path", study_seed, repetition)[:8], "big") >> 11


def _rank(study_seed: int, repetition: int, index: int) -> bytes:
    return _hash("order", study_seed, repetition, index)


def _hash(purpose: str, *numbers: int) -> bytes:
    return hashlib.sha256(f"crosswind {purpose} {' '.join(map(str, numbers))}".encode("ascii")).digest()


def _work_ns(cell: Cell) -> float:
    path, work = cell.parameters.path, cell.parameters.workload
    rtt_ns = path.rtt_ns + EXCHANGE_NS
    lost = 1 - float((1 - path.forward.loss) * (1 - path.reverse.loss))
    cost_ns = float(work.timeout_ns or 0) if work.transport == "udp" else RETRANSMISSION_NS + rtt_ns
    if work.kind == "echo":
        link_ns = _link_ns(cell, work.size_bytes or 0, "forward") + _link_ns(cell, work.size_bytes or 0, "reverse")
        return _echo_ns(work, rtt_ns, link_ns, lost, cost_ns)
    if work.kind == "transfer":
        if work.duration_ns is not None:
            return (work.duration_ns + 2 * rtt_ns) * (work.count or 1)
        size_bytes = work.size_bytes or 0
        segments = math.ceil(size_bytes / SEGMENT_BYTES)
        rounds = 2 + math.log2(1 + segments / 10)
        link_ns = _link_ns(cell, size_bytes, "forward" if work.direction == "upload" else "reverse")
        return (work.count or 1) * (rounds * rtt_ns + link_ns * work.connections + segments * lost * cost_ns / 4)
    if work.kind == "connect":
        return math.ceil((work.count or 1) / work.connections) * (rtt_ns + lost * 1e9)
    return PROGRAM_NS


def _echo_ns(work: WorkloadParameters, rtt_ns: float, link_ns: float, lost: float, cost_ns: float) -> float:
    messages = work.messages or 0
    if work.mode == "open":
        return messages / (work.rate_per_s or 1) * 1e9 + rtt_ns + (cost_ns if lost else 0)
    setup_ns = rtt_ns if work.connection == "new" and work.transport == "tcp" else 0
    return math.ceil(messages / work.connections) * (rtt_ns + link_ns + setup_ns + lost * cost_ns)


def _link_ns(cell: Cell, size_bytes: int, way: str) -> float:
    path = cell.parameters.path
    rate_bps = (path.forward if way == "forward" else path.reverse).rate_bps
    return size_bytes * 8e9 / min(rate_bps or FASTEST_BPS, FASTEST_BPS)
