"""Why a request failed. A page is not told; the browser tells its developers."""

import re
from collections.abc import MutableMapping, Sequence
from typing import Any

NETWORK = "network"
"""The outcome by which a page says that it does not know."""

_CODE = re.compile(r"net::(ERR_[A-Z0-9_.]+)")
_OUTCOMES = (
    ("CERT", "certificate"),
    ("REFUSED", "refused"),
    ("TIMED_OUT", "timeout"),
    ("NETWORK_IDLE_TIMEOUT", "timeout"),
    ("HANDSHAKE_TIMEOUT", "timeout"),
    ("RESET", "reset"),
    ("ABORTED", "reset"),
    ("CLOSED", "closed"),
    ("EMPTY_RESPONSE", "closed"),
    ("PROTOCOL", "protocol"),
    ("INVALID", "protocol"),
)


def explain(rows: Sequence[MutableMapping[str, Any]], said: Sequence[str]) -> None:
    """Replaces the outcome `network` of samples, in the order of which the browser spoke of them.

    Args: rows: samples. said: the messages; where there are fewer than failures, the last one holds for the rest.
    """
    codes = [found[1] for found in map(_CODE.search, said) if found]
    unknown = [row for row in rows if row["outcome"] == NETWORK]
    for index, row in enumerate(unknown):
        code = codes[min(index, len(codes) - 1)] if codes else None
        row["outcome"] = outcome(code)
        row["error"] = f"{row['error']}: {code or 'Chromium does not say why'}"


def outcome(code: str | None) -> str:
    """The outcome (docs/result.md) that an error of Chromium's network stack is."""
    return next((outcome for part, outcome in _OUTCOMES if code and part in code), "error")
