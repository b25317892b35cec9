"""Output for `crosswind plan`: facts, the longest cells, costs and order."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from crosswind.cell.check import CheckedCell
from crosswind.cell.forecast import (
    HEAVY,
    PROGRAM_NS,
    SETUP_NS,
    VIRTUAL_BLOCK_PACKET_NS,
    VIRTUAL_BROWSER_NS,
    VIRTUAL_PACKET_NS,
    VIRTUAL_PEER_NS,
    VIRTUAL_QUIC_PACKET_NS,
    VIRTUAL_START_NS,
    Forecast,
)
from crosswind.cli.plan_precision import precision_facts
from crosswind.cli.planned import PlannedRuns
from crosswind.cli.text import levels_text, seconds_text, size_text
from crosswind.execution.each_packet import disturbances, further_repetitions
from crosswind.execution.planning import PlanCosts, repeats_of
from crosswind.report.text.format import count, count_of, quantity
from crosswind.study.cells import Cell
from crosswind.text.terminal_table import TextColumn, number_columns, print_table

_LONGEST = 10
_MUCH_SHORTER = 3
"""How many times shorter a plan has to be in virtual time to say so."""
_COMPUTED = (
    "Forecasts are right within a factor of two or three: round trips times exchanges, the link's time, timeouts for "
    f"losses, and {SETUP_NS / 1e9:g} s of set-up per repetition. In virtual time a repetition takes "
    f"{VIRTUAL_START_NS / 1e9:g} s, and {VIRTUAL_BLOCK_PACKET_NS / 1e3:g} us per packet of a transfer over tcp or tls, "
    f"{VIRTUAL_PACKET_NS / 1e3:g} us per other packet and {VIRTUAL_QUIC_PACKET_NS / 1e3:g} us over QUIC; a browser "
    f"{VIRTUAL_BROWSER_NS / 1e9:g} s more and another peer {VIRTUAL_PEER_NS / 1e9:g} s more. Retries are not counted. "
    "A cell that ran here before is expected to take as long again."
)
_OF_NETWORK = (
    "These forecasts are rough, because the network is unknown. They assume a round trip of 50 ms, 10 Mbit/s "
    "and no loss. Cells run one after another. The server is not asked for a plan; a run first tries its transports."
)
_FOOTNOTE = (
    "Of cells that never ran here, “side by side” assumes as many parallel repetitions as {capacity:g} of {processors} "
    "processors can carry, at most {most}. A repetition that uses more than {heavy} of a processor, or whose round "
    "trip is below 1 ms, runs alone, after the others."
)


def print_plan(console: Console, planned: PlannedRuns, costs: PlanCosts | None, checked: str) -> None:
    """Prints the plan, and forecasts for checked cells. Args: checked: the check's result in words."""
    study, cells = planned.study, planned.cells
    console.print(study.title, style="bold")
    console.print()
    facts = [("plan", f"{count_of(len(cells), 'cell')}, {_repetitions(planned)}")]
    facts += [("precision", text) for text in precision_facts(study)]
    if further := further_repetitions(study, tuple(planned.checked.values())).total():
        facts.append(
            ("each packet", f"then one repetition for each packet {disturbances(study)}, about {count(further)}")
        )
    repeated = repeats_of(study, tuple(planned.checked.values()))
    if any(times > 1 for times in repeated.values()):
        facts.append(("losses", "repetitions that lose the same packets are run once, where nothing else is random"))
    facts += [("factor", f"{key} = {', '.join(texts)}") for key, texts in study.factors.items()]
    facts += [("excluded", exclusion.text) for exclusion in study.exclusions]
    facts += [("seed", str(study.seed)), ("checked", checked), *_clocks(planned)]
    _print_facts(console, facts)
    if costs is None:
        return
    console.print()
    _print_longest(console, cells, planned.checked)
    console.print()
    network = any(cell.is_over_network for cell in planned.checked.values())
    _print_facts(console, _totals(costs, network=network))
    console.print()
    if network:
        console.print(Text(_OF_NETWORK, style="dim"))
        return
    note = _FOOTNOTE.format(capacity=costs.capacity, processors=costs.processors, most=costs.most, heavy=HEAVY)
    console.print(Text(f"{_COMPUTED} {note}", style="dim"))


def _repetitions(planned: PlannedRuns) -> str:
    """How often the cells are run, each and together; with a precision, at first."""
    most = max((item.repetition + 1 for item in planned.runs), default=0)
    some = "at most " if len(planned.runs) < len(planned.cells) * most else ""
    first = " at first" if planned.study.precisions else ""
    if len(planned.cells) == 1:
        return f"{count_of(most, 'repetition')}{first}"
    return f"{some}{count_of(most, 'repetition')} each{first}: {count(len(planned.runs))} in all"


