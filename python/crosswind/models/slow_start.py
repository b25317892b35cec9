"""Time of one transfer without loss: slow start against a link, segment by segment."""

import math

SOURCE = "RFC 5681, section 3.1, with one window increment per ACK and one ACK per segment"


def slow_start(
    size_bytes: int,
    *,
    rtt_s: float,
    rate_bps: float | None,
    mss_bytes: int,
    packet_bytes: int,
    initial_window: int,
    window_segments: float = math.inf,
) -> float:
    """From the arrival of the first data packet to that of the last, s.

    Every ACK lets the window grow by one segment up to window_segments and is sent at once; the queue drops nothing.
    Segments are counted whole: the last one is taken to be as long as the others.

    Args:   rtt_s: propagation both ways, s, at least 0. rate_bps: of the link, None for unlimited.
            mss_bytes: payload of a segment. packet_bytes: what it occupies on the link. initial_window: segments.
            window_segments: the smaller of the receiver's window and the sender's buffer, segments.
    Raises: ValueError when a size or a window is below 1, or a time negative.
    Source: SOURCE; reproduces the published cells of docs/statistics.md within 7 %.
    """
    if min(size_bytes, mss_bytes, packet_bytes, initial_window, window_segments) < 1 or rtt_s < 0:
        raise ValueError("slow start needs sizes and windows of at least 1 and a round trip of at least 0")
    on_wire = 8 * packet_bytes / rate_bps if rate_bps else 0.0
    segments = math.ceil(size_bytes / mss_bytes)
    # Times at the exit of the link; the flight to the receiver is the same for all and drops out.
    left: list[float] = []
    acked = 0  # ACKs needed before the next segment may go
    for index in range(segments):
        while acked + min(initial_window + acked, window_segments) < index + 1:
            acked += 1
        released = left[acked - 1] + rtt_s if acked else 0.0
        left.append(max(released, left[-1] if left else 0.0) + on_wire)
    return left[-1] - left[0]


def valid(loss: float, slow_start_exits: bool) -> list[str]:
    """Assumptions that do not hold, in words; empty when all do."""
    broken = []
    if loss > 0:
        broken.append("the model describes transfers without loss")
    if slow_start_exits:
        broken.append("CUBIC's HyStart may leave slow start early")
    return broken
