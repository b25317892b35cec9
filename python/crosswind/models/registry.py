"""Models by name. A model is one file, and one line here.

A model is imported at its first use: a plan needs names alone, and should not wait for numpy.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module

from crosswind.models.model import Model

_PLACES: Mapping[str, str] = {
    "mathis": "mathis.MODEL",
    "mathis-c1": "mathis.MODEL_C1",
    "pftk": "pftk.MODEL",
    "pftk-goodput": "pftk.MODEL_GOODPUT",
    "pftk-approximate": "pftk.MODEL_APPROXIMATE",
    "cubic": "cubic.MODEL",
    "bbr": "bbr.MODEL",
    "slow-start": "slow_start.MODEL",
    "cardwell": "cardwell.MODEL",
    "transfer": "transfer.MODEL",
    "simulated": "simulated.MODEL",
    "caia": "caia.MODEL",
    "ping-pong": "ping_pong.MODEL",
    "quic-ping-pong": "quic_ping_pong.MODEL",
}


class _Models(Mapping[str, Model]):
    """The models, each imported when it is looked up; names alone import nothing."""

    def __getitem__(self, name: str) -> Model:
        return _loaded(_PLACES[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)

    def __contains__(self, name: object) -> bool:
        return name in _PLACES


MODELS: Mapping[str, Model] = _Models()
"""Every model by name, as allowed in a study's `models`."""


def unknown_models(names: Iterable[str]) -> list[str]:
    """The unknown ones among `names`; underscores may stand for hyphens."""
    return [name for name in names if name.replace("_", "-") not in MODELS]


def model_named(name: str) -> Model:
    """A model by its name; underscores may stand for hyphens. Raises: KeyError for an unknown name."""
    return MODELS[name.replace("_", "-")]


@cache
def _loaded(place: str) -> Model:
    module, _, constant = place.partition(".")
    model = getattr(import_module(f"crosswind.models.{module}"), constant)
    assert isinstance(model, Model)
    return model
