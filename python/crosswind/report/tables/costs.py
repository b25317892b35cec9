"""A message's cost: dropped packets, bytes and packets on the wire, processor time."""

from collections.abc import Sequence
from typing import Literal

from crosswind.analysis.result import (
    BackgroundPackets,
    CellResult,
    DirectionPackets,
    FlowConditions,
    HopPackets,
    Result,
)
from crosswind.catalog.metrics import Metric, MetricPlace, metrics_at
from crosswind.report.tables.reasons import merged_reasons
from crosswind.report.tables.table import CellNames, Table, cell_table, numbers, words
from crosswind.report.text.format import (
    NOT_MEASURED,
    NOTHING,
    count,
    count_of,
    levels,
    mean_or_observed,
    percent_interval,
    quantity,
    sentence,
)

_MESSAGE = (
    "A message is one row of the samples; for connect, transfer and page it is a connection, a transfer or a page."
)
_WIRE = (
    "On the wire: IP packets that a host sent, including retransmissions and acknowledgements. Overhead: all bytes "
    "but payload. Not counted: the set-up of connections that an echo or a multiplex keeps."
)
_PROCESSOR = "Processor time of each host's own threads."
_DROPPED = (
    "Share of the packets that entered the path that were dropped, for any cause, with 95 % "
    "intervals over repetitions (Clopper-Pearson, of the effective number of packets)."
)

_ALSO = {
    "duplicated": "Duplicated: copies that the path made of packets, to the server and to the client.",
    "corrupted": "Corrupted: packets in which the path flipped a bit, to the server and to the client. They reached "
    "the host, which drops what a checksum shows.",
}


_BACKGROUND = (
    "Packets of background traffic that the links carried, of those that entered them. No host sent or got one, and "
    "they are in no other count."
)
_BY_HOP = "Packets dropped and marked by hop"
_REORDERED = (
    "Delivered packets that arrived after one that had entered the path later, and the largest distance between the "
    "two arrivals, in packets and time (RFC 4737: reordering extent, late-time offset). All flows count together."
)
_MARKED = "Delivered packets that the path marked (ECN: congestion experienced), of those that entered it."


def drop_tables(result: Result) -> list[Table]:
    """Packets dropped, marked and reordered by the path, to the server and to the client, if any."""
    tables = (_dropped_table, _marked_table, _reordered_table, _hop_table, _background_table)
    return [table for tables_of in tables for table in tables_of(result)]


def _hop_table(result: Result) -> list[Table]:
    cells = [cell for cell in result.cells if cell.ledger and cell.ledger.forward.hops]
    naming = CellNames.of(cells)
    conditions = result.conditions
    given = list(dict.fromkeys(part.hop for part in conditions.path)) if conditions else []
    beside = conditions.flows if conditions else []
    flows = [flow for flow in beside if any(setting.name.startswith("access ") for setting in flow.settings)]
    rows, narrow = [], []
    for cell, ledger in ((cell, cell.ledger) for cell in cells if cell.ledger):
        ways = list(zip(ledger.forward.hops, ledger.reverse.hops, strict=True))
        for name, way in zip(_hop_names(given, flows, len(ways)), ways, strict=True):
            if any(hop.dropped.total or hop.marked or hop.background_carried for hop in way):
                fates = [_fates(hop) for hop in way]
                rows.append([*naming.row(cell), name, *fates])
                narrow.append([levels(cell.levels), name, *fates])
    if not rows:
        return []
    columns = [*words("hop"), *numbers("to server", "to client")]
    small = Table(_BY_HOP, [*naming.joined, *columns], narrow, frozenset(), [])
    return [Table(_BY_HOP, [*naming.columns, *columns], rows, frozenset(), [], small)]


def _hop_names(given: Sequence[str], flows: Sequence[FlowConditions], count: int) -> list[str]:
    """The path's hops by name, followed by flows' access links; a cell may have only some of these."""
    links = count - len(given)
    if links < 0:
        return [str(number) for number in range(1, count + 1)]
    owners = [flow.name for flow in flows] if links == len(flows) else [str(number) for number in range(1, links + 1)]
    return [*(name or "path" for name in given), *(f"access link {owner}" for owner in owners)]


def _fates(hop: HopPackets) -> str:
    """`12 queue, 3 marked`."""
    dropped = [f"{count(packets)} {cause}" for cause, packets in hop.dropped.by_cause.items() if packets]
    marked = [f"{count(hop.marked)} marked"] if hop.marked else []
    carried, lost = hop.background_carried, hop.background_dropped
    background = [f"background: {count(carried)} carried, {count(lost)} dropped"] if carried or lost else []
    return ", ".join([*dropped, *marked, *background]) or NOTHING


def _background_table(result: Result) -> list[Table]:
    cells = [cell for cell in result.cells if cell.ledger and any(_backgrounds(cell))]
    if not cells:
        return []
    ways = [[_carried(way) for way in _backgrounds(cell)] for cell in cells]
    return [_by_direction("Background traffic", cells, ways, _BACKGROUND)]


def _backgrounds(cell: CellResult) -> list[BackgroundPackets | None]:
    return [cell.ledger.forward.background, cell.ledger.reverse.background] if cell.ledger else []


def _carried(packets: BackgroundPackets | None) -> str:
    if packets is None:
        return NOTHING
    return f"{count(packets.carried)} of {count(packets.in_)}, {count(packets.dropped.total)} dropped"


def _marked_table(result: Result) -> list[Table]:
    ledgers = [(cell, cell.ledger) for cell in result.cells if cell.ledger]
    if not any(ledger.forward.marked or ledger.reverse.marked for _, ledger in ledgers):
        return []
    cells = [cell for cell, _ in ledgers]
    ways = [
        [f"{count(way.marked)} of {count(way.in_)}" for way in (ledger.forward, ledger.reverse)]
        for _, ledger in ledgers
    ]
    return [_by_direction("Packets marked", cells, ways, _MARKED)]


