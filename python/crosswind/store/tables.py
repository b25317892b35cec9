"""The tables of a cell: written by the cell as Arrow IPC, kept as Parquet."""

import io
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from crosswind.catalog.tables import Table
from crosswind.errors import EngineError
from crosswind.files.polars_errors import system_error
from crosswind.store.checksums import Checksum, DamagedFileError, checked_bytes, damaged_file, open_checked
from crosswind.store.run_file import RunFile

_LARGE = 1000
"""Minimum rows for a search for constant columns."""


def to_parquet(arrow: Path) -> None:
    """Turns `x.arrow` (Arrow IPC file) into `x.parquet` (zstd) beside it, streaming, and removes the first.

    Raises: EngineError when the cell wrote something else than a table. OSError when the disk refuses.
    """
    if arrow.stat().st_size == 0:
        raise _not_a_table(arrow, "it is empty")
    try:
        pl.scan_ipc(arrow).sink_parquet(arrow.with_suffix(".parquet"), compression="zstd")
    except (pl.exceptions.PolarsError, OSError) as error:
        if of_system := system_error(error):
            raise of_system from error
        raise _not_a_table(arrow, str(error)) from error
    arrow.unlink()


def read_table(file: RunFile, shape: Table, checksum: Checksum | None) -> pl.DataFrame:
    """A table in its shape; empty where none was written.

    Args: checksum: from the repetition's result; None for an unwritten table.
    Raises: DamagedFileError when the file has changed, or is no table.
    """
    if checksum is None:
        return shape.empty
    # A run has thousands of small tables: reading one from memory, in one piece, takes the least time.
    content = io.BytesIO(checked_bytes(file, checksum))
    try:
        table = pl.read_parquet(content, parallel="none").select(list(shape.schema))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise unreadable(file, error) from error
    return table if table.height < _LARGE else _with_constants_once(table)


def read_rows(
    file: RunFile,
    shape: Table,
    checksum: Checksum | None,
    *,
    where: pl.Expr,
    columns: Sequence[str | pl.Expr],
) -> pl.DataFrame:
    """Some rows and columns from a table in its shape: the others take no memory.

    Args: checksum: as for `read_table`. columns: within the shape.
    Raises: DamagedFileError when the file has changed, or is no table.
    """
    if checksum is None:
        return shape.empty.filter(where).select(columns)
    try:
        with open_checked(file, checksum) as opened:
            stored = pl.scan_parquet(f"/proc/self/fd/{opened.fileno()}", glob=False)
            return stored.filter(where).select(columns).collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise unreadable(file, error) from error


def unreadable(file: RunFile, error: Exception) -> DamagedFileError:
    """The error for an unreadable table with a correct checksum."""
    return damaged_file(file, f"cannot be read: {str(error).splitlines()[0]}")


def _with_constants_once(table: pl.DataFrame) -> pl.DataFrame:
    """The same table, with each constant column in one value's memory.

    Half the columns in most samples are constant: missing events are null, and each outcome is "ok". Times stay as they
    are: Polars multiplies by a constant's reciprocal instead of dividing by it, and may round differently.
    """
    every = pl.all()
    nulls, least, most = (
        table.select(expressions).row(0) for expressions in (every.null_count(), every.min(), every.max())
    )
    constant = [
        pl.lit(low, dtype=kind).alias(name)
        for (name, kind), null, low, high in zip(table.schema.items(), nulls, least, most, strict=True)
        if null == table.height or (null == 0 and low == high and kind != pl.Int64)
    ]
    return table.with_columns(constant)


def _not_a_table(arrow: Path, why: str) -> EngineError:
    return EngineError(f"{arrow.name} is not a whole Arrow file: {why}", hint="`--resume` runs the cell again")
