"""The plan of a run, `plan.jsonl`: one line a repetition, in the order in which they are to run."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from crosswind.ends import NETWORK, is_virtual, peers_of, runs_programs
from crosswind.errors import StoreError
from crosswind.store.files import write_json_lines

PLAN = "plan.jsonl"


@dataclass(frozen=True)
class PlannedCell:
    """One repetition of one cell.

    Attributes:
        key: names cell and repetition, as `c003-r02`. order: its place in the plan, from 0.
        cell: index of the cell, which its repetitions share. repetition, block: from 0.
        levels: dotted key of each factor to its level, as written.
        parameters: the cell as crosswind-cell reads it (docs/cell-protocol.md).
        expected_ns, expected_packets, expected_bytes: what it is forecast to take, of both directions.
        expected_load: processors that it is forecast to keep busy.
        undelayed: whether processors and not the path decide how long its exchanges take: it runs alone.
        exact: whether nothing in it is left to chance, so that this repetition stands for all.
    """

    key: str
    order: int
    cell: int
    repetition: int
    block: int
    seed: int
    levels: Mapping[str, str]
    parameters: Mapping[str, Any]
    expected_ns: int
    expected_packets: int
    expected_bytes: int
    expected_load: float
    exact: bool = False
    undelayed: bool = False

    @property
    def backend(self) -> str:
        """What carries its packets: `tun`, the emulator, unless the cell says otherwise."""
        return str(self.parameters.get("path", {}).get("backend", "tun"))

    @property
    def is_over_network(self) -> bool:
        """Whether it runs over the network that is really there."""
        return self.backend == NETWORK

    @property
    def workload(self) -> str:
        """Its kind of workload and its transport: "echo tcp"."""
        workload = self.parameters.get("workload", {})
        return f"{workload.get('kind')} {workload.get('transport')}"

    @property
    def runs_programs(self) -> bool:
        """Whether it runs programs that somebody else wrote."""
        return runs_programs(self.parameters)

    @property
    def peers(self) -> dict[str, str]:
        """The names of the peers in the place of its client and its server, by end; of Crosswind's own, none."""
        return peers_of(self.parameters)

    @property
    def is_virtual(self) -> bool:
        """Whether it runs in virtual time."""
        return is_virtual(self.parameters)

    @property
    def kernel(self) -> str | None:
        """The series of the kernel of virtual time that it asks for."""
        series: str | None = self.parameters.get("host", {}).get("kernel")
        return series

    @property
    def budget(self) -> Mapping[str, float]:
        """What it sets of the fidelity budget."""
        return self.parameters.get("budget") or {}

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The repetition that was stored. Raises: KeyError for a key that every version has written."""
        # Versions without forecasts ran cells one after another, as those are that keep a whole processor busy.
        known = {
            "expected_ns": 0,
            "expected_packets": 0,
            "expected_bytes": 0,
            "expected_load": 1.0,
            "exact": False,
            "undelayed": False,
            **data,
        }
        return cls(**{field.name: known[field.name] for field in fields(cls)})


def write_plan(directory: Path, plan: Iterable[PlannedCell]) -> None:
    """Writes the plan of a run. Raises: OSError."""
    write_json_lines(directory / PLAN, (planned.as_json() for planned in plan))


def read_plan(directory: Path) -> tuple[PlannedCell, ...]:
    """The plan of a run. Raises: StoreError when it cannot be read."""
    path = directory / PLAN
    try:
        return tuple(_read_lines(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or error
        raise StoreError(
            f"cannot read {path}: {reason}", hint="restore the file from a copy, or run the study anew"
        ) from None


def _read_lines(path: Path) -> Iterator[PlannedCell]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield PlannedCell.from_json(json.loads(line))
