"""Figures from a document beside ours, with a remark that is computed and not chosen."""

from collections.abc import Mapping
from typing import Any

from crosswind.analysis.result import Cell, Interval, PublishedComparison
from crosswind.record import RunRecord

SCALES: dict[str, tuple[str, float]] = {
    "ns": ("ns", 1.0),
    "us": ("ns", 1e3),
    "µs": ("ns", 1e3),
    "ms": ("ns", 1e6),
    "s": ("ns", 1e9),
    "bit/s": ("bit/s", 1.0),
    "kbit/s": ("bit/s", 1e3),
    "Mbit/s": ("bit/s", 1e6),
    "Gbit/s": ("bit/s", 1e9),
    "bytes": ("bytes", 1.0),
    "kB": ("bytes", 1e3),
    "packets": ("packets", 1.0),
    "1": ("1", 1.0),
    "%": ("1", 0.01),
}
"""Units that a published figure may have: ours, and how many of ours make one."""


def compare_published(record: RunRecord, cells: list[Cell]) -> list[PublishedComparison]:
    """Every published figure beside every cell that it belongs to; alone when there is none.

    Raises: ValueError when a figure's unit is unknown.
    """
    rows: list[PublishedComparison] = []
    for entry in record.published:
        matching: list[Cell | None] = [cell for cell in cells if _belongs(entry, cell, record.study)]
        rows.extend(_row(entry, cell) for cell in matching or [None])
    return rows


def _belongs(entry: Mapping[str, Any], cell: Cell, study: Mapping[str, Any]) -> bool:
    """Whether the plan named the cell; in runs whose plan names none, whether the levels read alike."""
    if entry.get("cells") is not None:
        return cell.cell in entry["cells"]
    return _agrees(entry["levels"], cell.levels, study)


def _agrees(wanted: Mapping[str, Any], levels: Mapping[str, str], study: Mapping[str, Any]) -> bool:
    return all(_plain(levels.get(key, _dotted(study, key))) == _plain(value) for key, value in wanted.items())


def _dotted(study: Mapping[str, Any], key: str) -> Any:
    found: Any = study
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _plain(value: Any) -> str:
    return str(value).replace(" ", "").casefold()


def _row(entry: Mapping[str, Any], cell: Cell | None) -> PublishedComparison:
    unit = str(entry["unit"])
    if unit not in SCALES:
        raise ValueError(f"unknown unit {unit!r} of a published figure; known are {', '.join(SCALES)}")
    ours_unit, scale = SCALES[unit]
    theirs = float(entry["mean"]) * scale
    sd, ci = (None if entry.get(key) is None else float(entry[key]) * scale for key in ("sd", "ci"))
    statistic = str(entry.get("statistic") or "mean")
    ours = _ours(cell, str(entry["metric"]), statistic, ours_unit)
    ratio = ours.value / theirs if ours and ours.value is not None and theirs else None
    inside = ours.low <= theirs <= ours.high if ours and ours.low is not None and ours.high is not None else None
    return PublishedComparison(
        source=str(entry["source"]),
        metric=str(entry["metric"]),
        statistic=statistic,
        unit=ours_unit,
        levels={key: str(value) for key, value in entry["levels"].items()},
        cell=cell.cell if cell else None,
        theirs=theirs,
        theirs_sd=sd,
        theirs_ci=ci,
        ours=ours,
        observed=_observed(cell, str(entry["metric"])) if ours else None,
        ratio=ratio,
        inside=inside,
        remark=_remark(theirs, ci, ours, inside, cell),
        note=None if entry.get("note") is None else str(entry["note"]),
        functions={str(name): float(part) * scale for name, part in (entry.get("functions") or {}).items()},
    )


def _ours(cell: Cell | None, metric: str, statistic: str, unit: str) -> Interval | None:
    found = cell.estimates.get(metric) if cell else None
    if found is None or found.unit != unit:
        return None
    ours = getattr(found, statistic, None)
    return ours if isinstance(ours, Interval) else None


def _observed(cell: Cell | None, metric: str) -> tuple[float, float] | None:
    found = cell.estimates.get(metric) if cell else None
    return (found.smallest, found.largest) if found else None


def _remark(theirs: float, ci: float | None, ours: Interval | None, inside: bool | None, cell: Cell | None) -> str:
    if cell is None:
        return "no cell of this run has these levels"
    if ours is None:
        return "this cell has no such metric"
    if ours.value is None or ours.low is None or ours.high is None or not theirs:
        return ours.reason or "theirs is 0"
    if inside:
        return "theirs lies in our interval"
    if ci is not None and theirs - ci <= ours.high and ours.low <= theirs + ci:
        return f"the intervals overlap; ours is {times(ours.value / theirs)} theirs"
    return f"outside our interval; ours is {times(ours.value / theirs)} theirs"


def times(ratio: float) -> str:
    """A ratio in words that a glance can take in: 1.43 -> "1.43 times", 0.004 -> "0.004 times"."""
    return f"{ratio:.3g} times"
