"""Networks with a name: `path.preset`. Numbers for both directions, and where each set is from.

A preset stands for a kind of access network, not for one that was measured here: real ones differ by a factor of two
and more from place to place and from hour to hour.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from crosswind.units import Queue, format_duration, format_queue, format_rate

SETTINGS = ("delay", "rate", "queue")
"""What a preset sets in both directions."""

MS = 1_000_000
MBIT = 1_000_000


@dataclass(frozen=True)
class PresetDirection:
    """One direction of a preset. `rate_bps` None: unlimited, without a queue."""

    delay_ns: int
    rate_bps: int | None = None
    queue: Queue | None = None


@dataclass(frozen=True)
class Preset:
    """A network with a name. No preset has loss: set path.loss beside it.

    Attributes: forward: client to server, which is the user's upload. source: where the numbers are from, or why these.
    """

    name: str
    forward: PresetDirection
    reverse: PresetDirection
    source: str

    def values(self, direction: str) -> Mapping[str, int | Queue | None]:
        """What `forward` or `reverse` is set to, by the names that a study has for it."""
        own = self.forward if direction == "forward" else self.reverse
        return {"delay": own.delay_ns, "rate": own.rate_bps, "queue": own.queue}

    def note(self, overridden: Sequence[str] = ()) -> str:
        """Its name, numbers and source as a remark. Args: overridden: keys that the study sets itself."""
        own = f" The study itself sets {' and '.join(overridden)}." if overridden else ""
        return f"Preset {self.name}: {self.text()}. {self.source[:1].upper()}{self.source[1:]}.{own}"

    def text(self) -> str:
        """Its numbers in words."""
        delay = f"{format_duration(self.forward.delay_ns)} each way"
        if self.forward.rate_bps is None and self.reverse.rate_bps is None:
            return f"{delay}, unlimited"
        if self.forward == self.reverse:
            return f"{delay}, {_link(self.forward)} both ways"
        return f"{delay}, {_link(self.reverse)} down, {_link(self.forward)} up"


def overridden_of(keys: Container[str]) -> tuple[str, ...]:
    """What some keys of a study set of what a preset would: `path.delay`, or `path.forward.delay` for one direction."""
    found = []
    for name in SETTINGS:
        one_way = [f"path.{direction}.{name}" for direction in ("forward", "reverse")]
        if f"path.{name}" in keys or all(key in keys for key in one_way):
            found.append(f"path.{name}")
        else:
            found += [key for key in one_way if key in keys]
    return tuple(found)


def _link(direction: PresetDirection) -> str:
    queue = "" if direction.queue is None else f" with a queue of {format_queue(direction.queue)}"
    return f"{format_rate(direction.rate_bps)}{queue}"


def _preset(
    name: str, each_way_ns: int, rates: tuple[float, float] | None, source: str, *, buffer_ms: int = 100
) -> Preset:
    """A preset of rates in Mbit/s, down and up.

    Each direction's queue holds what its link carries in `buffer_ms`, and at least an initial window of ten segments.
    """
    down, up = rates or (None, None)

    def direction(rate: float | None) -> PresetDirection:
        if rate is None:
            return PresetDirection(each_way_ns)
        rate_bps = round(rate * MBIT)
        return PresetDirection(each_way_ns, rate_bps, Queue(size_bytes=max(15_000, rate_bps * buffer_ms // 8000)))

    return Preset(name, direction(up), direction(down), source)


_WEBPAGETEST = "the profile of that name in WebPageTest; it gives no queue, here 100 ms"

_ALL = (
    _preset("localhost", 0, None, "one machine: no link and no distance, only processors"),
    _preset("lan", MS // 4, (100, 100), buffer_ms=20,
            source="switched Fast Ethernet (IEEE 802.3u), as in an office of 2013; 0.5 ms there and back and a queue "
            "of 20 ms are round numbers"),
    _preset("wan", 20 * MS, (20, 5),
            "a fixed line of 2013 to a server in the same part of the world: round numbers, with a modem's queue of "
            "100 ms"),
    _preset("hsdpa+", 35 * MS, (8, 2), buffer_ms=250,
            source="3GPP Release 7 gives 21.1 Mbit/s down (category 14) and 5.76 Mbit/s up (HSUPA category 6) to a "
            "cell that is shared; here somewhat over a third of that, 70 ms there and back, and a deep queue of "
            "250 ms, because operators keep such (Jiang et al., Tackling Bufferbloat in 3G/4G Networks, IMC 2012)"),
    _preset("cable", 14 * MS, (5, 1), f"{_WEBPAGETEST} (Cable)"),
    _preset("dsl", 25 * MS, (1.5, 0.384), f"{_WEBPAGETEST} (DSL)"),
    _preset("3g", 150 * MS, (1.6, 0.768), f"{_WEBPAGETEST} (3G)"),
    _preset("4g", 85 * MS, (9, 9), f"{_WEBPAGETEST} (4G)"),
)  # fmt: skip

PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _ALL}
"""Every preset by name."""
