"""Wall times, sizes and cells as commands print them. Durations are printed as in reports (`quantity`)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import click

from crosswind.files.damage import damage_sentences
from crosswind.report.text.format import quantity
from crosswind.store.plan import PlannedCell
from crosswind.text.units import BYTES

if TYPE_CHECKING:
    from crosswind.cell.record import RunRecord


def seconds_text(seconds: float) -> str:
    """A wall time for people: "34 s", "5 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def virtual_text(virtual_ns: float, wall_s: float) -> str:
    """A virtual time and its wall time: "virtual 3 min 12 s in 4.1 s"."""
    virtual = quantity(virtual_ns, "ns") if virtual_ns < 60e9 else seconds_text(virtual_ns / 1e9)
    wall = f"{wall_s:.1f} s" if wall_s < 60 else seconds_text(wall_s)
    return f"virtual {virtual} in {wall}"


def size_text(size_bytes: float) -> str:
    """Bytes for people, three digits: "1.23 MB"."""
    for unit in ("TB", "GB", "MB", "kB"):
        # From here on three digits round up to the next unit.
        if size_bytes >= 0.9995 * BYTES[unit]:
            return f"{size_bytes / BYTES[unit]:#.3g}".rstrip(".") + f" {unit}"
    return f"{size_bytes:.0f} B"


def time_text(time: datetime) -> str:
    """A time to the minute."""
    return time.strftime("%Y-%m-%d %H:%M")


def levels_text(levels: Mapping[str, str]) -> str:
    """Levels under short keys: "loss=5% size=1000"."""
    names = short_names(levels)
    return " ".join(f"{names[key]}={level}" for key, level in levels.items())


def short_names(keys: Iterable[str]) -> dict[str, str]:
    """The last word of each dotted key, and the whole key where two would share one."""
    words = {key: key.rpartition(".")[2] for key in keys}
    shared = list(words.values())
    return {key: word if shared.count(word) == 1 else key for key, word in words.items()}


def repetition_text(planned: PlannedCell) -> str:
    """A repetition's levels and number, from 1."""
    return f"{levels_text(planned.levels)} #{planned.repetition + 1}".strip()


def warn_of_damage(record: "RunRecord") -> None:
    """Reports a run's damaged files on standard error."""
    for text in damage_sentences(record.damaged):
        click.echo(f"warning: {text}", err=True)
