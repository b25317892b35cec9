"""Golden pages: Markdown files, each with runs made by hand and what a report says of them.

A code block in Python makes a run, or a page, and calls it `made`; `records` is where its names are from. The blocks
behind it hold what is expected, by the first word of their info string: `screen` what a terminal shows, `page` what
HTML shows, without its markup. Further words of a screen are its width, and `all` for the full report. Those of a page
begin the title of a section; without them it is the page without what its sections hold. `said` is of several runs, by
their names: the sentence of the first question, statement or threshold of each, or of `all`. A block in Python before
the first heading of the second level is part of every run of the file.

`console` needs no run: each of its lines with `$` is run, one after another in an empty directory, which `made`, a
function, may fill. Behind a command stand what it prints and, in brackets, its exit status where that is not 0; at the
end what they have made and removed.

    make pages    writes what is expected anew. Read the difference before it is committed.
"""

import io
import itertools
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

import records
from conftest import requires_binary
from crosswind.cell.record import RunRecord
from crosswind.cli import main
from crosswind.findings.pipeline import analyse
from crosswind.findings.question.result import Answer
from crosswind.findings.threshold.result import ThresholdResult
from crosswind.report.charts.description import description
from crosswind.report.page import Chart, Page, Section, Sentence, Tone
from crosswind.report.run_page import drawn_page
from crosswind.report.tables.table import Shown, Table
from screens import render

