"""Why one run takes longer than another, in sentences: what changes are made of, and at which packet the runs part."""

from collections.abc import Iterator, Sequence

from crosswind.analysis.two_runs.result import Change, ExchangeChange, Parting, PartOfChange, RunComparison, Why
from crosswind.catalog import catalog
from crosswind.report.text.format import count_of, levels, quantity

_MOST_PARTS = 4
_ENOUGH = 0.8
"""The share of a change after which a sentence stops naming its parts."""
_ENDS = {"forward": "server", "reverse": "client"}


def why_sentences(comparison: RunComparison) -> Iterator[str]:
    """Of each common cell that can say why, a few; cells in which nothing differs are counted together."""
    told = [(cell, cell.why) for cell in comparison.common if cell.why is not None]
    same = [cell for cell, why in told if not why.differing and not why.partings]
    several = len(comparison.common) > 1
    for cell, why in told:
        if cell not in same:
            place = f"{levels(cell.levels)}: " if several and cell.levels else ""
            yield place + " ".join(_sentences(why))
    if same:
        exchanges = sum(why.exchanges for cell, why in told if cell in same)
        where = f" in {count_of(len(same), 'cell')}" if several else ""
        yield f"Every exchange takes as long in B as in A{where}: {count_of(exchanges, 'pair')} of exchanges."
    untold = len(comparison.common) - len(told)
    if told and untold:
        yield f"Nothing tells why {count_of(untold, 'cell')} differ."


def part_rows(why: Why) -> Iterator[tuple[str, str, str, str]]:
    """What time was spent on: part, A, B, and the change with its interval; what hosts do at once is left out."""
    for part in why.parts:
        if max(part.a, part.b) > why.tolerance_ns:
            yield (
                catalog().parts[part.part].noun,
                quantity(part.a, "ns"),
                quantity(part.b, "ns"),
                _with_interval(part.change),
            )
    yield "all", quantity(why.a, "ns"), quantity(why.b, "ns"), _with_interval(why.change)


def _sentences(why: Why) -> Iterator[str]:
    value = why.change.value or 0.0
    if abs(value) > why.tolerance_ns and why.parts:
        parts = [
            f"{_signed(part.change, towards=value)} {catalog().parts[part.part].noun}"
            for part in _most(why.parts, value)
        ]
        yield f"Exchanges take {_size(why.change)} {'longer' if value > 0 else 'less'} in B: {_listed(parts)}."
    else:
        yield "Exchanges take as long in B as in A on average."
    yield f"{why.differing} of {count_of(why.exchanges, 'pair')} of exchanges differ."
    if why.first is not None:
        yield _exchange("The first of them", why.first)
    if why.largest is not None and why.largest != why.first:
        yield _exchange("The largest difference", why.largest)
    if why.partings:
        yield _parting(min(why.partings, key=lambda parting: parting.repetition))
    elif not why.packets:
        yield "At which packet they part is not known: run both with --packets."


def _most(parts: Sequence[PartOfChange], change: float) -> Iterator[PartOfChange]:
    """The largest parts that change in its direction, until they are most of it."""
    left = abs(change)
    for part in parts[:_MOST_PARTS]:
        part_change = (part.change.value or 0.0) * (1 if change > 0 else -1)
        if part_change <= 0 or left <= (1 - _ENOUGH) * abs(change):
            return
        yield part
        left -= part_change


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _exchange(what: str, change: ExchangeChange) -> str:
    return (
        f"{what} is exchange {change.exchange} of repetition {change.repetition + 1}: {quantity(change.a, 'ns')} in A, "
        f"{quantity(change.b, 'ns')} in B; {quantity(abs(change.part_change), 'ns')} "
        f"{'more' if change.part_change > 0 else 'less'} of it is {catalog().parts[change.part].noun}."
    )


def _parting(parting: Parting) -> str:
    exchange = "" if parting.exchange is None else f", during exchange {parting.exchange}"
    return (
        f"The packets of repetition {parting.repetition + 1} part at packet {parting.index} to the "
        f"{_ENDS[parting.direction]}{exchange}: {', '.join(_differences(parting))}."
    )


def _differences(parting: Parting) -> Iterator[str]:
    a, b = parting.a, parting.b
    if a is None or b is None:
        yield f"only {'A' if b is None else 'B'} sends it"
        return
    if "fate" in parting.differs:
        yield f"{a.fate} in A, {b.fate} in B"
    if "size" in parting.differs:
        yield f"{a.size_bytes} bytes in A, {b.size_bytes} in B"
    if "time" in parting.differs:
        late = parting.late_ns
        yield f"sent {quantity(abs(late), 'ns')} {'later' if late > 0 else 'earlier'} in B"
    if "time in the path" in parting.differs:
        yield f"{quantity(a.path_ns, 'ns')} in the path in A, {quantity(b.path_ns, 'ns')} in B"


def _size(change: Change) -> str:
    ends = sorted(abs(end) for end in (change.low, change.high) if end is not None)
    interval = f" [{', '.join(quantity(end, 'ns') for end in ends)}]" if _is_one_sided(change) else ""
    return f"{quantity(abs(change.value or 0.0), 'ns')}{interval}"


def _is_one_sided(change: Change) -> bool:
    """Whether an interval has its ends on one side of 0, and is not a point."""
    low, high = change.low, change.high
    return low is not None and high is not None and low * high > 0 and low != high


def _signed(change: Change, *, towards: float) -> str:
    return _size(change) if (change.value or 0.0) * towards >= 0 else f"−{_size(change)}"


def _with_interval(change: Change) -> str:
    def said(value: float) -> str:
        return f"{'−' if value < 0 else '+'}{quantity(abs(value), 'ns')}"

    if change.value is None:
        return "–"
    if change.low is None or change.high is None or change.low == change.high:
        return said(change.value)
    return f"{said(change.value)} [{said(change.low)}, {said(change.high)}]"
