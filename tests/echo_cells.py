"""Cells of echoes around given means, repetition by repetition."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crosswind.cell.record import CellRun
from records import MS, echoes, path, run

BASE_MS = [20, 23, 21, 26, 22, 24]
"""Means of six repetitions."""


def parameters(
    seed: int = 1, *, delay_ns: int = 10 * MS, clock: str = "virtual", transport: str = "udp", loss: float = 0.0
) -> dict[str, Any]:
    return {
        "id": f"seed-{seed}",
        "seed": seed,
        "path": path(delay_ns=delay_ns, loss=loss),
        "host": {"clock": clock},
        "workload": {"kind": "echo", "transport": transport},
        "output": {"packets": False},
    }


def repetitions(
    means_ms: Sequence[float | None], *, cell: int = 0, first_seed: int = 100, each: int = 20, **changes: Any
) -> list[CellRun]:
    """Repetitions of a cell, each of so many echoes around a mean; None: all of them timed out."""
    levels = changes.pop("levels", {})
    made = []
    for number, mean_ms in enumerate(means_ms):
        around = np.linspace(-1, 1, each)
        rtts = [None if mean_ms is None else round((mean_ms + offset) * MS) for offset in around]
        given = parameters(first_seed + number, **changes)
        made.append(run(cell, echoes(rtts), levels, repetition=number, parameters=given))
    return made


def exact(mean_ms: float, delay_ns: int = 10 * MS) -> list[CellRun]:
    (only,) = repetitions([mean_ms], clock="virtual", delay_ns=delay_ns)
    return [replace(only, exact=True)]
