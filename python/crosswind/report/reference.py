"""Generated tables in docs/result.md, from the rows in `crosswind.catalog.metrics` and from the catalogue.

    python -m crosswind.report.reference docs/result.md

rewrites them between their markers, `<!-- table: NAME -->` and `<!-- end -->`. The rest is handwritten.
"""

from collections.abc import Callable, Iterable, Mapping

from crosswind.catalog import SampleColumn, catalog
from crosswind.catalog.metrics import METRICS, STATISTICS, Per
from crosswind.text.quantities import UNITS
from crosswind.text.sections import fill_sections, rewrite, table_of

_PER = {
    Per.EXCHANGE: "exchange",
    Per.REPETITION: "repetition",
    Per.COUNTED: "repetition",
    Per.MESSAGE: "repetition, by message",
    Per.REPORTED: "time that the client printed",
}


def with_tables(page: str) -> str:
    """A page with the tables between its markers rewritten. Raises: KeyError for an unknown table."""
    return fill_sections(page, "table", TABLES)


def metrics_table() -> str:
    """Every metric: its workloads, its values' subject, and its formula."""
    rows = [
        (f"`{name}`", metric.of_workloads, metric.unit.name, _PER[metric.per], metric.help, f"`{metric.formula}`")
        for name, metric in METRICS.items()
    ]
    return table_of(("metric", "workload", "unit", "a value for each", "is", "computed as"), rows)


def statistics_table() -> str:
    """Every statistic, and how its interval is made."""
    rows = [(f"`{statistic.name}`", statistic.help, statistic.method) for statistic in STATISTICS.values()]
    return table_of(("statistic", "is", "interval, usually"), rows)


def units_table() -> str:
    """Every result unit, and the units allowed for a published number."""
    rows = [(f"`{unit.name}`", ", ".join(f"`{scale}`" for scale in unit.scales)) for unit in UNITS.values()]
    return table_of(("unit in results", "published numbers in"), rows)


def columns_table(columns: Iterable[SampleColumn]) -> str:
    """Every column in a cell's table."""
    return table_of(("column", "type", "is"), ((f"`{column.name}`", _type(column), column.help) for column in columns))


def _type(column: SampleColumn) -> str:
    return f"{column.type}, or null" if column.nullable else str(column.type)


TABLES: Mapping[str, Callable[[], str]] = {
    "metrics": metrics_table,
    "statistics": statistics_table,
    "units": units_table,
    "samples": lambda: columns_table(catalog().samples),
    "objects": lambda: columns_table(catalog().objects),
    "packets": lambda: columns_table(catalog().packets),
    "spent": lambda: columns_table(catalog().spent),
    "pieces": lambda: columns_table(catalog().pieces),
    "limits": lambda: columns_table(catalog().limits),
    "tcp": lambda: columns_table(catalog().tcp),
    "connections": lambda: columns_table(catalog().connections),
    "connection_parts": lambda: columns_table(catalog().connection_parts),
    "connection_pieces": lambda: columns_table(catalog().connection_pieces),
}
"""Every table by the name in its marker."""


if __name__ == "__main__":
    rewrite(with_tables)
