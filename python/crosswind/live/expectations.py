"""Expected throughput of one long TCP flow, from the probes' loss and round-trip time.

The models take a loss and a round trip, each known with an interval only. Each interval has level 1 - 0.05 / 2, so both
hold together at 95 % (Bonferroni), and every model falls with either: its own interval goes from its number at the
upper limits to its number at the lower ones. Without a lost probe, the upper limit gives "at least". Uninformative
numbers are left out: such a bound outside the model's range, because the probes are few, or below TCP's measured
throughput; and rates beyond any link.

Where probes tell forward from reverse loss, a download is expected to have the reverse loss, and an upload the forward
loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crosswind.live.goodput import Goodput
from crosswind.live.probes import Slice
from crosswind.live.summary import estimate_as_dict, loss_of, losses_of_ways, quantile_of_times
from crosswind.models.bbr import bbr
from crosswind.models.cubic import cubic
from crosswind.models.mathis import mathis
from crosswind.models.model import Model
from crosswind.models.pftk import pftk_goodput
from crosswind.models.registry import model_named
from crosswind.report.text.format import count_of, percent
from crosswind.stats.estimate import Interval

LEVEL = 0.95
_LEVEL_OF_EACH = 1 - (1 - LEVEL) / 2
_MINIMUM_TIMEOUT_S = 0.2  # Linux's least retransmission timeout
_MTU_BYTES = 1500
_NO_LINK_BPS = 1e12
"""More than any link today."""
_HEADERS_BYTES = {"ipv4": 20 + 20 + 12, "ipv6": 40 + 20 + 12}  # IP, TCP, timestamps

_EITHER_WAY = "every lost probe counts as a loss of data, though it may have been the reply"
_ONE_WAY = "data is lost as often as probes on the same way, and lost acknowledgements change nothing"
_COMMON = (
    "TCP loses no more packets than probes do, sends full packets of 1500 bytes, and neither end limits its window"
)

_Formula = Callable[[float, float, float], float]
"""From MSS (bytes), round trip (s) and loss to bit/s."""

_FORMULAS: dict[str, _Formula] = {
    "mathis": lambda mss, rtt, p: float(mathis(mss, rtt, p)),
    "pftk-goodput": lambda mss, rtt, p: float(8 * mss * pftk_goodput(p, rtt, rtt + _MINIMUM_TIMEOUT_S)),
    "cubic": lambda mss, rtt, p: float(cubic(mss, rtt, p)),
}
_MOST_LOSS = {"mathis": 0.01, "pftk-goodput": 0.05, "cubic": 0.01, "bbr": 0.15}
"""Each model's maximum loss, as in its `valid_range`."""


@dataclass(frozen=True)
class Expectation:
    """A model's expectation.

    Attributes:
        goodput: in `unit`: bit/s; for BBR without a link rate a share of the link's rate ("1"). note: what limits it,
        or why there is no number; empty where there is nothing to say. direction: "download" or "upload"; empty where
        probes do not tell the two ways apart.
    """

    model: Model
    goodput: Interval
    unit: str = "bit/s"
    note: str = ""
    direction: str = ""

    @property
    def title(self) -> str:
        """The model's, and the direction."""
        return ", ".join(filter(None, (self.model.title, self.direction)))

    @property
    def says_something(self) -> bool:
        """Whether there is a number at all."""
        return any(rate is not None for rate in (self.goodput.value, self.goodput.low, self.goodput.high))

    def beside(self, measured: Sequence[Goodput]) -> "Expectation":
        """Drops a lower bound already reached by TCP. Args: measured: TCP's throughput in each direction."""
        got = [goodput.goodput.value for goodput in measured if self.direction in ("", goodput.direction)]
        low = self.goodput.low
        if self.goodput.value is not None or low is None or not any(rate is not None and rate >= low for rate in got):
            return self
        return self.silent("no loss was seen, and TCP reached more than the predicted minimum")

    def silent(self, note: str) -> "Expectation":
        """Without a number. Args: note: why."""
        return replace(self, goodput=replace(self.goodput, value=None, low=None, high=None, reason=note), note=note)

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "model": self.model.name,
            "title": self.model.title,
            "direction": self.direction or None,
            "source": self.model.source,
            "assumptions": self.model.assumptions,
            "valid_range": self.model.valid_range,
            "unit": self.unit,
            **(estimate_as_dict(self.goodput) or {}),
            "note": self.note,
        }


