"""From a run to what people read: its analysis, and its report."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosswind import analysis, report
from crosswind.analysis import CellData
from crosswind.analysis.result import Result
from crosswind.findings import pipeline
from crosswind.record import RunRecord
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
    """A run with its analysis. Attributes: data: the samples of its cells, which charts draw."""

    record: RunRecord
    data: Sequence[CellData]
    result: Result


def analysed(run: StoredRun, fail_if: Sequence[str] = ()) -> Analysed:
    """The run's record, and its analysis.

    Args: fail_if: thresholds beside those of its study. Raises: StoreError; StudyError for a threshold of no meaning.
    """
    record = run.measured()
    if fail_if:
        study = Study.from_canonical(record.study).with_thresholds(fail_if)
        cells = tuple(study.cells())
        thresholds = [threshold.as_dict(cells) for threshold in study.findings["threshold"]]
        record = replace(record, asked={**record.asked, "threshold": thresholds})
    data = analysis.collect(record)
    return Analysed(record, data, pipeline.analyse(record, data=data))


def write_page(run: StoredRun, made: Analysed, path: Path | None = None) -> Path:
    """As `write_html`, of a run that is analysed already."""
    page = path or run.directory / REPORT
    report.write_html(made.record, made.result, page, data=made.data)
    return page
