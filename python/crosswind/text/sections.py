"""Generated sections in a page: between `<!-- KIND: NAME -->` and `<!-- end -->`."""

import re
from collections.abc import Callable, Mapping


def fill_sections(page: str, kind: str, contents: Mapping[str, Callable[[], str]]) -> str:
    """Rewrites a page's sections of one kind by name from `contents`. Everything else stays.

    Raises: KeyError for a section missing in `contents`.
    """
    section = re.compile(rf"(<!-- {re.escape(kind)}: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return section.sub(lambda match: f"{match[1]}{contents[match['name']]()}{match[3]}", page)
