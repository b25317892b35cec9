"""The peers node and deno as ends of a cell."""

import sys
from typing import Any

from conftest import missing, requires
from crosswind.peers.registry import PEERS


def peer(name: str) -> dict[str, Any]:
    """A peer as a cell has it, where it can run."""
    lacks = PEERS[name].missing("socketio-websocket")
    if lacks is not None:
        missing(f"{lacks.problem}: {lacks.hint}")
    if name == "node":
        requires("node")
    command = PEERS[name].command("client")
    assert command is not None
    return {"name": name, "command": [word.replace("{python}", sys.executable) for word in command]}


def ends(client: str, server: str) -> dict[str, Any]:
    """Client and server of a workload; what is native is left out."""
    return {end: peer(name) for end, name in (("client", client), ("server", server)) if name != "native"}
