"""Delays that people asked about in public, not knowing why: what `crosswind explain` says of each, and how long it is.

The times follow from round trips and the kernel's constants. A sentence has three digits of each, the test all of them.
"""

from dataclasses import dataclass, field
from statistics import median

import pytest

from crosswind.execution.virtual import virtual
from crosswind.explained import Explained, Piece
from crosswind.report.text.explained import exchange_sentence
from linux.lab import Object
from virtual.lab import ADDED_NS

MS = 1_000_000


@dataclass(frozen=True)
class Puzzle:
    """A path, what runs on it, the exchange in question, and what is to be said of it. takes: ms, to some ns."""

    says: str
    takes: float
    path: Object
    workload: Object
    host: Object = field(default_factory=dict)
    exchange: int = 0


def tcp(kind: str, **settings: object) -> Object:
    return {"transport": "tcp", "kind": kind, **settings}


HEADER_AND_BODY: Object = {"transport": "h2c", "kind": "echo", "messages": 10}
"""Two writes for each message, as a client makes that sends the header of a request by itself."""

NAGLE = (
    "Exchange 9 took {} ms: it waited {} ms until what was sent before was acknowledged (Nagle's algorithm); the "
    "receiver delayed acknowledgements that it waited for by 41 ms."
)
HANDSHAKE = "Exchange 0 took {}: TCP's handshake took {} ms"
WINDOW = "; it waited {} ms for the congestion window."
ONCE_A_MINUTE = tcp("echo", messages=2, size="300kB", mode="open", rate=1 / 60)

PUZZLES = {
    # Two round trips and the delay of an acknowledgement, 40 ms and the tick in which it began: over another path the
    # delay stays, by which the two are told apart.
    "40 ms for a second small write": Puzzle(
        NAGLE.format(61, 10), 61, {"delay": "5ms"}, HEADER_AND_BODY, {"nodelay": False}, 9
    ),
    "the same far away": Puzzle(NAGLE.format(241, 100), 241, {"delay": "50ms"}, HEADER_AND_BODY, {"nodelay": False}, 9),
    "the same with TCP_NODELAY": Puzzle(
        "Exchange 9 took 10 ms, which is what the path takes.", 10, {"delay": "5ms"}, HEADER_AND_BODY, exchange=9
    ),
    # RFC 6928: ten segments, of 1448 bytes beside timestamps.
    "14 kB": Puzzle(HANDSHAKE.format("150 ms", 100) + ".", 150, {"delay": "50ms"}, tcp("transfer", size="14480B")),
    "14 kB and a byte": Puzzle(
        HANDSHAKE.format("250 ms", 100) + WINDOW.format(100), 250, {"delay": "50ms"}, tcp("transfer", size="14481B")
    ),
    "43 kB": Puzzle(
        HANDSHAKE.format("250 ms", 100) + WINDOW.format(100), 250, {"delay": "50ms"}, tcp("transfer", size="43440B")
    ),
    "43 kB and a byte": Puzzle(
        HANDSHAKE.format("350 ms", 100) + WINDOW.format(200), 350, {"delay": "50ms"}, tcp("transfer", size="43441B")
    ),
    # A buffer that is set is doubled, half of it is window, and the kernel lets it grow no more: what does not fit
    # takes another round trip of 190 ms, fourteen times here, after the four in which the window grew to it.
    "a receive buffer that was set": Puzzle(
        "Exchange 0 took 3.71 s: TCP's handshake took 190 ms; it waited 760 ms for the congestion window; it waited "
        "2.66 s for the receiver's window.",
        190 + 4 * 190 + 14 * 190 + 95, {"delay": "95ms"}, tcp("transfer", size="4MB"), {"receive_buffer": "208KiB"},
    ),
    # 300 kB take four round trips more each way in a window of ten segments; in a window that stayed large, none.
    "slow again after a pause": Puzzle(
        "Exchange 1 took 900 ms: it waited 800 ms for the congestion window, which an idle time had shrunk.",
        900, {"delay": "50ms"}, ONCE_A_MINUTE, exchange=1,
    ),
    "the same without a restart": Puzzle(
        "Exchange 1 took 100 ms instead of 500 ms, the median of its repetition, which is what the path takes.",
        100, {"delay": "50ms"}, ONCE_A_MINUTE, {"slow_start_after_idle": False}, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUZZLES)
def test_a_puzzle_is_explained(name: str) -> None:
    puzzle = PUZZLES[name]
    cell = virtual(puzzle.path, workload=puzzle.workload, host={"congestion_control": "cubic", **puzzle.host})
    row = cell.spent.filter(exchange=puzzle.exchange).drop("exchange").row(0, named=True)
    whole_ns = row.pop("whole_ns")
    pieces = cell.pieces.filter(exchange=puzzle.exchange).drop("exchange")
    explained = Explained(
        key="", cell=0, repetition=0, levels={}, exchange=puzzle.exchange, whole_ns=whole_ns,
        usual_ns=median(cell.spent["whole_ns"].to_list()),
        parts={name.removesuffix("_ns"): ns for name, ns in row.items() if ns},
        pieces=[Piece(**piece) for piece in pieces.iter_rows(named=True)],
    )  # fmt: skip
    assert exchange_sentence(explained) == puzzle.says
    assert abs(whole_ns - puzzle.takes * MS) <= ADDED_NS
