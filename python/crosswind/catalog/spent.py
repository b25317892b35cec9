"""What exchanges spend their time on: the groups that reports show, of the parts that cells tell (docs/explain.md).

A group is a metric: its formula is the sum of its parts, so that the groups of an exchange sum to its whole time.
"""

from crosswind.catalog import catalog

WHOLE = "spent"
"""The metric for the whole time."""

GROUPS = catalog().spent_groups
"""Every group, in the order of charts."""

AFTER_LOSS = tuple(part for group in GROUPS if group.name == "recovery" for part in group.parts if part != "syn_timer")
"""Parts behind a lost packet of an exchange. A SYN belongs to none."""

TAKES = "that takes the emulator, exchanges that succeed, a cell whose packets can be kept, and no --no-parts"
"""The hint for cells without a breakdown."""

NOT_KEPT = "the run was started with --no-parts: run it again without"
"""The same where nobody wanted to know."""
