"""Reads the connections of programs and pages, with their time breakdown."""

from dataclasses import replace
from typing import Any, Protocol

import polars as pl

from crosswind.catalog.explained import Connection, PartOfConnection, Piece
from crosswind.catalog.spent import changed_of
from crosswind.catalog.tables import CONNECTION_LIMITS, CONNECTION_PARTS, CONNECTION_PIECES, CONNECTIONS, Table
from crosswind.errors import UsageError
from crosswind.store.directory import Store
from crosswind.store.explained import chosen_results, untold
from crosswind.store.result import RepetitionResult


class Tables(Protocol):
    """Gives repetitions' tables."""

    def table(self, result: RepetitionResult, table: Table) -> pl.DataFrame:
        """One table. Raises: DamagedFileError."""


def has_connections(store: Store) -> bool:
    """Whether a run has time breakdowns for connections."""
    if any(CONNECTIONS.file in partition.files for partition in store.partitions()):
        return True
    return any(CONNECTIONS.file in result.files for result in store.results_in_directories()[0].values())


def connections_of(source: Tables, result: RepetitionResult) -> list[Connection]:
    """A repetition's connections, the longest first, without their pieces. Raises: DamagedFileError."""
    parts: dict[int, list[PartOfConnection]] = {}
    table = source.table(result, CONNECTION_PARTS)
    for row in table.sort("time_ns", descending=True).iter_rows(named=True):
        parts.setdefault(row.pop("connection"), []).append(PartOfConnection(**row))
    limits = changed_of(source.table(result, CONNECTION_LIMITS).iter_rows(named=True), "connection")
    planned = result.planned
    which: dict[str, Any] = {
        "key": result.key,
        "cell": planned.cell,
        "repetition": planned.repetition,
        "levels": dict(planned.levels),
    }
    connections = []
    for row in source.table(result, CONNECTIONS).iter_rows(named=True):
        number, whole_ns = row.pop("connection"), row.pop("to_ns") - row["from_ns"]
        known: dict[str, Any] = {
            "parts": parts.get(number, []),
            "is_cut_off": result.is_cut_off and row["ending"] == "open",
            "changed": limits.get(number, {}),
            "is_inferred": result.finished is not None and not result.finished.virtual_time,
        }
        connections.append(Connection(**which, **row, **known, number=number, whole_ns=whole_ns, pieces=[]))
    return sorted(connections, key=lambda connection: (-connection.whole_ns, connection.number))


def explained_connections(
    store: Store, *, cell: int | None, repetition: int | None, number: int | None, longest: int
) -> list[Connection]:
    """The longest connections in a run, cell or repetition, or the one with a number, with their pieces.

    Raises: UsageError for an unknown cell or connection; StoreError without a time breakdown.
    """
    chosen = chosen_results(store, cell=cell, repetition=repetition)
    by_key = {result.key: result for result in chosen}
    explained = [connection for result in chosen for connection in connections_of(store, result)]
    if not explained:
        raise untold(store, "connections", chosen)
    if number is not None:
        if len(by_key) > 1:
            raise UsageError("every repetition has a connection with that number", hint="give --cell and --repetition")
        last = max(connection.number for connection in explained)
        explained = [connection for connection in explained if connection.number == number]
        if not explained:
            raise UsageError(f"there is no connection {number}", hint=f"the last one is {last}")
    explained.sort(key=lambda connection: -connection.whole_ns)
    return [_with_pieces(store, by_key[connection.key], connection) for connection in explained[:longest]]


def _with_pieces(source: Tables, result: RepetitionResult, connection: Connection) -> Connection:
    table = source.table(result, CONNECTION_PIECES)
    rows = table.filter(connection=connection.number).drop("connection").iter_rows(named=True)
    return replace(connection, pieces=[Piece(**row) for row in rows])
