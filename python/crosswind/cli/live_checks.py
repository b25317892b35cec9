"""Checks for `crosswind live`, before anything is sent."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosswind.errors import UsageError
from crosswind.text.units import UnitError, format_duration, parse_duration, parse_size

if TYPE_CHECKING:
    from crosswind.live.goodput import TransferAmount

_MILLISECOND_NS = 10**6
_SHORTEST_INTERVAL_NS = 10 * _MILLISECOND_NS
_SHORTEST_INTERVAL_OF_ROOT_NS = 1 * _MILLISECOND_NS
_LONGEST_NS = 24 * 3600 * 10**9
_TIMEOUT_NS = 2 * 10**9
_TCP_TIMEOUT_NS = 990 * _MILLISECOND_NS
"""After 1 s the kernel sends its SYN again (crosswind.live.tcp_connect)."""
_LONGEST_TRANSFER_NS = 60 * 10**9
_LARGEST_TRANSFER_BYTES = 10**10


def check_times(interval_ns: int, duration_ns: int | None, window_ns: int) -> None:
    """Raises: UsageError for too short or too long times."""
    least_ns = _SHORTEST_INTERVAL_OF_ROOT_NS if os.geteuid() == 0 else _SHORTEST_INTERVAL_NS
    if not least_ns <= interval_ns <= _LONGEST_NS:
        hint = f"at least {format_duration(least_ns)}, so that probes load no network"
        raise UsageError(f"--interval {format_duration(interval_ns)} is too short or too long", hint=hint)
    if duration_ns is not None and duration_ns < interval_ns:
        raise UsageError(
            f"--duration {format_duration(duration_ns)} is shorter than --interval",
            hint=f"a probe is sent every {format_duration(interval_ns)}",
        )
    if window_ns < interval_ns:
        raise UsageError(
            f"--window {format_duration(window_ns)} is shorter than --interval",
            hint=f"a probe is sent every {format_duration(interval_ns)}",
        )


def checked_timeout(given_ns: int | None, *, is_tcp: bool) -> int:
    """When a probe counts as lost, ns. Args: is_tcp: whether it is a SYN. Raises: UsageError."""
    most_ns = _TCP_TIMEOUT_NS if is_tcp else _LONGEST_NS
    if given_ns is None:
        return _TCP_TIMEOUT_NS if is_tcp else _TIMEOUT_NS
    if not 0 < given_ns <= most_ns:
        why = "after 1s the kernel sends its SYN again" if is_tcp else "at most 24h"
        raise UsageError(f"--timeout {format_duration(given_ns)} is too short or too long", hint=f"more than 0; {why}")
    return given_ns


def check_transport(name: str) -> None:
    """Raises: UsageError for an unknown transport, or one without message connections."""
    from crosswind.catalog import catalog
    from crosswind.errors import did_you_mean

    known = {transport.name: transport for transport in catalog().transports.values()}
    if name not in known:
        raise UsageError(f"--transport: there is no transport {name!r}", hint=did_you_mean(name, list(known)))
    if known[name].streams == "per-message":
        can = ", ".join(transport.name for transport in known.values() if transport.streams != "per-message")
        raise UsageError(f"--transport {name}: each message is a separate request", hint=f"one of {can}")


def check_writable(path: Path) -> None:
    """Raises: UsageError now: hours of probes should not end with an unwritable file."""
    if path == Path("-"):
        raise UsageError("--html -: standard output has the lines", hint="give the name of a file")
    place = next(folder for folder in (path, *path.resolve().parents) if folder.exists())
    if not os.access(place, os.W_OK) or (place != path and not place.is_dir()):
        raise UsageError(f"--html {path}: cannot be written", hint="name a file in a directory that you may write")


def read_amount(_context: click.Context, _option: click.Parameter, text: str | None) -> "TransferAmount | None":
    """How much `--probe` transfers each way, as a time or a size. Raises: UsageError."""
    from crosswind.live.goodput import TransferAmount

    if text is None:
        return None
    amount = None
    # A number alone might be seconds, and would be bytes.
    for name, parse in (("duration_ns", parse_duration), ("size_bytes", parse_size)):
        if text.strip().isdecimal():
            break
        try:
            amount = TransferAmount(**{"duration_ns": None, "size_bytes": None, name: parse(text)})
            break
        except UnitError:
            continue
    if amount is None:
        raise UsageError(f"--probe {text} is neither a time nor a size", hint="as 5s or 20MB; alone it is 5s")
    duration_ns, size_bytes = amount.duration_ns, amount.size_bytes
    if duration_ns is not None and not 10 * _MILLISECOND_NS <= duration_ns <= _LONGEST_TRANSFER_NS:
        raise UsageError(f"--probe {text} is too short or too long", hint="from 10ms to 60s in each direction")
    if size_bytes is not None and not 0 < size_bytes <= _LARGEST_TRANSFER_BYTES:
        raise UsageError(f"--probe {text} is too small or too large", hint="up to 10GB in each direction")
    return amount
