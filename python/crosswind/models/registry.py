"""Models by name: from a cell's parameters to a prediction that can stand beside the measurement.

A prediction says what it rests on and which of the model's assumptions the cell breaks. Where a model gives
no number there is none: Mathis and PFTK hold for paths with loss only, and neither describes BBR.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.metrics import METRICS
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
        value: capped by the link, None where the model gives none. uncapped: by the formula alone.
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
    applies: Callable[[Situation], bool]
    predicted: Callable[[Situation], float]
    violated: Callable[[Situation], list[str]]

    @property
    def unit(self) -> str:
        """The unit of what it predicts."""
        return METRICS[self.metric].unit.name


def unknown_models(names: Iterable[str]) -> list[str]:
    """Which of `names` are no model; underscores may stand for hyphens."""
    return [name for name in names if name.replace("_", "-") not in MODELS]


def model_named(name: str) -> Model:
    """A model by its name; underscores may stand for hyphens. Raises: KeyError for an unknown name."""
    return MODELS[name.replace("_", "-")]


def predict(name: str, parameters: Mapping[str, Any], *, measured_rtt_ns: float | None = None) -> Prediction | None:
    """The prediction of one model for one cell, or None when the model does not apply to the workload.

    Args:   name: as of `model_named`. parameters: the cell (docs/cell-protocol.md).
            measured_rtt_ns: smallest round trip seen in the cell, used where the path has no delay.
    Raises: KeyError for an unknown name.
    """
    return predict_situation(name, situation(parameters, measured_rtt_ns))


def predict_situation(name: str, cell: Situation) -> Prediction | None:
    """As `predict`, for a cell in the models' terms."""
    model = model_named(name)
    if not model.applies(cell):
        return None
    uncapped, notes = _formula(model, cell)
    value, more = _capped(model, cell, uncapped)
    return Prediction(
        model=model.name,
        title=model.title,
        source=model.source,
        metric=model.metric,
        statistic="mean",
        unit=model.unit,
        value=value,
        uncapped=uncapped,
        inputs=_inputs(cell),
        violated=tuple(model.violated(cell)) if uncapped is not None else (),
        notes=(*notes, *more),
    )


def _capped(model: Model, cell: Situation, uncapped: float | None) -> tuple[float | None, list[str]]:
    """A throughput as the link allows it, and what the link has to do with it."""
    limit = cell.link_goodput_bps
    if model.metric != "goodput" or limit is None:
        return uncapped, []
    if uncapped is None and cell.loss == 0:
        return limit, ["the model gives no number without loss; predicted is what the link can carry"]
    if uncapped is not None and uncapped > limit:
        return limit, ["capped by the link"]
    return uncapped, []


def _inputs(cell: Situation) -> dict[str, float]:
    """The numbers that a prediction rests on, as far as they are known, with units in their names."""
    inputs = {
        "loss": cell.loss,
        "rtt_s": cell.rtt_s,
        "mss_bytes": cell.mss_bytes,
        "timeout_s": cell.timeout_s,
        "rate_bps": cell.rate_bps,
    }
    return {name: float(number) for name, number in inputs.items() if number is not None}


def _formula(model: Model, cell: Situation) -> tuple[float | None, list[str]]:
    notes = list(cell.notes)
    if cell.rtt_s is None:
        return None, [*notes, "the model needs a round-trip time"]
    if model.metric == "goodput" and cell.congestion_control.startswith("bbr"):
        return None, [*notes, "the model does not describe BBR, which does not slow down at each loss"]
    if model.metric == "goodput" and cell.loss == 0:
        return None, notes
    try:
        return model.predicted(cell), notes
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
    """A server whose client sends nothing more waits for a delayed ACK: that is its round trip, at least."""
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
    Model("mathis", "Mathis, C = sqrt(3/2)", mathis_model.SOURCE, "goodput",
          _transfer, _mathis(mathis_model.C_EVERY_SEGMENT), _mathis_violated),
    Model("mathis-c1", "Mathis, C = 1", mathis_model.SOURCE, "goodput",
          _transfer, _mathis(1.0), _mathis_violated),
    Model("pftk", "PFTK, sending rate", pftk_model.SOURCE, "goodput",
          _transfer, _pftk(pftk_model.pftk), _pftk_violated),
    Model("pftk-goodput", "PFTK, goodput", pftk_model.SOURCE, "goodput",
          _transfer, _pftk(pftk_model.pftk_goodput), _pftk_violated),
    Model("pftk-approximate", "PFTK, short form", pftk_model.SOURCE, "goodput",
          _transfer, _pftk(pftk_model.pftk_approximate), _pftk_violated),
    Model("cubic", "CUBIC, RFC 9438", cubic_model.SOURCE, "goodput",
          _transfer, lambda cell: cubic_model.cubic(cell.mss_bytes, _known(cell.rtt_s), cell.loss), _cubic_violated),
    Model("slow-start", "Slow start, no loss", slow_start_model.SOURCE, "transfer_time",
          _lossless, _slow_start, lambda cell: slow_start_model.valid(cell.loss, cell.congestion_control == "cubic")),
    Model("caia", "CAIA exponential", caia_model.SOURCE, "transfer_time", _sized, _caia, _caia_violated),
    Model("ping-pong", "Doubling timer", ping_pong_model.SOURCE, "rtt", _echo, _ping_pong, _ping_pong_violated),
)  # fmt: skip

MODELS: dict[str, Model] = {model.name: model for model in _ALL}
"""Every model by name: the names that a study's `models` may list."""
