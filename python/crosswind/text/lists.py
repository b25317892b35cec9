"""Names in a sentence."""

from collections.abc import Sequence


def listed(texts: Sequence[str]) -> str:
    """As "a, b and c"."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
