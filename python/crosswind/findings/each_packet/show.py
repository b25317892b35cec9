"""Each packet's cost on a page: a picture, sentences, the curve over the loss rate, and tables."""

from collections.abc import Iterator, Sequence

from crosswind.analysis.result import Result
from crosswind.findings.each_packet.result import EachPacket
from crosswind.findings.each_packet.sentence import (
    HELD,
    SLOPE_AT,
    WAYS,
    cause_noun,
    curve_sentence,
    effect_of,
    most_text,
    packets_caption,
    rows_of,
    slope_sentence,
    slope_text,
    time_text,
    timeline_title,
)
from crosswind.report.page import Chart, Panels, Section, Sentence
from crosswind.report.showing import Showing
from crosswind.report.tables.table import Table, names, numbers
from crosswind.report.text.explained import exchange_sentence
from crosswind.report.text.format import count, named_levels, percent, three_digits

_LOST = "What the loss of each packet costs"
_HELD = "What each packet costs when it is late"
_HOW_TO_READ = (
    "The repetition without loss was run again for each packet, with that one lost and nothing else changed. What it "
    "adds is what all connections and exchanges took longer. Packets count from 0 in their direction, as for "
    "--forward-lose and in `crosswind explain`; in a row, those that carry and cost the same share a row."
)
_HOW_TO_READ_HELD = (
    "The repetition was run again for each packet, with that one held back on its way, and those behind it. What it "
    "adds is what all connections and exchanges took longer. A packet that delays the end as long as it is held is "
    "on the critical path; one that does not has slack. As a held packet keeps its order, one directly before a "
    "critical packet counts too. Packets count from 0 in their direction."
)
_MOST_SENTENCES = 4
_OF_MEANS = "A mean is that of an exchange, with the connection that it opens; one that several share stands apart."
_OF_MODELS = "For models that predict a time of the workload: an exchange's, without opening its connection."


def cost_table(found: list[EachPacket]) -> Table:
    """A row for packets in a row that cost the same."""
    has_levels = any(each.levels for each in found)
    is_held = found[0].hold_ns is not None
    rows = [
        [
            *([named_levels(each.levels)] if has_levels else []),
            WAYS[members[0].direction],
            where,
            members[0].carries or "",
            count(len(members)),
            cost,
            *([] if is_held else [cause_noun(members[0].cause) if members[0].cost_ns else ""]),
        ]
        for each in found
        for members, where, cost in rows_of(each.costs)
    ]
    columns = [
        *names(*(["at"] if has_levels else []), "direction", "packets", "carries"),
        *numbers("number", "adds"),
        *names(*([] if is_held else ["cause"])),
    ]
    return Table("Cost of each packet", columns, rows, footnotes=[_HOW_TO_READ_HELD if is_held else _HOW_TO_READ])


def slope_table(found: list[EachPacket]) -> Table:
    """A row for each cell: its packets, and what loss adds to its mean."""
    has_levels = any(each.levels for each in found)
    rows = [
        [
            *([named_levels(each.levels)] if has_levels else []),
            count(each.count),
            count(sum(cost.cost_ns == 0 for cost in each.costs)),
            time_text(each.mean_ns),
            slope_text(each),
            time_text(SLOPE_AT * each.slope_connect_ns) if each.slope_connect_ns else "",
            percent(None if each.slope_delayed is None else SLOPE_AT * each.slope_delayed),
            "" if each.untried else most_text(each),
        ]
        for each in found
    ]
    columns = [
        *names(*(["at"] if has_levels else [])),
        *numbers(
            "packets", "lost at no cost", "mean without loss", "each 0.1 % adds", "to connecting", "exchanges delayed"
        ),
        *names("most of it"),
    ]
    return Table("What loss adds", columns, rows, footnotes=[_OF_MEANS])


def model_table(found: list[EachPacket]) -> Table:
    """A row for each cell and each model of it: their slopes."""
    has_levels = any(each.levels for each in found)
    rows = [
        [
            *([named_levels(each.levels)] if has_levels else []),
            model.title,
            time_text(SLOPE_AT * model.slope_ns),
            time_text(SLOPE_AT * model.measured_ns),
            three_digits(model.slope_ns / model.measured_ns) if model.measured_ns else "",
        ]
        for each in found
        for model in each.models
    ]
    columns = [
        *names(*(["at"] if has_levels else []), "model"),
        *numbers("each 0.1 % adds", "measured", "over measured"),
    ]
    return Table("What models say loss adds", columns, rows, footnotes=[_OF_MODELS])


