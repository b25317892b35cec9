"""The page of a run: the answers first, then its conditions, and its sections in order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosswind.analysis.cells import CellData, collect
from crosswind.analysis.result import Conditions, NetworkConditions, PathConditions, Result
from crosswind.cell.record import RunRecord
from crosswind.report.files import write_text
from crosswind.report.page import Element, Page, Panels, Picture, Section, SectionPlace, Sentence, Term, Tone
from crosswind.report.showing import conclusion_of, showings
from crosswind.report.tables.comparisons import comparison_tables
from crosswind.report.tables.costs import drop_tables, processor_tables, wire_tables
from crosswind.report.tables.ends import end_tables
from crosswind.report.tables.flows import flow_tables
from crosswind.report.tables.metrics import metric_tables
from crosswind.report.tables.models import model_error_tables, model_tables
from crosswind.report.tables.network import retransmission_tables, time_tables
from crosswind.report.tables.outcomes import outcome_tables
from crosswind.report.tables.precision import precision_tables
from crosswind.report.tables.profiles import profile_tables
from crosswind.report.tables.programs import program_tables
from crosswind.report.tables.quantiles import quantile_table
from crosswind.report.tables.round_trips import round_trip_tables
from crosswind.report.tables.spent import spent_tables
from crosswind.report.tables.summary import summary_tables
from crosswind.report.tables.table import Shown, Table
from crosswind.report.tables.trust import trust_tables
from crosswind.report.text.conditions import condition_lines, path_text, round_trip_text, values_text
from crosswind.report.text.format import count
from crosswind.report.text.headline import doubts_of, headline_sentences, verdict
from crosswind.report.text.spent import spent_sentences

_HOW_TO_READ = (
    "Dot and line: mean and its 95 % interval; a dot alone: too few repetitions; half a line: only one limit. Upright "
    "stroke: median. Faint dots: single samples, if few."
)

_HOW_TO_READ_OVER_TIME = (
    "Dot: an exchange, by when it was due and how long it took from then on. Cross: a lost one. Shade: a change of the "
    "path holds."
)

_NOT_KEPT = "The run kept nothing that tells: it was started with `--no-parts`."

_OF_HOSTS = "Network settings of the machine itself: the hosts of a cell have their own, named above"


@dataclass(frozen=True)
class ChartData:
    """The charts' data: a run and its cells' samples."""

    record: RunRecord
    data: Sequence[CellData]


def write_html(record: RunRecord, result: Result, path: Path, *, data: Sequence[CellData] | None = None) -> None:
    """Write the page as HTML, whole or not at all. Args: as of `drawn_page`. Raises: DiskError."""
    write_text(path, render(record, result, data=data))


def render(record: RunRecord, result: Result, *, data: Sequence[CellData] | None = None) -> str:
    """The page as one HTML document. Args: as for `drawn_page`."""
    # Charts take a while to import, and a terminal needs only tables.
    from crosswind.report import html

    return html.render(drawn_page(record, result, data=data))


def drawn_page(record: RunRecord, result: Result, *, data: Sequence[CellData] | None = None) -> Page:
    """A run's page, with its charts.

    Args: record: the run. result: its analysis. data: its cells, for drawing samples, if known.
    """
    return page_of(result, ChartData(record, collect(record) if data is None else data))


def page_of(result: Result, drawn: ChartData | None = None) -> Page:
    """The page of a run. Args: drawn: None: without charts, as a terminal shows it."""
    return page_with(result, sections_of(result, drawn))


def page_with(result: Result, sections: Sequence[Section]) -> Page:
    """A run's page with some sections."""
    return Page(
        title=result.title,
        about=f"Crosswind study {result.study}",
        verdict=verdict(result),
        banners=[
            *([Sentence(" ".join(result.left_out), Tone.DOUBTFUL)] if result.left_out else []),
            *(sentence for showing in showings() for sentence in showing.banners(result)),
        ],
        answers=[section for section in sections if section.place is SectionPlace.ANSWERS],
        lines=[
            *map(Sentence, headline_sentences(result)),
            *(sentence for showing in showings() for sentence in showing.remarks(result)),
        ],
        picture=_picture_of(result.conditions) if result.conditions else None,
        terms=_terms_of(result.conditions) if result.conditions else [],
        doubts=doubts_of(result),
        summary=summary_tables(result),
        sections=[section for section in sections if section.place is not SectionPlace.ANSWERS],
        conclusion=conclusion_of(result),
        notes=result.notes,
        provenance=result.provenance,
        design=result.design,
        of_machine=_OF_HOSTS,
    )


