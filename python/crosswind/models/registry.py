"""Models by name: from a cell's parameters to a prediction that can stand beside the measurement.

A prediction says what it rests on and which of the model's assumptions the cell breaks. Where a model is silent there
is no number: Mathis and PFTK know no path without loss, and neither speaks of BBR.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.models import caia as caia_model
from crosswind.models import cubic as cubic_model
from crosswind.models import mathis as mathis_model
from crosswind.models import pftk as pftk_model
from crosswind.models import ping_pong as ping_pong_model
from crosswind.models import slow_start as slow_start_model
from crosswind.models.situation import ACKED_SEGMENTS, Situation, situation

DELAYED_ACK_S = 0.040


@dataclass(frozen=True)
class Prediction:
    """What a model says of one cell.

    Attributes:
        model, title, source: which. metric, statistic, unit: what it predicts, e.g. goodput, mean, bit/s.
        value: capped by the link, None where the model is silent. uncapped: by the formula alone.
        inputs: what went in, with units in the names. violated: assumptions the cell breaks. notes: other remarks.
    """

    model: str
    title: str
    source: str
    metric: str
    statistic: str
    unit: str
    value: float | None
    uncapped: float | None
    inputs: dict[str, float]
    violated: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Model:
    """A model of the registry: its name, what it predicts of which workload, and how."""

    name: str
    title: str
    source: str
    metric: str
    unit: str
    applies: Callable[[Situation], bool]
    rate: Callable[[Situation], float]
    violated: Callable[[Situation], list[str]]


def unknown_models(names: Iterable[str]) -> list[str]:
    """Which of `names` are no model; underscores may stand for hyphens."""
    return [name for name in names if name.replace("_", "-") not in MODELS]


def predict(name: str, parameters: Mapping[str, Any], *, measured_rtt_ns: float | None = None) -> Prediction | None:
    """The prediction of one model for one cell, or None when the model does not apply to the workload.

    Args:   name: key of MODELS; underscores may stand for hyphens. parameters: the cell (docs/cell-protocol.md).
            measured_rtt_ns: smallest round trip seen in the cell, used where the path has no delay.
    Raises: KeyError for an unknown name.
    """
    model = MODELS[name.replace("_", "-")]
    cell = situation(parameters, measured_rtt_ns)
    if not model.applies(cell):
        return None
    uncapped, notes = _formula(model, cell)
    value = uncapped
    limit = cell.link_goodput_bps
    if model.unit == "bit/s" and limit is not None:
        if uncapped is None and cell.loss == 0:
            value = limit
            notes.append("without loss the model is silent: the link is the limit")
        elif uncapped is not None and uncapped > limit:
            value = limit
            notes.append("capped by the link")
    violated = tuple(model.violated(cell)) if uncapped is not None else ()
    inputs = {"loss": cell.loss, "rtt_s": cell.rtt_s, "mss_bytes": cell.mss_bytes, "timeout_s": cell.timeout_s}
    if cell.rate_bps is not None:
        inputs["rate_bps"] = cell.rate_bps
    known = {key: float(part) for key, part in inputs.items() if part is not None}
    statistic = "mean"
    return Prediction(
        model.name, model.title, model.source, model.metric, statistic, model.unit,
        value, uncapped, known, violated, tuple(notes),
    )  # fmt: skip


def _formula(model: Model, cell: Situation) -> tuple[float | None, list[str]]:
    notes = list(cell.notes)
    if cell.rtt_s is None:
        return None, [*notes, "the model needs a round-trip time"]
    if model.unit == "bit/s" and cell.congestion_control.startswith("bbr"):
        return None, [*notes, "the model does not speak of BBR, which does not back off at each loss"]
    if model.unit == "bit/s" and cell.loss == 0:
        return None, notes
    try:
        return model.rate(cell), notes
    except ValueError as error:
        return None, [*notes, str(error)]


def _transfer(cell: Situation) -> bool:
    return cell.kind == "transfer" and cell.transport == "tcp"


def _sized(cell: Situation) -> bool:
    return _transfer(cell) and bool(cell.size_bytes) and cell.rate_bps is not None


def _lossless(cell: Situation) -> bool:
    return _transfer(cell) and bool(cell.size_bytes) and cell.loss == 0 == cell.loss_back


def _echo(cell: Situation) -> bool:
    return cell.kind == "echo" and cell.transport == "tcp"


def _known(number: float | None) -> float:
    if number is None:
        raise ValueError("the model needs a round-trip time")
    return number


def _pftk(formula: Callable[..., float]) -> Callable[[Situation], float]:
    def bits(cell: Situation) -> float:
        window = cell.window_segments or math.inf
        rate = formula(
            cell.loss, _known(cell.rtt_s), _known(cell.timeout_s), acked=ACKED_SEGMENTS, window_segments=window
        )
        return 8 * cell.mss_bytes * rate

    return bits


def _mathis(c: float) -> Callable[[Situation], float]:
    return lambda cell: mathis_model.mathis(cell.mss_bytes, _known(cell.rtt_s), cell.loss, c=c)


def _mathis_violated(cell: Situation) -> list[str]:
    return mathis_model.valid(cell.loss, cell.congestion_control)


def _pftk_violated(cell: Situation) -> list[str]:
    return pftk_model.valid(cell.loss, cell.congestion_control, cell.sack)


def _cubic_violated(cell: Situation) -> list[str]:
    return cubic_model.valid(_known(cell.rtt_s), cell.loss, cell.congestion_control)


def _slow_start(cell: Situation) -> float:
    seconds = slow_start_model.slow_start(
        _size(cell),
        rtt_s=_known(cell.rtt_s),
        rate_bps=cell.rate_bps,
        mss_bytes=cell.mss_bytes,
        packet_bytes=cell.packet_bytes,
        initial_window=cell.initial_window,
        window_segments=cell.window_segments or math.inf,
    )
    return seconds * 1e9


def _caia(cell: Situation) -> float:
    return caia_model.caia(_size(cell), _known(cell.rate_bps), cell.loss) * 1e9


def _caia_violated(cell: Situation) -> list[str]:
    return caia_model.valid(_size(cell), _known(cell.rate_bps), cell.loss, _known(cell.rtt_s))


def _ping_pong(cell: Situation) -> float:
    """A server whose client falls silent waits for a delayed ACK: that is its round trip, at least."""
    base = _known(cell.rtt_s)
    server = base if cell.closed_loop else max(base, DELAYED_ACK_S)
    return ping_pong_model.ping_pong(base, cell.loss, 2 * cell.min_rto_s + base + server) * 1e9


def _ping_pong_violated(cell: Situation) -> list[str]:
    packets = math.ceil((cell.size_bytes or 1) / cell.mss_bytes)
    broken = ping_pong_model.valid(cell.loss, packets, cell.closed_loop)
    if cell.loss != cell.loss_back:
        broken.append("loss differs between the directions")
    return broken


def _size(cell: Situation) -> int:
    return int(cell.size_bytes or 0)


_ALL = (
    Model("mathis", "Mathis, C = sqrt(3/2)", mathis_model.SOURCE, "goodput", "bit/s",
          _transfer, _mathis(mathis_model.C_EVERY_SEGMENT), _mathis_violated),
    Model("mathis-c1", "Mathis, C = 1", mathis_model.SOURCE, "goodput", "bit/s",
          _transfer, _mathis(1.0), _mathis_violated),
    Model("pftk", "PFTK, sending rate", pftk_model.SOURCE, "goodput", "bit/s",
          _transfer, _pftk(pftk_model.pftk), _pftk_violated),
    Model("pftk-goodput", "PFTK, goodput", pftk_model.SOURCE, "goodput", "bit/s",
          _transfer, _pftk(pftk_model.pftk_goodput), _pftk_violated),
    Model("pftk-approximate", "PFTK, short form", pftk_model.SOURCE, "goodput", "bit/s",
          _transfer, _pftk(pftk_model.pftk_approximate), _pftk_violated),
    Model("cubic", "CUBIC, RFC 9438", cubic_model.SOURCE, "goodput", "bit/s",
          _transfer, lambda cell: cubic_model.cubic(cell.mss_bytes, _known(cell.rtt_s), cell.loss), _cubic_violated),
    Model("slow-start", "Slow start, no loss", slow_start_model.SOURCE, "transfer_time", "ns",
          _lossless, _slow_start, lambda cell: slow_start_model.valid(cell.loss, cell.congestion_control == "cubic")),
    Model("caia", "CAIA exponential", caia_model.SOURCE, "transfer_time", "ns", _sized, _caia, _caia_violated),
    Model("ping-pong", "Doubling timer", ping_pong_model.SOURCE, "rtt", "ns", _echo, _ping_pong, _ping_pong_violated),
)  # fmt: skip

MODELS: dict[str, Model] = {model.name: model for model in _ALL}
"""Every model by name: the names that a study's `models` may list."""
