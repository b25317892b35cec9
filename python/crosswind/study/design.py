"""A study: an experiment's design, read from TOML and checked.

A list is a factor. `crosswind.study.files` finds studies; `Study.adhoc` makes one from options. One function, `expand`,
makes a study from its document, from edits to it, and from circumstances, the reasons for absent cells. Every mistake
is a StudyError with its place, its value and a correction. crosswind-cell checks the cells themselves
(`crosswind.cell.check`).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from crosswind.errors import StudyError, did_you_mean
from crosswind.peers.registry import PEERS
from crosswind.study.cells import Cell, RepetitionLimit, Where, cells_of, limits_of, repetitions_of, where_of
from crosswind.study.census import Exclusion, census_of
from crosswind.study.circumstances import Circumstance, blocked_transports, peers_missing_here, refuse_all_blocked
from crosswind.study.declared import Declared, Reading, declarations, is_of_processors, remaining, unmeasured
from crosswind.study.document import read_document
from crosswind.study.edits import (
    Appended,
    Assigned,
    Edit,
    Quick,
    assigned,
    copied,
    edited,
    few_repetitions_text,
    precision_of,
)
from crosswind.study.errors import DesignError, Origin, read_toml
from crosswind.study.format import DesignDocument, set_keys
from crosswind.study.identity import SCHEMA
from crosswind.study.keys import in_order
from crosswind.study.levels import Level, text_of
from crosswind.study.network_use import network_notes
from crosswind.study.own_networks import with_networks_read
from crosswind.study.parts import Part, parts_of
from crosswind.study.precision import Precision, looks_of, most_repetitions, precisions_of
from crosswind.study.titles import check_title, filled_title
from crosswind.study.toml_text import Location, write_toml
from crosswind.text.units import shown

_MEASURING_TABLES = (
    "path", "host", "workload", "part", "study", "exclude", "repetitions", "precision", "budget", "each_packet",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A study as declared: its document and origin."""

    name: str
    document: Mapping[str, Any]
    origin: Origin