def _clocks(planned: PlannedRuns) -> Iterator[tuple[str, str]]:
    """The cells' clocks, and the number of exact ones."""
    checked = planned.checked.values()
    if not checked:
        return
    cells = len(planned.cells)
    virtual, exact = sum(cell.is_virtual for cell in checked), sum(cell.exact for cell in checked)
    some = "" if virtual in (0, cells) else f" in {virtual} of {cells} cells, real in the others"
    yield "clock", f"virtual{some}" if virtual else "real"
    if exact:
        which = f"{exact} of {cells} cells: each runs once" if exact < cells else "each cell runs once"
        yield "exact", f"{which}: nothing in it is left to chance"


def _totals(costs: PlanCosts, *, network: bool) -> list[tuple[str, str]]:
    alone = f", {costs.alone_runs} of the repetitions alone" if costs.alone_runs else ""
    totals = []
    if costs.serial_ns:
        totals.append(("one by one", f"about {_time(costs.serial_ns)}"))
        if not network:
            totals.append(("side by side", f"about {_time(costs.parallel_ns)}{alone}"))
        if not costs.unknown_runs and not network and _MUCH_SHORTER * costs.if_virtual_ns < costs.parallel_ns:
            totals.append(("--clock virtual", f"about {_time(costs.if_virtual_ns)} (docs/virtual-time.md)"))
    if costs.virtual_runs:
        totals.append(
            ("in virtual time", f"{count_of(costs.virtual_runs, 'repetition')} in about {_time(costs.virtual_ns)}")
        )
    totals += [
        ("packets", count(costs.packets)),
        ("carried", size_text(costs.bytes)),
        ("disk space", size_text(costs.disk_bytes)),
    ]
    if costs.unknown_runs:
        unknown = count_of(costs.unknown_runs, "repetition")
        totals.append(("programs", f"{unknown}, taken as {PROGRAM_NS / 1e9:g} s each; what they send is not counted"))
    totals.append(("in all", f"about {_time(costs.wall_ns)}, with start and report"))
    totals.append(("forecast", _cost_sources(costs)))
    return totals


def _cost_sources(costs: PlanCosts) -> str:
    """The costs' sources."""
    if not costs.measured_runs:
        return "computed: none of these cells ran on this machine"
    sessions = f"{costs.learned_from} run{'' if costs.learned_from == 1 else 's'} on this machine"
    return f"learned from {sessions}; {costs.measured_runs} of {costs.runs} runs are of cells that were measured"


def _print_facts(console: Console, facts: Sequence[tuple[str, str]]) -> None:
    print_table(console, [TextColumn(), TextColumn()], [[Text(name, style="dim"), text] for name, text in facts])


def _print_longest(console: Console, cells: Sequence[Cell], checked: Mapping[int, CheckedCell]) -> None:
    longest = sorted(cells, key=lambda cell: -checked[cell.index].forecast.duration_ns)[:_LONGEST]
    head = "a repetition of the longest cells" if len(cells) > _LONGEST else "a repetition of a cell"
    rows = [[str(cell.index), _levels(cell), *_numbers(checked[cell.index].forecast)] for cell in longest]
    print_table(console, [*number_columns("cell"), TextColumn(head), *number_columns("takes", "packets", "load")], rows)
    if len(cells) > len(longest):
        console.print(Text(f"and {len(cells) - len(longest)} cells that take less", style="dim"))


def print_order(console: Console, planned: PlannedRuns) -> None:
    """Every repetition, in its order."""
    console.print()
    checked = planned.checked
    columns = [
        *number_columns("order"),
        TextColumn("key"),
        *number_columns("block"),
        TextColumn("repetition"),
        *number_columns(*["takes"] * bool(checked)),
    ]
    rows = [
        [str(item.order), item.key, str(item.block), _levels(item.cell)]
        + ([_numbers(checked[item.cell.index].forecast)[0]] if checked else [])
        for item in planned.runs
    ]
    print_table(console, columns, rows)


def _levels(cell: Cell) -> str:
    return levels_text(cell.levels) or "all"


def _numbers(forecast: Forecast) -> tuple[str, str, str]:
    return _time(forecast.duration_ns), count(forecast.packets), f"{forecast.load:.2g}"


def _time(duration_ns: int) -> str:
    return quantity(duration_ns, "ns") if duration_ns < 60e9 else seconds_text(duration_ns / 1e9)
