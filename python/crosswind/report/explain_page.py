"""The page of `crosswind explain`: each exchange or connection with its sentence, its picture and its timeline."""

from collections.abc import Sequence
from pathlib import Path

from crosswind.catalog.explained import Connection, Explained, SocketHistory, Timed
from crosswind.report.files import write_text
from crosswind.report.page import Page, Section, Sentence
from crosswind.report.tables.table import Shown, Table, names, numbers
from crosswind.report.text.connections import connection_name, connection_sentence
from crosswind.report.text.explained import exchange_sentence, timeline
from crosswind.report.text.format import count, levels, quantity

TIMELINE = [*numbers("at", "takes", "share"), *names("spent on", "where", "packet")]
PARTS = [*names("spent on", "data of the"), *numbers("takes", "share", "times", "window, bytes")]
_OF_SOCKET = "What the kernel knew of the socket that sent the most, of the connection from port {port}, over time."
_SUMMARY = "Every nanosecond has a name, and the names sum to the whole time."


def write_explained(shown: Sequence[Timed], sockets: Sequence[SocketHistory], title: str, path: Path) -> None:
    """Writes the page, whole or not at all. Raises: DiskError."""
    from crosswind.report import html

    write_text(path, html.render(page_of(shown, sockets, title)))


def page_of(shown: Sequence[Timed], sockets: Sequence[SocketHistory], title: str) -> Page:
    """The page, a section for each exchange or connection, and for each followed socket."""
    return Page(
        title=f"Why: {title}",
        about="crosswind explain",
        verdict=Sentence(_SUMMARY),
        sections=[*map(_section, shown), *map(_socket, sockets)],
    )


def _section(timed: Timed) -> Section:
    # Altair takes a while to import.
    from crosswind.report.charts.timeline import timeline_chart

    place = f"{levels(timed.levels)}, " if timed.levels else ""
    tables = [Table("Timeline", TIMELINE, timeline(timed), shown=Shown.FOLDED)]
    what = ""
    match timed:
        case Explained():
            what = f"exchange {timed.exchange}"
        case Connection():
            what = f"connection {timed.number}, {connection_name(timed)}"
            tables.insert(0, Table("Where its time went", PARTS, part_rows(timed)))
    return Section(
        f"{place}{what}: {quantity(timed.whole_ns, 'ns')}",
        sentences=[Sentence(sentence_of(timed))],
        charts=[timeline_chart(timed)] if timed.pieces else [],
        tables=tables,
    )


def sentence_of(timed: Timed) -> str:
    """Why it took as long as it did."""
    match timed:
        case Explained():
            return exchange_sentence(timed)
        case Connection():
            return connection_sentence(timed)
    raise AssertionError(timed)


def part_rows(connection: Connection) -> list[list[str]]:
    """Rows: cause, waiting data's owner, time, share, count, and the most in flight."""
    return [
        [
            part.part.replace("_", " ") + (f" ({part.waited_for})" if part.waited_for else ""),
            "client" if part.data == "forward" else "server",
            quantity(part.time_ns, "ns"),
            f"{100 * part.time_ns / connection.whole_ns:.1f} %" if connection.whole_ns else "",
            "" if part.times is None else count(part.times),
            "" if part.window_bytes is None else count(part.window_bytes),
        ]
        for part in connection.parts
    ]


def _socket(history: SocketHistory) -> Section:
    from crosswind.report.charts.sockets import socket_charts

    place = f"{levels(history.levels)}, " if history.levels else ""
    return Section(
        f"{place}{history.key}: TCP of the {history.host}",
        sentences=[Sentence(_OF_SOCKET.format(port=history.client_port))],
        charts=socket_charts(history),
    )
