"""The plan of a run, `plan.jsonl`: one line a repetition, in the order in which they are to run."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from crosswind.ends import EMULATOR, NETWORK, is_virtual, peers_of, runs_programs
from crosswind.errors import StoreError
from crosswind.path_effect import PathEffect
from crosswind.regular_files import read_regular
from crosswind.store.checksums import CHANGED, Checksum
from crosswind.store.files import write_json_lines

PLAN = "plan.jsonl"


@dataclass(frozen=True)
class PlannedCell:
    """One repetition of one cell.

    Attributes:
        key: names cell and repetition, as `c003-r02`. order: its place in the plan, from 0.
        cell: index of the cell, which its repetitions share. repetition, block: from 0.
        levels: dotted key of each factor to its level, as written.
        parameters: the cell as crosswind-cell reads it (docs/cell-protocol.md). effect: what its path does.
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
    effect: PathEffect
    expected_ns: int
    expected_packets: int
    expected_bytes: int
    expected_load: float
    exact: bool = False
    undelayed: bool = False

    @property
    def backend(self) -> str:
        """What carries its packets: `tun`, the emulator, unless the cell says otherwise."""
        return str(self.parameters.get("path", {}).get("backend", EMULATOR))

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
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"effect": asdict(self.effect)}

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
            "effect": PathEffect.from_stored(data["effect"]),
        }
        return cls(**{field.name: known[field.name] for field in fields(cls)})


def write_plan(directory: Path, plan: Iterable[PlannedCell]) -> Checksum:
    """Writes the plan of a run. Returns: its checksum. Raises: OSError."""
    write_json_lines(directory / PLAN, (planned.as_json() for planned in plan))
    return Checksum.of(directory / PLAN)


def drop_unlisted(directory: Path, checksum: Checksum) -> None:
    """Removes what a session added to the plan that died before the manifest said so. Raises: OSError."""
    path = directory / PLAN
    if path.stat().st_size > checksum.size_bytes:
        os.truncate(path, checksum.size_bytes)


def read_plan(directory: Path, checksum: Checksum, *, may_be_longer: bool) -> tuple[PlannedCell, ...]:
    """The plan of a run.

    Args: checksum: what the manifest says of it. may_be_longer: whether a session may have died between adding to the
        plan and saying so in the manifest; what it added is left out.
    Raises: StoreError when it cannot be read, or has changed.
    """
    path = directory / PLAN
    try:
        content = read_regular(path)
        whole = content[: checksum.size_bytes] if may_be_longer else content
        if Checksum.of_bytes(whole) != checksum:
            raise ValueError(f"it {CHANGED}")
        return tuple(PlannedCell.from_json(json.loads(line)) for line in whole.splitlines())
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or error
        raise StoreError(
            f"cannot read {path}: {reason}", hint="restore the file from a copy, or run the study anew"
        ) from None
