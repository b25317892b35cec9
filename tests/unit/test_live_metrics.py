"""The Prometheus metrics of `crosswind live`."""

from typing import Any

import pytest

from conftest import missing
from crosswind.errors import CrosswindError, UsageError
from crosswind.live import metrics
from crosswind.live.events import LiveEvent
from crosswind.live.metrics import BUCKETS_S, Metrics, parse_address
from crosswind.live.one_way import BACK, THERE, Located
from crosswind.live.probes import ProbeOutcome

MS = 10**6
LABELS = {"host": "example.org", "probe": "icmp"}


@pytest.fixture
def counted() -> Metrics:
    """The metrics after five probes, of which one is lost and one refused, and a beginning outage."""
    try:
        import prometheus_client as _  # noqa: F401
    except ImportError:
        missing("prometheus-client is not installed: requirements-dev.lock has it")
    made = Metrics("example.org", "icmp")
    for sequence, rtt_ns in enumerate((20 * MS, 25 * MS, None, 30 * MS)):
        made.handle_news(ProbeOutcome(sequence, sequence * 100 * MS, rtt_ns))
    made.handle_news(ProbeOutcome(4, 400 * MS, 1 * MS, None, is_refused=True))
    made.handle_news(LiveEvent("outage begins", 0, "", {}))
    return made


def value(of: Metrics, name: str, **labels: str) -> float | None:
    return of.registry.get_sample_value(name, LABELS | labels)


def test_probes_are_counted_and_their_times_are_seconds(counted: Metrics) -> None:
    assert value(counted, "crosswind_live_probes_total") == 5
    assert value(counted, "crosswind_live_refused_total") == 1
    assert value(counted, "crosswind_live_lost_total") == 1
    assert value(counted, "crosswind_live_rtt_seconds_count") == 3
    assert value(counted, "crosswind_live_rtt_seconds_sum") == pytest.approx(0.075)
    # A bucket has what is at most its bound: 25 ms is in that of 25 ms.
    buckets = {bound: value(counted, "crosswind_live_rtt_seconds_bucket", le=str(bound)) for bound in BUCKETS_S}
    assert [buckets[bound] for bound in (0.01, 0.025, 0.05)] == [0, 2, 3]


def test_lost_probes_are_counted_by_their_way_where_it_is_known(counted: Metrics) -> None:
    assert value(counted, "crosswind_live_lost_by_way_total", way="there") is None
    telling = Metrics("example.org", "icmp", tells_ways=True)
    for way in (THERE, BACK, BACK):
        telling.handle_news(Located(1, way))
    counts = [value(telling, "crosswind_live_lost_by_way_total", way=way) for way in ("there", "back")]
    assert counts == [1, 2]


def test_an_outage_is_a_gauge(counted: Metrics) -> None:
    assert value(counted, "crosswind_live_outage") == 1
    counted.handle_news(LiveEvent("latency step", 0, "", {}))
    assert value(counted, "crosswind_live_outage") == 1
    counted.handle_news(LiveEvent("outage ends", 0, "", {}))
    assert value(counted, "crosswind_live_outage") == 0


@pytest.mark.parametrize(
    ("text", "address"),
    [(":9469", ("0.0.0.0", 9469)), ("127.0.0.1:1", ("127.0.0.1", 1)), ("[::1]:9469", ("::1", 9469))],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["9469", ":", ":0", ":65536", "here:http", ""])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        parse_address(text)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *arguments: Any) -> Any:
        if name == "prometheus_client":
            raise ImportError(name)
        return original(name, *arguments)

    original = __import__
    monkeypatch.setattr("builtins.__import__", refuse)
    with pytest.raises(CrosswindError, match="--metrics needs") as raised:
        metrics.Metrics("example.org", "icmp")
    assert raised.value.hint == "pip install 'crosswind[metrics]'"
