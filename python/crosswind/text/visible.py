"""Characters that a reader does not see, or that change how what follows is read: they are shown as what they are.

Who writes a title, a program's output or a host's name could otherwise ring a bell, move the cursor, or have text on a
page or a terminal run backwards.
"""

import re

_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # Controls, but for tab and line feed.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Marks, embeddings, overrides and isolates of direction.
    "\u2028\u2029"  # Separators of lines and paragraphs.
    "\ud800-\udfff"  # Halves of pairs: bytes of a path that are no UTF-8.
    "]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def visible(text: str, *, backslash: str = "\\") -> str:
    r"""The text with such characters as escapes: `\u202e`. Args: backslash: how the text's format writes one."""
    return _HIDDEN.sub(lambda match: f"{backslash}u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    """The same with line feeds as escapes, too: what strangers say becomes no line of its own."""
    return visible(text).replace("\n", "\\u000a")


def hidden_in(text: str) -> str | None:
    """The first such character of a text, as U+202E; None without one."""
    return _first(_HIDDEN, text)


def no_utf8_in(text: str) -> str | None:
    """The same of what cannot be written as UTF-8, as other bytes of a path or of a word of a command line."""
    return _first(_SURROGATE, text)


def _first(characters: re.Pattern[str], text: str) -> str | None:
    character = characters.search(text)
    return f"U+{ord(character[0]):04X}" if character else None