@dataclass(frozen=True)
class Study:
    """A checked study. Make one with `files.load_study`, `Study.from_toml`, `Study.from_document` or `Study.adhoc`.

    `document` is the source's with all edits, `table` the same checked, `parts` the chosen ones, `findings` by kind,
    without the idle ones and those `unmeasured` in virtual time; `absent` has the reasons by cell index.
    """

    source: Source = field(repr=False)
    edits: tuple[Edit, ...] = field(repr=False)
    circumstances: tuple[Circumstance, ...] = field(repr=False)
    document: Mapping[str, Any] = field(repr=False)
    table: DesignDocument = field(repr=False)
    parts: tuple[Part, ...] = field(repr=False)
    exclusions: tuple[Exclusion, ...] = field(repr=False)
    limits: tuple[RepetitionLimit, ...] = field(repr=False)
    precisions: tuple[Precision, ...] = field(repr=False)
    findings: Mapping[str, tuple[Declared, ...]] = field(repr=False)
    unmeasured: tuple[Declared, ...] = field(repr=False)
    origin: Origin = field(repr=False)
    absent: Mapping[int, Circumstance] = field(repr=False)
    running: tuple[str, ...] = field(repr=False)
    size: int = field(repr=False)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, name: str, origin: Origin | None = None) -> "Study":
        """A study of a dictionary in the file's shape. Raises: StudyError."""
        return expand(Source(name, document, origin or Origin(name)))

    @classmethod
    def from_toml(cls, text: str, *, name: str, file: str | None = None) -> "Study":
        """A study of a TOML text; `file` is named in errors. The quick variant is checked too. Raises: StudyError."""
        file = file or name
        read, origin = read_toml(text, file), Origin.of_text(file, text)
        study = expand(Source(name, _with_networks_read(read, origin, Path(file).parent), origin))
        if study.table.quick:
            study.quick()
        return study

    @classmethod
    def adhoc(cls, kind: str, options: Mapping[str, object], *, flags: Mapping[str, str] | None = None) -> "Study":
        """A study without a file.

        Args:   kind: of workload. options: dotted keys and values; in a string, commas separate a factor's levels.
            flags: by key, the option to name in errors, as {"path.loss": "--loss"}.
        Raises: StudyError.
        """
        labels = {key: f"{(flags or {}).get(key, key)} {text_of(value)}" for key, value in options.items()}
        document = {"title": f"{kind} from the command line", "workload": {"kind": kind}}
        return expand(Source(kind, document, Origin("command line", flags=flags or {})), [Assigned(options, labels)])

    def edited(self, *edits: Edit) -> "Study":
        """This study with further edits; keys set by them are not left out. Raises: StudyError, naming options."""
        asked = [key for edit in edits if isinstance(edit, Assigned) for key in edit.values]
        left = [each for each in self.circumstances if not any(key.endswith(tuple(each.where)) for key in asked)]
        return expand(self.source, [*self.edits, *edits], left)

    def given(self, *circumstances: Circumstance) -> "Study":
        """This study under further circumstances."""
        return expand(self.source, self.edits, [*self.circumstances, *circumstances]) if circumstances else self

    def with_overrides(self, overrides: Mapping[str, object], *, flags: Mapping[str, str] | None = None) -> "Study":
        """This study with some keys set anew, as by `--set`.

        A key for path, host or workload is set in the study and in every part with that key; `part.NAME.workload.size`
        sets one part's. `path.loss` replaces loss in `[path.forward]` and `[path.reverse]`. In a string, commas
        separate a factor's levels; an argument list is split as by a shell.

        Args:   flags: options to name in errors, for keys with their own.
        Raises: StudyError, naming `--set` or the option.
        """
        return self.edited(assigned(overrides, flags or {}))

    def with_precision(self, target: str) -> "Study":
        """This study with one precision for all its cells, as by `--precision`. Raises: StudyError, naming it."""
        return self.edited(precision_of(target))

    def with_thresholds(self, texts: Sequence[str]) -> "Study":
        """This study with further thresholds, as by `--fail-if`. Raises: StudyError, naming the option."""
        labels = [f"--fail-if {text!r}" for text in texts]
        return self.edited(Appended(("threshold",), [{"fail_if": text} for text in texts], labels))

    def with_notes(self, notes: Sequence[str]) -> "Study":
        """The same study with further remarks in its report."""
        return self.edited(Appended(("report", "notes"), notes))

    def quick(self) -> "Study":
        """The variant for a first look, from `[quick]`; without one, with few repetitions and a note."""
        return self.edited(
            Quick({key: f'{self.origin.where(("quick", key))}: quick "{key}"' for key in self.table.quick})
        )

    def on_this_machine(self) -> "Study":
        """This study without cells for optional peers missing here."""
        return self.given(*peers_missing_here(self.table.study.optional_peers, tuple(self.cells())))

    def without_transports(self, blocked: Mapping[str, str]) -> "Study":
        """This study without some transports.

        Args:   blocked: reasons by transport, as clauses: "UDP 9471 gets no answer".
        Raises: StudyError when nothing is left.
        """
        refuse_all_blocked(self.name, tuple(self.cells()), blocked)
        return self.given(*blocked_transports(blocked))

    @property
    def name(self) -> str:
        """The study's short name."""
        return self.source.name

    @property
    def is_quick(self) -> bool:
        """Whether it is the quick variant of its file."""
        return "quick" in self.source.document and any(isinstance(edit, Quick) for edit in self.edits)

    @cached_property
    def declared(self) -> "Study | None":
        """The study as in its file, if another one is run; else None."""
        is_changed = bool(self.absent) or self.document != self.source.document
        return expand(self.source) if self.source.origin.lines and is_changed else None

    @property
    def quick_without_table(self) -> str | None:
        """The effect of `--quick` without `[quick]`, in one sentence; None with one."""
        return None if self.table.quick else few_repetitions_text(self.repetitions, has_precision=bool(self.precisions))

    @cached_property
    def title(self) -> str:
        """The title with its levels filled in, else the name."""
        return filled_title(self.table.title or self.name, self.cells())

    @property
    def description(self) -> str:
        """The study's purpose, in sentences; may be empty."""
        return self.table.description

    @property
    def repetitions(self) -> int:
        """Repetitions for every cell without a limit."""
        return self.table.study.repetitions

    def repetitions_of(self, cell: Cell) -> int:
        """How often this cell is run: `repetitions`, or the least of its limits; with a precision, before a look."""
        looks = self.looks_of(cell)
        return looks[0] if looks else repetitions_of(cell, self.repetitions, self.limits)

    def looks_of(self, cell: Cell) -> tuple[int, ...]:
        """After how many repetitions it is decided whether this cell goes on; empty without a precision."""
        most = most_repetitions(self.table)
        return looks_of(cell, self.precisions, repetitions=self.repetitions, most=most, limits=self.limits)

    @property
    def seed(self) -> int:
        """The seed for every random decision."""
        return self.table.study.seed

    @property
    def profile(self) -> bool:
        """Whether every cell samples where its processor time goes."""
        return self.table.study.profile

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models to show beside the measurement."""
        return tuple(self.table.report.models)

    @property
    def named_models(self) -> dict[str, tuple[str, ...]]:
        """Names by place, as `report.models` and `figure[1].models`."""
        by_place = {"report.models": self.models}
        for kind, declared in self.findings.items():
            for each in declared:
                names: tuple[str, ...] = getattr(each, "models", ())
                key = "models" if "models" in type(each.table).model_fields else "model"
                by_place |= {f"{kind}[{int(each.place[1]) + 1}].{key}": names} if names else {}
        return by_place

    @property
    def compare_by(self) -> tuple[str, ...]:
        """Statistics for comparing levels, beside the mean."""
        return tuple(self.table.report.compare_by)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks to print with the results."""
        return tuple(self.table.report.notes)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Sentences about absent cells and parts."""
        causes = [each for each in self.circumstances if each in self.absent.values() and each.said]
        cells = self.every_cell() if causes else ()
        idle = {cell.part for cell in cells if self.absent.get(cell.index) in causes} - {*self.running}
        named = [part.name for part in self.parts if part.name in idle]
        verb = "part {} is" if len(named) == 1 else "parts {} are"
        notes = [f"So the {verb.format(' and '.join(named))} not run."] if named else []
        return (*dict.fromkeys(each.said for each in causes), *notes)

    @property
    def note_on_unmeasured(self) -> str:
        """The report's note on findings left out in virtual time; empty without any."""
        kinds = Counter(str(finding.place[0]) for finding in self.unmeasured)
        named = " and ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in kinds.items())
        verb = "is" if len(self.unmeasured) == 1 else "are"
        reason = "Processor time is not measured in virtual time, where computing takes no time"
        return f"{reason}: {named} about it {verb} left out. --clock real measures it." if named else ""

    @property
    def network_notes(self) -> tuple[str, ...]:
        """For each named network: its keys, the study's own ones, and the source for its numbers."""
        return network_notes({part.name: part.settings for part in self.parts if part.name in self.running})

    @property
    def budget(self) -> dict[str, Level]:
        """The fidelity required from a valid cell, by set key."""
        return {key: values.levels[0] for key, values in set_keys(self.table.budget).items()}

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """Each factor's dotted key to its levels' texts over all parts; `part` first if there are several."""
        levels: dict[str, tuple[str, ...]] = {"part": self.running} if len(self.running) > 1 else {}
        merged: dict[str, dict[str, None]] = {}
        for part in self.parts:
            for key, texts in part.factors.items() if part.name in self.running else ():
                merged.setdefault(key, {}).update(dict.fromkeys(texts))
        levels |= {key: tuple(merged[key]) for key in in_order(merged)}
        if not self.exclusions and not self.absent:
            return levels
        left = {(key, text) for cell in self.cells() for key, text in cell.levels.items()}
        return {key: tuple(text for text in texts if (key, text) in left) for key, texts in levels.items()}

    def every_cell(self) -> Iterator[Cell]:
        """Every cell by index, absent ones too."""
        for cell in cells_of(self.parts, [exclusion.where for exclusion in self.exclusions]):
            circumstance = self.absent.get(cell.index)
            yield cell if circumstance is None else replace(cell, absent=circumstance.why)

    def cells(self) -> Iterator[Cell]:
        """Every running cell, by index."""
        is_one_part = len(self.running) == 1 < len(self.parts)
        for cell in self.every_cell():
            if is_one_part and not cell.absent:
                yield replace(cell, levels={key: text for key, text in cell.levels.items() if key != "part"})
            elif not cell.absent:
                yield cell

    def possible_by_now(self) -> list[Cell]:
        """Absent cells with peers installed here since."""
        optional = self.table.study.optional_peers
        waiting = [cell for cell in self.every_cell() if cell.absent]
        waiting = [cell for cell in waiting if {*self.absent[cell.index].where.values()} <= {*optional}]
        missing = peers_missing_here(optional, waiting)
        return [cell for cell in waiting if not any(each.concerns(cell) for each in missing)]

    def __len__(self) -> int:
        return self.size

    def to_toml(self) -> str:
        """The study as a file; reading it gives the same study."""
        return write_toml(self.document)

    def canonical(self) -> dict[str, Any]:
        """The study as plain JSON data, under its schema's name: its document, and the reasons for absent cells."""
        absent = {"absent": [asdict(each) for each in self.circumstances]} if self.circumstances else {}
        return {"schema": SCHEMA, "name": self.name, **absent, **copied(self.document)}

    @classmethod
    def from_canonical(cls, data: Mapping[str, Any]) -> "Study":
        """Reverses `canonical`. Raises: StudyError."""
        schema = data.get("schema")
        if schema != SCHEMA:
            raise StudyError(f"{shown(schema)} is not {SCHEMA}", hint="made by another version of Crosswind?")
        name = str(data.get("name") or "study")
        document = {key: value for key, value in data.items() if key not in {"schema", "name", "absent"}}
        # It was checked when it was made, maybe with levels set anew.
        source = Source(name, document, Origin(name, options={(): "canonical"}))
        return expand(source, circumstances=[Circumstance(**each) for each in data.get("absent", ())])

    def digest(self) -> str:
        """SHA-256, in hexadecimal, over all measured settings, without titles, notes and findings."""
        measured: dict[str, Any] = {"schema": SCHEMA} | {
            key: self.document[key] for key in _MEASURING_TABLES if key in self.document
        }
        if "study" in measured:
            # An absent peer changes no measurement of present cells.
            measured["study"] = {key: value for key, value in measured["study"].items() if key != "optional_peers"}
        text = json.dumps(measured, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()


def expand(source: Source, edits: Sequence[Edit] = (), circumstances: Sequence[Circumstance] = ()) -> Study:
    """The study from a document with edits, under circumstances.

    A file's tables about levels set anew, or about parts left out, are no mistakes; without edits, idle ones are. If
    all cells would be absent, none is: each start reports its own obstacle.

    Raises: StudyError.
    """
    document, labels = edited(source.document, edits)
    origin = replace(source.origin, options={**source.origin.options, **labels})
    read = _with_networks_read(document, origin, Path())
    table = read_document(read, origin)
    try:
        check_title(table.title, ("title",))
        every_part = parts_of(table)
        limits, precisions = limits_of(table, every_part), precisions_of(table, every_part)
        excluded = [where_of(each.where, ("exclude", at, "where"), every_part) for at, each in enumerate(table.exclude)]
        census = census_of(table, every_part, excluded, limits, precisions)
        if not origin.options:
            census.refuse_idle(table)
        dropped = set(census.idle)
        findings = _findings(table, every_part, origin)
        parts = _chosen_parts(table, every_part)
        if parts != every_part:
            census = census_of(table, parts, excluded, limits, precisions)
    except DesignError as problem:
        raise origin.error(read, problem.location, problem.message, problem.hint) from None
    limits = tuple(limit for at, limit in enumerate(limits) if ("repetitions", at) not in census.idle)
    wheres = [exclusion.where for exclusion in census.exclusions]
    absent = _absent(parts, wheres, circumstances)
    running = tuple(part.name for part in parts)
    run = cache(lambda: [cell for cell in cells_of(parts, wheres) if cell.index not in absent])
    if absent or parts != every_part:
        running = tuple(dict.fromkeys(cell.part for cell in run()))
        design = list(cells_of(every_part, wheres))
        precisions = tuple(each for each in precisions if any(map(each.where.matches, run())))
        limits = tuple(each for each in limits if any(map(each.where.matches, run())))
        findings = [left for each in findings if (left := remaining(each, design, run())) is not None]
    gone = [each for each in findings if any(edit.drops(each) for edit in edits)]
    dropped |= {each.place for each in gone}
    not_measured = unmeasured(findings, run()) if any(map(is_of_processors, findings)) else []
    findings = [each for each in findings if each not in gone and each not in not_measured]
    return Study(
        source=source,
        edits=tuple(edits),
        circumstances=tuple(circumstances),
        document=_without(read, dropped) if dropped else read,
        table=table,
        parts=parts,
        exclusions=census.exclusions,
        limits=limits,
        precisions=precisions,
        findings={kind: tuple(each for each in findings if each.place[0] == kind) for kind in declarations()},
        unmeasured=tuple(not_measured),
        origin=origin,
        absent=absent,
        running=running,
        size=census.cells - len(absent),
    )


def _absent(
    parts: tuple[Part, ...], excluded: Sequence[Where], circumstances: Sequence[Circumstance]
) -> dict[int, Circumstance]:
    """The reasons for absent cells, by index."""
    concerned = {
        cell.index: next((each for each in circumstances if each.concerns(cell)), None)
        for cell in (cells_of(parts, excluded) if circumstances else ())
    }
    absent = {index: circumstance for index, circumstance in concerned.items() if circumstance is not None}
    return absent if len(absent) < len(concerned) else {}


def _chosen_parts(table: DesignDocument, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts to run, in the study's order: all where the study does not choose. Raises: DesignError."""
    for number, name in enumerate(table.study.optional_peers):
        if name not in PEERS:
            message = f"{shown(name)} is not a peer that comes with Crosswind"
            raise DesignError(("study", "optional_peers", number), message, did_you_mean(name, PEERS))
    known = [part.name for part in parts if part.name]
    for number, name in enumerate(table.study.parts):
        if name not in known:
            hint = did_you_mean(name, known) if known else "this study has no parts"
            raise DesignError(("study", "parts", number), f"there is no part {shown(name)}", hint)
    return tuple(part for part in parts if part.name in table.study.parts) or parts


def _without(document: Mapping[str, Any], places: Collection[Location]) -> dict[str, Any]:
    """A document without some tables of lists."""
    kept = dict(document)
    for name in {str(name) for name, _ in places}:
        kept[name] = [table for at, table in enumerate(document[name]) if (name, at) not in places]
    return {key: value for key, value in kept.items() if value != []}


def _with_networks_read(document: Mapping[str, Any], origin: Origin, folder: Path) -> Mapping[str, Any]:
    try:
        return with_networks_read(document, folder)
    except DesignError as problem:
        raise origin.error(document, problem.location, problem.message, problem.hint) from None
    except RecursionError:
        raise StudyError(f"{origin.file}: values are nested too deeply") from None


def _findings(table: DesignDocument, parts: tuple[Part, ...], origin: Origin) -> list[Declared]:
    """The findings of every kind. Raises: DesignError."""
    reading = Reading({kind: getattr(table, kind) for kind in declarations()}, parts)
    cells = cache(lambda: tuple(cells_of(parts)))
    findings: list[Declared] = []
    for declaration in declarations().values():
        for finding in declaration.read(reading):
            # Levels set anew may leave a finding without cells, but not one requested beside them.
            if not origin.options or any(place[:2] == finding.place for place in origin.options):
                declaration.check(finding, cells)
            findings.append(finding)
    return findings
