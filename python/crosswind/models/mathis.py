"""Mathis's square-root law: what congestion avoidance gets out of a path that drops a packet now and then."""

import math

C_EVERY_SEGMENT = math.sqrt(3 / 2)
"""Periodic loss, one ACK for every segment."""
C_DELAYED_ACK = math.sqrt(3 / 4)
"""Periodic loss, one ACK for every second segment."""
VALID_LOSS = 0.01
"""Above about 1 % timeouts, which the law knows nothing of, decide."""

SOURCE = "Mathis, Semke, Mahdavi & Ott, Computer Communication Review 27(3), 1997"


def mathis(mss_bytes: float, rtt_s: float, loss: float, *, c: float = C_EVERY_SEGMENT) -> float:
    """Throughput, bit/s: 8 · MSS / RTT · C / sqrt(p).

    Args:   mss_bytes: payload of a full segment. rtt_s: round-trip time, s. loss: congestion events per packet, (0, 1].
            c: sqrt(3/2) for an ACK per segment, sqrt(3/4) for delayed ACKs.
    Raises: ValueError when an argument is not above 0, or loss is above 1: the law gives no number without loss.
    Source: SOURCE, equation 3.
    """
    if mss_bytes <= 0 or rtt_s <= 0 or not 0 < loss <= 1:
        raise ValueError(f"Mathis needs MSS, RTT and loss above 0, not {mss_bytes}, {rtt_s}, {loss}")
    return 8 * mss_bytes / rtt_s * c / math.sqrt(loss)


def valid(loss: float, congestion_control: str) -> list[str]:
    """Assumptions that do not hold, in words; empty when all do."""
    broken = []
    if loss > VALID_LOSS:
        broken.append(
            f"loss {loss:.3g} is above {VALID_LOSS:.0%}: there timeouts matter most, which the law leaves out"
        )
    if congestion_control != "reno":
        broken.append(f"the law describes Reno, not {congestion_control}")
    return broken
