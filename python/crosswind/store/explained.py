"""Reads exchanges for `crosswind explain`."""

from collections.abc import Mapping, Sequence
from statistics import median

import polars as pl

from crosswind.catalog.endpoints import EMULATOR
from crosswind.catalog.explained import MOST_PACKETS, Explained, PacketPoint, Piece, SocketHistory, SocketPoint
from crosswind.catalog.spent import NOT_KEPT, TAKES, changed_of
from crosswind.catalog.tables import CONNECTIONS, LIMITS, PACKETS, PIECES, SPENT, TCP
from crosswind.cell.result import added_up
from crosswind.errors import StoreError, UsageError
from crosswind.files.damage import Repeated
from crosswind.store.addresses import shown
from crosswind.store.directory import Store
from crosswind.store.result import RepetitionResult


def explained(
    store: Store, *, cell: int | None, repetition: int | None, message: int | None, slowest: int
) -> list[Explained]:
    """The slowest exchanges in a run, cell or repetition, or the one with a number.

    Repetitions with a disturbed packet are explained only by their number: they tell of a design, not of the path.

    Raises: UsageError for an unknown cell or exchange; StoreError without a time breakdown.
    """
    chosen = chosen_results(store, cell=cell, repetition=repetition)
    if repetition is None:
        chosen = [result for result in chosen if result.planned.disturbed is None]
    tables = [(result, store.table(result, SPENT)) for result in chosen]
    tables = [(result, table) for result, table in tables if not table.is_empty()]
    if not tables:
        raise untold(store, "these exchanges", chosen)
    if message is not None:
        return [_numbered(store, tables, message)]
    ordered = [(result, table.sort("whole_ns", descending=True).head(slowest)) for result, table in tables]
    all_rows = [(result, row, table) for result, table in ordered for row in table.iter_rows(named=True)]
    all_rows.sort(key=lambda row: -row[1]["whole_ns"])
    whole = {result.key: table for result, table in tables}
    return [_explained(store, result, row, whole[result.key]) for result, row, _ in all_rows[:slowest]]


def untold(store: Store, what: str, results: Sequence[RepetitionResult]) -> StoreError:
    """The error for repetitions without a time breakdown, with the reason as its hint."""
    return StoreError(f"nothing tells what the time of {what} was spent on", hint=_missing_reason(store, results))


def _missing_reason(store: Store, results: Sequence[RepetitionResult]) -> str:
    if not store.manifest.options.spent:
        return NOT_KEPT
    backends = {result.planned.parameters["path"]["backend"] for result in results}
    if EMULATOR not in backends:
        return f"no packet passed the emulator: the path is {' or '.join(sorted(backends))}"
    if not any(result.succeeded for result in results):
        ended = added_up(outcome for result in results for outcome in result.outcomes)
        return f"no exchange succeeded: {', '.join(count.text() for count in ended)}"
    connections = (store.table(result, CONNECTIONS) for result in results if CONNECTIONS.file in result.files)
    if any(not table.is_empty() for table in connections):
        return "of programs only connections are known: leave --message out, or say --connection N"
    if any(CONNECTIONS.file in result.files for result in results):
        return "neither TCP nor UDP passed the path"
    return TAKES


def chosen_results(store: Store, *, cell: int | None, repetition: int | None) -> list[RepetitionResult]:
    """Successful repetitions, in one cell or all.

    Raises: UsageError without any; StoreError for a damaged result, since it may be the slowest.
    """
    known, damaged = store.checked_results(None if cell is None else {cell})
    for damage in damaged:
        if not isinstance(damage, Repeated) and (not damage.key or repetition in (None, damage.repetition)):
            raise StoreError(
                f"{shown(store.directory / damage.file)} {damage.reason}",
                hint=f"`crosswind run --resume {shown(store.directory)}` runs what is damaged again",
            )
    ended = [
        result
        for result in known.values()
        if cell in (None, result.planned.cell) and repetition in (None, result.planned.repetition)
    ]
    chosen = [result for result in ended if result.failure is None]
    if not chosen:
        planned = [which for which in store.plan if cell in (None, which.cell)]
        planned = [which for which in planned if repetition in (None, which.repetition)]
        if planned and not ended:
            raise UsageError(
                f"no repetition{_selection(cell, repetition)} has ended yet",
                hint=f"`crosswind run --resume {shown(store.directory)}` runs what is missing",
            )
        raise UsageError(
            f"the run has no repetition {_named(cell, repetition)}", hint=_available(store, cell, repetition)
        )
    return chosen


def _available(store: Store, cell: int | None, repetition: int | None) -> str:
    planned = [which for which in store.plan if cell in (None, which.cell)]
    if not planned:
        return f"its cells are 0 to {max(store.plan.cells, default=0)}"
    if repetition is not None and all(which.repetition != repetition for which in planned):
        return f"the last repetition is {max(which.repetition for which in planned)}"
    return f"`crosswind report {shown(store.directory)}` says why they failed"


def _named(cell: int | None, repetition: int | None) -> str:
    return _selection(cell, repetition).strip() or "that succeeded"


