"""The cell with the smallest median."""

from crosswind.decisions.model import ResultModel
from crosswind.findings.judged import Context, Judging
from crosswind.report.text.format import levels


class FastestCell(ResultModel):
    """A toy's cell. sentence: it in words."""

    cell: int
    sentence: str


def fastest_of(context: Context) -> list[FastestCell]:
    """The fastest cell of every toy."""
    found = []
    for asked in context.record.asked.get("toy", ()):
        own = [cell for cell in context.cells if asked["metric"] in cell.estimates]
        first = min(own, key=lambda cell: cell.estimates[asked["metric"]].smallest)
        found.append(FastestCell(cell=first.cell, sentence=f"The fastest cell is {levels(first.levels)}."))
    return found


JUDGING = Judging("toy", "toys", FastestCell, fastest_of)
