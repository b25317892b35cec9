"""A run's plan, `plan.jsonl`: every cell once, and its repetitions' order.

    {"cell": 3, "levels": ..., "parameters": ..., ...}                       a cell, before its first repetition
    {"repetition": 0, "block": 0, "seed": 17, "cells": [3, 1, 2]}            repetition 0 of these cells, in this order
    {"repetition": 1, ..., "cells": [3], "disturbed": {"packets": [["forward", 0]]}}   losing a packet

A plan with a million repetitions takes five megabytes.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import chain
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

from crosswind.catalog.disturbed import Disturbed
from crosswind.catalog.endpoints import EMULATOR, NETWORK, all_peers_of, has_programs, is_virtual, runs_programs
from crosswind.catalog.path_effect import PathEffect
from crosswind.errors import StoreError
from crosswind.files.damage import NOT_WHAT_WAS_WRITTEN
from crosswind.files.inside import open_inside
from crosswind.store.checksums import CHANGED, Checksum, json_bytes
from crosswind.store.files import write_whole
from crosswind.store.run_file import RunFile
from crosswind.study.identity import repetition_key

PLAN = "plan.jsonl"
_KEY = re.compile(r"[\w-]+")
"""A directory's name."""
_OF_A_REPETITION = ("key", "order", "repetition", "block", "seed", "disturbed")


@dataclass(frozen=True)
class PlannedCell:
    """One repetition of one cell.

    Attributes:
        key: names cell and repetition, as `c003-r02`. order: its place in the plan, from 0.
        cell: index, shared by its repetitions. repetition, block: from 0.
        levels: each factor's dotted key to its level, as written.
        parameters: the cell for crosswind-cell (docs/cell-protocol.md). effect: its path's.
        expected_ns, expected_packets, expected_bytes: forecasts, both directions together.
        expected_load: processors kept busy, by forecast.
        undelayed: whether processors and not the path decide its exchanges' times: it runs alone.
        exact: whether nothing in it is random, so one repetition stands for all.
        repeats: how many repetitions its cell has in all, where those that lose the same packets are the same, and join
            the plan once that is known; None for other cells.
        disturbed: packets that this repetition loses or holds back, by design; None: none.
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
    repeats: int | None = None
    disturbed: Disturbed | None = None

    @property
    def backend(self) -> str:
        """Its packets' carrier: `tun`, the emulator, by default."""
        return str(self.parameters.get("path", {}).get("backend", EMULATOR))

    @property
    def is_over_network(self) -> bool:
        """Whether it runs over a real network."""
        return self.backend == NETWORK

    @property
    def workload(self) -> str:
        """Its workload's kind and transport: "echo tcp"."""
        workload = self.parameters.get("workload", {})
        return f"{workload.get('kind')} {workload.get('transport')}"

    @property
    def runs_programs(self) -> bool:
        """Whether it runs third-party programs."""
        return runs_programs(self.parameters)

    @property
    def has_programs(self) -> bool:
        """Whether it runs some, as its workload or as a flow beside it."""
        return has_programs(self.parameters)

    @property
    def peers(self) -> list[str]:
        """Third-party peers at its ends and its flows'."""
        return list(all_peers_of(self.parameters).values())

    @property
    def is_virtual(self) -> bool:
        """Whether it runs in virtual time."""
        return is_virtual(self.parameters)

    @property
    def budget(self) -> Mapping[str, float]:
        """Its own settings for the fidelity budget."""
        return self.parameters.get("budget") or {}

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)} | {"effect": asdict(self.effect)}
        if self.repeats is None:
            del plain["repeats"]
        return _with_disturbed(plain, self.disturbed)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads the stored form. Raises: KeyError for a missing key."""
        read = {"effect": PathEffect.from_stored(data["effect"]), "disturbed": Disturbed.of(data.get("disturbed"))}
        read["repeats"] = data.get("repeats")
        return cls(**{name: data[name] for name in _FIELDS if name not in read} | read)


_FIELDS = tuple(field.name for field in fields(PlannedCell))


def _with_disturbed(data: dict[str, Any], disturbed: Disturbed | None) -> dict[str, Any]:
    """A stored form, without the key where nothing is disturbed."""
    del data["disturbed"]
    return data if disturbed is None else {**data, "disturbed": disturbed.as_json()}


class Block(NamedTuple):
    """A repetition's identity within its cell. Attributes: as in `PlannedCell`."""

    repetition: int
    block: int
    seed: int
    disturbed: Disturbed | None = None


