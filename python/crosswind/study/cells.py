"""The cells of a study: one combination of levels each, with every parameter resolved to one exact value.

A part's tables are laid over the study's; every key written as a list is a factor; the cells of a part are the product
of its factors, in the order in which `study_format.py` lists the keys. What no combination may be is refused here.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from crosswind.study.errors import CellError
from crosswind.study.format import KINDS, PartTable, StudyDocument, set_keys
from crosswind.study.levels import Level, Values, did_you_mean, text_of
from crosswind.study.path import DIRECTION_KEYS, PathParameters, path_of
from crosswind.study.toml_text import Location
from crosswind.study.workload import WORKLOAD_KEYS, WorkloadParameters, workload_of
from crosswind.units import UnitError, shown

MAX_CELLS = 100_000


@dataclass(frozen=True)
class Budget:
    """The fidelity that a cell must reach to be valid; None leaves it to the cell's default."""

    delay_error_p99_ns: int | None = None
    starvation: Decimal | None = None
    probe_starvation: Decimal | None = None


@dataclass(frozen=True)
class Parameters:
    """Everything that a cell is run with. `host` holds only what the study sets, keyed as in the study file."""

    path: PathParameters
    host: Mapping[str, Any]
    workload: WorkloadParameters
    budget: Budget = Budget()


@dataclass(frozen=True)
class Cell:
    """One combination of levels.

    `levels` holds the factors only, dotted key to the text that was written (and `part`, when there are several);
    `settings` holds every key that the study sets, likewise; `index` counts from 0 over the whole study.
    """

    index: int
    part: str
    levels: Mapping[str, str]
    settings: Mapping[str, Level] = field(repr=False)
    parameters: Parameters = field(repr=False)


@dataclass(frozen=True)
class Part:
    """One part of a study: its settings, and where each was written."""

    name: str
    settings: Mapping[str, Values]
    locations: Mapping[str, Location]

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """Dotted key to the texts of its levels, for the keys written as lists."""
        return {key: tuple(level.text for level in v.levels) for key, v in self.settings.items() if v.is_factor}

    def __len__(self) -> int:
        return math.prod(len(values.levels) for values in self.settings.values())


@dataclass(frozen=True)
class Where:
    """Some of a study's cells: those in which every key named here has this value. `texts` is what was written."""

    texts: Mapping[str, str]
    _meant: Mapping[str, Any]

    def matches(self, cell: Cell) -> bool:
        """Whether a cell is one of them, however its levels are written: `5000us` is `5ms`."""
        return all(
            cell.part == value if key == "part" else key in cell.settings and cell.settings[key].value == value
            for key, value in self._meant.items()
        )


@dataclass(frozen=True)
class RepetitionLimit:
    """Some of a study's cells, and how often they are run at most."""

    where: Where
    at_most: int


def where_of(raw: Mapping[str, object], place: Location, parts: Iterable[Part]) -> Where:
    """The cells that dotted keys (or `part`) and their values tell; none of them is all cells.

    Raises: CellError for a key or part that does not exist, or a value that the key cannot have.
    """
    names = [part.name for part in parts if part.name]
    meant = {key: meaning_of(key, value, (*place, key), names) for key, value in raw.items()}
    return Where({key: text_of(value) for key, value in raw.items()}, meant)


def meaning_of(key: str, raw: object, place: Location, parts: Sequence[str]) -> Any:
    """What a value of a key means, as `Level.value` has it; of `part`, one of `parts`. Raises: CellError."""
    if key == "part":
        if raw not in parts:
            hint = did_you_mean(str(raw), parts) if parts else "this study has no parts"
            raise CellError(place, f"there is no part {shown(raw)}", hint)
        return raw
    if key not in KINDS:
        raise CellError(place, f"there is no key {shown(key)}", did_you_mean(key, KINDS))
    try:
        return KINDS[key].level(raw).value
    except UnitError as error:
        raise CellError(place, error.message, error.hint) from None


def limits_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[RepetitionLimit, ...]:
    """The cells that are run less often than the others. Raises: CellError."""
    return tuple(
        RepetitionLimit(where_of(table.where, ("repetitions", number, "where"), parts), table.at_most)
        for number, table in enumerate(document.repetitions)
    )


