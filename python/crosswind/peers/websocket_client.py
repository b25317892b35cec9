"""Sends messages with Python's websocket-client, and prints a profile by function as JSON.

    python -m crosswind.peers.websocket_client ws://127.0.0.1:8080/ --size 10000000 --messages 5 [--slow-mask]

Only sending is timed and profiled; the server's echo of each message is awaited outside of it.

A client masks its messages (RFC 6455, section 5.3). Up to version 1.0.1 websocket-client masked one byte at a time in
Python, unless numpy or wsaccel was installed; since 1.1.0 it computes one XOR of two large integers. `--slow-mask`
restores a loop of the old kind, to show its cost.
"""

from __future__ import annotations

import argparse
import array
import cProfile
import importlib
import importlib.metadata
import importlib.util
import json
import sys
import time
from pathlib import PurePath
from types import CodeType
from typing import Any, NoReturn

LISTED_FUNCTIONS = 12


def main() -> None:
    """Run the program: prints one JSON object."""
    arguments = _parser().parse_args()
    websocket = _websocket()
    if arguments.slow_mask:
        _slow_down(websocket)
    try:
        print(json.dumps(_measure(websocket, arguments.url, arguments.size, arguments.messages)))
    except (OSError, ValueError, websocket.WebSocketException) as error:
        _fail(1, f"{arguments.url}: {error}", "is a WebSocket server listening there, one that echoes?")


def mask_by_octet(key: array.array[int], data: array.array[int]) -> bytes:
    """Mask as in RFC 6455, section 5.3: octet i of the data XOR octet i mod 4 of the key."""
    transformed = array.array("B", bytes(len(data)))
    for i, octet in enumerate(data):
        transformed[i] = octet ^ key[i % 4]
    return transformed.tobytes()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Sends messages with Python's websocket-client and profiles it.")
    parser.add_argument("url", help="ws://host:port/path of a server that echoes")
    parser.add_argument("--size", type=_positive, default=10_000_000, help="bytes of a message (10000000)")
    parser.add_argument("--messages", type=_positive, default=1, help="how many (1)")
    parser.add_argument("--slow-mask", action="store_true", help="mask one byte at a time, as versions up to 1.0.1 did")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _websocket() -> Any:
    try:
        websocket = importlib.import_module("websocket")
    except ImportError:
        _fail(2, "Python's websocket-client is not installed", "pip install websocket-client")
    if not hasattr(websocket, "create_connection"):
        _fail(2, "the module `websocket` is another package's", "pip uninstall websocket; pip install websocket-client")
    return websocket


def _slow_down(websocket: Any) -> None:
    # Its mask function is not part of its interface.
    frames = getattr(websocket, "_abnf", None)
    if not hasattr(frames, "_mask"):
        _fail(2, "this version of websocket-client masks elsewhere", "pip install 'websocket-client>=1.1,<2'")
    vars(frames)["_mask"] = mask_by_octet


def _measure(websocket: Any, url: str, size: int, messages: int) -> dict[str, object]:
    message = bytes(size)
    profile = cProfile.Profile()
    elapsed_ns = 0
    connection = websocket.create_connection(url, timeout=60, enable_multithread=False)
    try:
        for _ in range(messages):
            profile.enable()
            began = time.perf_counter_ns()
            connection.send(message, opcode=websocket.ABNF.OPCODE_BINARY)
            elapsed_ns += time.perf_counter_ns() - began
            profile.disable()
            answer = connection.recv()
            if len(answer) != size:
                raise ValueError(f"{len(answer)} bytes were sent back of {size}")
    finally:
        connection.close()
    accelerated = " with wsaccel" if importlib.util.find_spec("wsaccel") is not None else ""
    return {
        "seconds": elapsed_ns / 1e9,
        "messages": messages,
        "functions": _functions(profile),
        "version": importlib.metadata.version("websocket-client") + accelerated,
    }


def _functions(profile: cProfile.Profile) -> list[dict[str, object]]:
    """Return the functions with the most own time, the most first."""
    entries = sorted(profile.getstats(), key=lambda entry: -entry.inlinetime)
    return [
        {
            "name": _name(entry.code),
            "calls": entry.callcount,
            "own_s": entry.inlinetime,
        }
        for entry in entries[:LISTED_FUNCTIONS]
    ]


def _name(code: CodeType | str) -> str:
    if isinstance(code, str):
        return code.strip("<>")  # a built-in: "<method 'send' of '_socket.socket' objects>"
    return f"{PurePath(code.co_filename).name}:{code.co_firstlineno}({code.co_name})"


def _fail(status: int, message: str, hint: str) -> NoReturn:
    print(f"error: {message}\nhint: {hint}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