_NO_REPETITION = {"key": "", "order": 0, **Block(0, 0, 0)._asdict()}


class StoredPlan(Sequence[PlannedCell]):
    """A plan's repetitions, each made on demand: a million would not fit into memory.

    Attributes: keys, cells, repetitions: per repetition, in planned order. kinds: per cell, a repetition without a key.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Raises: KeyError, TypeError, ValueError for a malformed line."""
        self.keys: list[str] = []
        self.cells: list[int] = []
        self.repetitions: list[int] = []
        self.kinds: list[PlannedCell] = []
        self._kind: dict[int, int] = {}
        self._own: list[tuple[int, Block]] = []
        for line in lines:
            self._take(json.loads(line))

    @overload
    def __getitem__(self, index: int) -> PlannedCell: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PlannedCell, ...]: ...
    def __getitem__(self, index: int | slice) -> PlannedCell | tuple[PlannedCell, ...]:
        if isinstance(index, slice):
            return tuple(map(self.__getitem__, range(len(self))[index]))
        at = range(len(self))[index]
        kind, block = self._own[at]
        return repetition_of(self.kinds[kind], self.keys[at], at, block)

    def __len__(self) -> int:
        return len(self.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self.keys))

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where in the plan each repetition is, by its key."""
        return {key: at for at, key in enumerate(self.keys)}

    @property
    def seeds(self) -> list[int]:
        """Per repetition, in planned order."""
        return [block.seed for _, block in self._own]

    @property
    def last_repetitions(self) -> dict[int, int]:
        """Each cell's highest repetition."""
        return dict(sorted(zip(self.cells, self.repetitions, strict=True)))

    @property
    def wanted(self) -> int:
        """The repetitions in all, with those that join the plan once their losses are known."""
        there = Counter(cell for cell, (_, block) in zip(self.cells, self._own, strict=True) if block.disturbed is None)
        return len(self) + sum(max((kind.repeats or 0) - there[kind.cell], 0) for kind in self.kinds)

    def whole_until(self, there: Container[str]) -> dict[int, int]:
        """For cells whose repetitions join the plan as their losses are known: their first missing repetition.

        Those behind it tell less than they seem to: whether they are there depends on what they lose.

        Args:    there: the keys of ended repetitions.
        Returns: by cell; nothing for a cell without a missing one.
        """
        wanted = {kind.cell: kind.repeats for kind in self.kinds if kind.repeats is not None}
        if not wanted:
            return {}
        ended: dict[int, set[int]] = {cell: set() for cell in wanted}
        for at, (_, block) in enumerate(self._own):
            if self.cells[at] in ended and block.disturbed is None and self.keys[at] in there:
                ended[self.cells[at]].add(block.repetition)
        first = {cell: next(n for n in range(len(own) + 1) if n not in own) for cell, own in ended.items()}
        return {cell: n for cell, n in first.items() if n < max(wanted[cell], max(ended[cell], default=0) + 1)}

    def with_key(self, key: str) -> PlannedCell:
        """The repetition with a key. Raises: KeyError."""
        return self[self.places[key]]

    def _take(self, data: Mapping[str, Any]) -> None:
        if "cells" not in data:
            kind = PlannedCell.from_json({**_NO_REPETITION, **data})
            self._kind[kind.cell] = len(self.kinds)
            self.kinds.append(kind)
            return
        cells, repetition = data["cells"], data["repetition"]
        keys = data.get("keys") or [repetition_key(cell, repetition) for cell in cells]
        if odd := [key for key in keys if not _KEY.fullmatch(key)]:
            raise ValueError(f"{odd[0][:40]!r} is no key of a repetition")
        block = Block(repetition, data["block"], data["seed"], Disturbed.of(data.get("disturbed")))
        self._own += [(self._kind[cell], block) for cell, _ in zip(cells, keys, strict=True)]
        self.cells += cells
        self.keys += keys
        self.repetitions += [repetition] * len(cells)


def kinds_of(plan: Sequence[PlannedCell]) -> Sequence[PlannedCell]:
    """The cells of a plan, each at least once. A stored plan knows them without a look at its repetitions."""
    return plan.kinds if isinstance(plan, StoredPlan) else plan


