"""What the absence of a limit would save, in a sentence: another limit may lie behind it."""

from collections.abc import Mapping

from crosswind.catalog.spent import CHANGES
from crosswind.report.text.format import quantity

_SMALL = 0.05
"""Share of the whole up to which the limit's own time tells enough."""
_LARGE = 0.1
"""Share of the whole from which a limit is worth a change."""


def changed_text(whole_ns: int, parts: Mapping[str, int], changed: Mapping[str, int]) -> str:
    """Words for an exchange or a connection without its largest limit; empty where the limit's own time tells as much.

    Args: parts: ns by part. changed: ns by change, where a model knows them.
    """
    saves = {change: change.share * sum(parts.get(part, 0) for part in change.parts) for change in CHANGES}
    largest, saved = max(saves.items(), key=lambda it: it[1])
    if largest.name not in changed or saved < _LARGE * whole_ns:
        return ""
    without = changed[largest.name]
    if abs(whole_ns - saved - without) <= _SMALL * whole_ns:
        return ""
    behind = ": another limit lies behind it" if without > whole_ns - saved else ""
    time = "as long" if without >= (1 - _SMALL) * whole_ns else f"about {quantity(without, 'ns')}"
    return f"{largest.told} it would take {time}, by a model{behind}"
