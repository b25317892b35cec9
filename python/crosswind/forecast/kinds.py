"""What tells cells and plans from others on a machine that learns what they take, and what cells have in common."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from crosswind.ends import NETWORK, is_virtual, peers_of

_OF_ONE_RUN = ("schema", "id", "seed", "output", "deadline_ns")


@dataclass(frozen=True)
class Kind:
    """What cells have in common that take as much longer than their parameters say.

    Attributes: clock: `real` or `virtual`. transport: None of a workload without one. between: what is between the
        hosts: a path that loses packets (`loss`) or none (`clean`), or a network that is really there (`network`), of
        which nothing else is known. peers: their names.
    """

    clock: str
    workload: str
    transport: str | None
    between: str
    peers: tuple[str, ...] = ()

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """The kind of a cell as crosswind-cell takes it."""
        workload, path = parameters.get("workload", {}), parameters.get("path", {})
        clock = "virtual" if is_virtual(parameters) else "real"
        lossy = any((path.get(way) or {}).get("loss") for way in ("forward", "reverse"))
        between = NETWORK if path.get("backend") == NETWORK else "loss" if lossy else "clean"
        peers = tuple(peers_of(parameters).values())
        return cls(clock, str(workload.get("kind")), workload.get("transport"), between, peers)

    @property
    def name(self) -> str:
        """What it is kept under: "real echo tcp loss", and with peers "real echo tcp loss chromium node"."""
        return " ".join([self.clock, self.workload, self.transport or "-", self.between, *self.peers])


@dataclass(frozen=True)
class CellTime:
    """One run of a cell: which cell, of which kind, and what it takes in seconds of the machine's time.

    Attributes: key: as `key_of` gives it. predicted_s: computed from its parameters. alone: whether nothing may run
        beside it, by its parameters.
    """

    key: str
    kind: Kind
    predicted_s: float
    alone: bool = False

    @property
    def clock(self) -> str:
        """`real` or `virtual`."""
        return self.kind.clock

    @property
    def sort(self) -> str:
        """All kinds on its clock with its peers that may have others beside them, or none.

        A browser's start takes many times what a cell of Crosswind's own ends does.
        """
        return " ".join([company(self.clock, alone=self.alone), *self.kind.peers])


def key_of(parameters: Mapping[str, Any]) -> str:
    """What tells a cell from every other, whatever its study, repetition and seed."""
    kept = {name: value for name, value in parameters.items() if name not in _OF_ONE_RUN}
    return _short_hash(json.dumps(kept, sort_keys=True, separators=(",", ":")))


def plan_key(cells: Iterable[str]) -> str:
    """What tells a plan from others: which cells it runs and how often. Args: cells: the key of each of its runs."""
    return _short_hash(" ".join(sorted(cells)))


def company(clock: str, *, alone: bool) -> str:
    """The repetitions of a session on a clock that run side by side, or one by one. Args: clock: `real`, `virtual`."""
    return f"{clock}, {'alone' if alone else 'beside others'}"


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
