"""A repetition's tables (docs/result.md): a row each, without polars at import."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from crosswind.catalog import ColumnType, SampleColumn, catalog

if TYPE_CHECKING:
    import polars as pl

PACKET_RECORDS, PARTS = "packets", "parts"
"""Kinds of data beside samples: packets, and time breakdowns."""

_TYPES = {
    ColumnType.U8: "UInt8",
    ColumnType.U16: "UInt16",
    ColumnType.U32: "UInt32",
    ColumnType.U64: "UInt64",
    ColumnType.I64: "Int64",
    ColumnType.TEXT: "String",
}


@dataclass(frozen=True, eq=False)
class Table:
    """One table. Missing events are null. Attributes: kind: of data beside samples; None for tables in every run."""

    name: str
    columns: tuple[SampleColumn, ...] = field(repr=False)
    kind: str | None = None

    @property
    def file(self) -> str:
        """Its name in a run."""
        return f"{self.name}.parquet"

    @cached_property
    def schema(self) -> "Mapping[str, type[pl.DataType]]":
        """Types by column."""
        import polars as pl

        return {column.name: getattr(pl, _TYPES[column.type]) for column in self.columns}

    @cached_property
    def empty(self) -> "pl.DataFrame":
        """Without rows. Thousands of repetitions share it."""
        import polars as pl

        return pl.DataFrame(schema=dict(self.schema))


SAMPLES = Table("samples", catalog().samples)
SPENT = Table("spent", catalog().spent, PARTS)
PIECES = Table("pieces", catalog().pieces, PARTS)
LIMITS = Table("limits", catalog().limits, PARTS)
TCP = Table("tcp", catalog().tcp, PARTS)
PACKETS = Table("packets", catalog().packets, PACKET_RECORDS)
FLOWS = Table("flows", catalog().flow_intervals)
OBJECTS = Table("objects", catalog().objects)
CONNECTIONS = Table("connections", catalog().connections, PARTS)
CONNECTION_PARTS = Table("connection_parts", catalog().connection_parts, PARTS)
CONNECTION_PIECES = Table("connection_pieces", catalog().connection_pieces, PARTS)
CONNECTION_LIMITS = Table("connection_limits", catalog().connection_limits, PARTS)
TABLES = (
    SAMPLES, SPENT, PIECES, LIMITS, TCP, PACKETS, FLOWS, OBJECTS, CONNECTIONS, CONNECTION_PARTS, CONNECTION_PIECES,
    CONNECTION_LIMITS,
)  # fmt: skip
