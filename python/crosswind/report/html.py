"""The report: one self-contained HTML file, readable offline.

The chart library is inlined once for all charts; nothing on the page refers to another host.
"""

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import IO

import vl_convert

from crosswind.files.cache import cache_directory, keep, read_kept
from crosswind.report.files import write_text
from crosswind.report.markup import Markup, escaped
from crosswind.report.page import Page, Tone
from crosswind.text.visible import visible

_NOTICE = (
    "The next script holds Vega, Vega-Lite and vega-embed (Copyright University of Washington Interactive Data Lab, "
    "BSD-3-Clause), D3 (Copyright Mike Bostock, ISC) and others: THIRD-PARTY-NOTICES.txt of the package crosswind."
)


_LONGEST = 400
"""Characters in a description."""
_HEAD_BYTES = 8192
"""Searched for a page's description."""


def write_html(page: Page, path: Path) -> None:
    """Write a page whole or not at all. Raises: DiskError."""
    write_text(path, render(page))


def render(page: Page) -> str:
    """A page as one HTML document with everything in it."""
    markup = Markup()
    head, *rest = markup.body(page)
    body = "\n".join(filter(None, [head, markup.contents(), *rest]))
    scripts = [_library(), _asset("draw.js")] if markup.specifications else []
    style = _asset("style.css")
    return _document(page.title, body, _scripts(markup, scripts), scripts, style, description=_description(page))


def description_in(page: IO[bytes]) -> str:
    """A page's short description, if `render` made one; else empty. Raises: OSError."""
    head = page.read(_HEAD_BYTES).decode(errors="replace")
    match = re.search(r'<meta name="description" content="([^"]*)">', head)
    return html.unescape(match[1]) if match else ""


def _description(page: Page) -> str:
    """The page's first message: its distrust, else its answers, else its first line."""
    answers = [sentence.short or sentence.text for section in page.answers for sentence in section.sentences[:1]]
    lines = [line.text for line in page.lines[:1]]
    said = [page.verdict.text] if page.verdict.tone is Tone.BAD else answers or lines or [page.verdict.text]
    return " ".join(said)[:_LONGEST]


def document(title: str, body: str, data: str, name: str) -> str:
    """A page from markup. Args: data: markup for its script. name: its script's and style's files."""
    script, style = _asset(f"{name}.js"), _asset("style.css") + _asset(f"{name}.css")
    return _document(title, body, f"{data}\n<script>{script}</script>", [script], style)


def _document(title: str, body: str, end: str, scripts: Sequence[str], style: str, *, description: str = "") -> str:
    """Args: end: markup after all else. scripts: those in it, the only ones allowed to run."""
    described = f'<meta name="description" content="{escaped(description)}">\n' if description else ""
    style = f"\n{style}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)} – Crosswind</title>\n{described}<style>{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{end}\n</body>\n</html>\n"
    )


def _policy(style: str, scripts: Sequence[str]) -> str:
    """The content policy: these scripts, for drawing and saving charts, and nothing else."""
    hashes = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; img-src data: blob:; connect-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _scripts(markup: Markup, scripts: Sequence[str]) -> str:
    if not scripts:
        return ""
    specifications = json.dumps(markup.specifications, ensure_ascii=False, separators=(",", ":"))
    charts = visible(specifications.replace("<", "\\u003c"), backslash=r"\\")
    return f'<script id="specs" type="application/json">{charts}</script>\n<!-- {_NOTICE} -->\n' + "\n".join(
        f"<script>{script}</script>" for script in scripts
    )


def _asset(name: str) -> str:
    return files("crosswind.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _library() -> str:
    """Vega, Vega-Lite and vega-embed as one script. Making it takes seconds, so the user's cache keeps it."""
    place = cache_directory() / f"charts-{version('vl-convert-python')}.sealed.js"
    kept = read_kept(place)
    if kept is not None:
        return kept.decode()
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    script = bundle.replace("</script", "<\\/script")  # "</" would end the script element.
    keep(place, script.encode())
    return script
