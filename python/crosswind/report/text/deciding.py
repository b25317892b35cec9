"""The number of repetitions needed to decide, in words: rounded once, the same everywhere."""

from crosswind.report.text.format import count, count_of

MOST_REPETITIONS = 10_000
"""Maximum number of repetitions in a sentence; beyond, none is given."""


def rounded(repetitions: int) -> int:
    """A number of repetitions as exactly as it is known: up to 20 all digits, then the next 5, 10, 50, ..."""
    step = 1
    for limit, of_limit in ((20, 5), (50, 10), (200, 50), (1000, 100), (5000, 1000)):
        if repetitions > limit:
            step = of_limit
    return -(-repetitions // step) * step


def about_more(more: int, noun: str = "repetition") -> str:
    """As "about 20 more repetitions"; without a number above MOST_REPETITIONS. Args: more: at least 1."""
    if more > MOST_REPETITIONS:
        return f"over {count(MOST_REPETITIONS)} more {noun}s"
    return f"about {count_of(rounded(more), f'more {noun}')}"
