"""A report's table: rows of text under columns, for terminal and page alike."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from crosswind.analysis.result import CellResult
from crosswind.report.text.format import NOTHING, count_range, factor_names, levels

_COUNT = re.compile(r"(?<![\w.])(\d+)(?= (?!(?:to|and) \d)[a-z])")
"""A number of things: "31 stacks", not "repetitions 3 to 5", nor "status 1: ..."."""


OF_INTERVAL = " [95 %]"
"""Appended to the heading of a column with intervals."""


class ColumnKind(Enum):
    """A column's content."""

    NAME = "name"
    """The row's subject. These columns come first."""
    NUMBER = "number"
    WORD = "word"
    SENTENCE = "sentence"


@dataclass(frozen=True)
class Column:
    """A column: its heading and its kind."""

    heading: str
    kind: ColumnKind


def names(*headings: str) -> list[Column]:
    """Columns for a row's subject."""
    return [Column(heading, ColumnKind.NAME) for heading in headings]


def numbers(*headings: str) -> list[Column]:
    """Number columns."""
    return [Column(heading, ColumnKind.NUMBER) for heading in headings]


def words(*headings: str) -> list[Column]:
    """Columns with single words, such as verdicts."""
    return [Column(heading, ColumnKind.WORD) for heading in headings]


def sentences(*headings: str) -> list[Column]:
    """Columns with long text."""
    return [Column(heading, ColumnKind.SENTENCE) for heading in headings]


class Shown(Enum):
    """The renderers of a table, a sentence or a term: HTML, a terminal, or both. JSON has all."""

    EVERYWHERE = "everywhere"
    ASIDE = "aside"
    """On a terminal, and in HTML folded away."""
    FOLDED = "folded"
    """In HTML alone, folded away."""
    HTML = "html"
    """In HTML alone."""
    TERMINAL = "terminal"
    """On a terminal alone."""

    @property
    def on_terminal(self) -> bool:
        """Whether a terminal shows it."""
        return self in (Shown.EVERYWHERE, Shown.ASIDE, Shown.TERMINAL)

    @property
    def in_html(self) -> bool:
        """Whether HTML shows it."""
        return self is not Shown.TERMINAL


@dataclass(frozen=True)
class Ranking:
    """A table's rows from the worst to the best, and their full number.

    Omitted ones stand in the middle, behind the first half of `worst_first`.
    """

    worst_first: Sequence[int]
    total: int


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        marked: rows with invalid or worse cells. better: rows with better cells.
        footnotes: sentences below it: methods, and reasons for absent numbers.
        narrow: the same with fewer or shorter columns; it may have a narrower form itself.
        help: its numbers' meaning, printed above it in HTML. shown: where. links: by row: texts and addresses, an own
            column in HTML. ranking: for cutting to the worst and best rows.
    """

    title: str
    columns: list[Column]
    rows: list[list[str]]
    marked: frozenset[int] = frozenset()
    footnotes: list[str] = field(default_factory=list)
    narrow: "Table | None" = None
    help: str = ""
    shown: Shown = Shown.EVERYWHERE
    links: Mapping[int, Sequence[tuple[str, str]]] = field(default_factory=dict)
    ranking: Ranking | None = None
    better: frozenset[int] = frozenset()

    @property
    def headings(self) -> list[str]:
        """Its columns' headings."""
        return [column.heading for column in self.columns]

    @property
    def name_columns(self) -> int:
        """The number of leading columns for a row's subject."""
        return sum(column.kind is ColumnKind.NAME for column in self.columns)


@dataclass(frozen=True)
class CellNames:
    """How the rows of a table name their cells: by a column for each factor, or by all levels in one column."""

    factors: tuple[str, ...]

    @classmethod
    def of(cls, cells: Iterable[CellResult]) -> "CellNames":
        """Some cells' factors, ordered by the first cell with each."""
        return cls(tuple(dict.fromkeys(key for cell in cells for key in cell.levels)))

    @property
    def columns(self) -> list[Column]:
        """A column for each factor."""
        return names(*self._headings)

    @property
    def joined(self) -> list[Column]:
        """One column for all factors."""
        return names(" · ".join(self._headings))

    def row(self, cell: CellResult) -> list[str]:
        """A cell's level for each factor."""
        return [cell.levels.get(key, NOTHING) for key in self.factors] or [levels(cell.levels)]

    @property
    def _headings(self) -> list[str]:
        short = factor_names(self.factors)
        return [short[key] for key in self.factors] or ["cell"]


Form = tuple[Sequence[Column], Iterable[Sequence[str]]]
"""A table's columns behind those for its cells, and each cell's texts in them."""


def cell_table(
    title: str,
    cells: Sequence[CellResult],
    form: Form,
    notes: Sequence[str] = (),
    *,
    narrow: Sequence[Form] = (),
    help: str = "",  # noqa: A002 -- the attribute's name
    shown: Shown = Shown.EVERYWHERE,
    named_by: Sequence[CellResult] | None = None,
) -> Table:
    """A table with a row for each cell, and its narrower forms, ever narrower: these have one column for all factors.

    Args: cells: of each row; one may have several. named_by: cells with all factors, where the rows have fewer.
    """
    naming, marked, footnotes = CellNames.of(cells), invalid_rows(cells), list(notes)
    narrower: Table | None = None
    for columns, texts in reversed(narrow):
        rows = [[levels(cell.levels), *row] for cell, row in zip(cells, texts, strict=True)]
        narrower = Table(title, [*naming.joined, *columns], rows, marked, footnotes, narrower)
    naming = naming if named_by is None else CellNames.of(named_by)
    rows = [[*naming.row(cell), *row] for cell, row in zip(cells, form[1], strict=True)]
    return Table(title, [*naming.columns, *form[0]], rows, marked, footnotes, narrower, help, shown)


def invalid_rows(cells: Sequence[CellResult]) -> frozenset[int]:
    """Rows with invalid cells, in a table with a row for each cell."""
    return frozenset(row for row, cell in enumerate(cells) if not cell.valid)


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """For each text its subjects' names, each once and in order."""
    groups: dict[str, dict[str, None]] = {}
    for text, name in pairs:
        groups.setdefault(text, {})[name] = None
    return {text: list(group) for text, group in groups.items()}


def grouped_by_wording(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """As `grouped`, merging texts with different counts only: "the profile rests on only 31 to 78 stacks"."""
    alike: dict[tuple[str, ...], list[tuple[list[str], str]]] = {}
    for text, name in pairs:
        parts = _COUNT.split(text)
        alike.setdefault(tuple(parts[::2]), []).append((parts[1::2], name))
    texts = {wording: _with_ranges(wording, [counts for counts, _ in members]) for wording, members in alike.items()}
    return grouped((texts[wording], name) for wording, members in alike.items() for _, name in members)


def _with_ranges(wording: Sequence[str], counts: Sequence[Sequence[str]]) -> str:
    ranges = [count_range(map(int, column)) for column in zip(*counts, strict=True)]
    return "".join(part for pair in zip(wording, [*ranges, ""], strict=True) for part in pair)


def replaced(text: str, shorter: Mapping[str, str]) -> str:
    """A text with some words replaced, for narrow tables."""
    for long, short in shorter.items():
        text = text.replace(long, short)
    return text
