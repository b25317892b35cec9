"""A workload's client or server, as a study writes it (docs/peers.md)."""

from typing import Any

from crosswind.errors import did_you_mean
from crosswind.peers.registry import NATIVE, PEERS, peer_names
from crosswind.study.levels import Peer
from crosswind.study.number_types import DURATION
from crosswind.text.units import UnitError, parse_duration, shown

PEER_EXAMPLE = '"chromium"'
_KEYS = ("command", "ready", "start_timeout", "name")
_TABLE = '{ command = ["{python}", "client.py"] }'


def read_peer(end: str, raw: object) -> Peer | None:
    """A peer as it is written: its name, or a table with its command; None for Crosswind's own.

    Args: end: "client" or "server". Raises: UnitError.
    """
    if isinstance(raw, str):
        return _known(end, raw)
    if isinstance(raw, dict):
        return _own(end, raw)
    raise UnitError(f"{shown(raw)} is not a {end}", hint=f"write {PEER_EXAMPLE} or {_TABLE}")


def peer_schema(end: str) -> dict[str, Any]:
    """The JSON Schema of one."""
    text = {"type": "string", "minLength": 1}
    properties: dict[str, Any] = {
        "command": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "name": text,
    }
    if end == "server":
        properties["ready"] = text
    properties["start_timeout"] = DURATION.schema
    table = {"type": "object", "properties": properties, "required": ["command"], "additionalProperties": False}
    return {"anyOf": [{"enum": list(peer_names(end))}, table]}


def _known(end: str, name: str) -> Peer | None:
    if name == NATIVE:
        return None
    peer = PEERS.get(name)
    if peer is None:
        close = did_you_mean(name, peer_names(end))
        hint = close if close.startswith("did you mean") else f"{close}; or {_TABLE}"
        raise UnitError(f"{shown(name)} is not a {end}", hint=hint)
    command = peer.command(end)
    if command is None:
        raise UnitError(f"{name} cannot be a {end}", hint="known: " + ", ".join(peer_names(end)))
    return Peer(name, command)


def _own(end: str, table: dict[str, Any]) -> Peer:
    for key in table:
        if key not in _KEYS:
            raise UnitError(f"{shown(key)} is not a key of a {end}", hint=did_you_mean(key, _KEYS))
    command, ready = table.get("command"), table.get("ready")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise UnitError(f"{shown(command)} is not the command of a {end}", hint=f"write {_TABLE}")
    if ready is not None and not isinstance(ready, str):
        hint = '"tcp:{port}", "udp:{port}", "log:TEXT" or "run:COMMAND"'
        raise UnitError(f"{shown(ready)} is not a sign of readiness", hint=hint)
    limit = table.get("start_timeout")
    limit_ns = None if limit is None else int(parse_duration(str(limit)))
    name = table.get("name", " ".join(command))
    if not isinstance(name, str) or name in peer_names():
        raise UnitError(
            f"{shown(name)} is not a name for a {end}", hint="any text that is not the name of a known peer"
        )
    return Peer(name, tuple(command), ready, limit_ns)
