"""Why a request failed. A page is not told; the browser tells its developers."""

import re
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

NETWORK = "network"
"""The outcome by which a page says that it does not know."""

_CODE = re.compile(r"net::(ERR_[A-Z0-9_]+(?:\.[A-Z0-9_]+)*)")
_MEANINGS: Mapping[tuple[str, str | None], str] = {
    ("http3", "ERR_CONNECTION_REFUSED"): "Chromium tried TCP: QUIC is disabled, by a policy or a flag",
    ("webtransport", "ERR_METHOD_NOT_SUPPORTED"): "the server speaks HTTP/3, but not WebTransport",
    ("webtransport-datagram", "ERR_METHOD_NOT_SUPPORTED"): "the server speaks HTTP/3, but not WebTransport",
    ("socketio-webtransport", "ERR_METHOD_NOT_SUPPORTED"): "the server speaks HTTP/3, but not WebTransport",
}
_OUTCOMES = (
    ("CERT", "certificate"),
    ("REFUSED", "refused"),
    # A datagram that is answered with "port unreachable".
    ("QUIC_PACKET_WRITE_ERROR", "refused"),
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


def explain(rows: Sequence[MutableMapping[str, Any]], said: Sequence[str], transport: str) -> None:
    """Replaces the outcome `network` of samples, in the order in which the browser spoke of them.

    Args: rows: samples. said: the messages; where there are fewer than failures, the last one holds for the rest.
    """
    codes = [found[1] for found in map(_CODE.search, said) if found]
    unknown = [row for row in rows if row["outcome"] == NETWORK]
    for index, row in enumerate(unknown):
        code = codes[min(index, len(codes) - 1)] if codes else None
        row["outcome"] = outcome(code)
        meaning = _MEANINGS.get((transport, code))
        because = f"{code or 'Chromium does not say why'}{f' ({meaning})' if meaning else ''}"
        row["error"] = f"{row['error']}: {because}"


def outcome(code: str | None) -> str:
    """The outcome (docs/result.md) that an error of Chromium's network stack is."""
    return next((outcome for part, outcome in _OUTCOMES if code and part in code), "error")
