"""The figures and fits of some runs as one picture, for a page of the documentation.

    packaging/figures.py docs/transfer-time.svg RUN...

What is drawn and how is the report's (crosswind.report.charts): this only sets the charts side by side.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import vl_convert

import crosswind
from crosswind.errors import CrosswindError
from crosswind.findings.figure.chart import figure_chart
from crosswind.findings.figure.judge import Figure
from crosswind.findings.fit.chart import fit_charts
from crosswind.findings.fit.result import Fit
from crosswind.report.files import whole_file
from crosswind.report.page import Chart

COLUMNS, WIDTH, HEIGHT = 3, 300, 190
CONFIG = {
    "background": "white",
    "aria": False,  # labels of every mark, which a page does not see in a picture
    "view": {"stroke": None},
    "axis": {"gridColor": "#e4e4e4", "titleFontWeight": 600},
    "legend": {"columns": 4, "symbolStrokeWidth": 2, "padding": 0, "offset": 4},
}


def main() -> int:
    """Returns the exit status."""
    if len(sys.argv) < 3:
        print("error: no picture, or no run\nhint: packaging/figures.py PICTURE.svg RUN...", file=sys.stderr)
        return 2
    picture, *runs = map(Path, sys.argv[1:])
    try:
        charts = [chart for run in runs for chart in charts_of(run)]
        with whole_file(picture) as part:
            part.write_text(vl_convert.vegalite_to_svg(side_by_side(charts)), encoding="utf-8")
    except CrosswindError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return 2
    print(f"{picture}: {len(charts)} charts, {picture.stat().st_size / 1000:.0f} kB")
    return 0


def charts_of(run: Path) -> Iterator[Chart]:
    """The figures of a run and its fits."""
    result = crosswind.analyse(crosswind.load(run))
    yield from (figure_chart(figure, result) for figure in result.of(Figure))
    for fit in result.of(Fit):
        yield from fit_charts(fit).charts


def side_by_side(charts: list[Chart]) -> dict[str, Any]:
    """Charts in rows of COLUMNS, as one Vega-Lite specification."""
    datasets: dict[str, Any] = {}
    views = []
    for chart in charts:
        view = {**chart.specification, "width": WIDTH, "height": HEIGHT, "title": chart.caption}
        datasets |= view.pop("datasets", {})
        views.append(view)
    # Every chart has colours of its own.
    each = dict.fromkeys(("color", "strokeDash"), "independent")
    return {"concat": views, "columns": COLUMNS, "datasets": datasets, "config": CONFIG, "resolve": {"scale": each}}


if __name__ == "__main__":
    sys.exit(main())
