"""Cells of studies as crosswind-cell sees them, for tests: every default filled in."""

from conftest import missing, requires_binary
from crosswind.cell.check import CheckedCell, check_study
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.plan import Plan, PlanItem
from crosswind.study.resolve import resolve


def checked(study: Study) -> tuple[CheckedCell, ...]:
    """Every cell of a study; the test ends where this machine lacks what its optional peers need."""
    for lacks in () if study.circumstances else study.on_this_machine().left_out:
        missing(lacks)
    return check_study(study, binary=requires_binary())


def adhoc(kind: str, **options: object) -> Study:
    """A study of options: `transport=...` is workload.transport, `path__delay=...` path.delay."""
    keys = {key.replace("__", ".") if "__" in key else f"workload.{key}": value for key, value in options.items()}
    return Study.adhoc(kind, keys)


def only_cell(kind: str, **options: object) -> CheckedCell:
    """The one cell of a study of options."""
    (cell,) = checked(adhoc(kind, **options))
    return cell


def only_item(study: Study) -> PlanItem:
    """The one run of a study."""
    (item,) = Plan.of(study).items
    return item


def delays_ns(cell: Cell) -> dict[str, object]:
    """The delay of each direction that has one."""
    groups = resolve(cell.settings)
    return {group: setting.value for group in groups for setting in groups[group] if setting.key.name == "delay_ns"}
