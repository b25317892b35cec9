"""What exchanges spend their time on: the groups that reports show, of the parts that cells tell (docs/explain.md).

A group is a metric: its formula is the sum of its parts, so that the groups of an exchange sum to its whole time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crosswind.catalog import catalog

WHOLE = "spent"
"""The metric for the whole time."""

GROUPS = catalog().spent_groups
"""Every group, in the order of charts."""


@dataclass(frozen=True)
class Change:
    """A limit's absence.

    Attributes: name: of its column, without `_ns`. parts: the limit's. told: in a sentence. share: of the parts' time
    that it would save, if nothing else limited.
    """

    name: str
    parts: tuple[str, ...]
    told: str
    share: float = 1.0


_PARTS = {group.name: group.parts for group in GROUPS}

CHANGES = (
    Change("without_loss", _PARTS["recovery"], "without its losses"),
    # Windows of HTTP/2 and programs that do not read have no model.
    Change("without_receive_window", ("receive_window",), "without the receiver's window"),
    Change("without_send_buffer", _PARTS["send_buffer"], "with a larger send buffer"),
    Change("at_twice_the_rate", _PARTS["link"], "at twice the link's rate", share=0.5),
)
"""Every change with a model of what it saves (docs/explain.md)."""

AFTER_LOSS = tuple(part for group in GROUPS if group.name == "recovery" for part in group.parts if part != "syn_timer")
"""Parts behind a lost packet of an exchange. A SYN belongs to none."""

TAKES = "that takes the emulator, exchanges that succeed, a cell whose packets can be kept, and no --no-parts"
"""The hint for cells without a breakdown."""

NOT_KEPT = "the run was started with --no-parts: run it again without"
"""The same where nobody wanted to know."""


def changed_of(rows: Iterable[Mapping[str, int]], number: str) -> dict[int, dict[str, int]]:
    """Times without each limit, in ns, by exchange or connection. Args: number: the column with its number."""
    return {row[number]: {change.name: row[f"{change.name}_ns"] for change in CHANGES} for row in rows}
