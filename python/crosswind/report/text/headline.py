"""A run in a few sentences: all computed from the result, none chosen by hand."""

from collections import Counter
from collections.abc import Iterator, Sequence

from crosswind.analysis.result import CellResult, Result
from crosswind.catalog.warning import WarningKind
from crosswind.files.damage import left_out
from crosswind.report.page import Sentence, Tone
from crosswind.report.showing import showings
from crosswind.report.tables.table import grouped_by_wording
from crosswind.report.text.exploration import exploration
from crosswind.report.text.format import count, count_of, failures_text, levels, listed, percent, quantity
from crosswind.report.text.spent import spent_sentence

_INCOMPLETE = "Incomplete"
_WITHOUT_RESULT = " failed: "
"""Part of an invalid cell's reason: one of its repetitions has no result."""


def verdict(result: Result) -> Sentence:
    """Whether to trust the run."""
    if not result.cells:
        return Sentence("No cell was executed.", Tone.BAD)
    invalid = [cell for cell in result.cells if not cell.valid]
    if invalid:
        if len(result.cells) == 1:
            return Sentence(f"This run is invalid: {invalid[0].reason}", Tone.BAD)
        first = f"{levels(invalid[0].levels)}: {invalid[0].reason}"
        counted = f"{len(invalid)} of {count_of(len(result.cells), 'cell')}"
        return Sentence(f"{counted} {'is' if len(invalid) == 1 else 'are'} invalid: {first}", Tone.BAD)
    if result.damaged:
        out = left_out(result.damaged)
        left = f"{out} of {count_of(result.executed, 'repetition')} left out, because files have changed"
        said = (
            f"{left}; the others are valid" if out else "files are not as they were written; every repetition is valid"
        )
        return Sentence(f"Damaged: {said}.", Tone.DOUBTFUL)
    if not result.complete:
        executed = f"{result.executed} of {result.planned} repetitions were executed"
        rest = "`crosswind run --resume RUN` executes the rest."
        return Sentence(f"{_INCOMPLETE}: {executed}; those are valid. {rest}", Tone.DOUBTFUL)
    return _of_valid_cells(result)


def _of_valid_cells(result: Result) -> Sentence:
    """The verdict on a complete run with only valid cells."""
    warned = any(cell.warnings for cell in result.cells)
    tone = Tone.DOUBTFUL if warned else Tone.GOOD
    failures = _many_failures(result)
    if result.conditions is not None and result.conditions.network is not None:
        network = "The network is real: nothing is emulated, and packets are not counted."
        return Sentence(f"{failures}Every cell is valid{', with warnings' if warned else ''}. {network}", tone)
    if warned:
        return Sentence(f"{failures}Every packet is accounted for, and emulation kept its budget, with warnings.", tone)
    return Sentence("Every packet is accounted for, and emulation kept its budget in every cell.", tone)


def _many_failures(result: Result) -> str:
    """A sentence for more than half of a cell's exchanges failed, with a space after it; else empty."""
    many = [cell for cell in result.cells if 2 * cell.lost > cell.n]
    if not many:
        return ""
    if len(result.cells) == 1:
        return f"{count(many[0].lost)} of {count_of(many[0].n, 'exchange')} failed. "
    return f"More than half of all exchanges failed in {count(len(many))} of {count_of(len(result.cells), 'cell')}. "


def doubts_of(result: Result) -> list[Sentence]:
    """Invalid cells' reasons and warnings, each text once with its cells; without the verdict's."""
    return [Sentence(f"{_DOUBTS[tone]}: {text}", tone) for tone, text in _doubts(result)]


_DOUBTS = {Tone.BAD: "invalid", Tone.DOUBTFUL: "warning"}


def _doubts(result: Result) -> Iterator[tuple[Tone, str]]:
    several = len(result.cells) > 1
    reasons = grouped_by_wording((cell.reason, levels(cell.levels)) for cell in result.cells if cell.reason)
    if several:
        yield from ((Tone.BAD, _with_cells(text, cells)) for text, cells in reasons.items())
    is_said = verdict(result).text.startswith(_INCOMPLETE)
    for warning in result.warnings:
        if not (is_said and warning.name == WarningKind.INCOMPLETE.value[0]):
            yield Tone.DOUBTFUL, warning.sentence
    warnings = grouped_by_wording(
        (warning.sentence, levels(cell.levels)) for cell in result.cells for warning in cell.warnings
    )
    for text, cells in warnings.items():
        yield Tone.DOUBTFUL, _with_cells(text, cells) if several else text


def _with_cells(text: str, cells: Sequence[str]) -> str:
    return f"{text} ({listed(list(cells), 3)})"


def headline_sentences(result: Result) -> list[str]:
    """The run in sentences: its time breakdown, its extent, and its clock.

    A run without a question begins with its own estimates, and comparisons of the user's choices.
    """
    return [
        *([] if any(showing.answers(result) for showing in showings()) else exploration(result)),
        *spent_sentence(result),
        _extent(result),
        *_clock(result),
        *timer_sentences(result),
        *inferred_sentences(result),
    ]


