"""A page on a terminal, without charts and parts shown in HTML alone.

A run's page is a screen, as long as the terminal is high, below all tables if requested:

    title, verdict
    answers, banners    the study's questions and their answers
    lines, terms        further sentences, and the conditions
    summary             the main numbers: among many cells the worst and the best
    doubts              reasons for invalid cells, and warnings, each with its cells
    omissions

A summary is short enough to be shown whole, with its verdict last, where a terminal's reader looks first.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from crosswind.report.page import Page, Section, SectionPlace, Sentence, Tone
from crosswind.report.tables.cut import cut_to
from crosswind.report.tables.table import ColumnKind, Table
from crosswind.report.text.format import count, count_of
from crosswind.report.text.grid import fits, form_for, grid_lines, left_out, paragraph_lines, with_short_names
from crosswind.text.console import Console
from crosswind.text.terminal_table import folded

TONE_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.DOUBTFUL: "yellow", Tone.BAD: "bold red"}
SCREEN_LINES = 35
"""Lines of the screen. Where the run is kept takes three more."""

_ANSWER_LINES = 14
_QUESTION_LINES = 18
"""Lines of the questions and answers. None is left out: where there are many, the last are a verdict alone."""
_DOUBT_LINES = 8
_CONDITION_LINES = 2
_FEWEST_ROWS = 4
_MARKS = {Tone.GOOD: "✓", Tone.DOUBTFUL: "!", Tone.BAD: "✗"}
_DOUBT_STYLES = {Tone.BAD: "red", Tone.DOUBTFUL: "yellow"}
_LEFT = (ColumnKind.NAME, ColumnKind.SENTENCE, ColumnKind.WORD)


def print_screen(page: Page, console: Console | None = None, *, everything: bool = False) -> None:
    """Print a run's page; rich colours it on a terminal only, and not under NO_COLOR.

    Args: everything: every section's sentences and tables, above the screen summing them up.
    """
    out = console or Console(highlight=False)
    lines = screen_lines(page, out.width, everything=everything)
    for line in [*section_lines(page, out.width), *lines] if everything else lines:
        out.print(line, no_wrap=True, overflow="ignore", crop=False)


def print_summary(page: Page, console: Console) -> None:
    """Print a page whole, as wide as the console, or less."""
    for line in summary_lines(page, console.width):
        console.print(line, soft_wrap=True)


def summary_lines(page: Page, width: int | None = None) -> Iterator[Text]:
    """All lines of a page, with the verdict last. Section titles are shown if there are several.

    Args: width: maximum; None: as wide as sentences and tables are.
    """
    yield Text(page.title, style="bold")
    yield from _toned(page.lines, width)
    for section in page.sections:
        if len(page.sections) > 1:
            yield from (Text(), Text(section.title, style="bold"))
        yield from _toned(section.sentences, width)
        for table in section.tables:
            if table.shown.on_terminal:
                if table.title != section.title and len(section.tables) > 1:
                    yield Text(table.title, style="dim")
                yield from grid_lines(table if width is None else form_for(table, width), width, left=_LEFT)
                yield from _toned([Sentence(note) for note in table.footnotes], width, "dim")
    if len(page.sections) > 1:
        yield Text()
    yield from _toned([*page.doubts, page.verdict, *page.banners], width)


def section_lines(page: Page, width: int) -> Iterator[Text]:
    """The sentences and tables of all sections. Answers are on the screen, and have their tables alone here."""
    for section in (*page.answers, *page.sections):
        sentences = [] if section.place is SectionPlace.ANSWERS else _on_terminal(section.sentences)
        if sentences:
            yield from folded(Text(section.title, style="bold"), width)
            yield from (line for sentence in sentences for line in _wrapped(sentence.text, width))
            yield Text()
        for table in section.tables:
            if table.shown.on_terminal:
                yield from _table(table, width, everything=True)
                yield from (line for note in table.footnotes for line in _wrapped(note, width, "dim"))
                yield Text()


def screen_lines(page: Page, width: int, *, everything: bool = False) -> list[Text]:
    """The screen, of at most SCREEN_LINES lines. Args: everything: whether all tables stand above it."""
    most = None if everything else _QUESTION_LINES
    head, answers, doubts = _head(page, width), _answers(page, width, most), _doubts(page.doubts, width)
    conditions = _conditions(page, width)
    room = SCREEN_LINES - len(head) - len(answers) - len(conditions) - len(doubts) - 3
    numbers = _numbers(page.summary, width, max(room, _FEWEST_ROWS + 2))
    end = [] if everything else _end(page.sections, width)
    blocks = [[*head, *answers, *conditions], numbers, doubts, end]
    lines = [line for block in blocks if block for line in (Text(), *block)]
    return lines[1:]


def _head(page: Page, width: int) -> list[Text]:
    lines = textwrap.wrap(f"{_MARKS[page.verdict.tone]} {page.verdict.text}", width, subsequent_indent="  ")
    title = textwrap.wrap(page.title, width)
    return [
        *(Text(line, style="bold") for line in title[:2]),
        *(Text(line, style=TONE_STYLES[page.verdict.tone]) for line in lines[:4]),
    ]


def _answers(page: Page, width: int, most: int | None) -> list[Text]:
    """The study's questions and answers, followed by as many sentences as have room.

    Args: most: lines of the questions, None for all.
    """
    lines = _questions(page.answers, width, most)
    for banner in page.banners:
        lines += _wrapped(banner.text, width, TONE_STYLES[banner.tone])
    texts = [_wrapped(sentence.text, width) for sentence in _on_terminal(page.lines)]
    for number, text_lines in enumerate(texts):
        if number and len(lines) + len(text_lines) > _ANSWER_LINES:
            return [*lines, *_wrapped(f"… and {count_of(len(texts) - number, 'more sentence')}", width, "dim")]
        lines += text_lines
    return lines


def _questions(answers: Sequence[Section], width: int, most: int | None) -> list[Text]:
    """Every question with its answer; in little room the verdict alone."""
    lines: list[Text] = []
    pairs = [(answer.title, sentence) for answer in answers for sentence in answer.sentences[:1]]
    short = [_question(asks, sentence.short, width) for asks, sentence in pairs]
    for number, (asks, sentence) in enumerate(pairs):
        whole = _question(asks, sentence.text, width)
        after = sum(map(len, short[number + 1 :]))
        lines += whole if most is None or len(lines) + len(whole) + after <= most else short[number]
    return lines


def _question(asks: str, said: str, width: int) -> list[Text]:
    return [*(Text(line, style="bold") for line in textwrap.wrap(asks, width)), *_wrapped(said, width)]


def _conditions(page: Page, width: int) -> list[Text]:
    """The conditions, two lines each at most."""
    return [
        Text(text, style="dim")
        for term in page.terms
        if term.shown.on_terminal
        for text in textwrap.wrap(
            f"{term.name}: {term.text}",
            width - 2,
            initial_indent="  ",
            subsequent_indent="    ",
            max_lines=_CONDITION_LINES,
            placeholder=" …",
        )
    ]


def _numbers(summary: Sequence[Table], width: int, room: int) -> list[Text]:
    """The main tables in `room` lines."""
    # For each table: a line before it, a title, a heading, and one on omissions.
    most = max(_FEWEST_ROWS, room - 4 * len(summary) + 1)
    lines: list[Text] = []
    for table in cut_to(summary, most):
        lines += [*([Text()] if lines else []), *_table(table, width)]
    return lines


def _table(table: Table, width: int, *, everything: bool = False) -> list[Text]:
    """A table's fitting form. Args: everything: without cuts: rows below each other have room."""
    form = form_for(table, width)
    form = form if everything else with_short_names(form, width)
    is_grid = fits(form, width)
    form = table if everything and not is_grid else form
    missing = left_out(table, form)
    note = _wrapped(f"Left out at this width: {', '.join(missing)}.", width, "dim") if missing else []
    lines = grid_lines(form) if is_grid else paragraph_lines(form, width)
    return [*folded(Text(form.title, style="bold"), width), *lines, *note]


