"""A run for analysis: every repetition with a result, and its tables."""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial

import polars as pl

from crosswind.catalog.tables import CONNECTION_PIECES, CONNECTIONS, FLOWS, OBJECTS, PACKETS, PIECES, SAMPLES, SPENT
from crosswind.cell.record import OF_REPETITION, PROBES, CellRun, LargeRun, RunPart, RunRecord
from crosswind.files.damage import Damage
from crosswind.store.checksums import Checksum, DamagedFileError, damaged_file, open_checked
from crosswind.store.directory import Store
from crosswind.store.partitions import PACKED_AT_ONCE, texts_of
from crosswind.store.plan import PlannedCell
from crosswind.store.result import RepetitionResult
from crosswind.store.run_file import RunFile

_OUTPUT = "client.out"
_KEPT_OUTPUT_BYTES = 16 << 20
"""Maximum client output: it may be a report with a million times in it."""


def record_of(store: Store, cells_of: Container[int] | None = None) -> RunRecord:
    """The run, failed repetitions too, without damaged ones.

    Args: cells_of: only these cells' repetitions; None: all.
    Raises: StoreError for an unreadable plan or another schema.
    """
    manifest = store.manifest
    results, damaged = store.checked_results(cells_of)
    until = store.plan.whole_until(results.keys())
    cells = []
    for result in results.values():
        if _is_beyond(until, result.planned):
            continue
        try:
            cells.append(cell_run(store, result))
        except DamagedFileError as error:
            damaged.append(store.damage(result.planned, error))
    presentation = manifest.presentation
    return RunRecord(
        **{**presentation, "compare_by": tuple(presentation["compare_by"])},
        study=dict(manifest.study),
        cells=cells,
        planned=store.plan.wanted if cells_of is None else sum(cell in cells_of for cell in store.plan.cells),
        provenance=dict(manifest.provenance),
        precision=None if manifest.precision is None else dict(manifest.precision),
        damaged=damaged,
        keeps_parts=manifest.options.spent,
    )


def large_run_of(store: Store, cells_of: Container[int], *, results: bool) -> LargeRun:
    """A run for reading part by part.

    Args: cells_of: cells in its record. results: whether to read all repetitions' results, else only the first part's,
        and those in parts with invalid repetitions.
    Raises: as `record_of`.
    """
    record = record_of(store, cells_of)
    damaged = list(record.damaged)
    return LargeRun(
        record,
        kinds_of(store),
        store.plan.wanted,
        _seeds(store),
        _parts_of(store, damaged, results=results),
        damaged,
    )


def _is_beyond(until: Mapping[int, int], planned: PlannedCell) -> bool:
    """Whether a repetition stands behind a missing one of a cell, where this makes a difference."""
    return planned.disturbed is None and planned.repetition >= until.get(planned.cell, planned.repetition + 1)


def kinds_of(store: Store) -> list[CellRun]:
    """Each planned cell without a repetition, by index. Raises: StoreError."""
    return [
        CellRun(
            "", kind.cell, 0, 0, dict(kind.levels), dict(kind.parameters), kind.effect, None, None, exact=kind.exact
        )
        for kind in sorted(store.plan.kinds, key=lambda kind: kind.cell)
    ]


def _seeds(store: Store) -> pl.DataFrame:
    plan = store.plan
    columns = {"cell": plan.cells, "repetition": plan.repetitions, "seed": plan.seeds}
    return pl.DataFrame(columns, schema={**OF_REPETITION, "seed": pl.Int64}, strict=False)


def _parts_of(store: Store, damaged: list[Damage], *, results: bool) -> Iterator[RunPart]:
    in_directories, of_results = store.results_in_directories()
    until = store.plan.whole_until(store.packed().keys() | in_directories.keys())
    for at, partition in enumerate(store.partitions()):
        try:
            known = partition.stored_sums
            asked = results or at == 0 or bool(until) or known is None or known["valid"] < len(partition.keys)
            texts = partition.texts() if asked else None
            cells = frozenset(texts["cell"] if texts is not None else () if known is None else known["cells"])
            samples = partition.every_row(SAMPLES)
        except DamagedFileError as error:
            damaged += store.damage_of(partition, error)
            continue
        if until and texts is not None:
            texts, samples = _counted(texts, until), _counted(samples, until)
        yield RunPart(cells, len(partition.keys) if texts is None else texts.height, texts, samples)
    damaged += of_results
    left = [result for result in in_directories.values() if not _is_beyond(until, result.planned)]
    for start in range(0, len(left), PACKED_AT_ONCE):
        yield part_of(store, left[start : start + PACKED_AT_ONCE], damaged)


