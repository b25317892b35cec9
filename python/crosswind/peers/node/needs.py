"""What the peers node and deno lack on this machine."""

from crosswind.errors import EngineError
from crosswind.peers.node.install import deno_program, installed_packages, node_program
from crosswind.peers.registry import Missing


def missing_for_node() -> Missing | None:
    """What the peer `node` lacks."""
    return _missing("node")


def missing_for_deno() -> Missing | None:
    """What the peer `deno` lacks."""
    return _missing("deno")


def _missing(name: str) -> Missing | None:
    try:
        installed_packages()
        _ = node_program() if name == "node" else deno_program()
    except EngineError as error:
        return Missing(f"the peer {name} cannot run: {error.message}", error.hint or "")
    return None
