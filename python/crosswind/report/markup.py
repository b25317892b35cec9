"""Sections, charts and tables as HTML."""

import html
import json
import re
from collections.abc import Iterable, Sequence

from crosswind.report.charts.description import description
from crosswind.report.charts.style import Specification
from crosswind.report.page import Chart, Element, Page, Panels, Picture, Section, Sentence, Tone, link_name
from crosswind.report.tables.table import Column, ColumnKind, Shown, Table
from crosswind.report.text.format import EXACT, NOT_MEASURED
from crosswind.text.visible import visible

_SCROLLING_ROWS = 30  # a longer table scrolls in its place
_FEWEST_CONTENTS = 4  # minimum sections for a table of contents
_OPEN_DOUBTS = 8  # shown at once; the rest is folded away
_MOST_DOUBTS = 100
_OPEN_PANELS = 4  # panels of a kind shown at once; the rest is folded away
_OF_MACHINE = ("sysctls.", "machine.congestion_control")
_LONG_NAME = 24  # minimum characters for breaking a name into lines
_LIMITS = re.compile(r" (\[[^\]]*\]|\([^)]*\))( \S+| percentage points)?$")
"""The part behind a number: its interval, or its substitute, and their unit."""
_OPTION = re.compile(r"--[a-z][a-z-]*( \d+)?")
"""A command-line option: a browser would break it behind its first hyphen."""
_OTHER_PLACES = ("contents", "specs")
"""Names on a page other than sections."""
_LINKS = '<th scope="col" class="word">leads to</th>'
_CLASSES = {ColumnKind.NAME: "word", ColumnKind.WORD: "word", ColumnKind.SENTENCE: "word long"}


def escaped(text: str) -> str:
    """Text as HTML shows it, hidden characters too."""
    return html.escape(visible(text))


