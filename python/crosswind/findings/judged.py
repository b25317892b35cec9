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
    """What there is to judge by.

    Attributes: data: samples of each cell. cells: their results. level: of every interval that is printed.
        found: what was made of the kinds before.
    """

    record: RunRecord
    data: Sequence[CellData]
    cells: Sequence[CellResult]
    level: float
    found: Mapping[str, Sequence[ResultModel]]


@dataclass(frozen=True)
class Judging:
    """How findings of a kind are made. Attributes: field: of the result; result: what stands there of each."""

    kind: str
    field: str
    result: type[ResultModel]
    make: Callable[[Context], Sequence[ResultModel]]


@cache
def judgings() -> tuple[Judging, ...]:
    """How findings of each kind are made."""
    return tuple(of_each_kind("judge", "JUDGING").values())
