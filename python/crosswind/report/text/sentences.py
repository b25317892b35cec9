"""Texts of a study or of the statistics as sentences, and what distinguishes cells."""

from collections.abc import Iterable, Mapping

_LOWER_CASE = ("bbr", "cubic", "reno", "tcp", "quic", "http", "websocket")
"""Names that stay as they are at the beginning of a sentence."""


def sentence(text: str) -> str:
    """A text as a sentence: with a capital, unless it begins with a name that has none, and a full stop."""
    first = text.split(" ", 1)[0].rstrip(",:")
    begun = text if not first.isalpha() or first in _LOWER_CASE else text[:1].upper() + text[1:]
    return begun if begun.endswith((".", "?", "!", "”")) else f"{begun}."


def varied_levels(of_cells: Iterable[Mapping[str, str]]) -> list[str]:
    """The factors in whose levels some cells differ, for the others tell none of them from another; all if none do."""
    levels: dict[str, set[str | None]] = {}
    known = list(of_cells)
    for key in dict.fromkeys(key for of_cell in known for key in of_cell):
        levels[key] = {of_cell.get(key) for of_cell in known}
    return [key for key, levels_of in levels.items() if len(levels_of) > 1] or list(levels)
