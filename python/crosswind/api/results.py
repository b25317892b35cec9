"""From a run to its analysis and its report."""

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
    """A run's result: estimates with their intervals, comparisons, and the study's findings.

    Raises: StoreError without a readable result.
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

    Attributes: data: its cells' samples, for charts. overview: a large run's; its record and data then cover only cells
        in a finding.
    """

    record: RunRecord
    data: Sequence[CellData]
    result: Result
    overview: Overview | None = None


def analysed(
    run: StoredRun, fail_if: Sequence[str] = (), *, cells: Collection[int] = (), everything: bool = False
) -> Analysed:
    """The run's record, and its analysis.

    Args: fail_if: thresholds beside its study's. cells: only these, in depth; none: all. everything: all cells in
        depth, even in a large run.
    Raises: StoreError; StudyError for a malformed threshold; UsageError for an unknown cell.
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
    """The study's findings, with thresholds beside its own. Raises: StudyError."""
    asked: Mapping[str, Sequence[Mapping[str, Any]]] = run.manifest.presentation["asked"]
    if not fail_if:
        return asked
    study = Study.from_canonical(run.manifest.study).with_thresholds(fail_if)
    cells = tuple(study.cells())
    return {**asked, "threshold": [threshold.as_dict(cells) for threshold in study.findings["threshold"]]}


def _of_some_cells(run: StoredRun, cells: Collection[int]) -> RunRecord:
    """The run reduced to these cells. Findings concern all of it, and are left out."""
    if absent := sorted(set(cells) - set(run.cells)):
        hint = "`crosswind show STUDY` counts the cells, from 0"
        raise UsageError(f"the run has no cell {', '.join(map(str, absent))}", hint=hint)
    record = run.measured(frozenset(cells))
    return replace(record, asked={}, precision=None, limits=[])


def write_page(run: StoredRun, made: Analysed, path: Path | None = None) -> Path:
    """As `write_html`, for an analysed run. A large one gets a page with its cells beside it."""
    page = path or run.directory / REPORT
    if made.overview is None:
        run_page.write_html(made.record, made.result, page, data=made.data)
    else:
        write_overview(made.record, made.result, made.overview, page)
    return page
