"""Prometheus metrics over HTTP (`--metrics :9469`), by the official client library.

Names, units and labels follow Prometheus's conventions: counters end in _total, times are seconds. A probe is counted
at its verdict.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crosswind.errors import CrosswindError, UsageError
from crosswind.live.events import LiveEvent
from crosswind.live.one_way import WAYS, Located
from crosswind.live.probes import ProbeOutcome
from crosswind.live.watch import News

BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Steps of 1, 2.5 and 5, from a local network to a satellite's link with a full queue."""
_LABELS = ("host", "probe")


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `:9469`, `127.0.0.1:9469` or `[::1]:9469`; no host is every address. Raises: UsageError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(
            f"--metrics {text} is not an address", hint="as :9469, or 127.0.0.1:9469 for this machine alone"
        )
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)


class Metrics:
    """The metrics of one host. Args: host, probe: the labels. Raises: CrosswindError without the library."""

    def __init__(self, host: str, probe: str, *, tells_ways: bool = False) -> None:
        try:
            import prometheus_client as library
        except ImportError as error:
            raise CrosswindError(
                "--metrics needs the Prometheus client library, which is not installed",
                hint="pip install 'crosswind[metrics]'",
            ) from error
        self._library = library
        self.registry = library.CollectorRegistry()
        of_this: dict[str, Any] = {"labelnames": _LABELS, "registry": self.registry}
        rtt = library.Histogram(
            "crosswind_live_rtt_seconds", "Round-trip time of answered probes.", buckets=BUCKETS_S, **of_this
        )
        probes = library.Counter(
            "crosswind_live_probes_total", "Probes that were answered, refused or lost.", **of_this
        )
        lost = library.Counter("crosswind_live_lost_total", "Probes that had no answer within the timeout.", **of_this)
        refused = library.Counter(
            "crosswind_live_refused_total", "Probes that the host refused: no service listens on the port.", **of_this
        )
        ways = library.Counter(
            "crosswind_live_lost_by_way_total",
            "Lost probes by direction, as reported by the server.",
            labelnames=(*_LABELS, "way"),
            registry=self.registry,
        )
        self._ways = {way: ways.labels(host, probe, name) for way, name in WAYS.items()} if tells_ways else {}
        outage = library.Gauge("crosswind_live_outage", "1 during an outage, else 0.", **of_this)
        self._rtt, self._probes = rtt.labels(host, probe), probes.labels(host, probe)
        self._lost, self._refused = lost.labels(host, probe), refused.labels(host, probe)
        self._outage = outage.labels(host, probe)

    def handle_news(self, news: News) -> None:
        """Counts a probe at its verdict, and notes outages."""
        if isinstance(news, ProbeOutcome):
            self._probes.inc()
            if news.rtt_ns is None:
                self._lost.inc()
            elif news.is_refused:
                self._refused.inc()
            else:
                self._rtt.observe(news.rtt_ns / 1e9)
        elif isinstance(news, Located):
            self._ways[news.way].inc()
        elif isinstance(news, LiveEvent) and news.kind in ("outage begins", "outage ends"):
            self._outage.set(news.kind == "outage begins")

    @contextmanager
    def served(self, address: tuple[str, int]) -> Iterator[None]:
        """Answers `GET /metrics` at an address, in a thread. Raises: CrosswindError where nobody can listen there."""
        host, port = address
        try:
            server, thread = self._library.start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            raise CrosswindError(
                f"cannot listen on {host}:{port} for --metrics: {error.strerror}", hint="choose another port"
            ) from error
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
