"""DevTools' messages about one page, and its events (docs/peers.md). Its times are CLOCK_MONOTONIC."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crosswind.peers.chromium.events import DevtoolsEvent, outcome
from crosswind.peers.chromium.job import HTTP_VERSIONS, SECURE

_NAMED = re.compile(r"\?(script|image)=(\d+)$")
_CODE = re.compile(r"net::(\S+)")
_TRANSPORTS = {
    (protocol, "https" if transport in SECURE else "http"): transport for transport, protocol in HTTP_VERSIONS.items()
}

MILESTONES: Mapping[str, str] = {
    "Page.domContentEventFired": "dom_content_loaded_ms",
    "Page.loadEventFired": "load_event_ms",
    "firstContentfulPaint": "first_contentful_paint_ms",
}
"""The browser's own load metrics: DevTools' event name, and the key in the metrics file."""


@dataclass
class Loaded:
    """One request. Attributes: queued_s: when it was known to be needed. timing: DevTools' ResourceTiming."""

    url: str
    queued_s: float
    response: Mapping[str, Any] | None = None
    bytes: int = 0
    received_s: float | None = None
    failure: str | None = None

    @property
    def timing(self) -> Mapping[str, float]:
        """When its steps were, in milliseconds after `requestTime`; empty without an answer."""
        return (self.response or {}).get("timing") or {}

    @property
    def connection(self) -> int:
        """The browser's number for its connection; 0 without."""
        return int((self.response or {}).get("connectionId", 0))

    @property
    def cut(self) -> str | None:
        """Why its body is cut although the browser calls it whole: it stops reading when it finds no image."""
        headers = {name.lower(): text for name, text in (self.response or {}).get("headers", {}).items()}
        announced = headers.get("content-length", "")
        if self.received_s is None or not announced.isdigit() or int(announced) == self.bytes:
            return None
        return f"the browser read {self.bytes} of its {announced} bytes"

    @property
    def name(self) -> str:
        """Its name in the page: `html`, `script 1`, `image 3`."""
        named = _NAMED.search(self.url)
        return f"{named[1]} {named[2]}" if named else "html"

    @property
    def problem(self) -> str | None:
        """Its error, if it ended with one."""
        if self.failure is not None or self.response is None or self.response["status"] == 200:
            return self.failure or self.cut
        return f"the server answered {self.response['status']}"

    @property
    def outcome(self) -> str:
        """How it ended (docs/result.md)."""
        if self.failure is not None:
            return outcome(match[1] if (match := _CODE.search(self.failure)) else None)
        if self.received_s is None:
            return "timeout"
        answered = self.response is not None and self.response["status"] == 200
        return "ok" if answered and self.cut is None else "protocol"


