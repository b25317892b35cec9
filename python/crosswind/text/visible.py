"""Shows invisible and direction-changing characters as escapes.

A title's author, a program's output or a host's name could otherwise ring a bell, move the cursor, or have text on a
page or a terminal run backwards.
"""

import re

_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # Controls, but for tab and line feed.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Direction marks, embeddings, overrides and isolates.
    "\u2028\u2029"  # Line and paragraph separators.
    "\ud800-\udfff"  # Lone surrogates: path bytes outside UTF-8.
    "]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def visible(text: str, *, backslash: str = "\\") -> str:
    r"""The text with such characters as escapes: `\u202e`. Args: backslash: how the text's format writes one."""
    return _HIDDEN.sub(lambda match: f"{backslash}u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    """The same with line feeds as escapes, too: foreign text starts no line."""
    return visible(text).replace("\n", "\\u000a")


def hidden_in(text: str) -> str | None:
    """The first such character of a text, as U+202E; None without one."""
    return _first(_HIDDEN, text)


def no_utf8_in(text: str) -> str | None:
    """The same for text outside UTF-8, as other bytes in a path or a command-line word."""
    return _first(_SURROGATE, text)


def _first(characters: re.Pattern[str], text: str) -> str | None:
    character = characters.search(text)
    return f"U+{ord(character[0]):04X}" if character else None
