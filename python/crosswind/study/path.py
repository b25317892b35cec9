"""The path of a cell: both directions, with presets, defaults and what either direction sets for itself filled in."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from crosswind.study.errors import CellError
from crosswind.study.levels import Level
from crosswind.study.presets import PRESETS
from crosswind.study.toml_text import Location
from crosswind.units import Queue

DIRECTION_KEYS = ("delay", "loss", "rate", "queue", "count")
"""What `[path]` sets for both directions, and `[path.forward]` and `[path.reverse]` for one."""


@dataclass(frozen=True)
class DirectionParameters:
    """One direction of the path. `rate_bps` None is unlimited, and then there is no queue."""

    delay_ns: int = 0
    loss: Decimal = Decimal(0)
    rate_bps: int | None = None
    queue: Queue | None = None
    count: str = "ip"


@dataclass(frozen=True)
class PathParameters:
    """The path of a cell. `forward` is client to server."""

    backend: str = "tun"
    family: str = "ipv4"
    mtu_bytes: int = 1500
    forward: DirectionParameters = DirectionParameters()
    reverse: DirectionParameters = DirectionParameters()

    @property
    def rtt_ns(self) -> int:
        """Round-trip propagation delay, in nanoseconds."""
        return self.forward.delay_ns + self.reverse.delay_ns


def path_of(settings: Mapping[str, Level], where: Mapping[str, Location]) -> PathParameters:
    """The path that one combination of levels means. Raises: CellError."""

    def get(key: str, default: Any) -> Any:
        return settings[f"path.{key}"].value if f"path.{key}" in settings else default

    path = PathParameters(
        get("backend", "tun"),
        get("family", "ipv4"),
        get("mtu", 1500),
        _direction(settings, "forward"),
        _direction(settings, "reverse"),
    )
    if path.family == "ipv6" and path.mtu_bytes < 1280:
        raise CellError(
            where["path.mtu"], f"an MTU of {path.mtu_bytes} is too little for IPv6", "1280 or more (RFC 8200)"
        )
    if path.backend == "direct":
        _refuse_emulation(settings, where, path)
    return path


def _direction(settings: Mapping[str, Level], way: str) -> DirectionParameters:
    """A direction's own key counts before the path's, and that before the preset's."""
    named = settings.get("path.preset")
    preset = None if named is None else PRESETS[named.value].way(way)

    def of(key: str, default: Any) -> Any:
        level = settings.get(f"path.{way}.{key}", settings.get(f"path.{key}"))
        return default if level is None else level.value

    rate_bps = of("rate", preset and preset.rate_bps)
    queue = of("queue", preset and preset.queue) if rate_bps is not None else None
    return DirectionParameters(
        of("delay", preset.delay_ns if preset else 0), of("loss", Decimal(0)), rate_bps, queue, of("count", "ip")
    )


def _refuse_emulation(settings: Mapping[str, Level], where: Mapping[str, Location], path: PathParameters) -> None:
    for key, level in settings.items():
        name = key.rsplit(".", 1)[-1]
        if key.startswith("path.") and name in DIRECTION_KEYS and level.value not in (0, None):
            raise CellError(
                where[key],
                f'the direct backend has no emulator, so {key} cannot be "{level.text}"',
                f'remove {name}, or use backend = "tun"',
            )
    if any(way.delay_ns or way.rate_bps for way in (path.forward, path.reverse)):
        raise CellError(
            where["path.preset"],
            f'the direct backend has no emulator, so path.preset cannot be "{settings["path.preset"].text}"',
            'write preset = "localhost", or use backend = "tun"',
        )
