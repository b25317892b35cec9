"""What `crosswind-cell --listen` and `--watch` print: an event a line, as JSON."""

import json
from typing import Any

from crosswind.cell.binary import REINSTALL
from crosswind.errors import EngineError


def mode_event(line: bytes, mode: str) -> dict[str, Any]:
    """An event of a mode, as "--listen". Raises: EngineError for what is none."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise EngineError(f"crosswind-cell {mode} printed what is no event: {line[:80]!r}", hint=REINSTALL)
    return event
