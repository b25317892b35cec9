"""What the Python peers share: their options, their lines and their messages."""

import asyncio
import json
import os
import signal
import sys
from typing import Any

DEADLINE_S = 20
"""No wait of a peer is longer."""
PERIOD = bytes((place * 31 + 7) & 0xFF for place in range(256))


def options(**defaults: Any) -> dict[str, Any]:
    """The JSON object on the command line, over `defaults`; it has no other keys."""
    given = json.loads(sys.argv[1])
    unknown = given.keys() - defaults.keys()
    if unknown:
        sys.exit(f"error: unknown options {sorted(unknown)}")
    return {**defaults, **given}


def say(**fields: Any) -> None:
    """Prints one JSON line."""
    print(json.dumps(fields), flush=True)


def message(size: int, payload: str) -> bytes:
    """`size` bytes, and valid UTF-8 beyond ASCII if it is text."""
    if payload == "text":
        pattern = "é世🙂".encode()
        return pattern * (size // len(pattern)) + b"x" * (size % len(pattern))
    return (PERIOD * (size // 256 + 1))[:size]


def kill_self() -> None:
    """What no program can tidy up after."""
    os.kill(os.getpid(), signal.SIGKILL)


async def standard_input_closes() -> None:
    """Returns when whoever started this program is done with it."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