def _counted(rows: pl.DataFrame, until: Mapping[int, int]) -> pl.DataFrame:
    """The rows of repetitions before their cell's first missing one, where this makes a difference."""
    first = {"cell": list(until), "until": list(until.values())}
    limits = pl.DataFrame(first, schema={"cell": pl.UInt32, "until": pl.Int64})
    joined = rows.join(limits, on="cell", how="left", maintain_order="left")
    return joined.filter(pl.col("until").is_null() | (pl.col("repetition") < pl.col("until"))).drop("until")


def part_of(store: Store, results: Sequence[RepetitionResult], damaged: list[Damage]) -> RunPart:
    """Repetitions from directories, in a partition's form. Args: damaged: receives those with a changed file."""
    whole, tables = [], [pl.DataFrame(schema={**OF_REPETITION, **SAMPLES.schema})]
    for result in results:
        try:
            samples = SAMPLES.empty if result.failure is not None else _samples(store, result)
        except DamagedFileError as error:
            damaged.append(store.damage(result.planned, error))
            continue
        identity = zip(OF_REPETITION, (result.planned.cell, result.planned.repetition), strict=True)
        tables.append(samples.select(*(pl.lit(number, pl.UInt32).alias(name) for name, number in identity), pl.all()))
        whole.append(result)
    cells = frozenset(result.planned.cell for result in whole)
    return RunPart(cells, len(whole), texts_of(whole), pl.concat(tables))


def cell_run(store: Store, result: RepetitionResult) -> CellRun:
    """One repetition with its tables. Raises: DamagedFileError when one has changed."""
    # A failed cell's tables stay for inspection, but are no measurement.
    whole = result.failure is None
    planned = result.planned
    samples = _samples(store, result) if whole else SAMPLES.empty
    probes = SAMPLES.empty
    if flows := planned.parameters.get("flows"):
        is_own = pl.col("flow") == 0
        if any(flow["workload"].get("probe_rate_per_s") for flow in flows):
            probes = samples.filter(~is_own, pl.col("stream") == PROBES)
        samples = samples.filter(is_own)
    return CellRun(
        key=planned.key,
        cell=planned.cell,
        repetition=planned.repetition,
        block=planned.block,
        levels=dict(planned.levels),
        parameters=dict(planned.parameters),
        effect=planned.effect,
        finished=result.finished,
        failure=result.failure,
        attempts=result.attempt,
        exact=planned.exact and result.finished is not None and result.finished.is_repeatable,
        same_as=result.same_as,
        disturbed=planned.disturbed,
        beside=result.beside,
        machine=result.machine,
        samples=samples,
        probes=probes,
        intervals=store.table(result, FLOWS) if whole else FLOWS.empty,
        spent=_spent(store, result, samples) if whole else SPENT.empty,
        objects=store.table(result, OBJECTS) if whole else OBJECTS.empty,
        packets=store.table(result, PACKETS) if whole and _has_disturbed(store, result) else PACKETS.empty,
        pieces=partial(store.table, result, PIECES),
        client_out=_end_of_text(store.file(result, _OUTPUT), result.files.get(_OUTPUT)) if whole else "",
    )


def _has_disturbed(store: Store, result: RepetitionResult) -> bool:
    """Whether it is clean and others of its cell are disturbed."""
    designs = store.manifest.presentation["asked"].get("each_packet", ())
    return result.planned.disturbed is None and any(result.planned.cell in each["cells"] for each in designs)


def _spent(store: Store, result: RepetitionResult, samples: pl.DataFrame) -> pl.DataFrame:
    """The exchanges' time breakdown. Raises: DamagedFileError."""
    spent = store.table(result, SPENT)
    if CONNECTIONS.file not in result.files:
        return spent
    # It uses numpy: not to be imported before the first cell has run.
    from crosswind.store.spent import with_connections

    connections, pieces = (store.table(result, table) for table in (CONNECTIONS, CONNECTION_PIECES))
    return with_connections(spent, samples, connections, pieces, is_cut_off=result.is_cut_off)


def packets_of(store: Store, result: RepetitionResult) -> pl.DataFrame | None:
    """The packets of a repetition; None where they were not kept. Raises: DamagedFileError."""
    return store.table(result, PACKETS) if PACKETS.file in result.files else None


def _samples(store: Store, result: RepetitionResult) -> pl.DataFrame:
    """A repetition's samples. Raises: DamagedFileError, also for missing ones."""
    samples = store.table(result, SAMPLES)
    counted = 0 if result.finished is None else result.finished.samples.rows
    if counted and samples.is_empty():
        raise damaged_file(store.file(result, SAMPLES.file), f"has no rows, and the cell counted {counted} samples")
    return samples


def _end_of_text(file: RunFile, checksum: Checksum | None) -> str:
    if checksum is None:
        return ""
    with open_checked(file, checksum) as opened:
        opened.seek(max(0, checksum.size_bytes - _KEPT_OUTPUT_BYTES))
        return opened.read().decode(errors="replace")