class Markup:
    """HTML for a page's parts, and their shared state: the charts' specifications by place, and the sections by link
    name."""

    def __init__(self) -> None:
        self.specifications: dict[str, Specification] = {}
        self._sections: dict[str, str] = {}
        self._tables = 0

    def contents(self) -> str:
        """Links to the sections made so far; empty for a few."""
        if len(self._sections) < _FEWEST_CONTENTS:
            return ""
        links = "".join(f'<li><a href="#{place}">{escaped(title)}</a></li>' for place, title in self._sections.items())
        return f'<nav aria-labelledby="contents"><h2 id="contents">Contents</h2><ul>{links}</ul></nav>'

    def body(self, page: Page) -> list[str]:
        """A page's parts: its head, before the contents, and the rest."""
        return [
            self._head(page),
            _conditions(page),
            *map(self.section, page.sections),
            self._notes(page.notes),
            self._provenance(page) if page.provenance else "",
        ]

    def _head(self, page: Page) -> str:
        banners = [banner for banner in page.banners if banner.shown.in_html]
        first = "".join([*map(_banner, banners), *map(self.section, page.answers)])
        said = {banner.text for banner in banners}
        # A terminal's last line counts those that have no room there.
        concluded = [line for line in page.conclusion if line not in said and not line.startswith("…")]
        texts = [*concluded, *(line.text for line in page.lines if line.shown.in_html)]
        lines = "".join(f"<li>{escaped(text)}</li>" for text in texts)
        summary = "".join(self._table(table) for table in page.summary if table.shown.in_html)
        return (
            f"<header><h1>{escaped(page.title)}</h1><p>{escaped(page.about)}</p></header>\n"
            f'{_banner(page.verdict)}{first}<ul class="headline">{lines}</ul>{_doubts(page.doubts)}{summary}'
        )

    def section(self, section: Section) -> str:
        """A section: its heading, its sentences and help, its charts with their legends, its tables."""
        said = "".join(_sentence(sentence) for sentence in section.sentences if sentence.shown.in_html)
        tables = [table for table in section.tables if table.shown.in_html]
        note = f'<p class="help">{_with_code(escaped(section.note))}</p>' if section.note else ""
        parts = [
            said + note,
            *(f'<p class="help">{escaped(table.help)}</p>' for table in tables if table.help),
            *(self._panels(panels, section) for panels in section.charts),
            f'<p class="foot">{escaped(section.caption)}</p>' if section.caption else "",
            *(self._table_or_fold(table, section) for table in tables),
            *(self._detail(detail) for detail in section.details),
        ]
        kind = ""
        if section.sentences:
            kind = "question decided" if section.sentences[0].tone in (Tone.GOOD, Tone.BAD) else "question"
        return self._section(section.title, "".join(parts), folded=section.folded, kind=kind)

    def _detail(self, section: Section) -> str:
        """A section within another. Its place is inside of what is folded: a link to it unfolds it."""
        said = "".join(_sentence(sentence) for sentence in section.sentences)
        charts = "".join(self._panels(panels, section) for panels in section.charts)
        tables = "".join(self._table_or_fold(table, section) for table in section.tables)
        return _fold(section.title, f'<div id="{link_name(section.title)}">{said}{charts}{tables}</div>')

    def _notes(self, notes: Sequence[str]) -> str:
        items = "".join(f"<li>{_with_code(escaped(note))}</li>" for note in notes)
        return self._section("Notes", f"<ul>{items}</ul>") if items else ""

    def _provenance(self, page: Page) -> str:
        """Where numbers come from, with the machine's settings and the study as it was run folded away."""
        flat = _flat(dict(page.provenance))
        of_machine = [pair for pair in flat if pair[0].startswith(_OF_MACHINE)]
        pairs = _terms(pair for pair in flat if pair not in of_machine)
        kernel = _fold(page.of_machine, _terms(of_machine)) if of_machine else ""
        study = ""
        if page.design is not None:
            design = escaped(json.dumps(page.design, indent=2, ensure_ascii=False, default=str))
            study = _fold("The study", f'<pre tabindex="0">{design}</pre>')
        return self._section("Provenance", f"{pairs}{kernel}{study}")

    def _section(self, title: str, content: str, *, folded: bool = False, kind: str = "") -> str:
        """A section in the contents. Args: folded: whether it opens with a click on its title."""
        place = name = link_name(title)
        while place in self._sections or place in _OTHER_PLACES:
            place = f"{name}-{len(self._sections)}"
        self._sections[place] = title
        if folded:
            return _fold(title, content, place)
        named = f' class="{kind}"' if kind else ""
        return f'<section id="{place}"{named}><h2>{escaped(title)}</h2>{content}</section>'

    def _panels(self, panels: Panels, section: Section) -> str:
        """The first panels, the rest folded away, and the number left undrawn."""
        drawn = panels.charts
        text = self._charts(drawn[:_OPEN_PANELS], section.title)
        if len(drawn) > _OPEN_PANELS:
            text += _fold(
                f"{len(drawn) - _OPEN_PANELS} more panel{'' if len(drawn) == _OPEN_PANELS + 1 else 's'}",
                self._charts(drawn[_OPEN_PANELS:], section.title),
            )
        if len(drawn) < panels.total:
            remark = " The table has every cell." if section.tables else ""
            text += f'<p class="foot">Drawn: {len(drawn)} of {panels.total} panels.{remark}</p>'
        return text

    def _charts(self, charts: Sequence[Chart], title: str) -> str:
        """Places for charts, with their specifications at the page's end. Args: title: the section's."""
        figures = []
        for chart in charts:
            place = f"chart-{len(self.specifications)}"
            described = description(chart.specification, ": ".join(filter(None, (title, chart.caption))))
            self.specifications[place] = {**chart.specification, "description": described}
            caption = f"<figcaption>{escaped(chart.caption)}</figcaption>" if chart.caption else ""
            notes = "".join(f'<p class="foot">{escaped(note)}</p>' for note in chart.notes)
            drawing = f'<div class="chart" id="{place}" role="img" aria-label="{escaped(described)}"></div>'
            figures.append(f"<figure>{caption}{drawing}{notes}</figure>")
        return f'<div class="charts">{"".join(figures)}</div>' if figures else ""

    def _table_or_fold(self, table: Table, section: Section) -> str:
        if table.shown in (Shown.FOLDED, Shown.ASIDE) and not section.folded:
            return _fold(table.title, self._table(table, above=table.title))
        return self._table(table, above=section.title)

    def _table(self, table: Table, *, above: str = "") -> str:
        """A table with its caption, hidden if the same words stand above it."""
        self._tables += 1
        place = f"table-{self._tables}"
        head = "".join(_head_cell(column) for column in table.columns) + (_LINKS if table.links else "")
        rows = []
        for number, row in enumerate(table.rows):
            kind = "marked" if number in table.marked else "better" if number in table.better else ""
            mark = f' class="{kind}"' if kind else ""
            data = "".join(_cell(column, text) for column, text in zip(table.columns, row, strict=True))
            links = ", ".join(
                f'<a href="{escaped(to)}">{escaped(text)}</a>' for text, to in table.links.get(number, ())
            )
            rows.append(f"<tr{mark}>{data}{f'<td>{links}</td>' if table.links else ''}</tr>")
        notes = "".join(f"<li>{escaped(note)}</li>" for note in table.footnotes)
        foot = f'<ul class="foot">{notes}</ul>' if notes else ""
        hidden = ' class="unseen"' if table.title == above else ""
        caption = f'<caption id="{place}"{hidden}>{escaped(table.title)}</caption>'
        body = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        tall = " tall" if len(table.rows) > _SCROLLING_ROWS else ""
        # A scrolling part must be reachable, and named, without a mouse.
        return f'<div class="scroll{tall}" tabindex="0" role="group" aria-labelledby="{place}">{body}</div>{foot}'


def _banner(said: Sentence) -> str:
    return f'<div class="banner {said.tone.value}">{_with_code(escaped(said.text))}</div>\n'


