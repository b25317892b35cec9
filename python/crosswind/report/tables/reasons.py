"""Reasons for absent intervals: each once, and one sentence for those with different numbers only."""

import re
from collections.abc import Iterable, Iterator, Mapping

from crosswind.report.tables.table import grouped
from crosswind.report.text.format import count_range

_SHORTAGE = re.compile(r"(?P<what>.+) needs (?P<needed>\d+) repetitions, there (?:is|are) (?P<units>\d+): \d+ more")
"""The message from `crosswind.stats.design` for too few repetitions."""
_INTERVAL = re.compile(
    r"an interval of (?P<what>.+) needs (?P<needed>[\d\u202f to]+) repetitions, "
    r"there (?:is|are) (?P<units>[^:]+)(?:: .+)?"
)


def merged_reasons(reasons: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """For each reason, as a clause, its subjects' names.

    Shortages of one kind are one: "an interval of p95 needs 20 to 110 repetitions, there are 5 to 20".
    """
    known = list(reasons)
    kinds: dict[str, set[tuple[int, int]]] = {}
    for reason, _ in known:
        if match := _SHORTAGE.fullmatch(reason):
            kinds.setdefault(match["what"], set()).add((int(match["needed"]), int(match["units"])))
    return grouped((_with_ranges(reason, kinds), name) for reason, name in known)


def merged_by_cells(reasons: Mapping[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Shortages of the same cells as one: "6 repetitions are too few for intervals: the median needs 14, p95 needs 20".

    Args: reasons: as `merged` has them.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for reason, cells in reasons.items():
        match = _INTERVAL.fullmatch(reason)
        groups.setdefault((match["units"] if match else reason, tuple(cells)), []).append(reason)
    for (units, names), own in groups.items():
        if len(own) == 1:
            yield own[0], list(names)
            continue
        parts = [f"{match['what']} needs {match['needed']}" for reason in own if (match := _INTERVAL.fullmatch(reason))]
        few = "1 repetition is" if units == "1" else f"{units} repetitions are"
        yield f"{few} too few for intervals: {', '.join(parts)}", list(names)


def _with_ranges(reason: str, kinds: dict[str, set[tuple[int, int]]]) -> str:
    match = _SHORTAGE.fullmatch(reason)
    if match is None:
        return reason
    numbers = kinds[match["what"]]
    needed, units = (count_range(of) for of in zip(*numbers, strict=True))
    are = "is" if units == "1" else "are"
    more = f": {count_range([min(numbers)[0] - min(numbers)[1]])} more" if len(numbers) == 1 else ""
    return f"{match['what']} needs {needed} repetitions, there {are} {units}{more}"
