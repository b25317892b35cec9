"""What charts of effects and of wide ranges show: labels, the reach of axes, one unit, published numbers."""

from dataclasses import replace

from crosswind.catalog.metrics import METRICS
from crosswind.report.charts.forest import ForestRow, cut_note, ratio_forest


def data_of(specification: dict) -> list[dict]:
    return [row for table in specification["datasets"].values() for row in table]


def row(value: float, low: float, high: float) -> ForestRow:
    return ForestRow("b / a", value, low, high, "", 10, "larger", "mean")


def test_a_ratio_of_almost_nothing_does_not_stretch_the_axis_without_end() -> None:
    shown = [row(1e-7, 1e-7, 1e-7)]
    (drawn,) = (each for each in data_of(ratio_forest(shown, METRICS["rtt"])) if "verdict" in each)
    assert (drawn["value"], cut_note(shown) != "") == (1e-5, True)


def test_verdicts_have_colours_of_their_own() -> None:
    verdicts = ["larger", "smaller", "not enough repetitions", "no difference shown"]
    shown = [replace(row(2, 1, 3), comparison=verdict, verdict=verdict) for verdict in verdicts]
    layers = ratio_forest(shown, METRICS["rtt"])["layer"]
    (scale,) = {repr(layer["encoding"]["color"]["scale"]["range"]) for layer in layers if "color" in layer["encoding"]}
    assert len(set(scale.split(","))) == len(verdicts)
