"""The charts' common style: colours, axes, and their form as one view, wrapped and shrunk by a page.

The first eight colours are Okabe and Ito's, distinguishable for colour-blind readers, the blue lightened to show on a
dark page too; the others are for factors with many levels. A second factor is shown by dashes.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import altair as alt

from crosswind.catalog.metrics import Metric, MetricScale, are_far_apart
from crosswind.report.text.format import quantity
from crosswind.text.quantities import TIME, Unit

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Specification = dict[str, Any]
"""A chart in Vega-Lite's JSON."""

PALETTE = [
    "#2A82C4", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#A6761D",
    "#7B5EA7", "#8A9A2B", "#B5304A", "#2FA8A0", "#5C6BC0", "#B0795A", "#4E8F3A", "#C05FC9",
]  # fmt: skip
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
GREY = "#888888"
LOG_LABELS = ",~r"
"""The labels of a logarithmic axis: all digits, grouped, without zeros at the end."""
LOG_TICKS = 8
"""Of a logarithmic axis: with fewer, one within a decade would have two or three."""
_IS_POWER_OF_TEN = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-9"
"""Of a tick: its line across the chart is drawn in full, those between are faint."""
LEAST_TIME_NS = 1000.0
"""Shorter times are drawn at this one on a logarithmic axis: in virtual time, without processor time, a time may be
a few ns, and would take most of the axis."""
LOG_SPREAD = 20
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


def is_log(values: Iterable[float], unit: Unit, kind: MetricScale = MetricScale.AUTOMATIC) -> bool:
    """Whether an axis for some values is logarithmic."""
    if kind is MetricScale.AUTOMATIC:
        return are_far_apart(values, LOG_SPREAD, unit)
    return kind is MetricScale.LOGARITHMIC and min(values) > 0


def least_drawn(metric: Metric) -> float:
    """Where a logarithmic axis of a metric begins at the latest, in the metric's unit."""
    return LEAST_TIME_NS if metric.unit is TIME else 0.0


def below_edge(least: float) -> str:
    """The note on marks below a time axis's minimum."""
    return f"Values below {quantity(least, TIME.name)} are drawn at the edge."


def scale_type(*, log: bool) -> Literal["log", "linear"]:
    """Vega-Lite's name for a scale."""
    return "log" if log else "linear"


def axis(*, log: bool) -> alt.Axis:
    """An axis with some six ticks, and labels at a distance and without exponents."""
    apart: dict[str, Any] = {"labelOverlap": "greedy", "labelSeparation": 8}
    if not log:
        return alt.Axis(tickCount=6, **apart)
    between = {"condition": {"test": _IS_POWER_OF_TEN, "value": 1}, "value": 0.3}
    return alt.Axis(
        **apart,
        labelBound=10,
        format=LOG_LABELS,
        tickCount=LOG_TICKS,
        gridOpacity=between,
    )


@dataclass(frozen=True)
class Along:
    """An axis with numbers, and its fields' places along it."""

    title: str
    scale: alt.Scale
    log: bool = False

    @classmethod
    def of(cls, title: str, *, log: bool, **scale: Any) -> "Along":
        """Args: title: without its scale. scale: as of alt.Scale."""
        return cls(f"{title}{', log scale' if log else ''}", alt.Scale(type=scale_type(log=log), **scale), log)

    def x(self, field: str) -> alt.X:
        """A field across."""
        return alt.X(f"{field}:Q", title=self.title, scale=self.scale, axis=axis(log=self.log))

    def y(self, field: str) -> alt.Y:
        """A field upwards."""
        return alt.Y(f"{field}:Q", title=self.title, scale=self.scale, axis=axis(log=self.log))


def colour_of(
    field: str, colours: Mapping[str, str], *, shown: Collection[str] | None = None, **legend: Any
) -> alt.Color:
    """Each value's colour, with a legend above the chart.

    Args: shown: the chart's values; None for all. A single one has no legend. legend: as of alt.Legend.
    """
    chosen = {value: colour for value, colour in colours.items() if shown is None or value in shown}
    scale = alt.Scale(domain=list(chosen), range=list(chosen.values()))
    is_needed = shown is None or len(chosen) > 1
    return alt.Color(
        f"{field}:N", scale=scale, legend=alt.Legend(title=None, orient="top", **legend) if is_needed else None
    )


def tips(*fields: str) -> list[alt.Tooltip]:
    """What a mark says of itself: fields, as words unless their kind is given ("n:Q")."""
    return [alt.Tooltip(field if ":" in field else f"{field}:N") for field in fields]


def dash_by_model(titles: Iterable[str]) -> alt.StrokeDash:
    """The dash of the field `model`: one for each model, with a legend; the unbroken line comes last."""
    domain = list(dict.fromkeys(titles))
    scale = alt.Scale(domain=domain, range=(DASHES[1:] + DASHES[:1])[: len(domain)])
    legend = alt.Legend(title="model", orient="bottom", columns=2, symbolStrokeColor=GREY, symbolType="stroke")
    return alt.StrokeDash("model:N", scale=scale, legend=legend)


def inline(rows: "Iterable[DataclassInstance]") -> alt.InlineData:
    """Rows as a chart's data: a field for each attribute other than None.

    As text, passed through by Altair; lists are copied at each step in making a chart.
    """
    shown = [{name: value for name, value in vars(row).items() if value is not None} for row in rows]
    return alt.InlineData(values=json.dumps(shown, ensure_ascii=False))


def specification(drawing: alt.Chart | Sequence[alt.Chart], height: int) -> Specification:
    """A chart's specification, as wide as its place and `height` pixels high; its rows are in `datasets`, each once.

    Args: drawing: a chart, or layers above each other, the lowest one first. Altair's own layers are copied many times
        during composition, an eighth of the time for a report on 400 cells.
    """
    made = _specified(drawing) if isinstance(drawing, alt.Chart) else _layered([_specified(layer) for layer in drawing])
    rows = {name: json.loads(text) for name, text in made.pop("datasets").items()}
    return {"width": "container", "height": height, **made, "datasets": rows}


def _specified(chart: alt.Chart) -> Specification:
    """One chart's specification, without the page's common configuration, and without anything like a link."""
    made: Specification = chart.to_dict(validate=False)
    return {key: part for key, part in made.items() if key not in ("$schema", "config")}


def _layered(layers: Sequence[Specification]) -> Specification:
    """Layers as one view, with their shared data."""
    datasets = {name: rows for layer in layers for name, rows in layer.pop("datasets").items()}
    shared = {"data": layers[0]["data"]} if all(layer["data"] == layers[0]["data"] for layer in layers) else {}
    own_parts = [{key: part for key, part in layer.items() if key not in shared} for layer in layers]
    return {**shared, "layer": own_parts, "datasets": datasets}
