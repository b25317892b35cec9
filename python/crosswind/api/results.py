"""From a run to what people read: its analysis, and its report."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosswind.analysis.cells import CellData, collect
from crosswind.analysis.overview import Overview, read_large
from crosswind.analysis.result import Result
from crosswind.cell.record import RunRecord
from crosswind.errors import UsageError
from crosswind.findings import pipeline
from crosswind.report import run_page
from crosswind.report.overview_page import write_overview
from crosswind.store.run import StoredRun
from crosswind.study.design import Study

REPORT = "report.html"


def analyse(run: StoredRun) -> Result:
    """The result of a run: estimates with their intervals, comparisons, and what the study asks for.

    Raises: StoreError when no result can be read.
    """
    return pipeline.analyse(run.measured())


def write_html(run: StoredRun, path: Path | str | None = None) -> Path:
    """Writes the HTML report of a run, into the run's directory where no path is given.

    Returns: where it is. Raises: StoreError when no result can be read, DiskError when the page cannot be written.
    """
    return write_page(run, analysed(run), None if path is None else Path(path))


@dataclass(frozen=True)
class Analysed:
    """A run with its analysis.

    Attributes: data: the samples of its cells, which charts draw. overview: of a large run, whose record and data are
        those of the cells that something is asked about.
    """

    record: RunRecord
    data: Sequence[CellData]
    result: Result
    overview: Overview | None = None


def analysed(
    run: StoredRun, fail_if: Sequence[str] = (), *, cells: Collection[int] = (), everything: bool = False
) -> Analysed:
    """The run's record, and its analysis.

    Args: fail_if: thresholds beside those of its study. cells: only these, in depth; none: all. everything: all cells
        in depth, of a large run too.
    Raises: StoreError; StudyError for a threshold of no meaning; UsageError for a cell that the run does not have.
    """
    asked = _asked(run, fail_if)
    if cells:
        record = _of_some_cells(run, cells)
    elif everything or not run.is_large:
        record = replace(run.measured(), asked=asked)
    else:
        return _of_large(run, asked)
    data = collect(record)
    return Analysed(record, data, pipeline.analyse(record, data=data))


def _of_large(run: StoredRun, asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> Analysed:
    """A large run: what is asked about in depth, and an overview of everything else."""
    about = pipeline.asked_cells(asked)
    large = run.large(about.whole)
    overview = read_large(large, about.held).overview(large, pipeline.LEVEL)
    if not overview.cells:
        run.measured(())  # It says why there are none.
    damaged = {(damage.key, damage.file): damage for damage in large.damaged}
    record = replace(large.record, asked=asked, planned=large.planned, damaged=list(damaged.values()))
    data = collect(record)
    return Analysed(record, data, pipeline.analyse(record, data=data, overview=overview), overview)


def _asked(run: StoredRun, fail_if: Sequence[str]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """What the study asks, with thresholds beside its own. Raises: StudyError."""
    asked: Mapping[str, Sequence[Mapping[str, Any]]] = run.manifest.presentation["asked"]
    if not fail_if:
        return asked
    study = Study.from_canonical(run.manifest.study).with_thresholds(fail_if)
    cells = tuple(study.cells())
    return {**asked, "threshold": [threshold.as_dict(cells) for threshold in study.findings["threshold"]]}


def _of_some_cells(run: StoredRun, cells: Collection[int]) -> RunRecord:
    """The run as if it had these cells alone. What is asked is asked of all of it."""
    if absent := sorted(set(cells) - set(run.cells)):
        hint = "`crosswind show STUDY` counts the cells, from 0"
        raise UsageError(f"the run has no cell {', '.join(map(str, absent))}", hint=hint)
    record = run.measured(frozenset(cells))
    return replace(record, asked={}, precision=None, limits=[])


def write_page(run: StoredRun, made: Analysed, path: Path | None = None) -> Path:
    """As `write_html`, of a run that is analysed already. Of a large one, a page of its cells is written beside it."""
    page = path or run.directory / REPORT
    if made.overview is None:
        run_page.write_html(made.record, made.result, page, data=made.data)
    else:
        write_overview(made.record, made.result, made.overview, page)
    return page
