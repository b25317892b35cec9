"""A study: the design of an experiment, read from TOML and checked as far as a design can be.

A list is a factor. `crosswind.study.files` finds studies; `Study.adhoc` makes one from options; `with_overrides` is
`--set`; `quick` is `--quick`. Every mistake is a StudyError that names its place, its value and
what would be right. Whether its cells can be run, crosswind-cell says (`crosswind.cell.check`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from crosswind.study import identity
from crosswind.study.cells import Cell, RepetitionLimit, cells_of, limits_of
from crosswind.study.census import Exclusion, census_of, repetitions_of, without_idle
from crosswind.study.declared import Declared, Reading, declarations
from crosswind.study.document import read_document
from crosswind.study.errors import DesignError, Origin, read_toml
from crosswind.study.format import DesignDocument, set_keys
from crosswind.study.keys import in_order
from crosswind.study.levels import Level, text_of
from crosswind.study.network_use import network_notes
from crosswind.study.overrides import FurtherTables, add_tables, override
from crosswind.study.own_networks import with_networks_read
from crosswind.study.parts import Part, parts_of
from crosswind.study.precision import Precision, looks_of, most_repetitions, precisions_of
from crosswind.study.quick import few_repetitions_text, with_few_repetitions
from crosswind.study.selection import check_peers, chosen_parts, with_parts
from crosswind.study.titles import check_title, filled_title
from crosswind.study.toml_text import Location, write_toml


@dataclass(frozen=True)
class Study:
    """A checked study. Make one with `files.load_study`, `Study.from_toml`, `Study.from_document` or `Study.adhoc`.

    `document` is what was written, `table` the same checked, `parts` its factors laid out, `findings` by kind.
    """

    name: str
    document: Mapping[str, Any] = field(repr=False)
    table: DesignDocument = field(repr=False)
    parts: tuple[Part, ...] = field(repr=False)
    exclusions: tuple[Exclusion, ...] = field(repr=False)
    limits: tuple[RepetitionLimit, ...] = field(repr=False)
    precisions: tuple[Precision, ...] = field(repr=False)
    findings: Mapping[str, tuple[Declared, ...]] = field(repr=False)
    origin: Origin = field(repr=False)
    size: int = field(repr=False)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, name: str, origin: Origin | None = None) -> "Study":
        """A study of a dictionary in the file's shape. Raises: StudyError."""
        origin = origin or Origin(name)
        document = _with_networks_read(document, origin, Path())
        table = read_document(document, origin)
        try:
            check_title(table.title, ("title",))
            parts = parts_of(table)
            limits, precisions = limits_of(table, parts), precisions_of(table, parts)
            census = census_of(table, parts, limits, precisions)
            if census.idle and origin.options:
                # Levels were set anew: a table for what is not there any more is no mistake, and no part of the design.
                return cls.from_document(without_idle(document, census.idle), name=name, origin=origin)
            census.refuse_idle(table)
            findings = _findings(table, parts, origin)
            check_peers(table)
            chosen = chosen_parts(table, parts)
        except DesignError as problem:
            raise origin.error(document, problem.location, problem.message, problem.hint) from None
        if chosen:
            # A table for cells that are not run is no mistake, as where levels are set anew.
            options = {("study", "parts"): "study.parts", **origin.options}
            some = cls.from_document(with_parts(document, chosen), name=name, origin=replace(origin, options=options))
            # What a document says of its own numbers is what it is, whichever parts are run.
            kept = {
                kind: (*of_some, *(each for each in findings[kind] if not getattr(each, "is_about_cells", True)))
                for kind, of_some in some.findings.items()
            }
            return replace(some, document=document, origin=origin, findings=kept)
        return cls(name, document, table, parts, census.exclusions, limits, precisions, findings, origin, census.cells)

    @classmethod
    def from_toml(cls, text: str, *, name: str, file: str | None = None) -> "Study":
        """A study of a TOML text; `file` is named in errors. The quick variant is checked too. Raises: StudyError."""
        file = file or name
        read = read_toml(text, file)
        origin = Origin.of_text(file, text)
        document = _with_networks_read(read, origin, Path(file).parent)
        origin = replace(origin, declared=document)
        study = cls.from_document(document, name=name, origin=origin)
        if study.table.quick:
            study.quick()
        return study

    @classmethod
    def adhoc(cls, kind: str, options: Mapping[str, object], *, flags: Mapping[str, str] | None = None) -> "Study":
        """A study without a file.

        Args:   kind: of workload. options: dotted keys and their values; in a string, a comma parts the levels of a
                factor. flags: for each key, the option to name in errors, as {"path.loss": "--loss"}.
        Raises: StudyError.
        """
        labels = {key: f"{(flags or {}).get(key, key)} {text_of(value)}" for key, value in options.items()}
        document: dict[str, Any] = {"title": f"{kind} from the command line", "workload": {"kind": kind}}
        return _overridden(document, options, Origin("command line", flags=flags or {}), labels, name=kind)

    def with_overrides(self, overrides: Mapping[str, object], *, flags: Mapping[str, str] | None = None) -> "Study":
        """This study with some keys set anew, as by `--set`.

        A key of path, host or workload is set in the study and in every part that sets it; `part.NAME.workload.size`
        sets one part's. `path.loss` replaces what `[path.forward]` and `[path.reverse]` say of loss. In a string a
        comma parts the levels of a factor; an argument list is split as a shell does.

        Args:   flags: for keys that were set by an option of their own, that option.
        Raises: StudyError, naming `--set` or the option.
        """
        flags = flags or {}
        labels = {
            key: f"{flags[key]} {text_of(value)}" if key in flags else f"--set {key}={text_of(value)}"
            for key, value in overrides.items()
        }
        return _overridden(self.document, overrides, self.origin, labels, name=self.name)

    def with_tables(self, further: FurtherTables) -> "Study":
        """This study with further hops, changes and flows. Raises: StudyError, naming their options."""
        document, labels = add_tables(self.document, further)
        origin = replace(self.origin, options={**self.origin.options, **labels})
        return Study.from_document(document, name=self.name, origin=origin)

    def with_precision(self, target: str) -> "Study":
        """This study with one precision for all its cells, as by `--precision`. Raises: StudyError, naming that."""
        document = {**self.document, "precision": [{"target": target}]}
        options = {**self.origin.options, ("precision",): f"--precision {target}"}
        return Study.from_document(document, name=self.name, origin=replace(self.origin, options=options))

    def with_thresholds(self, texts: Sequence[str]) -> "Study":
        """This study with further thresholds, as by `--fail-if`. Raises: StudyError, naming that."""
        tables = list(self.document.get("threshold", ()))
        document = {**self.document, "threshold": [*tables, *({"fail_if": text} for text in texts)]}
        labels: dict[Location, str] = {
            ("threshold", len(tables) + at, "fail_if"): f"--fail-if {text!r}" for at, text in enumerate(texts)
        }
        origin = replace(self.origin, options={**self.origin.options, **labels})
        return Study.from_document(document, name=self.name, origin=origin)

    def quick(self) -> "Study":
        """The variant for a first look, from `[quick]`; without one, with few repetitions, which a note says."""
        document = {key: value for key, value in self.document.items() if key != "quick"}
        if self.quick_without_table is not None:
            few = with_few_repetitions(document, self.repetitions, self.quick_without_table)
            return Study.from_document(few, name=self.name, origin=self.origin)
        labels = {key: f'{self.origin.where(("quick", key))}: quick "{key}"' for key in self.table.quick}
        return _overridden(document, self.table.quick, self.origin, labels, name=self.name)

    @property
    def is_quick(self) -> bool:
        """Whether it is the quick variant of its file."""
        return "quick" in (self.origin.declared or {}) and "quick" not in self.document

    @cached_property
    def declared(self) -> "Study | None":
        """The study as its file has it, where levels were set anew or left out since; None where nothing was."""
        document = self.origin.declared
        if document is None or document == self.document:
            return None
        return Study.from_document(document, name=self.name, origin=Origin(self.origin.file))

    @property
    def quick_without_table(self) -> str | None:
        """What `--quick` does to a study that has no `[quick]`, in one sentence; None where it has one."""
        return None if self.table.quick else few_repetitions_text(self.repetitions, has_precision=bool(self.precisions))

    @cached_property
    def title(self) -> str:
        """The title with the levels that it names, else the name."""
        return filled_title(self.table.title or self.name, self.cells())

    @property
    def description(self) -> str:
        """What the study asks, in sentences; may be empty."""
        return self.table.description

    @property
    def repetitions(self) -> int:
        """How often every cell is run that no limit is set for."""
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
        """What every random decision derives from."""
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
        """Every place that names models, as `report.models` and `figure[1].models`, and those it names."""
        by_place = {"report.models": self.models}
        for kind, declared in self.findings.items():
            for number, each in enumerate(declared, start=1):
                names: tuple[str, ...] = getattr(each, "models", ())
                key = "models" if "models" in type(each.table).model_fields else "model"
                by_place |= {f"{kind}[{number}].{key}": names} if names else {}
        return by_place

    @property
    def compare_by(self) -> tuple[str, ...]:
        """Names of the statistics by which levels are compared beside the mean."""
        return tuple(self.table.report.compare_by)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks to print with the results."""
        return tuple(self.table.report.notes)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What of the study is not run here, and why, in sentences."""
        return tuple(self.table.report.left_out)

    def with_sentences(self, key: str, sentences: Sequence[str]) -> "Study":
        """The same study, whose report says more. Args: key: "notes" or "left_out". Raises: StudyError."""
        report = self.document.get("report", {})
        document = {**self.document, "report": {**report, key: [*report.get(key, ()), *sentences]}}
        return Study.from_document(document, name=self.name, origin=self.origin)

    @property
    def network_notes(self) -> tuple[str, ...]:
        """Of each named network, what it sets key by key, what the study sets itself, and the source of its numbers."""
        return network_notes({part.name: part.settings for part in self.parts})

    @property
    def budget(self) -> dict[str, Level]:
        """The fidelity that a cell must reach to be valid, by key, as far as the study sets it."""
        return {key: values.levels[0] for key, values in set_keys(self.table.budget).items()}

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """Dotted key of each factor to the texts of its levels over all parts; `part` first when there are several."""
        levels: dict[str, tuple[str, ...]] = {}
        if len(self.parts) > 1:
            levels["part"] = tuple(part.name for part in self.parts)
        merged: dict[str, dict[str, None]] = {}
        for part in self.parts:
            for key, texts in part.factors.items():
                merged.setdefault(key, {}).update(dict.fromkeys(texts))
        levels |= {key: tuple(merged[key]) for key in in_order(merged)}
        if not self.exclusions:
            return levels
        left = {(key, text) for cell in self.cells() for key, text in cell.levels.items()}
        return {key: tuple(text for text in texts if (key, text) in left) for key, texts in levels.items()}

    def cells(self) -> Iterator[Cell]:
        """Every cell, in the order of its index."""
        return cells_of(self.parts, [exclusion.where for exclusion in self.exclusions])

    def __len__(self) -> int:
        return self.size

    def to_toml(self) -> str:
        """The study as a file that reads back to the same study."""
        return write_toml(self.document)

    def canonical(self) -> dict[str, Any]:
        """The study as plain JSON data, as written, under its schema's name."""
        return identity.canonical(self.name, self.document)

    @classmethod
    def from_canonical(cls, data: Mapping[str, Any]) -> "Study":
        """The study that `canonical` gave. Raises: StudyError."""
        name, document = identity.from_canonical(data)
        # It was checked when it was made, maybe of levels that were set anew.
        return cls.from_document(document, name=name, origin=Origin(name, options={(): "canonical"}))

    def digest(self) -> str:
        """SHA-256, in hexadecimal, of all that is measured: not of titles, notes and findings."""
        return identity.digest(self.document)


def _with_networks_read(document: Mapping[str, Any], origin: Origin, folder: Path) -> Mapping[str, Any]:
    try:
        return with_networks_read(document, folder)
    except DesignError as problem:
        raise origin.error(document, problem.location, problem.message, problem.hint) from None


def _findings(table: DesignDocument, parts: tuple[Part, ...], origin: Origin) -> dict[str, tuple[Declared, ...]]:
    """The findings of every kind. Raises: DesignError."""
    reading = Reading({kind: getattr(table, kind) for kind in declarations()}, parts)
    cells = cache(lambda: tuple(cells_of(parts)))
    declared: dict[str, tuple[Declared, ...]] = {}
    for kind, declaration in declarations().items():
        declared[kind] = tuple(declaration.read(reading))
        declaration.check(declared[kind], cells, origin.options)
    return declared


def _overridden(
    document: Mapping[str, Any],
    overrides: Mapping[str, object],
    origin: Origin,
    labels: Mapping[str, str],
    *,
    name: str,
) -> Study:
    changed, options = override(document, overrides, labels)
    return Study.from_document(changed, name=name, origin=replace(origin, options={**origin.options, **options}))
