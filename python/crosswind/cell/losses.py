"""Which packets a cell loses with which seed: crosswind-cell tells it without running the cell."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosswind.cell.check import KEPT_STDERR_BYTES
from crosswind.errors import EngineError

_TIMEOUT_S = 300.0

Lost = tuple[tuple[int, ...], tuple[int, ...]]
"""The indices of lost packets, client to server and server to client."""


def lost_packets(
    parameters: Mapping[str, Any], seeds: Sequence[int], packets: tuple[int, int], *, binary: Path
) -> list[Lost]:
    """What a cell loses among the first packets of both directions, for each seed.

    Args:   parameters: a cell whose losses depend on packets' indices alone.
    Raises: EngineError without an answer.
    """
    cell = {key: value for key, value in parameters.items() if key != "output"}
    asked = {"cell": cell, "seeds": seeds, "packets": {"forward": packets[0], "reverse": packets[1]}}
    try:
        process = subprocess.run(
            [binary, "--losses"], input=json.dumps(asked).encode(), capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        raise EngineError(f"{binary} --losses has not answered: {error}") from error
    if process.returncode:
        said = (process.stdout + process.stderr)[-KEPT_STDERR_BYTES:].decode(errors="replace").strip()
        raise EngineError(f"{binary} --losses ended with status {process.returncode}: {said}")
    return [(tuple(each["forward"]), tuple(each["reverse"])) for each in json.loads(process.stdout)]