def sections_of(result: Result, drawn: ChartData | None = None) -> list[Section]:
    """A page's nonempty sections, in order. Args: as for `page_of`."""
    of_findings = finding_sections(result, has_charts=drawn is not None)
    sections = [
        *of_findings[SectionPlace.ANSWERS],
        *of_findings[SectionPlace.FIGURES],
        *of_findings[SectionPlace.BEFORE_METRICS],
        *_group_sections(_BEFORE_METRICS, result, drawn),
        _time_section(result, drawn),
        *([] if drawn is None else _over_time(result, drawn)),
        *_metric_sections(result, drawn),
        *of_findings[SectionPlace.AFTER_METRICS],
        *_group_sections(_AFTER_METRICS, result, drawn),
    ]
    return [section for section in sections if not section.is_empty]


def _time_section(result: Result, drawn: ChartData | None) -> Section:
    title = "Where the time went"
    if drawn is None:
        return Section(title, sentences=spent_sentences(result), tables=spent_tables(result))
    # Altair takes a while to import.
    from crosswind.report.charts.stacked import spent_charts

    return Section(
        title,
        sentences=spent_sentences(result) or ([] if drawn.record.keeps_parts else [Sentence(_NOT_KEPT)]),
        charts=[spent_charts(result, drawn.data)],
        tables=spent_tables(result),
    )


def _over_time(result: Result, drawn: ChartData) -> Iterator[Section]:
    """Charts of single exchanges and connections."""
    from crosswind.report.charts.over_time import over_time
    from crosswind.report.charts.stacked import phase_charts
    from crosswind.report.charts.waterfall import waterfalls

    yield Section("Exchanges over time", charts=[over_time(drawn.data)], caption=_HOW_TO_READ_OVER_TIME)
    yield Section("Setting connections up, by phase", charts=[phase_charts(result, drawn.data)])
    yield Section("The page of median load time", charts=[waterfalls(drawn.data)])


def finding_sections(result: Result, *, has_charts: bool) -> dict[SectionPlace, list[Section]]:
    """The sections from all kinds of finding, by place."""
    sections: dict[SectionPlace, list[Section]] = {place: [] for place in SectionPlace}
    for section in (section for showing in showings() for section in showing.sections(result, has_charts)):
        sections[section.place].append(section)
    return sections


Charts = Callable[[Result, ChartData], list[Panels]]


def _no_charts(result: Result, drawn: ChartData) -> list[Panels]:
    del result, drawn
    return []


def _profile_panels(result: Result, drawn: ChartData) -> list[Panels]:
    from crosswind.report.charts.profiles import profile_charts

    return [profile_charts(result, drawn.data)]


def _flow_panels(result: Result, drawn: ChartData) -> list[Panels]:
    from crosswind.report.charts.flows import flow_charts

    del drawn
    return [flow_charts(result)]


def _model_panels(result: Result, drawn: ChartData) -> list[Panels]:
    from crosswind.report.charts.models import goodput_by_loss

    return [goodput_by_loss(result, drawn.data, drawn.record.models)]


def _comparison_panels(result: Result, drawn: ChartData) -> list[Panels]:
    from crosswind.report.charts.forest import comparison_forests
    from crosswind.report.charts.shifts import quantile_shifts

    return [comparison_forests(result), quantile_shifts(result, drawn.data)]


@dataclass(frozen=True)
class _Group:
    """Sections of a page: tables, and the charts above them."""

    tables: Callable[[Result], list[Table]]
    charts: Charts = _no_charts


_BEFORE_METRICS = (
    _Group(model_error_tables),
    _Group(precision_tables),
    _Group(profile_tables, _profile_panels),
    _Group(program_tables),
    _Group(round_trip_tables),
    _Group(flow_tables, _flow_panels),
)
"""Sections in few studies only, and therefore first."""