def _doubts(doubts: Sequence[Sentence], width: int) -> list[Text]:
    lines: list[Text] = []
    for number, doubt in enumerate(doubts):
        style = _DOUBT_STYLES[doubt.tone]
        doubt_lines = [Text(line, style=style) for line in textwrap.wrap(doubt.text, width, subsequent_indent="  ")]
        if len(lines) + len(doubt_lines) > _DOUBT_LINES:
            more_doubts = len(doubts) - number - (not lines)
            more = [Text(f"… and {count(more_doubts)} more", style="dim")] if more_doubts else []
            return [*(lines or doubt_lines[: _DOUBT_LINES - 1]), *more]
        lines += doubt_lines
    return lines


def _end(sections: Sequence[Section], width: int) -> list[Text]:
    """Where the rest is."""
    charts = [chart for section in sections for panels in section.charts for chart in panels.charts]
    figures = "; ".join(chart.caption for chart in charts)
    text = "`crosswind report --all` has every cell and every table, the HTML report has charts too"
    more = f": {figures}" if figures else ""
    return [Text(line, style="dim") for line in textwrap.wrap(f"{text}{more}.", width, max_lines=2, placeholder=" …")]


def _on_terminal(sentences: Iterable[Sentence]) -> list[Sentence]:
    return [sentence for sentence in sentences if sentence.shown.on_terminal]


def _toned(sentences: Iterable[Sentence], width: int | None, style: str = "") -> Iterator[Text]:
    """Sentences in the colours of their tones. Args: width: None: each on one line."""
    for sentence in _on_terminal(sentences):
        lines = [sentence.text] if width is None else textwrap.wrap(sentence.text, width, subsequent_indent="   ")
        yield from (Text(line, style=style or TONE_STYLES[sentence.tone]) for line in lines)


def _wrapped(text: str, width: int, style: str = "") -> list[Text]:
    lines = textwrap.wrap(text, width - 2, initial_indent="  ", subsequent_indent="    ")
    return [Text(line, style=style) for line in lines]
