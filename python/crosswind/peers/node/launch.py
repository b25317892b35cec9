"""Starts a runtime with the peers' program: this process becomes it, so signals and streams are its own."""

import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from crosswind.errors import CrosswindError
from crosswind.peers.node.install import deno_program, installed_packages, node_program

PROGRAM = Path(__file__).parent / "js" / "main.mjs"


def launch(runtime: str) -> NoReturn:
    """Becomes the peer `runtime`: node or deno. Where it cannot, prints why as a peer does and ends with status 1."""
    try:
        command = command_line(runtime)
        os.execvpe(command[0], command, {**os.environ, **_environment()})
    except (CrosswindError, OSError) as error:
        hint = error.hint if isinstance(error, CrosswindError) else None
        print(json.dumps({"event": "error", "message": str(error), "hint": hint}), flush=True)
    sys.exit(1)


def command_line(runtime: str) -> list[str]:
    """The peer's command. Raises: EngineError when the runtime or its packages are not installed."""
    packages = installed_packages()
    if runtime == "node":
        return [node_program(), str(PROGRAM), str(packages)]
    flags = ["--allow-all", "--unstable-net", "--no-check", "--no-config", "--no-lock", "--quiet"]
    return [str(deno_program()), "run", *flags, str(PROGRAM), str(packages)]


def _environment() -> dict[str, str]:
    return {"DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
