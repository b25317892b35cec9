"""Units as people write them, to exact integers and back.

| quantity | written | stored |
| --- | --- | --- |
| duration | `50ms`, `1.5ms`, `10us`, `2s`, `1m`, `1h`, `0` | int nanoseconds |
| rate | `10mbit`, `1.5mbit`, `1gbit`, `8Mibit`, `unlimited` | int bit/s, None when unlimited |
| size | `1000`, `256kB`, `64KiB`, `1MB` | int bytes |
| probability | `5%`, `0.05`, `1e-6` | Decimal in [0, 1] |
| queue | `100p`, `64kB`, `64KiB`, `50ms` | Queue |

Only the `i` distinguishes binary from decimal: `kB` is 1000 bytes, `KiB` is 1024; `mbit` is 10^6 bit/s, `Mibit`
2^20. Durations and sizes are case-sensitive, because `m` and `M`, `b` and `B` mean different things; `KB`, `K` and `kb`
are refused because people read them in more than one way. Rates spell `bit` out, so their case does not matter
(`10mbit`, `10Mbit`, `10Mbit/s`); `mbps` is refused: it is megabits to some tools and megabytes to others. A space
before the unit is allowed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

NANOSECONDS: Mapping[str, int] = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
BITS_PER_SECOND: Mapping[str, int] = {
    "bit": 1,
    "kbit": 10**3,
    "mbit": 10**6,
    "gbit": 10**9,
    "tbit": 10**12,
    "kibit": 2**10,
    "mibit": 2**20,
    "gibit": 2**30,
}
BYTES: Mapping[str, int] = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}

# Common lower-case units from elsewhere, and the suggested ones.
_RATE_SUGGESTIONS = {
    "bps": "bit", "b": "bit", "bits": "bit", "b/s": "bit",
    "k": "kbit", "kb": "kbit", "kbps": "kbit", "kb/s": "kbit", "kbits": "kbit", "kbits/s": "kbit",
    "m": "mbit", "mb": "mbit", "mbps": "mbit", "mb/s": "mbit", "mbits": "mbit", "mbits/s": "mbit",
    "g": "gbit", "gb": "gbit", "gbps": "gbit", "gb/s": "gbit", "gbits": "gbit", "gbits/s": "gbit",
}  # fmt: skip
_DURATION_SUGGESTIONS = {
    "msec": "ms", "millis": "ms", "usec": "us", "nsec": "ns", "sec": "s", "secs": "s", "seconds": "s",
    "second": "s", "minutes": "m", "minute": "m", "mins": "m", "hour": "h", "hours": "h",
}  # fmt: skip

NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?"
"""Pattern for a nonnegative number: 12, 0.5 or 1e-6."""

_NUMBER = re.compile(rf"(?P<number>{NUMBER}) ?(?P<unit>[A-Za-zµμ%/]{{0,12}})")
_NEGATIVE = re.compile(r"[-−] ?[0-9.]")

DURATION_HINT = "a duration is a number and ns, us, ms, s, m or h, as 50ms or 1.5s"
RATE_HINT = "a rate is a number and kbit, mbit or gbit (or Mibit, binary), as 10mbit, or unlimited"
SIZE_HINT = "a size is bytes, or a number and kB, MB (1000s) or KiB, MiB (1024s), as 256kB"
PROBABILITY_HINT = "a probability is from 0% to 100%, as 5% or 0.05"
QUEUE_HINT = "a queue is packets, bytes or a time, as 100p, 64kB or 50ms"


class UnitError(ValueError):
    """A malformed value. Args: message: the value and its fault. hint: the right form."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Queue:
    """A link's queue limit: exactly one is set. `time_ns`: at the link's rate."""

    packets: int | None = None
    size_bytes: int | None = None
    time_ns: int | None = None

    @property
    def limits(self) -> dict[str, int]:
        """The set limit, by a cell's name for its unit."""
        named = {"packets": self.packets, "bytes": self.size_bytes, "time_ns": self.time_ns}
        return {unit: limit for unit, limit in named.items() if limit is not None}