def _reordered_table(result: Result) -> list[Table]:
    ledgers = [(cell, cell.ledger) for cell in result.cells if cell.ledger]
    if not any(ledger.forward.reordering or ledger.reverse.reordering for _, ledger in ledgers):
        return []
    ways = [[_reordered(way) for way in (ledger.forward, ledger.reverse)] for _, ledger in ledgers]
    return [_by_direction("Packets reordered", [cell for cell, _ in ledgers], ways, _REORDERED)]


def _reordered(direction: DirectionPackets) -> str:
    late = direction.reordering
    if late is None:
        return NOTHING
    distances = f"{count_of(late.extent, 'packet')} and {quantity(late.late_time_offset_ns, 'ns')}"
    return f"{count(late.packets)} of {count(direction.delivered)}, by up to {distances}"


def _by_direction(title: str, cells: Sequence[CellResult], ways: Sequence[Sequence[str]], note: str) -> Table:
    """A row for each cell, with a text for each direction."""
    form = (numbers("to server", "to client"), ways)
    return cell_table(title, cells, form, [note], narrow=[form])


def _dropped_table(result: Result) -> list[Table]:
    ledgers = [(cell, cell.ledger) for cell in result.cells if cell.ledger]
    ways = [way for _, ledger in ledgers for way in (ledger.forward, ledger.reverse)]
    # Other packet fates have columns if there are any.
    also = [name for name in ("duplicated", "corrupted") if any(getattr(way, name) for way in ways)]
    if not also and not any(way.dropped.total for way in ways):
        return []
    rows, shares = [], [[_share(cell, "forward"), _share(cell, "reverse")] for cell, _ in ledgers]
    for (_, ledger), (there, back) in zip(ledgers, shares, strict=True):
        forward, reverse = ledger.forward, ledger.reverse
        both = (f"{count(getattr(forward, name))} / {count(getattr(reverse, name))}" for name in also)
        rows.append([_dropped(forward), there, _dropped(reverse), back, *both])
    title = " and ".join([", ".join(["Packets dropped", *also[:-1]]), *also[-1:]])
    form = (numbers("to server", "share", "to client", "share", *also), rows)
    notes = [_DROPPED, *(_ALSO[name] for name in also)]
    small = (numbers("to server", "to client"), shares)
    return [cell_table(title, [cell for cell, _ in ledgers], form, notes, narrow=[small])]


def wire_tables(result: Result) -> list[Table]:
    """Bytes and packets of a message in both directions, where the path counted them."""
    return _cost_tables(result, metrics_at(MetricPlace.WIRE), "Overhead per message", [_WIRE, _MESSAGE])


def processor_tables(result: Result) -> list[Table]:
    """Client's and server's processor time per message; beside cells with it, also virtual time's."""
    return _cost_tables(result, metrics_at(MetricPlace.PROCESSOR), "CPU per message", [_PROCESSOR, _MESSAGE])


def _cost_tables(result: Result, metrics: Sequence[Metric], title: str, notes: list[str]) -> list[Table]:
    """A column for each metric. Numbers in the first one's unit share one scale, named in the title."""
    names = [metric.name for metric in metrics]
    measured = {cell.cell: cell for cell in result.cells if any(name in cell.estimates for name in names)}
    if not measured:
        return []
    cells = [cell for cell in result.cells if cell.cell in measured or _is_unmeasured(cell, metrics)]
    unit = metrics[0].unit
    divisor, label = unit.scale_for(
        _middle(cell, metric) for cell in cells for metric in metrics if metric.unit is unit
    )
    rows = []
    for cell in cells:
        if cell.cell not in measured:
            rows.append([NOTHING, *(NOT_MEASURED for _ in metrics)])
            continue
        means = [
            mean_or_observed(cell.estimates.get(metric.name), divisor if metric.unit is unit else 1.0)
            for metric in metrics
        ]
        rows.append([count(max(cell.estimates[name].mean.n for name in names if name in cell.estimates)), *means])
    estimates = [cell.estimates[name].mean for cell in measured.values() for name in names if name in cell.estimates]
    exact = ["An exact number is the same in every repetition."] if any(mean.is_exact for mean in estimates) else []
    how = "Means over repetitions (n), with 95 % intervals by Student's t."
    notes = [
        how,
        *exact,
        *map(sentence, sorted(merged_reasons((mean.reason, "") for mean in estimates if mean.reason))),
        *notes,
    ]
    title = f"{title}, {label}" if unit.shown else title
    columns = numbers("n", *(metric.column for metric in metrics))
    small = (columns[:3], [row[:3] for row in rows])
    return [cell_table(title, cells, (columns, rows), notes, narrow=[small])]


def _is_unmeasured(cell: CellResult, metrics: Sequence[Metric]) -> bool:
    """Whether a cell has none of these metrics because it ran in virtual time."""
    return cell.clock == "virtual" and all(metric.place is MetricPlace.PROCESSOR for metric in metrics)


def _dropped(direction: DirectionPackets) -> str:
    return f"{count(direction.dropped.total)} of {count(direction.in_)}"


def _share(cell: CellResult, way: Literal["forward", "reverse"]) -> str:
    loss = cell.packet_loss.get(way)
    return NOTHING if loss is None else percent_interval(loss)


def _middle(cell: CellResult, metric: Metric) -> float | None:
    estimates = cell.estimates.get(metric.name)
    if estimates is None:
        return None
    return estimates.smallest if estimates.mean.value is None else estimates.mean.value