def repetition_of(kind: PlannedCell, key: str, order: int, block: Block) -> PlannedCell:
    """Another repetition of a cell. Args: kind: one without a disturbed packet."""
    own = {name: value for name, value in (("id", key), ("seed", block.seed)) if name in kind.parameters}
    parameters = {**kind.parameters, **own}
    if block.disturbed is not None:
        parameters["path"] = _disturbing(kind.parameters["path"], block.disturbed)
        if "output" in parameters:
            # The clean repetition's packets name those of all.
            parameters["output"] = {**parameters["output"], "packets": False}
    # Faster than `replace`: a plan may have a million.
    return PlannedCell(**{**vars(kind), "key": key, "order": order, **block._asdict(), "parameters": parameters})


def _disturbing(path: Mapping[str, Any], disturbed: Disturbed) -> dict[str, Any]:
    """A path that loses packets, or holds them back, in its first hop."""
    if hops := path.get("hops"):
        return {**path, "hops": [_disturbing(hops[0], disturbed), *hops[1:]]}
    settings = disturbed.settings
    return {**path, **{direction: {**path.get(direction, {}), **own} for direction, own in settings.items()}}


def _lines(plan: Iterable[PlannedCell], known: Iterable[PlannedCell] = ()) -> Iterator[bytes]:
    """A plan's stored lines.

    A cell whose repetitions differ gets another line. Args: known: cells already in the file.
    """
    kinds = {kind.cell: kind for kind in known}
    group: list[PlannedCell] = []
    for planned in plan:
        kind = kinds.get(planned.cell)
        is_new = kind is None or planned != repetition_of(kind, planned.key, planned.order, _block(planned))
        if group and (_block(group[0]) != _block(planned) or (is_new and kind is not None)):
            yield _line_of(group)
            group = []
        if is_new:
            kinds[planned.cell] = planned
            fields = {name: value for name, value in planned.as_json().items() if name not in _OF_A_REPETITION}
            yield json_bytes(fields) + b"\n"
        group.append(planned)
    if group:
        yield _line_of(group)


def _block(planned: PlannedCell) -> Block:
    return Block(planned.repetition, planned.block, planned.seed, planned.disturbed)


def _line_of(group: Sequence[PlannedCell]) -> bytes:
    block = _block(group[0])
    plain = {**block._asdict(), "cells": [planned.cell for planned in group]}
    data = _with_disturbed(plain, block.disturbed)
    keys = [planned.key for planned in group]
    if keys != [repetition_key(planned.cell, block.repetition) for planned in group]:
        data["keys"] = keys
    return json_bytes(data) + b"\n"


def write_plan(directory: Path, plan: Iterable[PlannedCell]) -> Checksum:
    """Writes a run's plan. Returns: its checksum. Raises: OSError."""
    return _write(directory, _lines(plan))


def extend_plan(directory: Path, plan: StoredPlan, added: Iterable[PlannedCell]) -> Checksum:
    """Adds repetitions to the plan of a run, at its end. Returns: its checksum. Raises: OSError."""
    return _write(directory, chain([RunFile(directory, PLAN).read()], _lines(added, plan.kinds)))


def _write(directory: Path, content: Iterable[bytes]) -> Checksum:
    write_whole(directory / PLAN, content)
    return Checksum.of(RunFile(directory, PLAN))


def drop_unlisted(directory: Path, checksum: Checksum) -> None:
    """Removes a dead session's additions, missing from the manifest. Raises: OSError."""
    with os.fdopen(open_inside(directory, PLAN, os.O_RDWR), "rb+") as file:
        if os.fstat(file.fileno()).st_size > checksum.size_bytes:
            file.truncate(checksum.size_bytes)


def read_plan(directory: Path, checksum: Checksum, *, may_be_longer: bool) -> StoredPlan:
    """A run's plan.

    Args: checksum: from the manifest. may_be_longer: whether a session may have died between extending the plan and
        updating the manifest; the excess is left out.
    Raises: StoreError when unreadable or changed.
    """
    file = RunFile(directory, PLAN)
    try:
        content = file.read()
        whole = content[: checksum.size_bytes] if may_be_longer else content
        if Checksum.of_bytes(whole) != checksum:
            raise ValueError(f"it {CHANGED}")
        return StoredPlan(whole.splitlines())
    except (OSError, *NOT_WHAT_WAS_WRITTEN) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or error
        raise StoreError(
            f"cannot read {file}: {reason}", hint="restore the file from a copy, or run the study anew"
        ) from None
