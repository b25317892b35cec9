"""Each loss on a page: a picture of every packet's cost, a sentence, and a table."""

from collections.abc import Iterator, Sequence

from crosswind.analysis.result import Result
from crosswind.findings.each_loss.result import EachLoss
from crosswind.findings.each_loss.sentence import (
    SLOPE_AT,
    WAYS,
    cause_noun,
    most_text,
    rows_of,
    slope_sentence,
    slope_text,
    time_text,
)
from crosswind.report.page import Chart, Panels, Section, Sentence
from crosswind.report.showing import Showing
from crosswind.report.tables.table import Table, names, numbers
from crosswind.report.text.format import count, named_levels, three_digits

_TITLE = "What the loss of each packet costs"
_HOW_TO_READ = (
    "The repetition without loss was run again for each packet, with that one lost and nothing else changed. What it "
    "adds is what all connections and exchanges took longer. Packets in a row that cost the same share a row."
)

_MOST_SENTENCES = 4
_OF_MEANS = "A mean is that of an exchange, with the connection that it opens; one that several share stands apart."
_RARE = 0.1
_OF_SECONDS = (
    "What a rate of loss adds leaves out repetitions that lose two packets and more. Up to a rate of {percent} % they "
    "are at most one in ten of those that lose any."
)


def each_loss_table(found: list[EachLoss]) -> Table:
    """A row for packets in a row that cost the same."""
    has_levels = any(each.levels for each in found)
    rows = [
        [
            *([named_levels(each.levels)] if has_levels else []),
            WAYS[members[0].direction],
            where,
            count(len(members)),
            cost,
            cause_noun(members[0].cause) if members[0].cost_ns else "",
        ]
        for each in found
        for members, where, cost in rows_of(each.losses)
    ]
    columns = [
        *names(*(["at"] if has_levels else []), "direction", "packets"),
        *numbers("lost singly", "adds"),
        *names("cause"),
    ]
    most = max(1, *(each.count for each in found))
    rare = _OF_SECONDS.format(percent=three_digits(100 * 2 * _RARE / most))
    return Table("Cost of each packet", columns, rows, footnotes=[_HOW_TO_READ, rare])


def slope_table(found: list[EachLoss]) -> Table:
    """A row for each cell: its packets, and what loss adds to its mean."""
    has_levels = any(each.levels for each in found)
    rows = [
        [
            *([named_levels(each.levels)] if has_levels else []),
            count(each.count),
            count(sum(loss.cost_ns == 0 for loss in each.losses)),
            time_text(each.mean_ns),
            slope_text(each),
            time_text(SLOPE_AT * each.slope_connect_ns) if each.slope_connect_ns else "",
            most_text(each),
        ]
        for each in found
    ]
    columns = [
        *names(*(["at"] if has_levels else [])),
        *numbers("packets", "lost at no cost", "mean without loss", "each 0.1 % adds", "to connecting"),
        *names("most of it"),
    ]
    return Table("What loss adds", columns, rows, footnotes=[_OF_MEANS])


def _found(result: Result) -> list[EachLoss]:
    return list(result.of(EachLoss))


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    found = _found(result)
    if not found:
        return
    charts = [chart for each in found for chart in _charts(each, has_charts)]
    notes = dict.fromkeys(each.note for each in found if each.note)
    texts = [text for each in found for text in (each.sentence, slope_sentence(each))] if _are_few(found) else []
    yield Section(
        _TITLE,
        sentences=[Sentence(text) for text in texts],
        charts=[Panels(charts, len(charts))],
        tables=[slope_table(found), each_loss_table(found)],
        note=" ".join(notes),
    )


def _charts(each: EachLoss, is_drawn: bool) -> list[Chart]:
    if not is_drawn:
        return [Chart(named_levels(each.levels))]
    # Altair takes a while to import.
    from crosswind.findings.each_loss.chart import each_loss_charts

    return each_loss_charts(each)


def _are_few(found: Sequence[EachLoss]) -> bool:
    return len(found) <= _MOST_SENTENCES


def _slopes(result: Result) -> list[str]:
    """What loss adds in each cell; among many, where most and least."""
    found = _found(result)
    if _are_few(found):
        return [slope_sentence(each) for each in found]
    known = sorted((each for each in found if each.slope_ns is not None), key=lambda each: each.slope_ns or 0)
    return [f"Most: {slope_sentence(known[-1])}", f"Least: {slope_sentence(known[0])}"] if known else []


def _banners(result: Result) -> Iterator[Sentence]:
    yield from map(Sentence, _slopes(result))


def _remarks(result: Result) -> Iterator[Sentence]:
    found = _found(result)
    yield from (Sentence(each.sentence) for each in found if _are_few(found))


SHOWING = Showing(_sections, _banners, remarks=_remarks, answers=_found, conclusion=_slopes)
