"""The abilities of the peers node and deno, known before a run. Their programs read the same file (js/job.mjs)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosswind.errors import EngineError

_ABILITIES = json.loads(Path(__file__).with_name("abilities.json").read_text("utf-8"))
TRANSPORTS: Mapping[str, tuple[str, ...]] = {name: tuple(of) for name, of in _ABILITIES["transports"].items()}
"""By runtime."""
OLDEST_NODE: int = _ABILITIES["oldest_node"]
"""The oldest major version with all features used by the packages and the peers."""
WORKLOADS: Mapping[str, tuple[str, ...]] = {end: tuple(of) for end, of in _ABILITIES["workloads"].items()}
"""By end."""


def check_node(end: str, workload: Mapping[str, Any]) -> None:
    """Raises: EngineError for a workload, with every default filled in, impossible for Node as this end."""
    _check("node", end, workload)


def check_deno(end: str, workload: Mapping[str, Any]) -> None:
    """The same for Deno."""
    _check("deno", end, workload)


def _check(runtime: str, end: str, workload: Mapping[str, Any]) -> None:
    transport, kind = workload["transport"], workload["kind"]
    if transport not in TRANSPORTS[runtime]:
        able = next((other for other, carried in TRANSPORTS.items() if transport in carried), "native")
        carried = ", ".join(TRANSPORTS[runtime])
        raise EngineError(
            f"a {runtime} {end} does not carry {transport}", hint=f'use {end} = "{able}"; {runtime} carries {carried}'
        )
    if kind not in WORKLOADS[end]:
        raise EngineError(
            f"a {runtime} {end} has no workload {kind}",
            hint=f'use {end} = "native"; {runtime} has {", ".join(WORKLOADS[end])}',
        )
    if end == "client" and workload.get("resumption", "none") != "none":
        raise EngineError(
            f"a {runtime} client resumes no sessions", hint='use resumption = "none", or client = "native"'
        )