def shown(value: object) -> str:
    """A value as an error message quotes it, cut to a readable length."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = type(value).__name__
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 80 else text[:77] + "..."


def parse_duration(value: object) -> int:
    """Nanoseconds from a duration such as `1.5ms`. Raises: UnitError."""
    number, unit = _split(value, "duration", DURATION_HINT)
    if unit == "" and number == 0:
        return 0
    if unit == "":
        raise UnitError(
            f"{shown(value)} has no unit", hint=f'write "{_plain(number)}ms" for milliseconds; {DURATION_HINT}'
        )
    if unit not in NANOSECONDS:
        suggestion = _suggestion(number, _DURATION_SUGGESTIONS.get(unit.lower(), unit.lower()), NANOSECONDS)
        raise _unknown_unit(value, unit, DURATION_HINT, suggestion)
    return _whole(value, number * NANOSECONDS[unit], "nanoseconds")


def parse_rate(value: object, *, may_be_zero: bool = False) -> int | None:
    """Bits per second of a rate such as `10mbit`; None for `unlimited`. Raises: UnitError."""
    if isinstance(value, str) and value.strip().lower() == "unlimited":
        return None
    number, unit = _split(value, "rate", RATE_HINT)
    if number == 0 and may_be_zero:
        return 0
    if number == 0:
        raise UnitError(f"a rate of {shown(value)} lets nothing through", hint=RATE_HINT)
    letters = unit.lower().removesuffix("/s") if unit.lower().endswith("bit/s") else unit.lower()
    if unit == "":
        raise UnitError(f"{shown(value)} has no unit", hint=f'write "{_plain(number)}mbit" for Mbit/s; {RATE_HINT}')
    if letters not in BITS_PER_SECOND:
        suggestion = _suggestion(number, _RATE_SUGGESTIONS.get(letters, letters), BITS_PER_SECOND)
        raise _unknown_unit(value, unit, RATE_HINT, suggestion)
    return _whole(value, number * BITS_PER_SECOND[letters], "bits a second")


def parse_size(value: object) -> int:
    """Bytes from a size such as `256kB` (256 000), `64KiB` (65 536) or 1000. Raises: UnitError."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    number, unit = _split(value, "size", SIZE_HINT)
    if unit not in BYTES:
        prefix = unit[:1].upper()
        if unit.lower() in {"k", "kb", "m", "mb", "g", "gb"}:
            decimal = {"K": "kB", "M": "MB", "G": "GB"}[prefix]
            binary = {"K": "KiB", "M": "MiB", "G": "GiB"}[prefix]
            written = _plain(number)
            raise UnitError(
                f'{shown(value)}: the unit "{unit}" is read in more than one way',
                hint=f'write "{written}{decimal}" (1 {decimal} is {BYTES[decimal]:,} bytes) '
                f'or "{written}{binary}" ({BYTES[binary]:,})',
            )
        same = {name.lower(): name for name in BYTES}
        suggestion = _suggestion(number, same.get(unit.lower(), "?"), BYTES)
        raise _unknown_unit(value, unit, SIZE_HINT, suggestion)
    return _whole(value, number * BYTES[unit], "bytes")


