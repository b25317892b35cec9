"""A page on a terminal: its title and lines, the sentences and tables of its sections, and its verdict."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from crosswind.report.page import Page, Sentence, Tone
from crosswind.report.tables.table import ColumnKind
from crosswind.report.text.grid import grid_lines

TONE_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.DOUBTFUL: "yellow", Tone.BAD: "bold red"}
_LEFT = (ColumnKind.NAME, ColumnKind.SENTENCE, ColumnKind.WORD)


def page_lines(page: Page, width: int | None = None) -> Iterator[Text]:
    """The page, with the verdict last, where the reader of a terminal looks first. Charts are left out.

    Args: width: of the tables, which fold what is longer; None: as wide as they are.
    """
    yield Text(page.title, style="bold")
    yield from map(Text, page.lines)
    for section in page.sections:
        yield from _toned(section.sentences)
        for table in section.tables:
            yield from grid_lines(table, width, left=_LEFT)
    yield from _toned([page.verdict, *page.banners])


def print_page(page: Page, console: Console) -> None:
    """The page, with tables as wide as the console, or less."""
    for line in page_lines(page, console.width):
        console.print(line, soft_wrap=True)


def _toned(sentences: Sequence[Sentence]) -> Iterator[Text]:
    return (Text(sentence.text, style=TONE_STYLES[sentence.tone]) for sentence in sentences)
