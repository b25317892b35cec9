"""The result as tidy data: JSON, CSV and Parquet."""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import polars as pl

from crosswind.analysis.result import MEAN, LevelComparison, Result
from crosswind.catalog.metrics import METRICS, STATISTICS, Per
from crosswind.cell.record import RunRecord
from crosswind.files.polars_errors import system_error
from crosswind.report.files import whole_file, write_text
from crosswind.report.text.format import levels
from crosswind.stats.estimate import Interval

_COLUMNS: dict[str, type[pl.DataType]] = {
    "cell": pl.Int64,
    "valid": pl.Boolean,
    "clock": pl.String,
    "metric": pl.String,
    "statistic": pl.String,
    "unit": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "level": pl.Float64,
    "method": pl.String,
    "reason": pl.String,
    "units": pl.Int64,
    "smallest_unit": pl.Float64,
    "largest_unit": pl.Float64,
}

_COMPARISON_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("factor", "reference", "other", "at", "metric", "statistic", "unit"), pl.String),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), pl.Float64),
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high", "cliffs_delta", "p", "p_adjusted"), pl.Float64),
    "verdict": pl.String,
    **dict.fromkeys(("reference_cell", "other_cell"), pl.Int64),
}
_FORMULA = re.compile(r"^[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


def estimates_frame(result: Result) -> pl.DataFrame:
    """One row for each cell, metric and statistic; a column for each factor, named by its key.

    Columns after the factors: cell, valid, clock, metric, statistic, unit, value, low, high, n, level, method, reason,
    units, smallest_unit, largest_unit (of the repetitions' own values, where there is no interval).
    """
    factors = dict.fromkeys((key for cell in result.cells for key in cell.levels), pl.String)
    rows: list[dict[str, object]] = []
    for cell in result.cells:
        for name, metric in cell.estimates.items():
            for statistic in STATISTICS:
                row: dict[str, object] = {key: cell.levels.get(key) for key in factors}
                row |= {"cell": cell.cell, "valid": cell.valid, "clock": cell.clock}
                row |= {"metric": name, "statistic": statistic}
                estimate = metric.statistic(statistic)
                ends = estimate.spread or (None, None)
                row |= {"unit": metric.unit, **vars(estimate), "smallest_unit": ends[0], "largest_unit": ends[1]}
                del row["spread"]
                rows.append(row)
    return pl.DataFrame(rows, schema={**factors, **_COLUMNS})


def samples_frame(record: RunRecord, *, metrics: bool = False) -> pl.DataFrame:
    """Every sample of a run: a column for each factor, cell, repetition, block, clock, and the samples table's.

    Where repetitions lose or hold a packet by design, `lost_packet` or `held_packet` names it, as "forward 3".

    Args: metrics: with a column for each metric computable per sample, in the metric's unit.
    """
    factors = list(dict.fromkeys(key for run in record.cells for key in run.levels))
    disturbed = [run.disturbed for run in record.cells if run.disturbed is not None]
    words = {"lost_packet": "lost", "held_packet": "held"}
    of_packets = [name for name, word in words.items() if any(one.word == word for one in disturbed)]
    frames = []
    for run in sorted(record.cells, key=lambda run: (run.cell, run.repetition)):
        head = [pl.lit(run.levels.get(key), dtype=pl.String).alias(key) for key in factors]
        numbers = {"cell": run.cell, "repetition": run.repetition, "block": run.block}
        head += [pl.lit(number).cast(pl.Int64).alias(name) for name, number in numbers.items()]
        head.append(pl.lit(run.clock).alias("clock"))
        for name in of_packets:
            one = run.disturbed
            said = str(one) if one is not None and one.word == words[name] else None
            head.append(pl.lit(said, dtype=pl.String).alias(name))
        frames.append(run.samples.select(*head, pl.all()))
    whole_frame = pl.concat(frames, how="vertical") if frames else pl.DataFrame()
    return _with_metrics(record, whole_frame) if metrics and frames else whole_frame


def comparisons_frame(comparisons: Sequence[LevelComparison]) -> pl.DataFrame:
    """One row for each comparison between two levels by a statistic.

    Columns: factor, reference, other, at (the other levels), metric, statistic, unit, difference, difference_low,
    difference_high, ratio, ratio_low, ratio_high, cliffs_delta (for means alone), p, p_adjusted, verdict,
    reference_cell, other_cell.
    """
    rows = [
        {
            "factor": compared.factor,
            "reference": compared.reference,
            "other": compared.other,
            "at": levels(compared.fixed) if compared.fixed else "",
            "metric": compared.metric,
            "statistic": statistic,
            "unit": compared.unit,
            **limited("difference", made.difference),
            **limited("ratio", made.ratio),
            "cliffs_delta": compared.cliffs_delta.value if made is compared else None,
            "p": made.p,
            "p_adjusted": made.p_adjusted,
            "verdict": made.verdict,
            "reference_cell": compared.reference_cell,
            "other_cell": compared.other_cell,
        }
        for compared in comparisons
        for statistic, made in {MEAN: compared, **compared.statistics}.items()
    ]
    return pl.DataFrame(rows, schema=_COMPARISON_COLUMNS)


def _with_metrics(record: RunRecord, samples: pl.DataFrame) -> pl.DataFrame:
    """Samples with each metric's value, null for a failed exchange or an inapplicable metric."""
    kinds = {run.cell: run.parameters.get("workload") or {} for run in record.cells}
    made = []
    for metric in METRICS.values():
        formula = pl.sql_expr(metric.formula)
        alone = metric.per is Per.EXCHANGE and set(formula.meta.root_names()) <= set(samples.columns)
        cells = [cell for cell, workload in kinds.items() if alone and metric.applies(workload)]
        if cells:
            counts = (pl.col("outcome") == "ok") & pl.col("cell").is_in(cells)
            made.append(pl.when(counts).then(formula.cast(pl.Float64)).alias(metric.name))
    return samples.with_columns(made)


def limited(name: str, estimate: Interval) -> dict[str, float | None]:
    """An estimate's columns: its value and its limits."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def write_json(result: Result, path: Path) -> None:
    """The result as `crosswind.result/1`. Raises: DiskError."""
    write_text(path, result.to_json() + "\n")


def write_csv(result: Result, path: Path) -> None:
    """`estimates_frame` as CSV. Raises: DiskError."""
    frame = estimates_frame(result)
    frame = frame.with_columns(_as_text(name) for name, kind in frame.schema.items() if kind == pl.String)
    frame = frame.rename({name: spreadsheet_text(name) for name in frame.columns})
    with whole_file(path) as part, part.open("wb") as file, _disk_errors(file):
        frame.write_csv(file)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """A frame (`estimates_frame`, `samples_frame`) as Parquet. Raises: DiskError."""
    with whole_file(path) as part, part.open("wb") as file, _disk_errors(file):
        frame.write_parquet(file)


def spreadsheet_text(text: str) -> str:
    """A text for a CSV cell: a formula gets a leading apostrophe, hidden by spreadsheets.

    Source: OWASP, CSV injection. Numbers stay unchanged.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _as_text(name: str) -> pl.Expr:
    """The same for a column."""
    column = pl.col(name)
    is_formula = column.str.contains(_FORMULA.pattern) & ~column.str.contains(f"^(?:{_NUMBER.pattern})$")
    return pl.when(is_formula).then(pl.concat_str(pl.lit("'"), column)).otherwise(column).alias(name)


@contextmanager
def _disk_errors(file: IO[bytes]) -> Iterator[None]:
    """Raises: OSError for a disk error in Polars, or at a file's end, with its reason."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        if of_system := system_error(error):
            raise of_system from error
        if os.fstatvfs(file.fileno()).f_bavail == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
