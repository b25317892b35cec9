"""Each flow's share of the path, a row for the workload and for each flow name beside it."""

from crosswind.analysis.result import Result
from crosswind.catalog.path_effect import DIRECTION_NAMES
from crosswind.report.tables.metrics import interval_notes
from crosswind.report.tables.table import CellNames, Table, invalid_rows, names, numbers
from crosswind.report.text.format import interval, levels
from crosswind.text.quantities import RATE, TIME

_HELP = (
    "While all flows of a cell run: IP bits that the path delivered of a flow, in the direction in which it sends "
    "more; its share of all that went that way; what was dropped and marked; and how long a packet waited in "
    "queues, on average."
)


def flow_tables(result: Result) -> list[Table]:
    """Rates, shares, drops, marks and queueing."""
    if not result.flows:
        return []
    cells = {cell.cell: cell for cell in result.cells}
    naming = CellNames.of(cells.values())
    has_marks = any(flow.marked.value for flow in result.flows)

    rate_divisor, rate_unit = RATE.scale_for([max(flow.rate.value or 0 for flow in result.flows)])
    wait_divisor, wait_unit = TIME.scale_for([flow.queueing.value for flow in result.flows])
    ways = {flow.direction for flow in result.flows}
    rows, short = [], []
    for flow in result.flows:
        cell = cells[flow.cell]
        name = flow.name if flow.count == 1 else f"{flow.name} ({flow.count})"
        shares = [flow.share, flow.dropped, *([flow.marked] if has_marks else [])]
        told = [interval(flow.rate, rate_divisor), *(interval(share, 0.01) for share in shares)]
        way = [DIRECTION_NAMES[flow.direction]] if len(ways) > 1 else []
        rows.append([*naming.row(cell), name, *way, *told, interval(flow.queueing, wait_divisor)])
        short.append([levels(cell.levels), name, *way, *told[:2]])
    headings = ["share, %", "dropped, %", *(["marked, %"] if has_marks else []), f"queueing, {wait_unit}"]
    directed = ["direction"] if len(ways) > 1 else []
    rate = f"rate, {rate_unit} [95 %]"
    made = [(flow.rate, f"{levels(cells[flow.cell].levels)} {flow.name}".strip()) for flow in result.flows]
    notes = interval_notes(made, "mean")
    marked = frozenset(row for row, flow in enumerate(result.flows) if invalid_rows([cells[flow.cell]]))
    narrow = Table("Flows", [*names("cell", "flow", *directed), *numbers(rate, "share, %")], short, marked, notes)
    columns = [*naming.columns, *names("flow", *directed), *numbers(rate, *headings)]
    return [Table("Flows", columns, rows, marked, notes, narrow, _HELP)]