PLACE = Path(__file__).parent / "pages"
MOST_ROWS = 8
"""Of a chart's data; of more, the first and the last are written."""
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A run of a file, with what is expected of it. Attributes: code: which makes it."""

    file: Path
    title: str
    code: str
    text: str

    def filled(self) -> str:
        """Its text, with what its run is now in the place of what is expected."""
        names: dict[str, Any] = {"pl": pl, "replace": replace, **vars(records)}
        exec(compile(self.code, str(self.file), "exec"), names)
        made = names.get("made")
        return _BLOCK.sub(lambda block: _fill(block, made), self.text)


def _fill(block: re.Match[str], made: object) -> str:
    kind, words, body = block.groups()
    if kind == "python":
        return block[0]
    shown = _console(made, body) if kind == "console" else SHOWN[kind](made, words.strip())
    return f"```{kind}{words}\n{shown}```"


def cases_of(file: Path) -> Iterator[Case]:
    """The runs of a file."""
    shared, *parts = re.split(r"(?m)^(?=## )", file.read_text(encoding="utf-8"))
    for part in parts:
        heading = _HEADING.match(part)
        assert heading is not None
        yield Case(file, heading[1], _code(shared) + _code(part), part)


def _code(text: str) -> str:
    return "\n".join(body for kind, _, body in _BLOCK.findall(text) if kind == "python")


def write(file: Path) -> None:
    """Write what is expected anew."""
    text = file.read_text(encoding="utf-8")
    for case in cases_of(file):
        text = text.replace(case.text, case.filled())
    file.write_text(text, encoding="utf-8")


def _screen(made: RunRecord, words: str) -> str:
    width = int(found[0]) if (found := re.search(r"\d+", words)) else 80
    return render(analyse(made), width=width, everything="all" in words.split())


def _page(made: RunRecord | Page, words: str) -> str:
    page = made if isinstance(made, Page) else drawn_page(made, analyse(made))
    every = [*page.answers, *page.sections]
    if words:
        lines = [line for each in every if each.title.startswith(words) for line in section_lines(each)]
    else:
        lines = [*_head(page), *(_title(each) for each in every), *_foot(page)]
    return "".join(f"{line}\n" for line in lines)


def _console(made: Any, body: str) -> str:
    requires_binary()
    printed: list[str] = []
    unset = ("COLUMNS", "CROSSWIND_TOKEN", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {"NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as place, chdir(place), patch.dict(os.environ, environment, clear=True):
        if made is not None:
            made()
        before = set(Path().rglob("*"))
        for line in body.splitlines():
            if line.startswith("$ "):
                printed.append(f"{line}\n{_printed(shlex.split(line)[2:])}")
        after = set(Path().rglob("*"))
        printed += (f"made {path}\n" for path in sorted(after - before) if path.parent not in after - before)
        printed += (f"removed {path}\n" for path in sorted(before - after) if path.parent not in before - after)
    return "".join(printed)


def _printed(words: list[str]) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        try:
            main(words)
        except SystemExit as ended:
            status = ended.code
    return out.getvalue() + (f"[{status}]\n" if status else "")


def _said(made: Mapping[str, RunRecord], words: str) -> str:
    told = ((name, finding.sentence) for name, one in made.items() for finding in _findings(one, words))
    return "".join(f"{name}: {sentence}\n" for name, sentence in told)


def _findings(made: RunRecord, words: str) -> list[Any]:
    result = analyse(made)
    found = [*result.of(Answer), *result.of(ThresholdResult)]
    return found if words == "all" else found[:1]


SHOWN: dict[str, Callable[[Any, str], str]] = {"screen": _screen, "page": _page, "said": _said}
"""What a block of each kind holds."""


def _head(page: Page) -> Iterator[str]:
    yield f"=== {page.title} ({page.about})"
    yield from map(_sentence, [page.verdict, *page.banners, *page.lines, *page.doubts])
    if page.picture is not None:
        for name, way in (("there", page.picture.there), ("back", page.picture.back)):
            yield f"{name}: " + ", ".join(f"{each.name} {each.text}{' *' if each.is_varied else ''}" for each in way)
        yield page.picture.description
    yield from (f"{term.name}: {term.text}{_where(term.shown)}" for term in page.terms)


def _foot(page: Page) -> Iterator[str]:
    yield from page.conclusion
    yield from (f"note: {note}" for note in page.notes)


def _sentence(sentence: Sentence) -> str:
    tone = "" if sentence.tone is Tone.PLAIN else f" [{sentence.tone.value}]"
    short = f" (short: {sentence.short})" if sentence.short else ""
    return f"{sentence.text}{tone}{short}{_where(sentence.shown)}"


def _where(shown: Shown) -> str:
    return "" if shown is Shown.EVERYWHERE else f" [{shown.value}]"


def _title(section: Section) -> str:
    return f"=== {section.title}{' [folded]' if section.folded else ''}"


def section_lines(section: Section) -> Iterator[str]:
    """A section as lines."""
    yield _title(section)
    yield from map(_sentence, section.sentences)
    for panels in section.charts:
        if panels.total != len(panels.charts):
            yield f"{len(panels.charts)} of {panels.total} charts"
        for chart in panels.charts:
            yield from chart_lines(chart)
    yield from filter(None, (section.caption, section.note))
    for table in section.tables:
        yield from table_lines(table)


def table_lines(table: Table) -> Iterator[str]:
    """A table as lines: its rows, and its narrow form if it has one."""
    yield f"{table.title}{_where(table.shown)}" + (f": {table.help}" if table.help else "")
    yield "| " + " | ".join(table.headings)
    for at, row in enumerate(table.rows):
        sign = "!" if at in table.marked else "+" if at in table.better else "|"
        links = "".join(f" <{text}: {address}>" for text, address in table.links.get(at, ()))
        yield f"{sign} {' | '.join(row)}{links}"
    yield from (f"  {note}" for note in table.footnotes)
    if table.narrow is not None:
        notes = [] if table.narrow.footnotes == table.footnotes else table.narrow.footnotes
        narrow = replace(table.narrow, narrow=None, footnotes=notes)
        yield from (f"  {line}" for line in list(table_lines(narrow))[1:])


def chart_lines(chart: Chart) -> Iterator[str]:
    """A chart as lines: what is said of it, its marks and axes, and its data."""
    yield f"[chart] {description(chart.specification, chart.caption).removeprefix('. ')}"
    yield from (f"  {note}" for note in chart.notes)
    for view in [chart.specification, *chart.specification.get("layer", [])]:
        mark, encoding = view.get("mark", {}), view.get("encoding", {})
        kind = mark if isinstance(mark, str) else " ".join(filter(None, (mark.get("type"), mark.get("shape"))))
        if kind:
            yield f"  {kind}: {', '.join(filter(None, itertools.starmap(_channel, encoding.items())))}"
    for rows in _data(chart.specification):
        shown = rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS // 2], ..., *rows[-MOST_ROWS // 2 :]]
        yield f"  {len(rows)} rows"
        yield from (f"    {'...' if row is ... else _values(row)}" for row in shown)


def _channel(name: str, channel: Any) -> str:
    if not isinstance(channel, Mapping):
        return ""
    title, scale = channel.get("title") or channel.get("field"), channel.get("scale") or {}
    kept = {key: scale[key] for key in ("type", "domain") if key in scale}
    kept |= {key: value for key, value in (channel.get("axis") or {}).items() if key == "format"}
    return f"{name} {title}" + (f" ({_values(kept)})" if kept else "") if title else ""


def _data(specification: Mapping[str, Any]) -> list[Sequence[Mapping[str, Any]]]:
    views = [specification, *specification.get("layer", [])]
    inline = [view["data"]["values"] for view in views if "values" in view.get("data", {})]
    return [*specification.get("datasets", {}).values(), *inline]


def _values(row: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={_value(value)}" for key, value in row.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value).replace("\n", "\\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(map(str, PLACE.rglob("*.md"))):
        write(Path(name))
