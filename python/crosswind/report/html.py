"""The report: one HTML file with everything in it, which opens offline.

The chart library is inlined once for all charts; nothing on the page refers to another host.
"""

import functools
import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import vl_convert

from crosswind.analysis import METRICS, CellData, collect
from crosswind.analysis.result import Result
from crosswind.record import RunRecord
from crosswind.report.charts.charts import POINTS, Chart, Panels, distribution
from crosswind.report.charts.figures import figure_charts
from crosswind.report.charts.intervals import intervals
from crosswind.report.charts.models import goodput_by_loss
from crosswind.report.charts.phases import phase_charts
from crosswind.report.charts.profiles import profile_charts, profile_table
from crosswind.report.charts.waterfall import waterfalls
from crosswind.report.files import write_text
from crosswind.report.tables.costs import cpu_table, drops_table, overhead_table
from crosswind.report.tables.equivalence import equivalence_tables
from crosswind.report.tables.peers import peers_table
from crosswind.report.tables.tables import (
    Table,
    comparisons_table,
    fit_tables,
    is_connecting,
    loss_table,
    metric_tables,
    models_table,
    published_table,
    trust_table,
)
from crosswind.report.text.headline import number_of, sentences, verdict

PLOTTED = (
    "rtt", "total", "response", "completion", "head_of_line", "blocked_share", "page_load", "goodput", "transfer_time",
)  # fmt: skip
_LONG = ("remark", "outcomes")
_TALL = 30
_OPEN = 4  # panels of a kind that are shown at once; the rest is folded away


def write_html(record: RunRecord, result: Result, path: Path) -> None:
    """Write the report whole or not at all. Raises: DiskError."""
    write_text(path, render(record, result))


def render(record: RunRecord, result: Result) -> str:
    """The report as one HTML document.

    Args: record: the run, whose samples are drawn. result: `analyse(record)`.
    """
    page = _Page(record, result)
    body = page.body()
    specs = json.dumps(page.specs, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    scripts = (
        f'<script id="specs" type="application/json">{specs}</script>\n'
        f"<script>{_library()}</script>\n<script>{_asset('draw.js')}</script>"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(result.title)} – Crosswind</title>\n<style>\n{_asset('style.css')}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{scripts if page.specs else ''}\n</body>\n</html>\n"
    )


