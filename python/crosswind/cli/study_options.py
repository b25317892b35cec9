"""The study named on a command line: built-in, from a file, or made from options, with its settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import click

from crosswind.api.each_packet import disturbing_each
from crosswind.api.first_look import as_run_here
from crosswind.api.ladder import over_ladder
from crosswind.cli.settings import chosen, options, parse_set, picked
from crosswind.cli.to import server_at, study_to
from crosswind.errors import UsageError
from crosswind.study.design import Study
from crosswind.study.edits import Edit, FurtherTables, assigned, precision_of
from crosswind.study.files import load_study
from crosswind.study.keys import WORKLOAD_KINDS
from crosswind.study.own_question import with_own_question

_OF_DESIGN = ("repetitions", "repetitions_max", "seed")
"""Options with the names of their keys in [study]."""


@dataclass(frozen=True)
class StudyOptions:
    """The study options for `run` and `plan`.

    Attributes:
        name: a built-in study, a file or a workload kind; None for no study.
        settings: by dotted key, from their own options. overrides: from `--set` and design options.
        flags: the design keys' names in errors. further: from `--hop`, `--at` and `--beside`.
        ladder: whether it runs on each rung of the ladder of networks.
        each_loss: whether each packet is lost in turn. each_hold: how long each is held back in turn.
        to: a server's HOST[:PORT] for a run over a real network.
        needs_machine: whether only the real clock will do.
    """

    name: str | None
    settings: dict[str, str]
    overrides: dict[str, Any]
    flags: dict[str, str]
    further: FurtherTables
    quick: bool
    ladder: bool
    each_loss: bool
    each_hold: str | None
    precision: str | None
    to: str | None
    needs_machine: bool

    @classmethod
    def of(cls, name: str | None, given: Mapping[str, Any], *, needs_machine: bool = False) -> Self:
        """Args: given: a command's arguments. Raises: UsageError for a malformed `--set`."""
        design = {f"study.{option}": given[option] for option in _OF_DESIGN if given[option] is not None}
        assigned = parse_set(given["assignments"])
        for key in sorted(design.keys() & assigned):
            both = f"--{key.removeprefix('study.').replace('_', '-')} {design[key]} and by --set {key}={assigned[key]}"
            raise UsageError(f"{key} is set by {both}", hint="give only one of them")
        return cls(
            name,
            chosen(given),
            {**assigned, **design},
            {key: "--" + key.removeprefix("study.").replace("_", "-") for key in design},
            picked(FurtherTables, given),
            given["quick"],
            given["ladder"],
            given["each_loss"],
            given["each_hold"],
            given["precision"],
            given["to"],
            needs_machine or given["to"] is not None,
        )

    @property
    def changes_something(self) -> bool:
        """Whether anything is said beside the name."""
        return any(
            (
                *(self.settings, self.overrides, self.further),
                *(self.quick, self.ladder, self.each_loss, self.each_hold, self.precision, self.to),
            )
        )

    def study(self) -> Study | None:
        """The study; None without a name. Reports omitted parts on standard error.

        Raises: UsageError, StudyError for a wrong command line or study.
        """
        if self.name is None:
            if self.changes_something:
                raise UsageError(
                    "settings without a study", hint=f"name a study, or one of {', '.join(WORKLOAD_KINDS)}, before them"
                )
            return None
        server = None if self.to is None else server_at(self.to)
        if self.ladder and server is not None:
            raise UsageError("--ladder emulates networks, and --to runs over the one that is there", hint="give one")
        for key in sorted(self.settings.keys() & self.overrides):
            both = f"{options()[key]} {self.settings[key]} and by --set {key}={self.overrides[key]}"
            raise UsageError(f"{key} is set by {both}", hint="give only one of them")
        design = self._of_kind(self.name) if self.name in WORKLOAD_KINDS else self._of_file(self.name)
        if self.ladder:
            design, notes = over_ladder(design, clock=self._clock)
            for sentence in notes:
                click.echo(f"note: {sentence}", err=True)
        if self._disturbs and server is not None:
            option = "--each-loss" if self.each_loss else "--each-hold"
            raise UsageError(f"{option} emulates the path, and --to runs over the one that is there", hint="give one")
        if self._disturbs:
            repetitions = self.overrides.get("study.repetitions")
            design = disturbing_each(
                design, loss=self.each_loss, hold=self.each_hold, clock=self._clock, repetitions=repetitions
            )
        if server is None:
            return design
        keys = [*self.settings, *self.overrides]
        return study_to(design, server, keys, family=self.settings.get("path.family"))

    def _of_kind(self, kind: str) -> Study:
        # A file or directory with the kind's name is written as a path.
        if self.quick:
            raise UsageError(
                f"{kind} from options has no quick variant",
                hint="leave out --quick; --messages or --count sets how much",
            )
        study = self._overridden(Study.adhoc(kind, self.settings, flags=options()), {})
        return study if self._disturbs else with_own_question(study)

    @property
    def _disturbs(self) -> bool:
        return self.each_loss or self.each_hold is not None

    def _of_file(self, name: str) -> Study:
        study = load_study(name, kinds=WORKLOAD_KINDS)
        if self.quick and study.quick_without_table is not None:
            click.echo(f"quick: {study.quick_without_table}", err=True)
        return self._overridden(said_as_run_here(study, quick=self.quick, clock=self._clock), self.settings)

    @property
    def _clock(self) -> str | None:
        """The clock from the command line, if any."""
        named = {**self.settings, **self.overrides}.get("host.clock")
        return "real" if self.needs_machine else None if named is None else str(named)

    def _overridden(self, study: Study, settings: Mapping[str, str]) -> Study:
        flags = {key: options()[key] for key in settings} | self.flags
        edits: list[Edit] = [self.further] if self.further else []
        edits += [precision_of(self.precision)] if self.precision is not None else []
        values = {**settings, **self.overrides}
        edits += [assigned(values, flags)] if values else []
        return study.edited(*edits) if edits else study


def said_as_run_here(study: Study, *, quick: bool, clock: str | None = None) -> Study:
    """A study as this machine runs it; what differs is said on standard error. Args: as of `as_run_here`."""
    here, notes = as_run_here(study, quick=quick, clock=clock)
    for sentence in notes:
        click.echo(f"note: {sentence}", err=True)
    return here
