"""A study's figures. One named by an answer stands beside it."""

from collections.abc import Iterable, Iterator

from crosswind.analysis.result import Result
from crosswind.findings.figure.judge import Figure
from crosswind.findings.question.result import Answer
from crosswind.report.page import Chart, Panels, Section, SectionPlace
from crosswind.report.showing import Showing


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    beside = {answer.figure for answer in result.of(Answer) if answer.cases and not answer.source}
    charts = [_chart(figure, result, has_charts) for figure in result.of(Figure) if figure.title not in beside]
    yield Section("Figures", charts=[Panels(charts, len(charts))], place=SectionPlace.FIGURES)


def _chart(figure: Figure, result: Result, is_drawn: bool) -> Chart:
    if not is_drawn:
        return Chart(figure.title)
    # Altair takes a while to import.
    from crosswind.findings.figure.chart import figure_chart

    return figure_chart(figure, result)


def _metrics(result: Result) -> Iterable[tuple[str, None]]:
    return [(figure.metric, None) for figure in result.of(Figure)]


SHOWING = Showing(_sections, metrics=_metrics)
