"""From a run's record to its result: estimates for each cell, comparisons, models and published figures beside them.

    record -> metrics (samples of each cell) -> cells (estimates)
           -> comparisons, equivalences, models, published, figures, fits -> Result

Nothing here starts a process or reads a clock, and every interval is seeded: the same record gives the same result.
"""

from crosswind.analysis.cells import CellData, collect, summarise
from crosswind.analysis.comparisons import compare_levels
from crosswind.analysis.equivalences import equivalences_of
from crosswind.analysis.figures import figures_of
from crosswind.analysis.fits import fits_of
from crosswind.analysis.metrics import METRICS, Metric, Samples
from crosswind.analysis.peers import peers_of
from crosswind.analysis.predictions import predictions
from crosswind.analysis.published import compare_published
from crosswind.analysis.result import Result
from crosswind.record import RunRecord

__all__ = ["METRICS", "CellData", "Metric", "Samples", "analyse", "collect"]


def analyse(record: RunRecord, *, level: float = 0.95) -> Result:
    """Analyse a whole run.

    Args:    record: the run. level: confidence level of every interval.
    Returns: the result, serialisable as `crosswind.result/1`; what the samples do not support is null with a reason.
    """
    data = collect(record)
    cells = [
        cell.model_copy(update={"models": predictions(record.models, cell, one)})
        for one in data
        for cell in [summarise(one, level=level)]
    ]
    executed = len(record.cells)
    complete = executed >= record.planned
    warnings = [] if complete else [f"the run is incomplete: {executed} of {record.planned} repetitions were executed"]
    published = compare_published(record, cells)
    return Result(
        study=record.name,
        title=record.title,
        valid=bool(cells) and all(cell.valid for cell in cells),
        complete=complete,
        planned=record.planned,
        executed=executed,
        cells=cells,
        comparisons=compare_levels(data, level=level),
        published=published,
        figures=figures_of(record, data, cells, published),
        fits=fits_of(record, data, level=level),
        equivalences=equivalences_of(record, data),
        peers=peers_of((one.cell, one.runs) for one in data),
        notes=list(record.notes),
        warnings=warnings,
        design=record.study,
        provenance=record.provenance,
    )
