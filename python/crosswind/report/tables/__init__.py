"""The tables of a report, in their order. Each module declares what its tables show and where (Shown)."""

from collections.abc import Callable

from crosswind.analysis.result import Result
from crosswind.report.tables.comparisons import comparison_tables
from crosswind.report.tables.costs import drop_tables, processor_tables, wire_tables
from crosswind.report.tables.ends import end_tables
from crosswind.report.tables.metrics import metric_tables
from crosswind.report.tables.models import model_error_tables, model_tables
from crosswind.report.tables.network import retransmission_tables
from crosswind.report.tables.outcomes import outcome_tables
from crosswind.report.tables.precision import precision_tables
from crosswind.report.tables.profiles import profile_tables
from crosswind.report.tables.programs import program_tables
from crosswind.report.tables.table import Table
from crosswind.report.tables.trust import trust_tables

__all__ = [
    "AFTER_METRICS",
    "BEFORE_METRICS",
    "comparison_tables",
    "metric_tables",
    "model_tables",
    "profile_tables",
]

BEFORE_METRICS: tuple[Callable[[Result], list[Table]], ...] = (
    model_error_tables,
    precision_tables,
    profile_tables,
    program_tables,
)
"""What only some studies ask for, and therefore comes first."""

AFTER_METRICS: tuple[Callable[[Result], list[Table]], ...] = (
    outcome_tables,
    end_tables,
    retransmission_tables,
    model_tables,
    drop_tables,
    wire_tables,
    processor_tables,
    comparison_tables,
    trust_tables,
)
