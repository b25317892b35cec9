"""One session of a run, new or resumed: planned, checked, run, and closed.

`crosswind.api.running` offers this to programs and to the command line. Nothing here prints; observers show progress.
Nothing here judges measurements; a stopping rule may decide the number of repetitions.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crosswind.cell.binary import find_binary, used_placeholders
from crosswind.cell.kernels import find_kernel
from crosswind.cell.token import use_token
from crosswind.errors import CrosswindError
from crosswind.execution.carried import ForwardingLimit, learn_carried
from crosswind.execution.durations import Taken, learn
from crosswind.execution.each_packet import EachPacket
from crosswind.execution.growth import AdaptiveRepetitions, Growth, InTurn, StoppingRules
from crosswind.execution.options import RunOptions
from crosswind.execution.planning import planned_cells, precision, presentation, refuse_unknown_models
from crosswind.execution.same_losses import FixedRepetitions, SameLosses
from crosswind.execution.scheduler import Scheduler
from crosswind.execution.stops import stopped_by_signals
from crosswind.files.damage import Repeated, damage_sentences
from crosswind.store.addresses import shown
from crosswind.store.directory import Store
from crosswind.store.listing import fresh_directory, latest_run
from crosswind.store.manifest import ClockJump, Manifest, Session, Status
from crosswind.store.plan import PlannedCell
from crosswind.store.program_files import files_of
from crosswind.store.provenance import command_line, provenance
from crosswind.store.run import StoredRun
from crosswind.store.wallclock import utc_now
from crosswind.study.design import Study


def run(study: Study, options: RunOptions, rules: StoppingRules) -> StoredRun:
    """Runs a study in a new directory, to its end or until SIGINT or SIGTERM stops it (`Run.interrupted`).

    Args: rules: make a study's stopping rule, if it needs one.
    Raises: StudyError for an impossible cell; StoreError for a used directory; EngineError or DiskError when no cell
        can run. Finished cells are kept.
    """
    began = time.monotonic()
    store = start(study, options, rules)
    if _fell_back(store.plan, study):
        options.remark(
            "cells run in virtual time, because this machine does not let them make their network: "
            "`crosswind doctor` says why, docs/virtual-time.md what that means"
        )
    return execute(store, options, rules, began=began)


def resume(options: RunOptions, rules: StoppingRules, *, study: Study | None = None) -> StoredRun:
    """Resumes the run in `options.output`, else the latest (of `study`, if given).

    Args: study: refuse another study's run. rules: as for `run`.
    Raises: StoreError when it is no run, is in use, or holds another study; EngineError or DiskError when no cell can
        run. Finished cells are kept.
    """
    place = options.output or latest_run(name=study.name if study else None)
    store = Store.resume(place, digest=study.digest() if study else None)
    repeated = [damage for damage in store.damaged if isinstance(damage, Repeated)]
    for text in damage_sentences([damage for damage in store.damaged if damage not in repeated]):
        options.remark(f"run again: {text}")
    for text in damage_sentences(repeated):
        options.remark(f"set aside: {text}")
    if "absent" in store.manifest.study and (cells := Study.from_canonical(store.manifest.study).possible_by_now()):
        which, programs = "1 cell", "its program is"
        if len(cells) > 1:
            which, programs = f"{len(cells)} cells", "their programs are"
        options.remark(
            f"{which} left out of this run could run by now: {programs} installed. "
            "A new run has all cells: --output DIR"
        )
    sessions = store.manifest.sessions
    options = replace(options, jobs=options.jobs or (sessions[-1].jobs if sessions else None))
    try:
        missing = store.missing()
        if any(planned.is_over_network for planned in missing):
            use_token(None)
        kernels = with_kernels(store.manifest.provenance, missing)
        store.manifest = replace(store.manifest, provenance=kernels)
        store.begin_session(Session(started=utc_now(), command=_command(options), jobs=options.jobs))
    except CrosswindError:
        store.close()
        raise
    return execute(store, options, rules)


def start(study: Study, options: RunOptions, rules: StoppingRules | None = None) -> Store:
    """A new run of `study`: planned, its cells checked, its directory made.

    Raises: StudyError when a cell is impossible; StoreError when the directory is taken; EngineError without a binary.
    """
    refuse_unknown_models(study)
    binary = find_binary()
    started = utc_now()
    plan = planned_cells(study, options.files, binary=binary, here=options.on is None, remark=options.remark)
    asked = precision(study)
    if rules is not None and asked is not None:
        rules.check(asked, {planned.cell: (planned.parameters, planned.effect) for planned in plan})
    programs = used_placeholders((planned.parameters for planned in plan), binary)
    words = _command(options)
    origin = provenance(binary, command=words, seed=study.seed, started=started, programs=programs)
    origin |= files_of(planned.parameters for planned in plan)
    manifest = Manifest(
        name=study.name,
        study=study.canonical(),
        study_digest=study.digest(),
        presentation=presentation(study),
        options=options.files,
        planned=len(plan),
        provenance=with_kernels(origin, plan),
        sessions=(Session(started=started, command=words, jobs=options.jobs),),
        precision=asked,
    )
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Store.create(options.output or fresh_directory(study.name, stamp), manifest, plan)


def execute(
    store: Store, options: RunOptions, rules: StoppingRules | None = None, *, began: float | None = None
) -> StoredRun:
    """Runs the store's missing repetitions, and its stopping rule's further ones, and closes it.

    Args: began: the session's start by `time.monotonic`; None for now.

    Raises: EngineError, DiskError when no further cell could run; finished cells are kept.
    """
    with store:
        growth = _growth(store, rules)
        taken, carried = Taken(), ForwardingLimit()
        scheduler = Scheduler(
            store,
            find_binary(),
            [taken, carried, *options.observers],
            jobs=options.jobs,
            on=options.on,
            growth=growth,
        )
        began = time.monotonic() if began is None else began
        status = Status.STOPPED
        try:
            with stopped_by_signals(scheduler.stop):
                status = scheduler.run()
        except CrosswindError as error:
            if store.has_results():
                error.hint = " · ".join(
                    filter(None, [error.hint, f"continue later: {resume_command(store.directory)}"])
                )
            raise
        finally:
            note_end(store, scheduler.clock_jumps)
            # A run with --jobs, and a part of a run, say nothing about how long later runs take.
            if options.jobs is None and options.on is None and status is Status.DONE:
                learn(taken, time.monotonic() - began)
            learn_carried(carried)
    return StoredRun(store)


def _growth(store: Store, rules: StoppingRules | None) -> Growth | None:
    """What adds repetitions to a run's plan, if anything does."""
    growths: list[Growth] = []
    same = SameLosses(store, find_binary())
    if fixed := FixedRepetitions(store, same):
        growths.append(fixed)
    if each_packet := EachPacket(store):
        growths.append(each_packet)
    rule = rules.rule_of(store.manifest) if rules is not None else None
    if rule is not None:
        growths.append(AdaptiveRepetitions(store, rule, same, seed=(store.manifest.precision or {})["seed"]))
    return InTurn(growths) if growths else None


