"""A lost probe's direction, from the server's count of received probes in each answer (as in RFC 5357).

Between two answered probes, the forward losses are the growth in probes missing at the server; the other losses are
reverse ones. Several lost in a row have a known number in each direction, but no known order. Probes lost with their
connection, or without a later answer, have no known direction.
"""

from dataclasses import dataclass

UNKNOWN, THERE, BACK = 0, 1, 2
"""A lost probe's direction. An answered one is unknown too."""
WAYS = {THERE: "there", BACK: "back"}
"""Their names."""


@dataclass(frozen=True)
class Located:
    """A lost probe's direction, once known: THERE or BACK."""

    sequence: int
    way: int


@dataclass(frozen=True)
class Arrivals:
    """An answer's report on the probes before it.

    Attributes: connection: its number; each one counts anew. missing: probes sent on it and not yet arrived, up to the
        answered one.
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
        """Handles an answered probe. Returns: lost ones located by it."""
        lost, self._lost = self._lost, []
        before, self._last = self._last, arrivals
        if arrivals is None or not lost:
            return []
        if before is None or before.connection != arrivals.connection:
            # Nobody knows how many of them the connection before had still carried.
            return []
        there = min(max(0, arrivals.missing - before.missing), len(lost))
        return [Located(sequence, THERE if at < there else BACK) for at, sequence in enumerate(lost)]
