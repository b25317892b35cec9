"""How a kind's findings are made: from a run's record and the samples of its cells to results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import CellResult
from crosswind.catalog.finding_kinds import of_each_kind
from crosswind.cell.record import RunRecord
from crosswind.decisions.model import ResultModel


@dataclass(frozen=True)
class Context:
    """The judges' input.

    Attributes: data: each cell's samples. cells: their results. level: every printed interval's. found: earlier kinds'
        findings.
    """

    record: RunRecord
    data: Sequence[CellData]
    cells: Sequence[CellResult]
    level: float
    found: Mapping[str, Sequence[ResultModel]]


@dataclass(frozen=True)
class Judging:
    """The maker of one kind's findings. Attributes: field: in the result; result: its element's type."""

    kind: str
    field: str
    result: type[ResultModel]
    make: Callable[[Context], Sequence[ResultModel]]


@cache
def judgings() -> tuple[Judging, ...]:
    """The makers of each kind's findings."""
    return tuple(of_each_kind("judge", "JUDGING").values())
