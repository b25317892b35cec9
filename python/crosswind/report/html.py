"""The report: one HTML file with everything in it, which opens offline.

The chart library is inlined once for all charts; nothing on the page refers to another host.
"""

import base64
import functools
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import vl_convert

from crosswind.analysis import CellData, collect
from crosswind.analysis.result import Condition, Conditions, NetworkConditions, Result
from crosswind.cache import cache_directory
from crosswind.errors import DiskError
from crosswind.record import RunRecord
from crosswind.regular_files import read_regular
from crosswind.report.files import write_text
from crosswind.report.markup import Markup, escaped, terms_html
from crosswind.report.page import sections_of
from crosswind.report.text.conditions import condition_lines, path_text, round_trip_text, values_text
from crosswind.visible import visible

_NOTICE = (
    "The next script holds Vega, Vega-Lite and vega-embed (Copyright University of Washington Interactive Data Lab, "
    "BSD-3-Clause), D3 (Copyright Mike Bostock, ISC) and others: THIRD-PARTY-NOTICES.txt of the package crosswind."
)

_NOTHING = '<span class="element">nothing between</span>'


def write_html(record: RunRecord, result: Result, path: Path, *, data: Sequence[CellData] | None = None) -> None:
    """Write the report whole or not at all. Args: as of `render`. Raises: DiskError."""
    write_text(path, render(record, result, data=data))


def render(record: RunRecord, result: Result, *, data: Sequence[CellData] | None = None) -> str:
    """The report as one HTML document.

    Args: record: the run. result: `analyse(record)`. data: its cells, whose samples are drawn: `collect(record)`, if
        they are known.
    """
    cells = collect(record) if data is None else data
    page = Markup()
    parts = [
        page.head(result),
        *([conditions_html(result.conditions)] if result.conditions else []),
        page.figures_of_answers(result),
        *(page.section(section) for section in sections_of(record, result, cells)),
        page.notes(result),
        page.provenance(result),
    ]
    return document(result.title, parts, page)


def document(title: str, parts: Sequence[str], page: Markup) -> str:
    """One HTML document with everything in it.

    Args: parts: of its body, the head first, which the contents follow. page: what made them, and has the charts.
    """
    body = "\n".join([*parts[:1], page.contents(), *parts[1:]])
    style = f"\n{_asset('style.css')}"
    scripts = [_library(), _asset("draw.js")] if page.specifications else []
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)} – Crosswind</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{_scripts(page, scripts)}\n</body>\n</html>\n"
    )


def _policy(style: str, scripts: Sequence[str]) -> str:
    """What a browser lets the page do: run these scripts, which draw charts and save them, and nothing else."""
    hashes = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; img-src data: blob:; connect-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _scripts(page: Markup, scripts: Sequence[str]) -> str:
    """What draws the charts; nothing on a page without any."""
    if not scripts:
        return ""
    specifications = json.dumps(page.specifications, ensure_ascii=False, separators=(",", ":"))
    charts = visible(specifications.replace("<", "\\u003c"), backslash=r"\\")
    return f'<script id="specs" type="application/json">{charts}</script>\n<!-- {_NOTICE} -->\n' + "\n".join(
        f"<script>{script}</script>" for script in scripts
    )


def _asset(name: str) -> str:
    return files("crosswind.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _library() -> str:
    """Vega, Vega-Lite and vega-embed as one script. Making it takes seconds, so that the user's cache keeps it."""
    place = cache_directory() / f"charts-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return read_regular(place).decode()
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    script = bundle.replace("</script", "<\\/script")  # "</" would end the script element.
    with suppress(DiskError):
        write_text(place, script)
    return script


def conditions_html(conditions: Conditions) -> str:
    """The picture, and below it what it does not show, as a list of terms."""
    lines = [line for line in condition_lines(conditions) if not line.about.startswith(("Path", "Network"))]
    terms = terms_html((line.about, line.text) for line in lines)
    return f'<div class="conditions">{_picture(conditions)}{terms}</div>'


def _picture(conditions: Conditions) -> str:
    """Client, server, and between them the way there and the way back with what each does to a packet."""
    if conditions.network is not None:
        return _network_picture(conditions.network)
    ways = conditions.path if len(conditions.path) == 2 else [*conditions.path, None]
    there, back = (None if way is None else way.settings for way in ways)
    words = "; ".join(f"{way.direction}: {path_text(way.settings)}" for way in conditions.path)
    middle = _way("there", there) + _way("back", there if back is None else back)
    return (
        f'<div class="path" role="img" aria-label="{escaped("Path, " + words)}"><div class="host">client</div>'
        f'<div class="ways">{middle}</div><div class="host">server</div></div>'
    )


def _network_picture(network: NetworkConditions) -> str:
    """The same of a network that is really there, of which nobody knows what it does to a packet."""
    trip = f"round trip {round_trip_text(network)}"
    words = f"network between this machine and {network.server}, {trip}"
    element = f'<span class="element">{escaped(f"the network that is there, {trip}")}</span>'
    middle = "".join(f'<div class="way {direction}">{element}</div>' for direction in ("there", "back"))
    return (
        f'<div class="path" role="img" aria-label="{escaped(words)}"><div class="host">this machine</div>'
        f'<div class="ways">{middle}</div><div class="host">{escaped(network.server)}</div></div>'
    )


def _way(direction: str, settings: Sequence[Condition] | None) -> str:
    """One direction: an arrow with its elements on it."""
    elements = "".join(_element(setting) for setting in settings or ())
    return f'<div class="way {direction}">{elements or _NOTHING}</div>'


def _element(setting: Condition) -> str:
    kind = "element varied" if setting.is_factor else "element"
    return f'<span class="{kind}"><b>{escaped(setting.name)}</b> {escaped(values_text(setting))}</span>'
