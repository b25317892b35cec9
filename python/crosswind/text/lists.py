"""Names in a sentence, and its first letter."""

from collections.abc import Sequence


def listed(texts: Sequence[str], last: str = "and") -> str:
    """As "a, b and c". Args: last: the word before the last one."""
    return f" {last} ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def begun(text: str) -> str:
    """A clause as the beginning of a sentence."""
    return text[:1].upper() + text[1:]
