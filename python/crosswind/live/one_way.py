"""Which way a probe was lost, where the server says in each answer how many it had received by then (as in RFC 5357).

Between two answered probes, so many were lost on the way there as the number of those missing at the server grew; the
others were lost on the way back. Of several that were lost in a row, it is known how many of them were lost each way,
not which. Probes that are lost when a connection ends, and those that no later answer tells of, are lost nobody knows
where.
"""

from dataclasses import dataclass

UNKNOWN, THERE, BACK = 0, 1, 2
"""What is known of a lost probe: where it was lost. An answered one is unknown too."""
WAYS = {THERE: "there", BACK: "back"}
"""Their names."""


@dataclass(frozen=True)
class Located:
    """Of a lost probe it is known now which way it was lost: THERE or BACK."""

    sequence: int
    way: int


@dataclass(frozen=True)
class Arrivals:
    """What an answer says of the probes before it.

    Attributes: connection: its number; another one counts anew. missing: of the probes that were sent on it, that of
        the answer included, so many had not arrived.
    """

    connection: int
    missing: int


class OneWay:
    """Tells the lost probes apart, by verdicts in the order of sending."""

    def __init__(self) -> None:
        # Nothing is missing when the first connection begins.
        self._last: Arrivals | None = Arrivals(0, 0)
        self._lost: list[int] = []

    def handle_lost(self, sequence: int) -> None:
        """A probe is lost."""
        self._lost.append(sequence)

    def handle_answered(self, arrivals: Arrivals | None) -> list[Located]:
        """A probe was answered. Returns: the lost ones of which more is known now."""
        lost, self._lost = self._lost, []
        before, self._last = self._last, arrivals
        if arrivals is None or not lost:
            return []
        if before is None or before.connection != arrivals.connection:
            # Nobody knows how many of them the connection before had still carried.
            return []
        there = min(max(0, arrivals.missing - before.missing), len(lost))
        return [Located(sequence, THERE if at < there else BACK) for at, sequence in enumerate(lost)]