@dataclass
class Loading:
    """A page, built from DevTools' events. Attributes: milestones_ms: since its beginning."""

    requests: dict[str, Loaded] = field(default_factory=dict)
    milestones_ms: dict[str, float] = field(default_factory=dict)

    def handle(self, name: str, event: Mapping[str, Any]) -> None:
        """Takes an event from the domain Network or Page."""
        if name == "Network.requestWillBeSent":
            if event["request"]["url"].startswith("http"):
                self.requests[event["requestId"]] = Loaded(event["request"]["url"], event["timestamp"])
            return
        if name.startswith("Page."):
            self._note(MILESTONES.get(event.get("name", name)), event["timestamp"])
            return
        request = self.requests.get(event["requestId"])
        if request is None:
            return
        if name == "Network.responseReceived":
            request.response = event["response"]
        elif name == "Network.dataReceived":
            request.bytes += event["dataLength"]
        elif name == "Network.loadingFinished":
            request.received_s = event["timestamp"]
        elif name == "Network.loadingFailed":
            request.failure = event["errorText"]

    def _note(self, milestone: str | None, at_s: float) -> None:
        # The previous, stopped page's may come late.
        if milestone is not None and self.requests and at_s >= self.began_s:
            self.milestones_ms[milestone] = round((at_s - self.began_s) * 1e3, 3)

    @property
    def began_s(self) -> float:
        """When the navigation began."""
        return next(iter(self.requests.values())).queued_s

    @property
    def is_whole(self) -> bool:
        """Whether the page and everything named in it is there, or failed."""
        return MILESTONES["Page.loadEventFired"] in self.milestones_ms and all(
            request.received_s is not None or request.failure is not None for request in self.requests.values()
        )

    @property
    def is_painted(self) -> bool:
        """Whether any of it was shown."""
        return MILESTONES["firstContentfulPaint"] in self.milestones_ms

    def events(self, page: int, connections: int, *, timeout_ns: int) -> Iterator[DevtoolsEvent]:
        """The events of a page. Args: connections: how many the pages before had."""
        numbers = {request.connection: 0 for request in self.requests.values() if request.connection}
        for order, connection in enumerate(numbers):
            numbers[connection] = order
        for request in self.requests.values():
            if request.timing.get("connectStart", -1.0) >= 0:
                yield _connected(request, connections + numbers[request.connection])
        for request in self.requests.values():
            yield _object(request, page, numbers.get(request.connection, 0))
        yield self._sample(page, connections, timeout_ns=timeout_ns)

    @property
    def connections(self) -> int:
        """How many it used."""
        return len({request.connection for request in self.requests.values() if request.connection})

    def _sample(self, page: int, connection: int, *, timeout_ns: int) -> DevtoolsEvent:
        objects = list(self.requests.values())
        failed = next((request for request in objects if request.outcome != "ok"), None)
        how, error = "ok", None
        if failed is not None:
            how = failed.outcome
            error = f"cannot load {failed.name}: {failed.problem or f'not there after {timeout_ns / 1e9:g} s'}"
        elif not self.is_whole:
            how, error = "timeout", f"cannot load the page: not there after {timeout_ns / 1e9:g} s"
        ended = [request.received_s for request in objects if request.received_s is not None]
        return {
            "event": "sample",
            "exchange": page,
            "connection": connection,
            "sent_ns": _ns(self.began_s) if objects else None,
            "received_ns": _ns(max(ended)) if how == "ok" else None,
            "sent_bytes": 0,
            "received_bytes": sum(request.bytes for request in objects),
            "outcome": how,
            "error": error,
        }


def _connected(request: Loaded, number: int) -> DevtoolsEvent:
    timing, response = request.timing, request.response or {}
    scheme = request.url.partition(":")[0]
    has_tls = timing["sslStart"] >= 0
    quic = response["protocol"] == "h3"
    secure_ms = timing["sslEnd"] - timing["sslStart"] if has_tls else None
    tcp_end_ms = timing["sslStart"] if has_tls else timing["connectEnd"]
    return {
        "event": "connected",
        "connection": number,
        "transport": _TRANSPORTS.get((response["protocol"], scheme), f"{scheme} over {response['protocol']}"),
        "setup_ns": _ms_to_ns(timing["connectEnd"] - timing["connectStart"]),
        "transport_ns": None if quic else _ms_to_ns(tcp_end_ms - timing["connectStart"]),
        "security_ns": None if secure_ms is None else _ms_to_ns(secure_ms),
        "upgrade_ns": None,
    }


def _object(request: Loaded, page: int, connection: int) -> DevtoolsEvent:
    timing = request.timing
    began_s = timing.get("requestTime")
    sent_s = None if began_s is None else began_s + timing["sendStart"] / 1e3
    answered_ms = timing.get("receiveHeadersStart") or timing.get("receiveHeadersEnd")
    first_s = None if began_s is None or answered_ms is None else began_s + answered_ms / 1e3
    # They are taken by several processes, and differ by some microseconds.
    times, latest_s = [], request.queued_s
    for time_s in (sent_s, first_s, request.received_s):
        latest_s = max(latest_s, time_s or 0.0)
        times.append(None if time_s is None else _ns(latest_s))
    sent_ns, first_ns, received_ns = times
    return {
        "event": "object",
        "page": page,
        "object": request.name,
        "connection": connection,
        "queued_ns": _ns(request.queued_s),
        "sent_ns": sent_ns,
        "first_ns": first_ns,
        "received_ns": received_ns if request.outcome == "ok" else None,
        "bytes": request.bytes,
        "outcome": request.outcome,
    }


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _ms_to_ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)