def parse_probability(value: object) -> Decimal:
    """A probability in [0, 1] from `5%` or 0.05, exact in decimal. Raises: UnitError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        probability, percent = Decimal(repr(value)), False
        if not probability.is_finite():
            raise UnitError(f"{shown(value)} is not a number", hint=PROBABILITY_HINT)
    else:
        number, unit = _split(value, "probability", PROBABILITY_HINT)
        if unit not in {"", "%"}:
            raise UnitError(f'{shown(value)}: "{unit}" is not a unit of probability', hint=PROBABILITY_HINT)
        percent = unit == "%"
        probability = Decimal(_plain(number)).scaleb(-2 if percent else 0)
    if probability < 0:
        raise UnitError(f"{shown(value)} is negative", hint=PROBABILITY_HINT)
    if probability > 1:
        suggestion = "" if percent or probability > 100 else f'; did you mean "{format(probability, "f")}%"?'
        raise UnitError(f"{shown(value)} is more than 100%", hint=PROBABILITY_HINT + suggestion)
    return probability


def parse_queue(value: object) -> Queue:
    """A queue from `100p` (packets), `64kB` (bytes) or `50ms` (at the link's rate). Raises: UnitError."""
    number, unit = _split(value, "queue", QUEUE_HINT)
    if unit == "":
        written = _plain(number)
        raise UnitError(f"{shown(value)} has no unit", hint=f'write "{written}p" for packets or "{written}B" for bytes')
    if unit in {"p", "packets"}:
        queue = Queue(packets=_whole(value, number, "packets"))
    elif unit in NANOSECONDS:
        queue = Queue(time_ns=parse_duration(value))
    else:
        try:
            queue = Queue(size_bytes=parse_size(value))
        except UnitError as error:
            raise UnitError(error.message, hint=f"{error.hint}; {QUEUE_HINT}") from None
    if not (queue.packets or queue.size_bytes or queue.time_ns):
        raise UnitError(f"a queue of {shown(value)} holds nothing", hint=QUEUE_HINT)
    return queue


def format_duration(duration_ns: int) -> str:
    """A duration as a person writes it, exact: `1.5ms`, `90s`; read back by `parse_duration`."""
    return _scaled(duration_ns, {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}, zero="0ms")


def format_rate(rate_bps: int | None) -> str:
    """A rate as a person writes it, exact: `1.5mbit`, `unlimited`; read back by `parse_rate`."""
    if rate_bps is None:
        return "unlimited"
    return _scaled(rate_bps, {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1}, zero="0bit")


def format_size(size_bytes: int) -> str:
    """A size as a person writes it, exact: `256kB`, `64KiB`, `15B`; read back by `parse_size`."""
    if size_bytes and size_bytes % 1024 == 0 and size_bytes % 1000:
        unit = next(unit for unit in ("GiB", "MiB", "KiB") if size_bytes % BYTES[unit] == 0)
        return f"{size_bytes // BYTES[unit]}{unit}"
    return _scaled(size_bytes, {"GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1}, zero="0B")


def format_probability(probability: Decimal) -> str:
    """A probability in percent, exact: `5%`, `0.1%`; read back by `parse_probability`."""
    return _trimmed(format(probability.scaleb(2), "f")) + "%"


def format_queue(queue: Queue) -> str:
    """A queue as a person writes it: `100p`, `64kB` or `50ms`; read back by `parse_queue`."""
    if queue.time_ns is not None:
        return format_duration(queue.time_ns)
    return f"{queue.packets}p" if queue.packets is not None else format_size(queue.size_bytes or 0)


def _split(value: object, what: str, hint: str) -> tuple[Fraction, str]:
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise UnitError(f"{shown(value)} is not a {what}", hint=hint)
    text = text.strip()
    if _NEGATIVE.match(text):
        raise UnitError(f"{shown(value)} is negative", hint=hint)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnitError(f"{shown(value)} is not a {what}", hint=hint)
    return Fraction(match["number"]), match["unit"]


def _whole(value: object, amount: Fraction, what: str) -> int:
    if amount.denominator != 1:
        raise UnitError(
            f"{shown(value)} is not a whole number of {what}",
            hint=f"the nearest are {int(amount)} and {int(amount) + 1}",
        )
    return int(amount)


def _unknown_unit(value: object, unit: str, hint: str, suggestion: str) -> UnitError:
    return UnitError(f'{shown(value)}: "{unit}" is not a unit here', hint=f"{suggestion}{hint}")


def _suggestion(number: Fraction, unit: str, units: Mapping[str, int]) -> str:
    return f'did you mean "{_plain(number)}{unit}"? ' if unit in units else ""


def _plain(number: Fraction) -> str:
    """Decimal text for a fraction with no prime factors but 2 and 5 in its denominator."""
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    digits = str(int(number * 10**places)).rjust(places + 1, "0")
    return digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"


def _scaled(amount: int, units: Mapping[str, int], *, zero: str) -> str:
    if amount == 0:
        return zero
    unit, scale = next(((unit, scale) for unit, scale in units.items() if amount >= scale))
    return f"{_plain(Fraction(amount, scale))}{unit}"


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
