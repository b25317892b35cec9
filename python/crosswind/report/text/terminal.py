"""The result on a terminal: its last screen, or every table and then that screen.

    title, verdict
    answers            what the study asks and what came of it (crosswind.report.text.headline)
    main numbers       the worst and the best cells, where there are many
    doubts             why cells are not valid, and warnings, each with its cells
    what is left out

The screen has as many lines as a terminal shows at once.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from crosswind.analysis.result import Result
from crosswind.console import Console
from crosswind.findings.figure.judge import Figure
from crosswind.findings.registry import showings
from crosswind.report.page import Sentence, Tone
from crosswind.report.run_page import tables_of
from crosswind.report.tables.summary import summary_tables
from crosswind.report.tables.table import Shown, Table, grouped_by_wording
from crosswind.report.text.conditions import condition_lines
from crosswind.report.text.format import count, count_of, levels, listed
from crosswind.report.text.grid import fits, form_for, grid_lines, left_out, paragraph_lines, with_short_names
from crosswind.report.text.headline import headline_sentences, verdict
from crosswind.report.text.page import TONE_STYLES


def print_result(result: Result, console: Console | None = None, *, everything: bool = False) -> None:
    """Print a result; rich colours it on a terminal only, and not where NO_COLOR is set.

    Args: everything: every table of every cell, above the screen that sums them up.
    """
    out = console or Console(highlight=False)
    if everything:
        for table in tables_of(result):
            if table.shown in (Shown.EVERYWHERE, Shown.ASIDE):
                footnotes = [line for note in table.footnotes for line in wrapped(note, out.width, "dim")]
                _print_lines(out, [*_table(table, out.width, everything=True), *footnotes, Text()])
    _print_lines(out, screen_lines(result, out.width, everything=everything))


def render(result: Result, *, width: int = 80, everything: bool = False) -> str:
    """The same as plain text of a given width, without colour."""
    console = Console(width=width, no_color=True, force_terminal=False, highlight=False, record=False)
    with console.capture() as captured:
        print_result(result, console, everything=everything)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _print_lines(out: Console, lines: list[Text]) -> None:
    for line in lines:
        out.print(line, no_wrap=True, overflow="ignore", crop=False)


SCREEN_LINES = 35
"""Lines of the screen. Where the run is kept takes three more."""

_ANSWER_LINES = 14
_QUESTION_LINES = 18
"""Lines of the questions and answers. None is left out: where there are many, the last are a verdict alone."""
_DOUBT_LINES = 8
_CONDITION_LINES = 2
_FEWEST_ROWS = 4
_MARKS = {Tone.GOOD: "✓", Tone.DOUBTFUL: "!", Tone.BAD: "✗"}


def screen_lines(result: Result, width: int, *, everything: bool = False) -> list[Text]:
    """The screen, of at most SCREEN_LINES lines. Args: everything: whether all tables stand above it."""
    most = None if everything else _QUESTION_LINES
    head, answers, doubts = _head(result, width), _answers(result, width, most), _doubts(result, width)
    conditions = _conditions(result, width)
    room = SCREEN_LINES - len(head) - len(answers) - len(conditions) - len(doubts) - 3
    numbers = _numbers(result, width, max(room, _FEWEST_ROWS + 2))
    end = [] if everything else _end(result, width)
    blocks = [[*head, *answers, *conditions], numbers, doubts, end]
    lines = [line for block in blocks if block for line in (Text(), *block)]
    return lines[1:]


def doubts_of(result: Result) -> list[tuple[str, str]]:
    """Why cells are not valid and what they warn of, each text once with the cells that it is about: (kind, text)."""
    reasons = grouped_by_wording((cell.reason, levels(cell.levels)) for cell in result.cells if cell.reason)
    warnings = grouped_by_wording(
        (warning.sentence, levels(cell.levels)) for cell in result.cells for warning in cell.warnings
    )
    several = len(result.cells) > 1
    return [
        *(("invalid", _with_cells(text, cells, several=several)) for text, cells in reasons.items()),
        *(("warning", warning.sentence) for warning in result.warnings),
        *(("warning", _with_cells(text, cells, several=several)) for text, cells in warnings.items()),
    ]


def doubt_lines(doubts: Iterable[tuple[str, str]], width: int) -> Iterator[Text]:
    """Each doubt in its colour, wrapped."""
    for kind, text in doubts:
        for line in textwrap.wrap(f"{kind}: {text}", width, subsequent_indent="  "):
            yield Text(line, style="red" if kind == "invalid" else "yellow")


def wrapped(text: str, width: int, style: str = "") -> list[Text]:
    """A sentence in lines."""
    lines = textwrap.wrap(text, width - 2, initial_indent="  ", subsequent_indent="    ")
    return [Text(line, style=style) for line in lines]


def _head(result: Result, width: int) -> list[Text]:
    answer = verdict(result)
    lines = textwrap.wrap(f"{_MARKS[answer.tone]} {answer.text}", width, subsequent_indent="  ")
    title = textwrap.wrap(result.title, width)
    return [
        *(Text(line, style="bold") for line in title[:2]),
        *(Text(line, style=TONE_STYLES[answer.tone]) for line in lines[:4]),
    ]


def _answers(result: Result, width: int, most: int | None) -> list[Text]:
    """What the study asks and what came of it; of the sentences after that as many as have room.

    Args: most: lines of the questions, None for all.
    """
    said = [sentence for showing in showings() for sentence in showing.answers(result)]
    lines = _questions([sentence for sentence in said if sentence.about], width, most)
    for sentence in said:
        if not sentence.about:
            lines += wrapped(sentence.text, width, TONE_STYLES[sentence.tone])
    listed_below = (sentence.text for showing in showings() for sentence in showing.listed(result))
    texts = [wrapped(text, width) for text in (*headline_sentences(result), *listed_below)]
    for number, own in enumerate(texts):
        if number and len(lines) + len(own) > _ANSWER_LINES:
            return [*lines, *wrapped(f"… and {count_of(len(texts) - number, 'more sentence')}", width, "dim")]
        lines += own
    return lines


def _conditions(result: Result, width: int) -> list[Text]:
    """Path, hosts and extent, two lines each at most. The clock is among the sentences, the workload in the tables."""
    if result.conditions is None:
        return []
    lines = [line for line in condition_lines(result.conditions) if line.about not in ("Clock", "Workload")]
    return [
        Text(text, style="dim")
        for line in lines
        for text in textwrap.wrap(
            f"{line.about}: {line.text}",
            width - 2,
            initial_indent="  ",
            subsequent_indent="    ",
            max_lines=_CONDITION_LINES,
            placeholder=" …",
        )
    ]


def _questions(answers: Sequence[Sentence], width: int, most: int | None) -> list[Text]:
    """Every question with its answer; what has no room in full is its verdict alone."""
    lines: list[Text] = []
    short = [_question(answer.about, answer.short, width) for answer in answers]
    for number, answer in enumerate(answers):
        whole = _question(answer.about, answer.text, width)
        after = sum(map(len, short[number + 1 :]))
        lines += whole if most is None or len(lines) + len(whole) + after <= most else short[number]
    return lines


def _question(asks: str, said: str, width: int) -> list[Text]:
    return [*(Text(line, style="bold") for line in textwrap.wrap(asks, width)), *wrapped(said, width)]


def _numbers(result: Result, width: int, room: int) -> list[Text]:
    """The main tables in `room` lines."""
    several = len(summary_tables(result, most=1))
    # Of each table: a line between it and the one before, a title, a heading, and one on what is left out.
    most = max(_FEWEST_ROWS, room - 4 * several + 1)
    lines: list[Text] = []
    for table in summary_tables(result, most=most):
        lines += [*([Text()] if lines else []), *_table(table, width)]
    return lines


def _table(table: Table, width: int, *, everything: bool = False) -> list[Text]:
    """The form of a table that fits. Args: everything: whether nothing is cut: rows below each other have room."""
    form = form_for(table, width)
    form = form if everything else with_short_names(form, width)
    is_grid = fits(form, width)
    form = table if everything and not is_grid else form
    missing = left_out(table, form)
    note = wrapped(f"Left out at this width: {', '.join(missing)}.", width, "dim") if missing else []
    lines = grid_lines(form) if is_grid else paragraph_lines(form, width)
    return [Text(form.title, style="bold"), *lines, *note]


def _doubts(result: Result, width: int) -> list[Text]:
    doubts = doubts_of(result)
    lines: list[Text] = []
    for number, doubt in enumerate(doubts):
        doubt_text = list(doubt_lines([doubt], width))
        if len(lines) + len(doubt_text) > _DOUBT_LINES:
            more_doubts = len(doubts) - number - (not lines)
            more = [Text(f"… and {count(more_doubts)} more", style="dim")] if more_doubts else []
            return [*(lines or doubt_text[: _DOUBT_LINES - 1]), *more]
        lines += doubt_text
    return lines


def _end(result: Result, width: int) -> list[Text]:
    """Where the rest is."""
    figures = "; ".join(figure.title for figure in result.of(Figure))
    text = "`crosswind report --all` has every cell and every table, the HTML report has charts too"
    more = f": {figures}" if figures else ""
    return [Text(line, style="dim") for line in textwrap.wrap(f"{text}{more}.", width, max_lines=2, placeholder=" …")]


def _with_cells(text: str, cells: Sequence[str], *, several: bool) -> str:
    return f"{text} ({listed(list(cells), 3)})" if several else text
