"""The connectivity profiles of WebPageTest: `www/settings/connectivity.ini.sample` of its repository, and the 4G of
`www/settings/profiles.ini.sample`.

Its own shaping loses nothing (`plr=0` in every profile). webpagetest.org has another 3GSlow than the repository: 400
kbit/s and 400 ms, which the repository calls 3G_EM.
"""

from crosswind.study.networks.network import KBIT, MBIT, ROUND_QUEUE, Network, Source, network

_FILE = "connectivity.ini.sample of its repository"

_KIBIT = 1024
_MIBIT = 1024 * 1024


def _profile(name: str, title: str, rtt_ms: float, down: int, up: int, *, source: str | None = None) -> Network:
    where = Source("delay, rate", source or _FILE)
    return network(name, f"WebPageTest, {title}", where, ROUND_QUEUE, rtt_ms=rtt_ms, rates=(down, up))


WEBPAGETEST = (
    _profile("wpt-cable", "Cable", 28, 5 * MBIT, 1 * MBIT),
    _profile("wpt-dsl", "DSL", 50, 1500 * KBIT, 384 * KBIT),
    _profile("wpt-fios", "FIOS", 4, 20 * MBIT, 5 * MBIT),
    _profile("wpt-dial", "Dial", 120, 49 * KBIT, 30 * KBIT),
    _profile("wpt-lte", "LTE", 70, 12 * MBIT, 12 * MBIT),
    _profile(
        "wpt-4g", "4G", 170, 9 * MBIT, 9 * MBIT,
        source="the profile Mobile_4G in profiles.ini.sample of its repository, which has one rate for both directions",
    ),
    _profile("wpt-3g", "3G", 300, 1600 * KBIT, 768 * KBIT),
    _profile("wpt-3g-fast", "3GFast", 150, 1600 * KBIT, 768 * KBIT),
    _profile("wpt-3g-slow", "3GSlow", 200, 780 * KBIT, 330 * KBIT),
    _profile("wpt-3g-em", "3G_EM", 400, 400 * KBIT, 400 * KBIT),
    _profile("wpt-edge", "Edge", 840, 240 * KBIT, 200 * KBIT),
    _profile("wpt-2g", "2G", 800, 280 * KBIT, 256 * KBIT),
)  # fmt: skip


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
