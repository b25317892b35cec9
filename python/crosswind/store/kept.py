"""What a run keeps beside its samples, by kind, and what that takes: bytes on the disk, and time.

The time is that of a repetition's end, by the machine's clock: working parts out, and writing tables. While a cell
runs, a thread of its own writes its packets; what that takes is not known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from crosswind.store.result import RepetitionResult

PACKETS = "packets"
PARTS = "parts"
CAPTURES = "captures"
_FILES = {
    "packets": PACKETS,
    "spent": PARTS,
    "pieces": PARTS,
    "connections": PARTS,
    "connection_parts": PARTS,
    "connection_pieces": PARTS,
    "tcp": PARTS,
}
KINDS = (PARTS, PACKETS, CAPTURES)


@dataclass(frozen=True)
class Kept:
    """What one kind takes of a run. Attributes: time_ns: after the measurement; 0 of captures, which take none then."""

    kind: str
    size_bytes: int
    time_ns: int


def kind_of(file: str) -> str | None:
    """The kind that a file of a repetition belongs to; None for those that every run has."""
    path = PurePath(file)
    return CAPTURES if path.suffix == ".pcapng" else _FILES.get(path.stem) if len(path.parts) == 1 else None


def kept_by(results: Iterable[RepetitionResult]) -> list[Kept]:
    """What each kind that they have takes of some repetitions."""
    sizes: dict[str, int] = {}
    times: dict[str, int] = {}
    for result in results:
        for name, checksum in result.files.items():
            if (kind := kind_of(name)) is not None:
                sizes[kind] = sizes.get(kind, 0) + checksum.size_bytes
        for kind, time_ns in result.keeping_ns.items():
            times[kind] = times.get(kind, 0) + time_ns
    return [Kept(kind, sizes[kind], times.get(kind, 0)) for kind in KINDS if kind in sizes]
