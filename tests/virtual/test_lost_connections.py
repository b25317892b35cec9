"""Who notices the end of a path when: TCP by its retransmissions or probes, QUIC by its idle timeout."""

import pytest

from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun

RTT_NS = ms(20)
LATE = 1 / 8
"""By how much of its length a timer of the kernel is late at most: a level of its wheel has an eighth of its start."""


def after_the_path_ends(cells: VirtualCells, workload: Object, **host: object) -> VirtualRun:
    """A cell whose path delivers nothing from 1 s on."""
    way = {"delay_ns": RTT_NS // 2}
    path: Object = {
        "forward": way,
        "reverse": way,
        "changes": [{"start_ns": ms(1000), "forward": {"loss": 1.0}, "reverse": {"loss": 1.0}}],
    }
    return cells.run({"timeout_ns": ms(3_000_000), **workload}, host=host, deadline_ns=ms(30_000_000), **path)


def first_failure_ns(ran: VirtualRun) -> tuple[str, int]:
    """How the first exchange that failed ended, and how long its client did not know."""
    row = ran.samples().drop_nulls("failed_ns").row(0, named=True)
    return row["outcome"], row["failed_ns"] - row["sent_ns"]


ECHO = {"kind": "echo", "messages": 52}
"""One round trip each: two are left when the path ends, of which the first tells."""


@pytest.mark.parametrize("retries", [3, 6])
def test_tcp_ends_a_connection_after_its_retransmissions(cells: VirtualCells, retries: int) -> None:
    outcome, after_ns = first_failure_ns(after_the_path_ends(cells, {**ECHO, "transport": "tcp"}, tcp_retries2=retries))
    assert outcome == "reset"
    # The tail loss probe leaves first; each timeout after it is twice as long as the one before. The last ends it.
    limit_ns = ms(200) * (2 ** (retries + 1) - 1)
    assert limit_ns < after_ns <= 2 * limit_ns


def test_the_user_timeout_ends_a_connection_whose_data_stay_unacknowledged(cells: VirtualCells) -> None:
    ran = after_the_path_ends(cells, {**ECHO, "transport": "websocket"}, tcp_user_timeout_ns=ms(10_000))
    outcome, after_ns = first_failure_ns(ran)
    assert outcome == "reset"
    assert ms(10_000) <= after_ns <= ms(10_000) * (1 + LATE)


@pytest.mark.parametrize("transport", ["quic", "http3"])
def test_the_idle_timeout_ends_a_quic_connection(cells: VirtualCells, transport: str) -> None:
    ran = after_the_path_ends(cells, {**ECHO, "transport": transport}, quic_idle_timeout_ns=ms(5_000))
    outcome, after_ns = first_failure_ns(ran)
    assert outcome == "reset"
    # Counted from what was sent first after the last packet that arrived (RFC 9000, section 10.1).
    assert ms(5_000) <= after_ns <= ms(5_000) + RTT_NS


def test_messages_after_the_end_of_a_quiet_quic_connection_are_lost_and_keep_alives_prevent_that(
    cells: VirtualCells,
) -> None:
    workload = {"kind": "echo", "transport": "quic", "mode": "open", "rate_per_s": 0.5, "messages": 4}
    path: Object = {"forward": {"delay_ns": RTT_NS // 2}, "reverse": {"delay_ns": RTT_NS // 2}}
    idle = {"quic_idle_timeout_ns": ms(1000)}
    assert cells.run(workload, host=idle, **path).samples()["outcome"].to_list().count("ok") == 1
    kept = cells.run(workload, host={**idle, "quic_keep_alive_ns": ms(300)}, **path)
    assert set(kept.samples()["outcome"]) == {"ok"}


DOWNLOAD = {"kind": "transfer", "transport": "tcp", "direction": "download", "size_bytes": 1_000_000}


def test_keep_alive_tells_a_receiver_and_nothing_else_does(cells: VirtualCells) -> None:
    slow = {"rate_bps": 1_000_000, "delay_ns": RTT_NS // 2}
    changes = [{"start_ns": ms(2000), "forward": {"loss": 1.0}, "reverse": {"loss": 1.0}}]

    def outcome(**host: object) -> tuple[str, int]:
        workload = {**DOWNLOAD, "timeout_ns": ms(300_000)}
        path: Object = {"forward": slow, "reverse": slow, "changes": changes}
        row = cells.run(workload, host=host, deadline_ns=ms(30_000_000), **path).samples().row(0, named=True)
        return row["outcome"], row["failed_ns"] - row["received_ns"]

    ended, after_ns = outcome()
    assert ended == "timeout"
    assert ms(300_000) <= after_ns <= ms(300_000) * (1 + LATE)
    ended, after_ns = outcome(tcp_keep_alive_ns=ms(10_000))
    # Ten seconds idle, then nine probes.
    assert ended == "reset"
    assert ms(100_000) <= after_ns <= ms(100_000) * (1 + LATE)
