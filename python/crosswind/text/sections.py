"""Sections of a page that a program writes: what is between `<!-- KIND: NAME -->` and `<!-- end -->`."""

import re
from collections.abc import Callable, Mapping


def fill_sections(page: str, kind: str, contents: Mapping[str, Callable[[], str]]) -> str:
    """A page with each section of a kind written anew, by what its name has in `contents`. Everything else stays.

    Raises: KeyError for a section that `contents` does not have.
    """
    section = re.compile(rf"(<!-- {re.escape(kind)}: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return section.sub(lambda match: f"{match[1]}{contents[match['name']]()}{match[3]}", page)
