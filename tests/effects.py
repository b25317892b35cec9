"""What a path does, worked out from the keys of its own elements: as crosswind-cell says it, for cells made by hand."""

from collections.abc import Mapping
from typing import Any

from crosswind import models
from crosswind.catalog.path_effect import DIRECTIONS, DirectionEffect, PathEffect

FRAME_BYTES = 38
"""Header, FCS, preamble and gap of an Ethernet frame."""


def effect_of(parameters: Mapping[str, Any]) -> PathEffect:
    """The effect of the path of a cell, whose keys may be absent."""
    path = parameters.get("path") or {}
    changing = {way for change in path.get("changes") or [] for way in change}
    return PathEffect(**{way: _direction(path.get(way) or {}, changes=way in changing) for way in DIRECTIONS})


def situation(parameters: Mapping[str, Any], measured_rtt_ns: float | None = None) -> models.Situation:
    """A cell made by hand in the models' terms."""
    return models.situation(parameters, effect_of(parameters), measured_rtt_ns)


def predict(name: str, parameters: Mapping[str, Any], **options: Any) -> models.Prediction | None:
    """What a model says of a cell made by hand."""
    return models.predict(name, parameters, effect_of(parameters), **options)


def _direction(keys: Mapping[str, Any], *, changes: bool) -> DirectionEffect:
    loss = float(keys.get("loss") or 0.0)
    return DirectionEffect(
        delay_ns=keys.get("delay_ns") or 0,
        loss=loss,
        rate_bps=keys.get("rate_bps"),
        frame_bytes=FRAME_BYTES if keys.get("count") == "ethernet" else 0,
        loss_after_loss=loss,
        queue=keys.get("queue"),
        mtu_bytes=keys.get("link_mtu_bytes"),
        random_delay=bool(keys.get("random_delay")),
        changes=changes,
    )