def _extent(result: Result) -> str:
    """How much was run, and how much of it failed, by cause."""
    causes: Counter[str] = Counter()
    for failures in (failures for cell in result.cells for failures in cell.failures):
        causes[failures.outcome] += failures.count
    failed = sum(cell.lost for cell in result.cells)
    without = any(_WITHOUT_RESULT in (cell.reason or "") for cell in result.cells)
    extent = f"{count_of(len(result.cells), 'cell')}, {count_of(result.executed, 'repetition')}"
    if result.copied:
        extent += f" ({count(result.executed - result.copied)} run; the others lose the same packets)"
    exchanges = sum(cell.n for cell in result.cells)
    if not exchanges:
        return f"{extent}, no exchange{': repetitions that failed entirely have none' if without else ''}."
    return (
        f"{extent}, {count_of(exchanges, 'exchange')}, {failures_text(failed, causes.most_common())}"
        f"{'; repetitions that failed entirely have none' if without else ''}."
    )


def timer_sentences(result: Result) -> list[str]:
    """The range of a TCP timer deciding times in virtual time, where every repetition has the same timer phase.

    Source: Linux's timer wheel at 1000 ticks a second: steps of 8 ms from 64 ms on, of 64 ms from 512 ms on, of 512 ms
    from 4.1 s on.
    """
    hosts = result.conditions.hosts if result.conditions is not None else []
    virtual = [cell for cell in result.cells if cell.clock == "virtual" and _has_dropped(cell)]
    tcp = [cell for cell in virtual if _longest(cell, "handshake_transport") > 0]
    if not tcp or any(setting.name == "tick phase" for setting in hosts):
        return []
    if max(_longest(cell, "handshake_transport") for cell in tcp) >= _SYN_TIMER_NS:
        decides = "A lost SYN takes 1 to 1.064 s more"
    elif max(_longest(cell, "spent_recovery") for cell in tcp) >= _SHORTEST_TIMER_NS:
        decides = "A retransmission timer ends up to 8 ms late (64 ms from half a second on, 512 ms from 4.1 s on)"
    else:
        return []
    return [
        f"{decides}, by the phase of the kernel's timers. Every repetition has the same phase; "
        "--set host.tick_phase=seed draws one for each."
    ]


def _has_dropped(cell: CellResult) -> bool:
    """Whether a packet was lost, so a timer may have expired for it; unknown without a ledger."""
    ways = (cell.ledger.forward, cell.ledger.reverse) if cell.ledger is not None else ()
    return cell.ledger is None or any(way.corrupted or way.dropped.total for way in ways)


def _longest(cell: CellResult, metric: str) -> float:
    return cell.estimates[metric].largest if metric in cell.estimates else 0.0


def _clock(result: Result) -> list[str]:
    cells = count_of(len(result.cells), "cell")
    virtual = [cell for cell in result.cells if cell.clock == "virtual"]
    if not result.cells:
        return []
    if not virtual:
        return ["Clock: real."]
    kernels = sorted({cell.kernel for cell in virtual if cell.kernel})
    some = f" in {count(len(virtual))} of {cells}" if len(virtual) < len(result.cells) else ""
    on = f", on Linux {' and '.join(kernels)}" if kernels else ""
    sentences = [f"Clock: virtual{some}{on}; processor time and waits for processors are not measured."]
    exact = sum(cell.exact for cell in result.cells)
    if exact:
        which = f"{count(exact)} of {cells}" if exact < len(result.cells) else cells
        sentences.append(f"Exact: {which}: without randomness, every repetition gives the same result.")
    return sentences


_MOST_CELLS = 3
_SYN_TIMER_NS = 1e9
"""A SYN's first timer: RFC 6298."""
_SHORTEST_TIMER_NS = 200e6
"""The minimum retransmission timer: Linux's TCP_RTO_MIN."""


def inferred_sentences(result: Result) -> list[str]:
    """A sentence for each of the first cells; none where nothing ran over a real network or no model is asked."""
    if result.conditions is None or result.conditions.network is None:
        return []
    said = [sentence for cell in result.cells if (sentence := _model_sentence(cell)) is not None]
    more = len(said) - _MOST_CELLS
    return [*said[:_MOST_CELLS], *([f"{more} more cells have model predictions."] if more > 0 else [])]


def _model_sentence(cell: CellResult) -> str | None:
    expected = [
        f"{model.title.partition(',')[0]} expects {quantity(model.value, model.unit)}"
        for model in cell.models
        if model.value
    ]
    if not expected:
        return None
    first = cell.models[0]
    trip_s = first.inputs.get("rtt_s")
    trip = f" and {quantity(1e9 * trip_s, 'ns')} round trip, both" if trip_s else ","
    measured = first.measured.value if first.measured else None
    beside = f"; measured: {quantity(measured, first.unit)}" if measured is not None else ""
    name = f"{levels(cell.levels)}: of" if cell.levels else "Of"
    return f"{name} {percent(first.inputs['loss'])} loss{trip} inferred from TCP, {', '.join(expected)}{beside}."