_AFTER_METRICS = (
    _Group(outcome_tables),
    _Group(end_tables),
    _Group(retransmission_tables),
    _Group(time_tables),
    _Group(model_tables, _model_panels),
    _Group(drop_tables),
    _Group(wire_tables),
    _Group(processor_tables),
    _Group(comparison_tables, _comparison_panels),
    _Group(trust_tables),
)


def _group_sections(groups: Sequence[_Group], result: Result, drawn: ChartData | None) -> Iterator[Section]:
    for group in groups:
        if tables := group.tables(result):
            yield from _with_folds(tables, [] if drawn is None else group.charts(result, drawn))


def _with_folds(tables: Sequence[Table], charts: Sequence[Panels]) -> Iterator[Section]:
    """A section for each table; a folded one stands in the section of the table before it."""
    groups: list[list[Table]] = []
    for table in tables:
        if table.shown is Shown.FOLDED and groups:
            groups[-1].append(table)
        else:
            groups.append([table])
    yield from (Section(group[0].title, charts=charts, tables=group) for group in groups)


def _metric_sections(result: Result, drawn: ChartData | None) -> Iterator[Section]:
    """A section for each metric, folded ones last."""
    tables = metric_tables(result)
    for name in sorted(tables, key=lambda name: tables[name].shown is Shown.FOLDED):
        table = tables[name]
        if drawn is None or table.shown is Shown.FOLDED:
            yield Section(table.title, tables=[table], folded=table.shown is Shown.FOLDED)
        else:
            yield _metric_section(name, table, result, drawn.data)


def _metric_section(name: str, table: Table, result: Result, data: Sequence[CellData]) -> Section:
    """A metric's charts and table."""
    from crosswind.report.charts.distributions import CURVE_POINTS, distribution, drawn_cells
    from crosswind.report.charts.intervals import intervals

    distributions = distribution(name, result, data)
    caption = _HOW_TO_READ
    largest = max(cell.samples[name].values.size for cell in data if name in cell.samples)
    if distributions.charts and largest > CURVE_POINTS:
        drawn = f"{CURVE_POINTS} of up to {count(largest)} samples"
        caption += f" Curves are drawn through {drawn} a cell, half of them in the slowest tenth."
    curves = drawn_cells(name, data)
    tables = [table, quantile_table(name, result.cells, curves)] if curves else [table]
    return Section(table.title, charts=[intervals(name, result, data), distributions], tables=tables, caption=caption)


def _terms_of(conditions: Conditions) -> list[Term]:
    """The conditions. HTML omits those in the picture; a terminal omits those in a sentence or a table."""
    return [Term(line.about, line.text, _shown(line.about)) for line in condition_lines(conditions)]


def _shown(about: str) -> Shown:
    if about.startswith(("Path", "Network")):
        return Shown.TERMINAL
    return Shown.HTML if about in ("Clock", "Workload") else Shown.EVERYWHERE


def _picture_of(conditions: Conditions) -> Picture:
    """Client, server, and between them each direction's elements."""
    if conditions.network is not None:
        return _network_picture(conditions.network)
    there = [way for way in conditions.path if way.direction != "server to client"]
    back = [way for way in conditions.path if way.direction != "client to server"]
    words = "; ".join(
        f"{' '.join(filter(None, [way.hop, way.direction]))}: {path_text(way.settings)}" for way in conditions.path
    )
    return Picture(("client", "server"), _way(there), _way(back), f"Path, {words}")


def _network_picture(network: NetworkConditions) -> Picture:
    """The same for a real network, with unknown elements."""
    trip = f"round trip {round_trip_text(network)}"
    words = f"network between this machine and {network.server}, {trip}"
    way = [Element("", f"the network that is there, {trip}")]
    return Picture(("this machine", network.server), way, way, words)


def _way(hops: Sequence[PathConditions]) -> list[Element]:
    """Every hop's elements in one direction, from the client's to the server's."""
    causes = [
        Element(" ".join(filter(None, [hop.hop, setting.name])), values_text(setting), is_varied=setting.is_factor)
        for hop in hops
        for setting in hop.settings
    ]
    return causes or [Element("", "nothing between")]
