"""What models expect of the loss and the round-trip time that TCP has seen of a real network, in sentences."""

from crosswind.analysis.result import CellResult, ModelPrediction, Result
from crosswind.report.text.format import levels, percent, quantity

_MOST_CELLS = 3


def inferred_sentences(result: Result) -> list[str]:
    """A sentence for each of the first cells; none where nothing ran over a real network or no model is asked."""
    if result.conditions is None or result.conditions.network is None:
        return []
    said = [sentence for cell in result.cells if (sentence := _of_cell(cell)) is not None]
    more = len(said) - _MOST_CELLS
    return [*said[:_MOST_CELLS], *([f"{more} more cells have model predictions."] if more > 0 else [])]


def _of_cell(cell: CellResult) -> str | None:
    expected = [f"{_short(model)} expects {quantity(model.value, model.unit)}" for model in cell.models if model.value]
    if not expected:
        return None
    first = cell.models[0]
    trip_s = first.inputs.get("rtt_s")
    trip = f" and {quantity(1e9 * trip_s, 'ns')} round trip, both" if trip_s else ","
    measured = first.measured.value if first.measured else None
    beside = f"; measured: {quantity(measured, first.unit)}" if measured is not None else ""
    name = f"{levels(cell.levels)}: of" if cell.levels else "Of"
    return f"{name} {percent(first.inputs['loss'])} loss{trip} inferred from TCP, {', '.join(expected)}{beside}."


def _short(model: ModelPrediction) -> str:
    """Its name as a word: "Mathis" of "Mathis, C = sqrt(3/2)"."""
    return model.title.partition(",")[0]
