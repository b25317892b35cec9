"""One session of a run: from a study, or a run that is to go on, to a store with every cell in it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from crosswind.cell.check import check_study
from crosswind.cell.process import find_binary, used_stand_ins
from crosswind.errors import CrosswindError, StudyError
from crosswind.execution.progress import progress_for
from crosswind.execution.scheduler import Scheduler, stopped_by_signals
from crosswind.models import MODELS, unknown_models
from crosswind.store.directory import Store, fresh_directory, latest_run
from crosswind.store.provenance import command_line, provenance
from crosswind.store.wallclock import utc_now
from crosswind.study.design import Study
from crosswind.study.plan import Plan


def start(study: Study, *, output: Path | None, options: Mapping[str, bool]) -> Store:
    """A new run of `study`: planned, checked cell by cell, its directory made.

    Args: options: what is asked of every cell beside the study: `packets`, `capture`, `qlog`, `profile`.

    Raises: StudyError when a cell is impossible; StoreError when the directory is taken; EngineError without a binary.
    """
    refuse_unknown_models(study)
    binary = find_binary()
    started = utc_now()
    plan = plan_entries(study, options, binary=binary)
    programs = used_stand_ins((entry["parameters"] for entry in plan), binary)
    manifest = {
        "name": study.name,
        "study": study.canonical(),
        "study_digest": study.digest(),
        "presentation": presentation(study),
        "options": dict(options),
        "plan": plan,
        "provenance": provenance(binary, command=command_line(), seed=study.seed, started=started, programs=programs),
        "sessions": [{"started": started, "command": command_line()}],
    }
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Store.create(output or fresh_directory(study.name, stamp), manifest)


def refuse_unknown_models(study: Study) -> None:
    """Raises: StudyError for a name that is no model, with the place that names it."""
    for place, names in study.named_models.items():
        if unknown := unknown_models(names):
            raise StudyError(f'{place}: "{unknown[0]}" is no model', hint=f"known: {', '.join(MODELS)}")


def resume(study: Study | None, directory: Path | None) -> Store:
    """A run that goes on: the named one, else the latest (of this study, when one is given).

    Raises: StoreError when it is no run, is in use, or holds another study than the one given.
    """
    place = directory or latest_run(name=study.name if study else None)
    store = Store.resume(place, digest=study.digest() if study else None)
    sessions = [*store.manifest.data["sessions"], {"started": utc_now(), "command": command_line()}]
    store.update(status="running", sessions=sessions)
    return store


def execute(store: Store, *, jobs: int | None = None) -> bool:
    """Runs what the store misses, with a display. Returns whether it got to the end; False when interrupted.

    Args: jobs: cells at a time; None for as many as the fidelity budget allows.
    Raises: EngineError, DiskError when it could not; what was finished is kept.
    """
    with store:
        watcher = progress_for(Console(stderr=True, highlight=False), store.manifest.data["name"])
        scheduler = Scheduler(store, find_binary(), watcher, jobs=jobs)
        try:
            with stopped_by_signals(scheduler.stop):
                ended = scheduler.run()
        except CrosswindError as error:
            if store.results():
                error.hint = " · ".join(filter(None, [error.hint, f"go on later with: {resume_command(store)}"]))
            raise
        finally:
            _note_end(store, scheduler.jumps)
    if not ended:
        done, planned = len(store.results()), len(store.manifest.plan)
        click.echo(f"interrupted: {done} of {planned} cells are kept in {store.directory}", err=True)
        click.echo(f"hint: {resume_command(store)} goes on", err=True)
    return ended


def resume_command(store: Store) -> str:
    """What to type to go on with a run."""
    return f"crosswind run --resume {store.directory}"


def plan_entries(study: Study, options: Mapping[str, bool], *, binary: Path) -> list[dict[str, Any]]:
    """The plan as the manifest keeps it, each repetition with its cell as crosswind-cell takes it.

    Raises: StudyError when a cell is impossible. EngineError when crosswind-cell cannot say.
    """
    asked = {**options, "profile": options.get("profile", False) or study.profile}
    checked = check_study(study, binary=binary)
    costs = {cell.cell.index: cell.forecast for cell in checked}
    return [
        {
            "key": item.key,
            "order": item.order,
            "cell": item.cell.index,
            "repetition": item.repetition,
            "block": item.block,
            "seed": item.seed,
            "expected_ns": costs[item.cell.index].duration_ns,
            "expected_packets": costs[item.cell.index].packets,
            "expected_bytes": costs[item.cell.index].bytes,
            "expected_load": costs[item.cell.index].load,
            "levels": dict(item.cell.levels),
            "parameters": checked[item.cell.index].for_run(item, **asked),
        }
        for item in Plan.of(study)
    ]


def presentation(study: Study) -> dict[str, Any]:
    """What a report shows of a study beside its measurements, each tied to the indices of its cells."""
    cells = tuple(study.cells())
    return {
        "name": study.name,
        "title": study.title,
        "published": [figure.as_dict(cells) for figure in study.published],
        "figures": [figure.as_dict(cells) for figure in study.figures],
        "fits": [fit.as_dict(cells) for fit in study.fits],
        "equivalences": [claim.as_dict(cells) for claim in study.equivalences],
        "models": list(study.models),
        "notes": [*study.notes, *(preset.note() for preset in study.presets.values())],
    }


def _note_end(store: Store, jumps: list[dict[str, Any]]) -> None:
    """The session's end in the manifest; a disk that refuses it has already said so."""
    sessions = [dict(session) for session in store.manifest.data["sessions"]]
    sessions[-1] |= {"ended": utc_now(), "clock_jumps": jumps}
    provenance = {**store.manifest.data["provenance"], "ended": sessions[-1]["ended"]}
    if all_jumps := [jump for session in sessions for jump in session.get("clock_jumps", [])]:
        provenance["clock_jumps"] = [f"{jump['by_s']:+} s at {jump['at']}" for jump in all_jumps]
    try:
        store.update(sessions=sessions, provenance=provenance)
    except CrosswindError:
        return