def held_table(found: list[EachPacket]) -> Table:
    """A row for each cell: its packets, by how they delay the end when they are held back."""
    has_levels = any(each.levels for each in found)
    rows = [
        [
            *([named_levels(each.levels)] if has_levels else []),
            count(each.count),
            *(count(sum(effect_of(cost, each.hold_ns or 0) == effect for cost in each.costs)) for effect in HELD),
        ]
        for each in found
    ]
    columns = [*names(*(["at"] if has_levels else [])), *numbers("packets", *HELD)]
    return Table("Packets by how they delay the end", columns, rows)


def _found(result: Result) -> list[EachPacket]:
    return list(result.of(EachPacket))


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    for title, found in _groups(result):
        charts = _charts(found, has_charts)
        notes = dict.fromkeys(each.note for each in found if each.note)
        is_lost = found[0].hold_ns is None
        tables = [slope_table(found), model_table(found)] if is_lost else [held_table(found)]
        sentences = [text for each in found for text in _sentences(each)] if _are_few(found) else []
        yield Section(
            title,
            sentences=[Sentence(text) for text in sentences],
            charts=[Panels(of_kind, len(of_kind)) for of_kind in charts if of_kind],
            tables=[table for table in (*tables, cost_table(found)) if table.rows],
            note=" ".join(notes),
            details=[detail for each in found for detail in _timelines(each)] if has_charts else (),
        )


def _timelines(each: EachPacket) -> Iterator[Section]:
    """The exchanges that packets delay, each with its timeline."""
    # Altair takes a while to import.
    from crosswind.report.charts.timeline import timeline_chart

    packets = {cost.key: cost for cost in each.costs}
    for exchange in each.timelines:
        sentence = exchange_sentence(exchange, "without it")
        yield Section(timeline_title(packets[exchange.key]), [Sentence(sentence)], [timeline_chart(exchange)])


def _groups(result: Result) -> list[tuple[str, list[EachPacket]]]:
    """Those of packets lost, and those of packets held."""
    found = _found(result)
    groups = [
        (_LOST, [each for each in found if each.hold_ns is None]),
        (_HELD, [each for each in found if each.hold_ns is not None]),
    ]
    return [(title, group) for title, group in groups if group]


def _sentences(each: EachPacket) -> list[str]:
    return list(dict.fromkeys([each.sentence, slope_sentence(each), *curve_sentence(each)]))


def _charts(found: Sequence[EachPacket], is_drawn: bool) -> list[list[Chart]]:
    """The packets, and the means over the loss rate."""
    if not is_drawn:
        return [[Chart(packets_caption(each)) for each in found]]
    # Altair takes a while to import.
    from crosswind.findings.each_packet.chart import curve_charts, packet_chart

    return [[packet_chart(each) for each in found], [chart for each in found for chart in curve_charts(each)]]


def _are_few(found: Sequence[EachPacket]) -> bool:
    return len(found) <= _MOST_SENTENCES


def _slopes(result: Result) -> list[str]:
    """What loss adds in each cell; among many, where most and least."""
    said: list[str] = []
    for _, found in _groups(result):
        if _are_few(found):
            said += [slope_sentence(each) for each in found]
            continue
        known = sorted((each for each in found if each.slope_ns is not None), key=lambda each: each.slope_ns or 0)
        said += [f"Most: {slope_sentence(known[-1])}", f"Least: {slope_sentence(known[0])}"] if known else []
    return said


def _banners(result: Result) -> Iterator[Sentence]:
    yield from map(Sentence, _slopes(result))


def _remarks(result: Result) -> Iterator[Sentence]:
    for _, found in _groups(result):
        if _are_few(found):
            yield from (Sentence(each.sentence) for each in found if each.hold_ns is None)


SHOWING = Showing(_sections, _banners, remarks=_remarks, answers=_found, conclusion=_slopes)
