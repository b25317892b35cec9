"""The page of `crosswind explain`: each exchange with its sentence, its picture and its timeline."""

from collections.abc import Sequence
from pathlib import Path

from crosswind.explained import Explained
from crosswind.report.files import write_text
from crosswind.report.page import Page, Section, Sentence
from crosswind.report.tables.table import Shown, Table, names, numbers
from crosswind.report.text.explained import timeline, why
from crosswind.report.text.format import levels, quantity

_COLUMNS = [*numbers("at", "takes", "share"), *names("spent on", "where", "packet")]
_SAID = "Every nanosecond of an exchange has a name, and the names sum to its whole time."


def write_explained(exchanges: Sequence[Explained], title: str, path: Path) -> None:
    """Writes the page, whole or not at all. Raises: DiskError."""
    from crosswind.report import html

    write_text(path, html.render(page_of(exchanges, title)))


def page_of(exchanges: Sequence[Explained], title: str) -> Page:
    """The page, a section for each exchange."""
    return Page(
        title=f"Why: {title}",
        about="crosswind explain",
        verdict=Sentence(_SAID),
        sections=[_section(exchange) for exchange in exchanges],
    )


def _section(exchange: Explained) -> Section:
    # Altair takes a while to import.
    from crosswind.report.charts.timeline import timeline_chart

    rows = timeline(exchange)
    place = f"{levels(exchange.levels)}, " if exchange.levels else ""
    return Section(
        f"{place}exchange {exchange.exchange}: {quantity(exchange.whole_ns, 'ns')}",
        sentences=[Sentence(why(exchange))],
        charts=[timeline_chart(exchange)],
        tables=[Table("Timeline", _COLUMNS, rows, shown=Shown.FOLDED)],
    )