def _selection(cell: int | None, repetition: int | None) -> str:
    return ("" if repetition is None else f" {repetition}") + ("" if cell is None else f" of cell {cell}")


def _numbered(store: Store, tables: Sequence[tuple[RepetitionResult, pl.DataFrame]], message: int) -> Explained:
    if len({result.planned.cell for result, _ in tables}) > 1:
        raise UsageError("every cell has an exchange with that number", hint="say which one: --cell N")
    result, table = tables[0]
    row = next(iter(table.filter(exchange=message).iter_rows(named=True)), None)
    if row is None:
        raise UsageError(
            f"exchange {message} of {result.key} did not succeed, or there is none",
            hint=f"the last one is {max(table['exchange'].to_list())}",
        )
    return _explained(store, result, row, table)


def _explained(store: Store, result: RepetitionResult, row: Mapping[str, int], table: pl.DataFrame) -> Explained:
    pieces = store.table(result, PIECES).filter(exchange=row["exchange"])
    if pieces.is_empty() and row["whole_ns"]:
        raise UsageError(
            f"the pieces of exchange {row['exchange']} of {result.key} were not kept",
            hint="a cell keeps those of its 200 slowest exchanges and of its first 1000",
        )
    parts = {name: ns for name, ns in row.items() if name not in ("exchange", "whole_ns") and ns}
    planned = result.planned
    limits = store.table(result, LIMITS).filter(exchange=row["exchange"])
    return Explained(
        key=result.key,
        cell=planned.cell,
        repetition=planned.repetition,
        levels=dict(planned.levels),
        exchange=row["exchange"],
        whole_ns=row["whole_ns"],
        usual_ns=median(table["whole_ns"].to_list()),
        parts={name.removesuffix("_ns"): ns for name, ns in parts.items()},
        changed=changed_of(limits.iter_rows(named=True), "exchange").get(row["exchange"], {}),
        pieces=[Piece(**row) for row in pieces.drop("exchange").iter_rows(named=True)],
    )


def check_sockets(store: Store, exchanges: Sequence[Explained]) -> None:
    """Checks the tables for `socket_histories`, and those it does not need: a run with packets reports damage in them
    too.

    Raises: DamagedFileError when a table has changed.
    """
    for result in _results_of(store, exchanges):
        store.check_files(result, (TCP.file, PACKETS.file))


def socket_histories(store: Store, exchanges: Sequence[Explained]) -> list[SocketHistory]:
    """The socket with most bytes sent, for each repetition with sampled sockets and one of the exchanges.

    Raises: DamagedFileError when a table has changed.
    """
    histories = (_history(store, result) for result in _results_of(store, exchanges))
    return [history for history in histories if history is not None]


def _results_of(store: Store, exchanges: Sequence[Explained]) -> list[RepetitionResult]:
    results, _ = store.checked_results({exchange.cell for exchange in exchanges})
    return [results[key] for key in dict.fromkeys(exchange.key for exchange in exchanges)]


def _history(store: Store, result: RepetitionResult) -> SocketHistory | None:
    tcp = store.table(result, TCP)
    if not (tcp["last"] == 0).any():
        store.check_files(result, (PACKETS.file,))
        return None
    most = tcp.sort("sent_bytes").row(-1, named=True)
    host, port = most["host"], most["client_port"]
    of_socket = tcp.filter(host=host, client_port=port).sort("at_ns")
    at_segments = [
        (pl.col(name) * pl.col("segment_bytes")).alias(name)
        for name in ("congestion_window", "slow_start_threshold", "unacknowledged")
    ]
    points = of_socket.select("at_ns", *at_segments, "srtt_ns").rows()
    dropped, marked = pl.col("fate") == "dropped", pl.col("fate") == "marked"
    packets = _packets_of(store, result, host, port)
    drawn = [packets.gather_every(-(-packets.height // MOST_PACKETS) or 1).filter(fate="")]
    drawn += [packets.filter(fate).head(MOST_PACKETS) for fate in (dropped, marked)]
    return SocketHistory(
        key=result.key,
        levels=dict(result.planned.levels),
        host=host,
        client_port=port,
        points=[SocketPoint(*row) for row in points],
        packets=[PacketPoint(*row) for row in pl.concat(drawn).sort("in_ns").iter_rows()],
        dropped=packets.filter(dropped).height,
        marked=packets.filter(marked).height,
    )


def _packets_of(store: Store, result: RepetitionResult, host: str, port: int) -> pl.DataFrame:
    """A socket's sent packets by time: `in_ns`, `queueing_ns` and `fate`: dropped, marked or empty."""
    side, whose = ("forward", "source_port") if host == "client" else ("reverse", "destination_port")
    fate = (
        pl.when(verdict="dropped").then(pl.lit("dropped")).when(marked=1).then(pl.lit("marked")).otherwise(pl.lit(""))
    )
    rows = store.rows(
        result,
        PACKETS,
        where=(pl.col(whose) == port) & (pl.col("direction") == side),
        columns=["in_ns", "queueing_ns", fate.alias("fate")],
    )
    return rows.sort("in_ns")
