"""Published figures, each tied to the cells whose measurement stands beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.cells import Cell, Part
from crosswind.levels import did_you_mean, text_of
from crosswind.study_format import KINDS, PublishedTable, StudyDocument
from crosswind.toml_text import Location
from crosswind.units import UnitError, shown

METRICS: Mapping[str, str] = {
    "rtt": "ns",
    "total": "ns",
    "response": "ns",
    "connect": "ns",
    "request": "ns",
    "reply": "ns",
    "transfer_time": "ns",
    "transfer_time_app": "ns",
    "goodput": "bit/s",
}
"""Each metric of a result and the unit in which results hold it."""

_SCALES: Mapping[str, Mapping[str, float]] = {
    "ns": {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9},
    "bit/s": {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
}


class PublishedError(ValueError):
    """A published figure that names what does not exist: where, what is wrong, what would be right."""

    def __init__(self, location: Location, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.location = location
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Published:
    """One published figure. `mean`, `sd` and `ci` (half width) are in `unit`; times `scale`, in the metric's own.

    `inferred`: the source says it in words, not as a number. `n`: the sample size, where the source gives it.
    """

    source: str
    metric: str
    unit: str
    levels: Mapping[str, str]
    mean: float
    sd: float | None
    ci: float | None
    n: int | None
    inferred: bool
    note: str
    _meant: Mapping[str, Any]

    @property
    def scale(self) -> float:
        """Factor from `unit` to the unit of `METRICS[metric]`."""
        return _SCALES[METRICS[self.metric]][self.unit]

    def matches(self, cell: Cell) -> bool:
        """Whether this figure belongs beside a cell: every level it names is the cell's, however each is written."""
        return all(
            cell.part == value if key == "part" else key in cell.settings and cell.settings[key].value == value
            for key, value in self._meant.items()
        )


def published_of(document: StudyDocument, parts: tuple[Part, ...]) -> tuple[Published, ...]:
    """The published figures of a study. Raises: PublishedError."""
    names = [part.name for part in parts]
    return tuple(_published(table, ("published", number), names) for number, table in enumerate(document.published))


def _published(table: PublishedTable, place: Location, parts: list[str]) -> Published:
    if table.metric not in METRICS:
        raise PublishedError(
            (*place, "metric"), f"{shown(table.metric)} is not a metric", did_you_mean(table.metric, METRICS)
        )
    units = _SCALES[METRICS[table.metric]]
    if table.unit not in units:
        message = f"{shown(table.unit)} is not a unit of {table.metric}"
        raise PublishedError((*place, "unit"), message, "one of " + ", ".join(units))
    meant = {key: _meant(key, raw, (*place, "levels", key), parts) for key, raw in table.levels.items()}
    return Published(
        source=table.source,
        metric=table.metric,
        unit=table.unit,
        levels={key: text_of(raw) for key, raw in table.levels.items()},
        mean=table.mean,
        sd=table.sd,
        ci=table.ci,
        n=table.n,
        inferred=table.inferred,
        note=table.note,
        _meant=meant,
    )


def _meant(key: str, raw: object, location: Location, parts: list[str]) -> Any:
    if key == "part":
        if raw not in parts:
            raise PublishedError(location, f"there is no part {shown(raw)}", did_you_mean(str(raw), parts))
        return raw
    if key not in KINDS:
        raise PublishedError(location, f"there is no key {shown(key)}", did_you_mean(key, KINDS))
    try:
        return KINDS[key].level(raw).value
    except UnitError as error:
        raise PublishedError(location, error.message, error.hint) from None
