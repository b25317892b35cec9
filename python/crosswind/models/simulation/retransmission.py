"""How long a simulated sender waits for an acknowledgement before it retransmits: RFC 6298, as Linux has it."""

_LONGEST_S = 120.0


class RetransmissionTimeout:
    """The timeout from the round trips so far, doubled with each timeout that follows another.

    Attributes: srtt_s: smoothed round trip. least_rtt_s: the shortest one. backoff: timeouts in a row.
    """

    def __init__(self, handshake_s: float, min_rto_s: float) -> None:
        self._min_rto_s = min_rto_s
        self._variation_s = handshake_s / 2
        self.srtt_s = self.least_rtt_s = handshake_s
        self.backoff = 0

    def measure(self, rtt_s: float) -> None:
        """Takes in a round trip of a segment that was sent once."""
        self.least_rtt_s = min(self.least_rtt_s, rtt_s)
        self._variation_s += (abs(rtt_s - self.srtt_s) - self._variation_s) / 4
        self.srtt_s += (rtt_s - self.srtt_s) / 8

    def seconds(self) -> float:
        """The timeout now."""
        least_s, varied_s = self._min_rto_s, 4 * self._variation_s
        timeout_s = self.srtt_s + (varied_s if varied_s > least_s else least_s)
        return float(min(timeout_s * 2**self.backoff, _LONGEST_S))

    def expected_wait_s(self, failure: float) -> float:
        """Of the timeouts that follow this one, each with the probability `failure` after the one before."""
        expected_s, reached = 0.0, failure
        timeout_s = self.seconds()
        while timeout_s < _LONGEST_S and reached > 0:
            expected_s += reached * timeout_s
            reached *= failure
            timeout_s = min(2 * timeout_s, _LONGEST_S)
        return expected_s + reached * timeout_s / (1 - failure)
