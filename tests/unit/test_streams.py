"""Multiplex: which messages met another stream's recovery, and what it cost them, worked out by hand."""

from typing import Any

import polars as pl
import pytest

from crosswind.findings.pipeline import analyse
from records import MS, finished, record, run, table

MULTIPLEX = {"workload": {"kind": "multiplex", "transport": "websocket", "timeout_ns": 1000 * MS}}


def messages(*rows: tuple[int, int, int | None, int], connection: int = 0) -> pl.DataFrame:
    """Samples of (stream, sent ms, round trip ms, own drops); a round trip of None is a timeout."""
    sent = [at * MS for _, at, _, _ in rows]
    return table(
        len(rows),
        connection=[connection] * len(rows),
        intended_ns=sent,
        sent_ns=sent,
        received_ns=[None if rtt is None else (at + rtt) * MS for _, at, rtt, _ in rows],
        stream=[stream for stream, _, _, _ in rows],
        own_drops=[drops for _, _, _, drops in rows],
        sent_bytes=[200] * len(rows),
        received_bytes=[0 if rtt is None else 200 for _, _, rtt, _ in rows],
        outcome=["timeout" if rtt is None else "ok" for _, _, rtt, _ in rows],
    )


UNDISTURBED = [(stream, 1000 + 50 * index, 20 + index, 0) for index, stream in enumerate([0, 1, 0, 1, 0, 1, 0])]
"""Seven messages that nothing happens to: round trips of 20 to 26 ms, whose median is 23."""

RECOVERY = [
    (0, 0, 220, 1),  # loses a packet: in flight from 0 to 220
    (1, 10, 215, 0),  # held up until 225: 192.5 beyond 22.5
    (1, 215, 24, 0),  # sent before the end: met it, and was no slower than others; 1.5 beyond
    (0, 20, 205, 0),  # of the same stream: that is its own order, not another's
    (1, 220, 20, 0),  # sent when it was over
]


def cell_of(*frames: pl.DataFrame, ends: list[dict[str, Any]] | None = None, parameters: Any = MULTIPLEX) -> Any:
    ends = ends or [finished() for _ in frames]
    runs = [
        run(0, frame, repetition=index, parameters=parameters, end=end)
        for index, (frame, end) in enumerate(zip(frames, ends, strict=True))
    ]
    (cell,) = analyse(record(*runs)).cells
    return cell


def test_what_meets_a_recovery_is_compared_with_what_meets_none() -> None:
    # The late one (20) meets none: with the others a median of 22.5. That of the lossy stream itself is no reference.
    found = cell_of(messages(*RECOVERY, *UNDISTURBED)).estimates
    blocking = found["head_of_line"]
    assert (blocking.smallest, blocking.largest) == (1.5 * MS, (215 - 22.5) * MS)
    assert blocking.mean.n == 2
    assert blocking.mean.reason == "an interval of a mean needs 3 repetitions, there is 1: 2 more"
    # One of 11 messages without a loss met it and was beyond the fence of the eight: 24.25 + 1.5 x (24.25 - 20.75).
    assert found["blocked_share"].smallest == pytest.approx(1 / 11)
    assert found["blocked_share"].unit == "1"


def test_another_connection_is_not_held_up() -> None:
    lossy = messages((0, 0, 220, 1), connection=0)
    others = messages((1, 10, 215, 0), *UNDISTURBED, connection=1)
    found = cell_of(pl.concat([lossy, others])).estimates
    assert "head_of_line" not in found
    assert found["blocked_share"].largest == 0


def test_a_message_that_never_came_back_is_in_flight_until_its_timeout() -> None:
    lost = (0, 0, None, 1)
    met = [(1, 500, 23, 0), (1, 999, 23, 0)]
    found = cell_of(messages(lost, *met, *UNDISTURBED)).estimates
    assert (found["head_of_line"].mean.n, found["head_of_line"].largest) == (2, 0)
    # Nothing was completed.
    assert "completion" not in found


def test_without_a_ledger_or_a_reference_there_is_no_value() -> None:
    unknown = messages(*RECOVERY, *UNDISTURBED).with_columns(own_drops=pl.lit(None, dtype=pl.UInt32))
    few = messages(*RECOVERY, *UNDISTURBED[:3])
    for frame in (unknown, few):
        assert not {"head_of_line", "blocked_share"} & set(cell_of(frame).estimates)


def test_repetitions_share_their_reference_and_have_each_a_completion() -> None:
    cell = cell_of(messages(*RECOVERY), messages(*UNDISTURBED), messages(*UNDISTURBED))
    assert cell.estimates["head_of_line"].mean.n == 2
    completion = cell.estimates["completion"]
    # From 0 to 240, and from 1000 to 1300 + 26.
    assert (completion.smallest, completion.largest) == (240 * MS, 326 * MS)
    assert completion.mean.n == 3
    assert completion.mean.value == pytest.approx((240 + 2 * 326) / 3 * MS)
    assert completion.mean.method == "Student's t over repetitions"
    # Each repetition counts: one of four without a loss of its own was blocked in the first, none in the others.
    share = cell.estimates["blocked_share"].mean
    assert share.value == pytest.approx((1 / 4 + 0 + 0) / 3)
    # Student's t with two degrees of freedom would begin below 0: 1/12 - 4.3027 x 1/12.
    assert (share.low, share.high) == (0, pytest.approx((1 + 4.302653) / 12))


def test_one_repetition_is_not_enough_for_a_mean() -> None:
    completion = cell_of(messages(*UNDISTURBED)).estimates["completion"]
    assert (completion.mean.value, completion.mean.low) == (326 * MS, None)
    assert completion.mean.reason == "an interval of a mean needs 3 repetitions, there is 1: 2 more"


def test_multiplex_has_times_of_messages_too() -> None:
    found = cell_of(messages(*UNDISTURBED)).estimates
    assert found["rtt"].median.value == 23 * MS
    assert found["response"].median.value == 23 * MS
