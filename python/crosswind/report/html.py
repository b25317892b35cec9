"""The report: one HTML file with everything in it, which opens offline.

The chart library is inlined once for all charts; nothing on the page refers to another host.
"""

import functools
import json
from importlib.resources import files
from pathlib import Path

import vl_convert

from crosswind.analysis.result import Result
from crosswind.record import RunRecord
from crosswind.report.files import write_text
from crosswind.report.markup import Markup, escaped
from crosswind.report.page import sections_of


def write_html(record: RunRecord, result: Result, path: Path) -> None:
    """Write the report whole or not at all. Raises: DiskError."""
    write_text(path, render(record, result))


def render(record: RunRecord, result: Result) -> str:
    """The report as one HTML document.

    Args: record: the run, whose samples are drawn. result: `analyse(record)`.
    """
    page = Markup()
    body = "\n".join([
        page.head(result),
        *(page.section(section) for section in sections_of(record, result)),
        page.notes(result),
        page.provenance(result),
    ])  # fmt: skip
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(result.title)} – Crosswind</title>\n<style>\n{_asset('style.css')}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{_scripts(page)}\n</body>\n</html>\n"
    )


def _scripts(page: Markup) -> str:
    """What draws the charts; nothing on a page without any."""
    if not page.specifications:
        return ""
    charts = json.dumps(page.specifications, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<script id="specs" type="application/json">{charts}</script>\n'
        f"<script>{_library()}</script>\n<script>{_asset('draw.js')}</script>"
    )


def _asset(name: str) -> str:
    return files("crosswind.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _library() -> str:
    """Vega, Vega-Lite and vega-embed as one script. "</" would end the script element."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")