def _doubts(doubts: Sequence[Sentence]) -> str:
    """Why cells are not valid, and warnings: the first, and the others folded away."""
    if not doubts:
        return ""
    first, others, left = doubts[:_OPEN_DOUBTS], doubts[_OPEN_DOUBTS:_MOST_DOUBTS], len(doubts) - _MOST_DOUBTS
    more = f"<p>And {left} more, which the JSON of the page has.</p>" if left > 0 else ""
    fold = _fold(f"{len(doubts) - len(first)} more", f"{_doubt_list(others)}{more}") if others else ""
    return _doubt_list(first) + fold


def _doubt_list(doubts: Sequence[Sentence]) -> str:
    items = "".join(f'<li class="{doubt.tone.value}">{_with_code(escaped(doubt.text))}</li>' for doubt in doubts)
    return f'<ul class="doubts">{items}</ul>'


def _sentence(sentence: Sentence) -> str:
    """A sentence with its verdict, before the colon, set apart; without a verdict unchanged."""
    verdict_text, colon, why = sentence.text.partition(":")
    if not colon and not sentence.short:
        return f"<p>{escaped(sentence.text)}</p>"
    why = _OPTION.sub(r'<span class="option">\g<0></span>', escaped(why))
    return f"<p><strong>{escaped(verdict_text)}</strong>{colon}{why}</p>"


def _terms(pairs: Iterable[tuple[str, str]]) -> str:
    terms = "".join(f"<dt>{escaped(term)}</dt><dd>{escaped(text)}</dd>" for term, text in pairs)
    return f"<dl>{terms}</dl>"


def _conditions(page: Page) -> str:
    """The path's picture, and the remaining conditions below it, as a list of terms."""
    picture = "" if page.picture is None else _picture(page.picture)
    terms = [(term.name, term.text) for term in page.terms if term.shown.in_html]
    return f'<div class="conditions">{picture}{_terms(terms)}</div>' if picture or terms else ""


def _picture(picture: Picture) -> str:
    near, far = (f'<div class="host">{escaped(end)}</div>' for end in picture.ends)
    ways = "".join(
        f'<div class="way {direction}">{"".join(map(_element, elements))}</div>'
        for direction, elements in (("there", picture.there), ("back", picture.back))
    )
    return (
        f'<div class="path" role="img" aria-label="{escaped(picture.description)}">{near}'
        f'<div class="ways">{ways}</div>{far}</div>'
    )


def _element(element: Element) -> str:
    kind = "element varied" if element.is_varied else "element"
    name = f"<b>{escaped(element.name)}</b> " if element.name else ""
    return f'<span class="{kind}">{name}{escaped(element.text)}</span>'


def _fold(summary: str, content: str, place: str = "") -> str:
    """Args: place: the link name."""
    named = f' id="{place}"' if place else ""
    return f"<details{named}><summary>{escaped(summary)}</summary>{content}</details>"


def _head_cell(column: Column) -> str:
    if not column.heading:
        return "<td></td>"
    return f'<th scope="col"{_class(column)}>{escaped(column.heading)}</th>'


def _cell(column: Column, text: str) -> str:
    tag, scope = ("th", ' scope="row"') if column.kind is ColumnKind.NAME and text else ("td", "")
    return f"<{tag}{scope}{_class(column, text)}>{_softened(escaped(text), column)}</{tag}>"


def _class(column: Column, text: str = "") -> str:
    """A cell's content class, and whether its text may be broken."""
    kinds = [_CLASSES.get(column.kind, "")]
    if column.kind is ColumnKind.NAME and len(text) > _LONG_NAME:
        kinds.append("long")
    if column.kind is ColumnKind.NUMBER and _LIMITS.search(text):
        kinds.append("pair")
    named = " ".join(filter(None, kinds))
    return f' class="{named}"' if named else ""


def _softened(text: str, column: Column) -> str:
    """A value's attachments in a softer colour: its limits, its exactness, its absence."""
    if column.kind is ColumnKind.NAME:
        return text
    limits = _LIMITS.search(text) if column.kind is ColumnKind.NUMBER else None
    if limits is not None:
        return f'{text[: limits.start()]} <span class="beside">{limits[0].strip()}</span>'
    return re.sub(rf"(\[[^\]]*\]|\b{EXACT}$|^{NOT_MEASURED}$)", r'<span class="beside">\1</span>', text)


def _with_code(text: str) -> str:
    """Words between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


def _flat(value: object, key: str = "") -> list[tuple[str, str]]:
    """Nested provenance as dotted keys and values."""
    if isinstance(value, dict):
        return [pair for name, part in value.items() for pair in _flat(part, f"{key}.{name}" if key else str(name))]
    if isinstance(value, list) and not any(isinstance(part, dict | list) for part in value):
        return [(key, (" " if key == "command" else ", ").join(str(part) for part in value))]
    return [(key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))]