def parts_of(document: StudyDocument) -> tuple[Part, ...]:
    """The parts of a study, one named "" when the file has none. Raises: CellError."""
    base = _settings_of(document)
    tables: list[tuple[PartTable | None, Location]] = [(None, ())]
    if document.part:
        tables = [(table, ("part", number)) for number, table in enumerate(document.part)]
    parts: list[Part] = []
    used: set[str] = set()
    for table, place in tables:
        own = {} if table is None else _settings_of(table)
        settings = {**_without_overridden(base, own), **own}
        kind = settings.get("workload.kind")
        if kind is None:
            raise CellError(
                (*place, "workload", "kind"),
                "no workload.kind is set",
                'write kind = "echo" (or transfer, connect, multiplex, page, program) under [workload]',
            )
        takes = WORKLOAD_KEYS[kind.levels[0].value] | {"kind"}
        fits = {key: v for key, v in settings.items() if not key.startswith("workload.") or key[9:] in takes}
        for key in own.keys() - fits.keys():
            raise _does_not_take((*place, *key.split(".")), kind.levels[0].text, key)
        used |= fits.keys()
        ordered = {key: fits[key] for key in KINDS if key in fits}
        where = {key: (*place, *key.split(".")) if key in own else tuple(key.split(".")) for key in ordered}
        name = "" if table is None else table.name
        if name in {part.name for part in parts}:
            raise CellError((*place, "name"), f'two parts are named "{name}"', "give each part a name of its own")
        parts.append(Part(name, ordered, where))
        _refuse_idle_keys(parts[-1])
    if not document.part:
        for key in base.keys() - used:
            raise _does_not_take(tuple(key.split(".")), base["workload.kind"].levels[0].text, key)
    count = sum(map(len, parts))
    if count > MAX_CELLS:
        raise CellError((), f"the study has {count:,} cells", f"at most {MAX_CELLS:,}; take fewer levels or factors")
    return tuple(parts)


def cells_of(parts: tuple[Part, ...], budget: Budget) -> Iterator[Cell]:
    """Every cell of every part, indexed from 0. Raises: CellError."""
    index = 0
    for part in parts:
        for combination in itertools.product(*(values.levels for values in part.settings.values())):
            settings = dict(zip(part.settings, combination, strict=True))
            levels = {"part": part.name} if len(parts) > 1 else {}
            levels |= {key: level.text for key, level in settings.items() if part.settings[key].is_factor}
            yield Cell(index, part.name, levels, settings, _parameters(settings, part.locations, budget))
            index += 1


def budget_of(document: StudyDocument) -> Budget:
    """The fidelity that a study asks of its cells."""
    table = document.budget
    asked = (table.delay_error_p99, table.starvation, table.probe_starvation)
    return Budget(*(values.levels[0].value if values else None for values in asked))


def _settings_of(tables: StudyDocument | PartTable) -> dict[str, Values]:
    return set_keys(tables.path, "path.") | set_keys(tables.host, "host.") | set_keys(tables.workload, "workload.")


def _without_overridden(base: Mapping[str, Values], own: Mapping[str, Values]) -> dict[str, Values]:
    """The base without what `own` replaces: `path.loss` means both directions, whatever the base said of each."""
    replaced = {f"path.{way}.{key}" for way in ("forward", "reverse") for key in DIRECTION_KEYS if f"path.{key}" in own}
    return {key: values for key, values in base.items() if key not in replaced}


def _does_not_take(location: Location, kind: str, key: str) -> CellError:
    takes = ", ".join(sorted(WORKLOAD_KEYS[kind]))
    return CellError(location, f"workload {kind} does not take {key[9:]}", f"{kind} takes {takes}")


def _refuse_idle_keys(part: Part) -> None:
    def any_level(key: str, value: object) -> bool:
        return any(level.value == value for level in part.settings.get(key, Values()).levels)

    closed = any_level("workload.kind", "echo") and not any_level("workload.mode", "open")
    if "workload.rate" in part.settings and closed:
        raise CellError(
            part.locations["workload.rate"], "workload.rate has no effect in a closed loop", 'add mode = "open"'
        )
    linked = {"path.rate", "path.preset"}
    ways = {way for way in ("forward", "reverse") if {f"path.{way}.rate", *linked} & part.settings.keys()}
    for key, needs in (("path.forward.queue", "forward"), ("path.reverse.queue", "reverse"), ("path.queue", "")):
        if key in part.settings and (needs not in ways if needs else not ways):
            raise CellError(part.locations[key], f"{key} has no effect: the link has no rate", 'add rate = "100mbit"')
    for key in DIRECTION_KEYS:
        both = f"path.forward.{key}" in part.settings and f"path.reverse.{key}" in part.settings
        if both and f"path.{key}" in part.settings:
            raise CellError(
                part.locations[f"path.{key}"],
                f"path.{key} has no effect: forward and reverse both set their own",
                f"remove path.{key} or one of the two",
            )


def _parameters(settings: Mapping[str, Level], where: Mapping[str, Location], budget: Budget) -> Parameters:
    path = path_of(settings, where)
    host = {key[5:]: level.value for key, level in settings.items() if key.startswith("host.")}
    return Parameters(path, host, workload_of(settings, where, path), budget)
