"""Generated sections in a page: between `<!-- KIND: NAME -->` and `<!-- end -->`."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path


def fill_sections(page: str, kind: str, contents: Mapping[str, Callable[[], str]]) -> str:
    """Rewrites a page's sections of one kind by name from `contents`. Everything else stays.

    Raises: KeyError for a section missing in `contents`.
    """
    section = re.compile(rf"(<!-- {re.escape(kind)}: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return section.sub(lambda match: f"{match[1]}{contents[match['name']]()}{match[3]}", page)


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in a page. Args: rows: each with a text for every heading."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def rewrite(filled: Callable[[str], str]) -> None:
    """Rewrites the page named on the command line. Args: filled: its sections."""
    file = Path(sys.argv[1])
    file.write_text(filled(file.read_text(encoding="utf-8")), encoding="utf-8")
