"""Break-even: the sets of places, and the ratio at each place that was run."""

from collections.abc import Iterator, Sequence

from crosswind.analysis.result import Result
from crosswind.findings.break_even.result import BreakEven, BreakEvenGroup
from crosswind.findings.break_even.sentence import better_text, place_text
from crosswind.report.page import Chart, Panels, Section, SectionPlace, Sentence, Tone
from crosswind.report.showing import Showing
from crosswind.report.tables.table import Shown, Table, names, numbers
from crosswind.report.text.format import EXACT, count, factor_name, interval, named_levels, varied_levels

_HOW_TO_READ = (
    "The set has every place at which the 95 % interval of the ratio holds 1; between two places the limits of its "
    "logarithm are on straight lines, and between two exact ones with different answers nothing is known. A true "
    "break-even lies in the set with that confidence."
)


def break_even_table(made: BreakEven) -> Table:
    """A row for each place, for each combination of the other levels."""
    varied = varied_levels(group.levels for group in made.groups)
    rows = [
        [
            *([named_levels({key: group.levels[key] for key in varied})] if varied else []),
            point.x_text,
            place_text(made, point.x),
            interval(point.effect),
            count(point.effect.units) if not point.effect.is_exact else EXACT,
            better_text(made, point.less),
        ]
        for group in made.groups
        for point in group.points
    ]
    columns = [
        *names(*(["at"] if varied else []), factor_name(made.over), "place"),
        *numbers(f"{made.other} / {made.reference} [95 %]", "repetitions"),
        *names("there"),
    ]
    reasons = dict.fromkeys(
        point.effect.reason for group in made.groups for point in group.points if point.effect.reason
    )
    notes = [f"Without an interval: {reason}." for reason in reasons]
    return Table(
        f"The ratio at each place: {made.asks}", columns, rows, footnotes=[_HOW_TO_READ, *notes], shown=Shown.ASIDE
    )


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    for made in result.of(BreakEven):
        yield Section(
            made.asks,
            sentences=[Sentence(made.sentence, _tone(made.groups))],
            charts=_charts(made, is_drawn=has_charts),
            tables=[break_even_table(made)] if made.groups else [],
            note=made.note or "",
            place=SectionPlace.ANSWERS,
        )


def _tone(groups: Sequence[BreakEvenGroup]) -> Tone:
    """Good if every combination has a decided stretch."""
    decided = [any(stretch.less != "unknown" for stretch in group.stretches) for group in groups]
    return Tone.GOOD if decided and all(decided) else Tone.DOUBTFUL


def _charts(made: BreakEven, *, is_drawn: bool) -> list[Panels]:
    if not made.groups or not is_drawn:
        return []
    # Altair takes a while to import.
    from crosswind.findings.break_even.chart import ratio_chart

    return [Panels([Chart("", *ratio_chart(made))], 1)]


def _found(result: Result) -> list[BreakEven]:
    return [made for made in result.of(BreakEven) if made.groups]


SHOWING = Showing(
    _sections,
    answers=_found,
    metrics=lambda result: [(made.metric, made.statistic) for made in result.of(BreakEven)],
)
