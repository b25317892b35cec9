"""What a disk does to files, and whether repetitions are read as before."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from crosswind.cell.record import CellRun


def flip(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]


def truncate(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def append(content: bytes, draw: random.Random) -> bytes:
    return content + draw.randbytes(draw.choice([1, 16, 4096]))


def zero(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(max(1, len(content) - 64))
    return content[:at] + bytes(min(64, len(content) - at)) + content[at + 64 :]


def repeat(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content))
    return content[:at] + content[max(0, at - 32) :]


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [*[flip] * 12, *[truncate] * 4, *[append] * 3, *[zero] * 4]
MUTATIONS += [*[repeat] * 2, lambda _content, _draw: b""]


def mutated(file: Path, seed: int) -> Iterator[bytes]:
    """Every mutation of a file in turn, which is whole again after the last one."""
    content, draw = file.read_bytes(), random.Random(seed)
    for mutate in MUTATIONS:
        changed = mutate(content, draw)
        if changed != content:
            file.write_bytes(changed)
            yield changed
    file.write_bytes(content)


def same(found: CellRun, expected: CellRun) -> bool:
    tables = found.samples.equals(expected.samples) and found.objects.equals(expected.objects)
    return tables and (found.finished, found.client_out) == (expected.finished, expected.client_out)
