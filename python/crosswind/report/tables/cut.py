"""Cuts tables to their worst and best rows, to fit a screen."""

from collections.abc import Sequence
from dataclasses import replace

from crosswind.report.tables.table import OF_INTERVAL, Table
from crosswind.report.text.format import count

_FEWEST_ROWS = 3
"""The worst cell, a line for the others, and the best."""


def cut_to(tables: Sequence[Table], most: int) -> list[Table]:
    """Shortens tables to `most` rows in total. A table keeps all of its rows, or its worst and its best."""
    totals = [table.ranking.total if table.ranking else len(table.rows) for table in tables]
    return [_cut(table, room) for table, room in zip(tables, _rooms(totals, most), strict=True)]


def worst_and_best(rows: int) -> tuple[int, int]:
    """Of so many rows those for the worst cells, and those for the best."""
    return rows - rows // 2, rows // 2


def _cut(table: Table, most: int) -> Table:
    ranking = table.ranking
    if ranking is None or (len(table.rows) <= most and len(table.rows) == ranking.total):
        return table
    # One row stands for the others.
    worst, best = worst_and_best(min(most - 1, len(table.rows)))
    ordered = ranking.worst_first
    shown = [*ordered[:worst], *ordered[len(ordered) - best :]]
    title = f"{table.title}: the {_how_many(worst)}worst and the {_how_many(best)}best of {count(ranking.total)} cells"
    return _with_rows(table, shown, worst, title)


def _with_rows(table: Table, shown: Sequence[int], worst: int, title: str) -> Table:
    """The table and its narrower forms with some rows, and a row for the others behind the worst ones."""
    gap = ["…", *[""] * (len(table.columns) - 1)]
    rows = [table.rows[row] for row in shown]
    columns = [
        column if any("[" in row[place] for row in rows)
        else replace(column, heading=column.heading.removesuffix(OF_INTERVAL))
        for place, column in enumerate(table.columns)
    ]  # fmt: skip
    return replace(
        table,
        title=title,
        columns=columns,
        rows=[*rows[:worst], gap, *rows[worst:]],
        marked=frozenset(at + (at >= worst) for at, row in enumerate(shown) if row in table.marked),
        narrow=table.narrow and _with_rows(table.narrow, shown, worst, title),
        ranking=None,
    )


def _rooms(sizes: Sequence[int], most: int) -> list[int]:
    """Each table's number of rows within `most`: all, or an equal share of the rest."""
    rooms = [0] * len(sizes)
    smallest_first = sorted(range(len(sizes)), key=lambda table: sizes[table])
    for place, table in enumerate(smallest_first):
        share = max(_FEWEST_ROWS, (most - sum(rooms)) // (len(sizes) - place))
        rooms[table] = min(sizes[table], share)
    return rooms


def _how_many(number_of: int) -> str:
    return "" if number_of == 1 else f"{number_of} "
