"""The result as tidy data: JSON, CSV and Parquet."""

from pathlib import Path

import polars as pl

from crosswind.analysis.result import Result
from crosswind.metrics import STATISTICS
from crosswind.record import RunRecord
from crosswind.report.files import whole, write_text

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
                row |= {"unit": metric.unit, **estimate.model_dump(exclude={"spread"})}
                rows.append(row | {"smallest_unit": ends[0], "largest_unit": ends[1]})
    return pl.DataFrame(rows, schema={**factors, **_COLUMNS})


def samples_frame(record: RunRecord) -> pl.DataFrame:
    """Every sample of a run: a column for each factor, cell, repetition, block, clock, and the samples table's."""
    factors = list(dict.fromkeys(key for run in record.cells for key in run.levels))
    frames = []
    for run in sorted(record.cells, key=lambda run: (run.cell, run.repetition)):
        head = [pl.lit(run.levels.get(key), dtype=pl.String).alias(key) for key in factors]
        numbers = {"cell": run.cell, "repetition": run.repetition, "block": run.block}
        head += [pl.lit(number).cast(pl.Int64).alias(name) for name, number in numbers.items()]
        head.append(pl.lit(run.clock).alias("clock"))
        frames.append(run.samples.select(*head, pl.all()))
    return pl.concat(frames, how="vertical") if frames else pl.DataFrame()


def write_json(result: Result, path: Path) -> None:
    """The result as `crosswind.result/1`. Raises: DiskError."""
    write_text(path, result.to_json() + "\n")


def write_csv(result: Result, path: Path) -> None:
    """`estimates_frame` as CSV. Raises: DiskError."""
    with whole(path) as part:
        estimates_frame(result).write_csv(part)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """A frame (`estimates_frame`, `samples_frame`) as Parquet. Raises: DiskError."""
    with whole(path) as part:
        frame.write_parquet(part)
