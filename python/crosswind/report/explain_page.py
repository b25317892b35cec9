"""The page of `crosswind explain`: each exchange with its sentence, its picture and its timeline."""

from collections.abc import Sequence
from pathlib import Path

from crosswind.explained import Explained, SocketHistory
from crosswind.report.files import write_text
from crosswind.report.page import Page, Section, Sentence
from crosswind.report.tables.table import Shown, Table, names, numbers
from crosswind.report.text.explained import timeline, why
from crosswind.report.text.format import levels, quantity

_COLUMNS = [*numbers("at", "takes", "share"), *names("spent on", "where", "packet")]
_OF_SOCKET = "What the kernel knew of the socket that sent the most, of the connection from port {port}, over time."
_SAID = "Every nanosecond of an exchange has a name, and the names sum to its whole time."


def write_explained(exchanges: Sequence[Explained], sockets: Sequence[SocketHistory], title: str, path: Path) -> None:
    """Writes the page, whole or not at all. Raises: DiskError."""
    from crosswind.report import html

    write_text(path, html.render(page_of(exchanges, sockets, title)))


def page_of(exchanges: Sequence[Explained], sockets: Sequence[SocketHistory], title: str) -> Page:
    """The page, a section for each exchange, and for each socket that was followed."""
    return Page(
        title=f"Why: {title}",
        about="crosswind explain",
        verdict=Sentence(_SAID),
        sections=[*map(_section, exchanges), *map(_socket, sockets)],
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


def _socket(history: SocketHistory) -> Section:
    from crosswind.report.charts.sockets import socket_charts

    place = f"{levels(history.levels)}, " if history.levels else ""
    return Section(
        f"{place}{history.key}: TCP of the {history.host}",
        sentences=[Sentence(_OF_SOCKET.format(port=history.client_port))],
        charts=socket_charts(history),
    )