def common_assumption(expectations: Sequence[Expectation]) -> str:
    """The assumption common to all."""
    return f"{_ONE_WAY if any(expectation.direction for expectation in expectations) else _EITHER_WAY}; {_COMMON}"


def expectations_of(
    part: Slice, *, family: str, rate_bps: int | None = None, tells_ways: bool = False
) -> list[Expectation]:
    """Each model's expectation; none without an answered probe.

    Args: family: "ipv4" or "ipv6". rate_bps: the slowest link's; None if unknown. tells_ways: as in Probe.
    """
    if not tells_ways:
        return _expectations(part, loss_of(part, level=_LEVEL_OF_EACH), family, rate_bps)
    there, back = losses_of_ways(part, level=_LEVEL_OF_EACH)
    return [
        replace(expectation, direction=direction)
        for direction, loss in (("download", back), ("upload", there))
        for expectation in _expectations(part, loss, family, rate_bps)
    ]


def _expectations(part: Slice, loss: Interval | None, family: str, rate_bps: int | None) -> list[Expectation]:
    rtt = quantile_of_times(part.answered, 0.5, level=_LEVEL_OF_EACH)
    if loss is None or rtt is None or rtt.value is None:
        return []
    mss = _MTU_BYTES - _HEADERS_BYTES[family]
    link_bps = None if rate_bps is None else rate_bps * mss / _MTU_BYTES
    expected = [_by_formula(name, mss, loss, rtt, link_bps) for name in _FORMULAS]
    return [*expected, _by_bbr(loss, link_bps)]


def _by_formula(name: str, mss: int, loss: Interval, rtt: Interval, link_bps: float | None) -> Expectation:
    model = model_named(name)
    assert loss.value is not None
    assert rtt.value is not None
    limit = float("inf") if link_bps is None else link_bps

    def at(p: float | None, rtt_ns: float | None) -> float | None:
        """None where the formula has no number: without loss, without an answer, or without an interval."""
        if p is None or rtt_ns is None or not 0 < p < 1 or rtt_ns <= 0:
            return None
        return min(_FORMULAS[name](mss, rtt_ns / 1e9, p), limit)

    value, low, high = at(loss.value, rtt.value), at(loss.high, rtt.high), at(loss.low, rtt.low)
    if high is None and link_bps is not None:
        high = link_bps
    method = "model at the limits of loss and round-trip time"
    reason = None if low is not None else loss.reason or rtt.reason
    goodput = Interval(value, low, high, min(loss.n, rtt.n), LEVEL, method, reason)
    expectation = Expectation(model, goodput, note=_note(name, loss, is_capped=value is not None and value == limit))
    if value is None and (loss.high is None or loss.high > _MOST_LOSS[name]):
        return expectation.silent(_too_few(name, loss))
    least = low if value is None else value
    return (
        expectation
        if least is None or least < _NO_LINK_BPS
        else expectation.silent("this loss limits it on no link of today")
    )


def _by_bbr(loss: Interval, link_bps: float | None) -> Expectation:
    """BBR keeps the link full at any loss, so it needs the link's rate."""
    assert loss.value is not None
    rate, unit = (1.0, "1") if link_bps is None else (link_bps, "bit/s")
    ends = (None if p is None else float(bbr(rate, p)) for p in (loss.value, loss.high, loss.low))
    value, low, high = ends
    goodput = Interval(value, low, high, loss.n, LEVEL, "model at the limits of loss", loss.reason)
    note = _note("bbr", loss, is_capped=False)
    if link_bps is None:
        note = "; ".join(filter(None, ("of the rate of the slowest link, which --rate says", note)))
    expectation = Expectation(model_named("bbr"), goodput, unit, note)
    if loss.value == 0 and link_bps is None:
        return expectation.silent("no loss was seen, and without --rate it has no rate")
    return expectation


def _too_few(name: str, loss: Interval) -> str:
    """Why nothing follows from probes without a loss."""
    known = f"no loss was seen, and after {count_of(loss.n, 'probe')} it may be"
    most = "anything" if loss.high is None else f"up to {percent(loss.high)}"
    return f"{known} {most}, where the model holds up to {percent(_MOST_LOSS[name])}"


def _note(name: str, loss: Interval, *, is_capped: bool) -> str:
    notes = ["limited by the link"] if is_capped else []
    if loss.value == 0:
        notes.append("no loss was seen")
    elif loss.value is not None and loss.value > _MOST_LOSS[name]:
        notes.append(f"loss is above {_MOST_LOSS[name]:.0%}, up to which the model is valid")
    return "; ".join(notes)
