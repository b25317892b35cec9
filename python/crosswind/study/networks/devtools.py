"""The profiles by which browsers' developer tools slow a page down, applied to packets instead of requests.

Chrome: `front_end/core/sdk/NetworkManager.ts` of its developer tools, as of 2025. It delays requests, not packets, and
corrects for that with a factor of its own for each profile; here are the round trip and the rates that it aims at.
Firefox: `devtools/client/shared/components/throttling/profiles.js`. Its K is 1024 bit/s, its latency the least until
a response begins, taken here as the round trip.
"""

from crosswind.study.networks.network import KBIT, MBIT, ROUND_QUEUE, Network, Source, network

_KIBIT = 1024
_MIBIT = 1024 * 1024


def _chrome(name: str, title: str, rtt_ms: float, down: int, up: int) -> Network:
    source = Source("delay, rate", "what its NetworkManager.ts aims at, without its factors for requests")
    return network(name, f"Chrome DevTools, {title}", source, ROUND_QUEUE, rtt_ms=rtt_ms, rates=(down, up))


def _firefox(name: str, title: str, rtt_ms: float, down: float, up: float) -> Network:
    source = Source("delay, rate", "its throttling/profiles.js")
    rates = (round(down), round(up))
    return network(name, f"Firefox DevTools, {title}", source, ROUND_QUEUE, rtt_ms=rtt_ms, rates=rates)


DEVTOOLS = (
    _chrome("chrome-3g", "3G", 400, 500 * KBIT, 500 * KBIT),
    _chrome("chrome-slow-4g", "Slow 4G", 150, 1600 * KBIT, 750 * KBIT),
    _chrome("chrome-fast-4g", "Fast 4G", 60, 9 * MBIT, 1500 * KBIT),
    _firefox("firefox-gprs", "GPRS", 500, 50 * _KIBIT, 20 * _KIBIT),
    _firefox("firefox-2g", "Regular 2G", 300, 250 * _KIBIT, 50 * _KIBIT),
    _firefox("firefox-good-2g", "Good 2G", 150, 450 * _KIBIT, 150 * _KIBIT),
    _firefox("firefox-3g", "Regular 3G", 100, 750 * _KIBIT, 250 * _KIBIT),
    _firefox("firefox-good-3g", "Good 3G", 40, 1.5 * _MIBIT, 750 * _KIBIT),
    _firefox("firefox-4g", "Regular 4G / LTE", 20, 4 * _MIBIT, 3 * _MIBIT),
    _firefox("firefox-dsl", "DSL", 5, 2 * _MIBIT, 1 * _MIBIT),
    _firefox("firefox-wifi", "Wi-Fi", 2, 30 * _MIBIT, 15 * _MIBIT),
)
