"""What a network with a name is: settings of both directions of a path, and where each number is from."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal

from crosswind.units import Queue, format_duration, format_probability, format_queue, format_rate

MS = 1_000_000
MBIT = 1_000_000
KBIT = 1_000

BUFFER_MS = 100
SMALLEST_QUEUE_BYTES = 15_000
"""Ten packets of 1500 bytes: an initial window (RFC 6928)."""

Setting = int | Decimal | Queue | None


@dataclass(frozen=True)
class NetworkDirection:
    """One direction of a network. `rate_bps` None: unlimited, without a queue. `loss` None: it sets none."""

    delay_ns: int
    rate_bps: int | None = None
    queue: Queue | None = None
    loss: Decimal | None = None

    @property
    def settings(self) -> Mapping[str, Setting]:
        """What it sets, by the names that a study has for the keys of one direction."""
        given: dict[str, Setting] = {"delay": self.delay_ns, "rate": self.rate_bps}
        given |= {} if self.queue is None else {"queue": self.queue}
        return given | ({} if self.loss is None else {"loss": self.loss})


@dataclass(frozen=True)
class Source:
    """Where numbers are from, or why these were chosen. `of`: the keys that are meant, as "delay, rate"."""

    of: str
    text: str


ROUND_QUEUE = Source("queue", f"a round number: what the link carries in {BUFFER_MS} ms, and at least ten packets")
"""Of every network whose source has no queue."""


@dataclass(frozen=True)
class Network:
    """A network with a name.

    Attributes: what: it stands for, in a few words. forward: client to server, which is the user's upload.
    """

    name: str
    what: str
    forward: NetworkDirection
    reverse: NetworkDirection
    sources: tuple[Source, ...]

    def direction(self, name: str) -> NetworkDirection:
        """`forward` or `reverse`."""
        return self.forward if name == "forward" else self.reverse

    @property
    def keys(self) -> dict[str, str]:
        """What it sets under `[path]`, key and text: `delay` where both directions agree, else `forward.rate`."""
        return merged(
            {way: {key: text_of(key, value) for key, value in self.direction(way).settings.items()} for way in _WAYS}
        )

    def source(self, keys: Collection[str]) -> str:
        """Where the numbers of some keys are from, in one line. Args: keys: as `delay`."""
        about = [source for source in self.sources if not set(source.of.split(", ")).isdisjoint(keys)]
        return "; ".join(f"{source.of}: {source.text}" for source in about)

    @property
    def own_source(self) -> str:
        """The same of all keys, without what most networks have in common (`ROUND_QUEUE`)."""
        return "; ".join(f"{source.of}: {source.text}" for source in self.sources if source is not ROUND_QUEUE)


_WAYS = ("forward", "reverse")


def merged(both: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Texts by direction and key as a study has them: a key once where both directions agree.

    Args: both: `forward` and `reverse`, each with its keys and their texts.
    """
    forward, reverse = both["forward"], both["reverse"]
    sources: dict[str, str] = {}
    for key in dict.fromkeys([*forward, *reverse]):
        if key in forward and forward.get(key) == reverse.get(key):
            sources[key] = forward[key]
        else:
            sources |= {f"{way}.{key}": both[way][key] for way in _WAYS if key in both[way]}
    return sources


def text_of(key: str, value: Setting) -> str:
    """A setting of one direction as a study has it."""
    if isinstance(value, Queue):
        return format_queue(value)
    if isinstance(value, Decimal):
        return format_probability(value)
    return format_duration(value or 0) if key == "delay" else format_rate(value)


def numbers_of(network: "Network") -> tuple[str, str, str, str, str]:
    """Its numbers for people: round trip, rate down, rate up, queues down and up, loss each way; empty where none."""
    forward, reverse = network.forward, network.reverse
    queues = [format_queue(way.queue) for way in (reverse, forward) if way.queue is not None]
    return (
        format_duration(forward.delay_ns + reverse.delay_ns),
        format_rate(reverse.rate_bps),
        format_rate(forward.rate_bps),
        " / ".join(dict.fromkeys(queues)),
        "" if forward.loss is None else format_probability(forward.loss),
    )


def network(
    name: str,
    what: str,
    *sources: Source,
    rtt_ms: float,
    rates: tuple[int, int] | None,
    buffer_ms: float = BUFFER_MS,
    loss: str | None = None,
) -> Network:
    """A network whose round trip is shared equally by both directions.

    Args:
        rtt_ms: without queues. rates: bit/s down (server to client) and up; None: unlimited.
        buffer_ms: what each direction's queue holds of its link, to four digits, and at least ten packets.
        loss: probability in each direction, as "0.02".
    """
    down, up = rates or (None, None)
    each_way_ns = round(rtt_ms * MS) // 2

    def direction(rate_bps: int | None) -> NetworkDirection:
        lost = None if loss is None else Decimal(loss)
        if rate_bps is None:
            return NetworkDirection(each_way_ns, loss=lost)
        held = max(SMALLEST_QUEUE_BYTES, int(float(f"{rate_bps * buffer_ms / 8000:.4g}")))
        return NetworkDirection(each_way_ns, rate_bps, Queue(size_bytes=held), lost)

    return Network(name, what, direction(up), direction(down), sources)
