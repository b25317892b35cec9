"""The path between client and server as a small picture, drawn in the page's own words and colours."""

from collections.abc import Sequence

from crosswind.analysis.result import Condition, Conditions, NetworkConditions
from crosswind.report.markup import escaped, terms_html
from crosswind.report.text.conditions import condition_lines, path_text, round_trip_text, values_text


def conditions_html(conditions: Conditions) -> str:
    """The picture, and below it what it does not show, as a list of terms."""
    lines = [line for line in condition_lines(conditions) if not line.about.startswith(("Path", "Network"))]
    terms = terms_html((line.about, line.text) for line in lines)
    return f'<div class="conditions">{_picture(conditions)}{terms}</div>'


def _picture(conditions: Conditions) -> str:
    """Client, server, and between them the way there and the way back with what each does to a packet."""
    if conditions.network is not None:
        return _network_picture(conditions.network)
    ways = conditions.path if len(conditions.path) == 2 else [*conditions.path, None]
    there, back = (None if way is None else way.settings for way in ways)
    words = "; ".join(f"{way.direction}: {path_text(way.settings)}" for way in conditions.path)
    middle = _way("there", there) + _way("back", there if back is None else back)
    return (
        f'<div class="path" role="img" aria-label="{escaped("Path, " + words)}"><div class="host">client</div>'
        f'<div class="ways">{middle}</div><div class="host">server</div></div>'
    )


def _network_picture(network: NetworkConditions) -> str:
    """The same of a network that is really there, of which nobody knows what it does to a packet."""
    trip = f"round trip {round_trip_text(network)}"
    words = f"network between this machine and {network.server}, {trip}"
    element = f'<span class="element">{escaped(f"the network that is there, {trip}")}</span>'
    middle = "".join(f'<div class="way {direction}">{element}</div>' for direction in ("there", "back"))
    return (
        f'<div class="path" role="img" aria-label="{escaped(words)}"><div class="host">this machine</div>'
        f'<div class="ways">{middle}</div><div class="host">{escaped(network.server)}</div></div>'
    )


def _way(direction: str, settings: Sequence[Condition] | None) -> str:
    """One direction: an arrow with its elements on it."""
    elements = "".join(_element(setting) for setting in settings or ())
    return f'<div class="way {direction}">{elements or _NOTHING}</div>'


def _element(setting: Condition) -> str:
    kind = "element varied" if setting.is_factor else "element"
    return f'<span class="{kind}"><b>{escaped(setting.name)}</b> {escaped(values_text(setting))}</span>'


_NOTHING = '<span class="element">nothing between</span>'
