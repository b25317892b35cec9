"""Packets lost or held back by design: what tells a repetition from its cell's plain ones."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

Packet = tuple[str, int]
"""A packet: its direction, and its index there, from 0."""

_EDGE = 2
"""A direction's first and last packets, disturbed in every sample: a handshake's and an end's cost the most."""


class Disturbed(NamedTuple):
    """A repetition's packets. Attributes: packets: one or two. hold_ns: how long they are held back; None: lost."""

    packets: tuple[Packet, ...]
    hold_ns: int | None = None

    @property
    def word(self) -> str:
        """What becomes of them."""
        return "lost" if self.hold_ns is None else "held"

    @property
    def text(self) -> str:
        """As "one packet lost"."""
        return f"{'one packet' if len(self.packets) == 1 else 'two packets'} {self.word}"

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The keys of each direction."""
        by: dict[str, list[int]] = {}
        for direction, index in self.packets:
            by.setdefault(direction, []).append(index)
        if self.hold_ns is None:
            return {direction: {"lose": indexes} for direction, indexes in by.items()}
        return {direction: {"hold": indexes, "hold_time_ns": self.hold_ns} for direction, indexes in by.items()}

    def as_json(self) -> dict[str, Any]:
        """The stored form."""
        packets = {"packets": [list(packet) for packet in self.packets]}
        return packets if self.hold_ns is None else {**packets, "hold_ns": self.hold_ns}

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """Reads the stored form. Raises: KeyError, ValueError."""
        if stored is None:
            return None
        packets = tuple((str(direction), int(index)) for direction, index in stored["packets"])
        return cls(packets, stored.get("hold_ns"))

    def __str__(self) -> str:
        """As in exported samples: "forward 3"."""
        return ", ".join(f"{direction} {index}" for direction, index in self.packets)


def sampled(packets: Mapping[str, int], most: int) -> list[Packet]:
    """The packets to disturb, by direction and index: all, or about as many as `most`, shared out to the directions.

    A quarter of a direction's share are its first packets and a quarter its last, at least two each; the others stand
    at equal distances.
    """
    share = min(1.0, most / max(sum(packets.values()), 1))
    return [
        (direction, index)
        for direction, count in packets.items()
        for index in _indexes(count, min(count, max(2 * _EDGE + 1, round(count * share))))
    ]


def _indexes(count: int, taken: int) -> Iterator[int]:
    edge = 0 if taken == count else max(_EDGE, taken // 4)
    between = taken - 2 * edge
    yield from range(edge)
    for at in range(between):
        yield edge + at * (count - 2 * edge) // between
    yield from range(count - edge, count)
