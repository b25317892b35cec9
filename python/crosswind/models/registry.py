"""Models by name. A model is one file, and one line here."""

from collections.abc import Iterable

from crosswind.models import (
    bbr,
    caia,
    cardwell,
    cubic,
    mathis,
    pftk,
    ping_pong,
    quic_ping_pong,
    simulated,
    slow_start,
    transfer,
)
from crosswind.models.model import Model

_ALL = (
    mathis.MODEL,
    mathis.MODEL_C1,
    pftk.MODEL,
    pftk.MODEL_GOODPUT,
    pftk.MODEL_APPROXIMATE,
    cubic.MODEL,
    bbr.MODEL,
    slow_start.MODEL,
    cardwell.MODEL,
    transfer.MODEL,
    simulated.MODEL,
    caia.MODEL,
    ping_pong.MODEL,
    quic_ping_pong.MODEL,
)

MODELS: dict[str, Model] = {model.name: model for model in _ALL}
"""Every model by name: the names that a study's `models` may list."""


def unknown_models(names: Iterable[str]) -> list[str]:
    """Which of `names` are no model; underscores may stand for hyphens."""
    return [name for name in names if name.replace("_", "-") not in MODELS]


def model_named(name: str) -> Model:
    """A model by its name; underscores may stand for hyphens. Raises: KeyError for an unknown name."""
    return MODELS[name.replace("_", "-")]