class _Page:
    """A page under construction: its sections, and the charts that they refer to."""

    def __init__(self, record: RunRecord, result: Result) -> None:
        self.record = record
        self.result = result
        self.data: list[CellData] = collect(record)
        self.specs: dict[str, dict[str, Any]] = {}

    def body(self) -> str:
        """All sections in order."""
        costs = [drops_table(self.result), overhead_table(self.result), cpu_table(self.result)]
        extra = [loss_table(self.result), *costs, comparisons_table(self.result)]
        sections = [
            self.head(),
            self.figures(),
            self.fits(),
            *(_section(table) for table in equivalence_tables(self.result)),
            self.drawn("Setting connections up, by phase", phase_charts(self.result, self.data)),
            self.drawn("The page of median load time", waterfalls(self.data)),
            self.profile(),
            _section(peers_table(self.result)),
            *(self.metric(name, table) for name, table in sorted(metric_tables(self.result), key=_folded_last)),
            self.models(),
            _section(published_table(self.result)),
            *(_section(table) for table in extra),
            _section(trust_table(self.result)),
            self.notes(),
            self.provenance(),
        ]
        return "\n".join(section for section in sections if section)

    def head(self) -> str:
        """Title, whether to trust it, and what it says."""
        kind, sentence = verdict(self.result)
        lines = "".join(f"<li>{_text(line)}</li>" for line in [*sentences(self.result), *self.result.warnings])
        return (
            f"<header><h1>{_text(self.result.title)}</h1><p>Crosswind study {_text(self.result.study)}</p></header>\n"
            f'<div class="banner {kind}">{_text(sentence)}</div>\n<ul class="headline">{lines}</ul>'
        )

    def figures(self) -> str:
        """The figures that the study asks for."""
        charts = self.charts(figure_charts(self.result))
        return f"<section><h2>Figures</h2>{charts}</section>" if charts else ""

    def fits(self) -> str:
        """Fitted coefficients beside the published ones."""
        parts = []
        for fit, (table, curves) in zip(self.result.fits, fit_tables(self.result), strict=True):
            note = f'<p class="help">{_text(fit.note)}</p>' if fit.note else ""
            folded = f"<details><summary>{_text(curves.title)}</summary>{_table(curves)}</details>"
            parts.append(f"<section><h2>{_text(table.title)}</h2>{note}{_table(table)}{folded}</section>")
        return "\n".join(parts)

    def metric(self, name: str, table: Table) -> str:
        """A metric's charts and table; secondary metrics are folded away."""
        only = name == "connect" and is_connecting(self.result)
        help_text = f'<p class="help">{_text(METRICS[name].help)}</p>'
        if name not in PLOTTED and not only:
            return f"<details><summary>{_text(table.title)}</summary>{help_text}{_table(table)}</details>"
        drawn = distribution(name, self.data)
        charts = self.panels(intervals(name, self.result, self.data)) + self.panels(drawn)
        said = [
            "Dot and line: mean and its 95 % interval; upright stroke: median; faint dots: single samples, where few."
        ]
        largest = max(one.samples[name].values.size for one in self.data if name in one.samples)
        if drawn.charts and largest > POINTS:
            drawn_of = f"{POINTS} of up to {number_of(largest)} samples"
            said.append(f"Curves are drawn through {drawn_of} a cell, half of them in the slowest tenth.")
        caption = f'<p class="foot">{_text(" ".join(said))}</p>'
        return f"<section><h2>{_text(table.title)}</h2>{help_text}{charts}{caption}{_table(table)}</section>"

    def drawn(self, title: str, panels: Panels) -> str:
        """A section of charts alone, where there are any."""
        charts = self.panels(panels)
        return f"<section><h2>{_text(title)}</h2>{charts}</section>" if charts else ""

    def profile(self) -> str:
        """Where processor time went."""
        table = profile_table(self.result)
        if table is None:
            return ""
        charts = self.panels(profile_charts(self.result, self.data))
        return f"<section><h2>{_text(table.title)}</h2>{charts}{_table(table)}</section>"

    def models(self) -> str:
        """Models beside the measurement, drawn where they are a function of loss."""
        table = models_table(self.result)
        if table is None:
            return ""
        charts = self.panels(goodput_by_loss(self.result, self.data, self.record.models))
        return (
            '<section><h2>Models</h2><p class="help">What the literature predicts for the same path. A model is no '
            "verdict: where its assumptions do not hold, it was never meant to be right.</p>"
            f"{charts}{_table(table)}</section>"
        )

    def notes(self) -> str:
        """The study's own notes."""
        if not self.result.notes:
            return ""
        items = "".join(f"<li>{_text(note)}</li>" for note in self.result.notes)
        return f"<section><h2>Notes</h2><ul>{items}</ul></section>"

    def provenance(self) -> str:
        """Where the numbers come from, and the study as it was run."""
        pairs = "".join(f"<dt>{_text(key)}</dt><dd>{_text(value)}</dd>" for key, value in _flat(self.result.provenance))
        design = _text(json.dumps(self.result.design, indent=2, ensure_ascii=False, default=str))
        return (
            f"<section><h2>Provenance</h2><dl>{pairs}</dl>"
            f"<details><summary>The study</summary><pre>{design}</pre></details></section>"
        )

    def panels(self, panels: Panels) -> str:
        """The first panels, the rest folded away, and how many there are that are not drawn."""
        drawn = panels.charts
        text = self.charts(drawn[:_OPEN])
        if len(drawn) > _OPEN:
            more = f"{len(drawn) - _OPEN} more panels"
            text += f"<details><summary>{more}</summary>{self.charts(drawn[_OPEN:])}</details>"
        if len(drawn) < panels.total:
            text += f'<p class="foot">Drawn: {len(drawn)} of {panels.total} panels. The table has every cell.</p>'
        return text

    def charts(self, charts: list[Chart]) -> str:
        """Places for charts, whose specifications go to the end of the page."""
        figures = []
        for chart in charts:
            identifier = f"chart-{len(self.specs)}"
            self.specs[identifier] = chart.spec
            caption = f"<figcaption>{_text(chart.caption)}</figcaption>" if chart.caption else ""
            notes = "".join(f'<p class="foot">{_text(note)}</p>' for note in chart.notes)
            figures.append(f'<figure>{caption}<div class="chart" id="{identifier}"></div>{notes}</figure>')
        return f'<div class="charts">{"".join(figures)}</div>' if figures else ""


def _folded_last(entry: tuple[str, Table]) -> bool:
    return entry[0] not in PLOTTED


def _section(table: Table | None) -> str:
    return "" if table is None else f"<section><h2>{_text(table.title)}</h2>{_table(table)}</section>"


def _table(table: Table) -> str:
    def css(index: int) -> str:
        if table.columns[index] in _LONG:
            return ' class="word long"'
        return ' class="word"' if index < table.text or table.columns[index] in ("verdict", "shape") else ""

    head = "".join(f"<th{css(index)}>{_text(name)}</th>" for index, name in enumerate(table.columns))
    rows = []
    for number, row in enumerate(table.rows):
        mark = ' class="marked"' if number in table.marked else ""
        cells = "".join(f"<td{css(index)}>{_limits(_text(cell))}</td>" for index, cell in enumerate(row))
        rows.append(f"<tr{mark}>{cells}</tr>")
    notes = "".join(f"<li>{_text(note)}</li>" for note in table.footnotes)
    foot = f'<ul class="foot">{notes}</ul>' if notes else ""
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    tall = " tall" if len(table.rows) > _TALL else ""
    return f'<div class="scroll{tall}" tabindex="0">{body}</div>{foot}'


def _limits(escaped: str) -> str:
    """Interval limits in a softer colour than their value."""
    return re.sub(r"(\[[^\]]*\])", r'<span class="limits">\1</span>', escaped)


def _flat(value: Any, key: str = "") -> list[tuple[str, str]]:
    """Nested provenance as dotted keys and values."""
    if isinstance(value, dict):
        return [pair for name, part in value.items() for pair in _flat(part, f"{key}.{name}" if key else str(name))]
    if isinstance(value, list) and not any(isinstance(part, dict | list) for part in value):
        return [(key, ", ".join(str(part) for part in value))]
    return [(key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))]


def _text(text: str) -> str:
    return html.escape(text)


def _asset(name: str) -> str:
    return files("crosswind.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _library() -> str:
    """Vega, Vega-Lite and vega-embed as one script. "</" would end the script element."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")
