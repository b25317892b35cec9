"""Docstrings and comments of each room use nouns, not relative clauses: few relative pronouns, few "of"."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT

ROOMS = sorted(path for path in (ROOT / "python/crosswind").iterdir() if any(path.rglob("*.py")))
# Relative pronouns and "of", each per 100 words.
MOST_PRONOUNS, MOST_OFS = 2.0, 3.0
# As words, whatever their part of speech: no cheap rule tells "that" the conjunction from "that" the pronoun.
PRONOUN = re.compile(r"\b(?:that|which|what|who|whom|whose)\b", re.IGNORECASE)
OF = re.compile(r"\bof\b", re.IGNORECASE)
WORD = re.compile(r"[a-z][\w'-]*", re.IGNORECASE)
CODE = re.compile(r"^ *(?:>>>|\.\.\.) .*$|``[^`]*``|`[^`]*`", re.MULTILINE)


def prose(source: str) -> Iterator[str]:
    """Docstrings and comments, without code and examples."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield CODE.sub(" ", node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield CODE.sub(" ", token.string)


def per_100_words(texts: list[str]) -> tuple[float, float]:
    """Relative pronouns and "of", to one decimal."""
    words, pronouns, ofs = (sum(len(kind.findall(text)) for text in texts) for kind in (WORD, PRONOUN, OF))
    return round(100 * pronouns / words, 1), round(100 * ofs / words, 1)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_docstrings_and_comments_use_nouns(room: Path) -> None:
    pronouns, ofs = per_100_words([text for path in room.rglob("*.py") for text in prose(path.read_text())])
    assert pronouns <= MOST_PRONOUNS, "relative pronouns per 100 words: name the thing by its noun"
    assert ofs <= MOST_OFS, '"of" per 100 words: put the noun before the other one'


def test_prose_is_docstrings_and_comments_without_code() -> None:
    source = '"""Bytes of `what` a link that is slow lost.\n\n>>> whose(of)\n"""\nwho = "of"  # which\n'
    texts = list(prose(source))
    assert per_100_words(texts) == (round(200 / 9, 1), round(100 / 9, 1))