def with_kernels(provenance: Mapping[str, Any], cells: Iterable[PlannedCell]) -> Mapping[str, Any]:
    """The provenance with the kernel of some cells: {"kernels": ["6.12-0123456789ab"]}.

    Raises: EngineError for a virtual-time cell without a kernel.
    """
    if not any(planned.is_virtual for planned in cells):
        return provenance
    return {**provenance, "kernels": sorted({find_kernel().name, *provenance.get("kernels", ())})}


def resume_command(directory: Path) -> str:
    """The command for resuming a run."""
    return f"crosswind run --resume {shown(directory)}"


def _fell_back(plan: Sequence[PlannedCell], study: Study) -> bool:
    """Whether a cell has virtual time though its study leaves the clock to the machine."""
    virtual = {planned.cell for planned in plan if planned.is_virtual}
    clocks = [cell.settings.get("host.clock") for cell in study.cells() if cell.index in virtual]
    return any(clock is None or clock.value == "auto" for clock in clocks)


def _command(options: RunOptions) -> tuple[str, ...]:
    return tuple(command_line() if options.command is None else options.command)


def note_end(store: Store, jumps: Sequence[ClockJump]) -> None:
    """Notes a session's end in the manifest; an error writing it has already made the run fail."""
    *earlier, last = store.manifest.sessions
    ended = replace(last, ended=utc_now(), clock_jumps=tuple(jumps))
    provenance = {**store.manifest.provenance, "ended": ended.ended}
    all_jumps = [jump for session in (*earlier, ended) for jump in session.clock_jumps]
    if all_jumps:
        provenance["clock_jumps"] = [f"{jump.by_s:+} s at {jump.at}" for jump in all_jumps]
    try:
        store.end_session(ended, provenance=provenance)
    except CrosswindError:
        return
