"""From a study to its run: its plan with checked cells, its presentation, and the plan's forecast costs."""

import math
import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from crosswind.cell.check import CheckedCell, check_study, preflight_sentences
from crosswind.cell.forecast import AROUND_S, AT_A_TIME, CAPACITY, packed_s
from crosswind.errors import StudyError
from crosswind.execution.carried import read_carried, too_fast
from crosswind.execution.durations import read_durations
from crosswind.execution.each_packet import EACH_PACKET, cells_of, further_repetitions
from crosswind.models import MODELS, unknown_models
from crosswind.store.manifest import Options
from crosswind.store.plan import PlannedCell
from crosswind.study.cells import Cell, Where
from crosswind.study.declared import Declared, is_of_processors
from crosswind.study.design import Study
from crosswind.study.plan import Plan, PlanItem
from crosswind.study.toml_text import Location


@dataclass(frozen=True)
class PlanCosts:
    """A plan's forecast costs, over all its runs.

    Attributes:
        serial_ns, parallel_ns: wall time on the real clock, one by one, and side by side within the processors'
            capacity. virtual_runs, virtual_ns: the others, and their wall time.
        alone_runs: runs without neighbours. unknown_runs: programs, without a traffic forecast. if_virtual_ns: wall
            time
        with all runs in virtual time.
        capacity: processors busy by forecast, of `processors`. most: runs at a time.
        learned_from: earlier runs on this machine behind the times, 0: none. measured_runs: of `runs`, those whose very
            cell was measured there. wall_ns: the whole command, with its start and its report.
    """

    serial_ns: int
    parallel_ns: int
    virtual_runs: int
    virtual_ns: int
    alone_runs: int
    unknown_runs: int
    if_virtual_ns: int
    packets: int
    bytes: int
    disk_bytes: int
    processors: int
    capacity: float
    most: int
    learned_from: int = 0
    measured_runs: int = 0
    runs: int = 0
    wall_ns: int = 0


def refuse_unknown_models(study: Study) -> None:
    """Raises: StudyError for an unknown model, with its place."""
    for place, names in study.named_models.items():
        if unknown := unknown_models(names):
            raise StudyError(f'{place}: "{unknown[0]}" is not a model', hint=f"known: {', '.join(MODELS)}")


def refuse_unmeasured(study: Study, checked: Sequence[CheckedCell], *, profile: bool = False) -> None:
    """Refuses profiles and processor time for cells in virtual time, where computing takes no time.

    So it does a precision beside the design of single losses, whose repetitions are given.

    Args:   profile: whether the command line asks for profiles.
    Raises: StudyError with the requesting place.
    """
    if study.precisions and study.findings[EACH_PACKET]:
        place = study.findings[EACH_PACKET][0].place
        message = "a precision is set beside it, and it sets how often a cell runs: once for each packet"
        raise study.origin.error(study.document, place, message, "leave out --precision, or [[precision]]")
    virtual = [cell.cell for cell in checked if cell.is_virtual]
    findings = [finding for of_kind in study.findings.values() for finding in of_kind if is_of_processors(finding)]
    asked: list[tuple[Location, str, int]] = [(("study", "profile"), "a profile", len(virtual))] * study.profile
    asked += [((), "--cpu-profile: a profile", len(virtual))] * profile
    for finding in findings:
        plain = finding.as_dict([cell.cell for cell in checked])
        concerned = {cell.index for cell in virtual}.intersection(plain["cells"])
        key = "fail_if" if hasattr(finding.table, "fail_if") else "metric"
        asked.append(((*finding.place, key), plain["metric"], len(concerned)))
    for location, what, number in asked:
        if number:
            some = "" if len(checked) == 1 else f" ({number} of {len(checked)} cells)"
            text = f"{what} is not measured in virtual time, where computing takes no time{some}"
            hint = (
                'run on the real clock (host.clock = "real"; `crosswind doctor` says what that takes), or leave it out'
            )
            raise study.origin.error(study.document, location, text, hint) if location else StudyError(text, hint=hint)


def warnings_of(checked: Sequence[CheckedCell], *, here: bool = True) -> Iterator[str]:
    """Preflight warnings, in sentences. Args: here: whether the cells run on this machine."""
    yield from preflight_sentences(checked)
    if here:
        yield from too_fast(checked, read_carried())


def planned_cells(
    study: Study, options: Options, *, binary: Path, here: bool = False, remark: Callable[[str], None] = lambda _: None
) -> tuple[PlannedCell, ...]:
    """A study's plan: each repetition with its cell for crosswind-cell and its forecast.

    Args: here: whether it runs on this machine. remark: receives preflight warnings.

    Raises: StudyError for an impossible cell, or one unable to measure a requested metric. EngineError without an
        answer from crosswind-cell.
    """
    asked = asdict(options) | {"profile": options.profile or study.profile}
    checked = check_study(study, binary=binary)
    refuse_unmeasured(study, checked, profile=options.profile)
    for text in warnings_of(checked, here=here):
        remark(text)
    by_cell = {cell.cell.index: cell for cell in checked}
    of_each_packet = cells_of(study, checked)
    keeps_files = options.packets or options.capture or options.qlog or options.profile
    repeats = {} if keeps_files else {cell: times for cell, times in repeats_of(study, checked).items() if times > 1}
    of_cell = {
        index: (cell, asked | {"packets": options.packets or index in of_each_packet}, repeats.get(index))
        for index, cell in by_cell.items()
    }
    # Other repetitions join the plan once their losses are known.
    items = _once(runs_of(Plan.of(study), checked), repeats)
    return tuple(_planned(item, *of_cell[item.cell.index]) for item in items)


def repeats_of(study: Study, checked: Sequence[CheckedCell]) -> dict[int, int]:
    """The repetitions of cells in which those that lose the same packets are the same."""
    return {
        cell.cell.index: study.repetitions_of(cell.cell) for cell in checked if cell.repeats_losses and not cell.exact
    }


def runs_of(plan: Plan, checked: Sequence[CheckedCell]) -> tuple[PlanItem, ...]:
    """A plan's runs, in order: for an exact cell only the first repetition.

    Args: checked: the study's cells; empty without crosswind-cell: all repetitions are then run.
    """
    return _once(plan, {cell.cell.index for cell in checked if cell.exact})


def _once(items: Iterable[PlanItem], cells: Container[int]) -> tuple[PlanItem, ...]:
    """The runs, with only the first repetition for some cells."""
    run = [item for item in items if item.repetition == 0 or item.cell.index not in cells]
    return tuple(item if item.order == order else replace(item, order=order) for order, item in enumerate(run))


def _planned(item: PlanItem, checked: CheckedCell, asked: Mapping[str, bool], repeats: int | None) -> PlannedCell:
    cost = checked.forecast
    return PlannedCell(
        key=item.key,
        order=item.order,
        cell=item.cell.index,
        repetition=item.repetition,
        block=item.block,
        seed=item.seed,
        levels=dict(item.cell.levels),
        parameters=checked.for_run(item, **asked),
        effect=checked.effect,
        expected_ns=cost.duration_ns,
        expected_packets=cost.packets,
        expected_bytes=cost.bytes,
        expected_load=cost.load,
        undelayed=cost.undelayed,
        exact=checked.exact,
        repeats=repeats,
    )


def _distinct(checked: CheckedCell, repetitions: Mapping[int, int]) -> int:
    """How many repetitions of a cell lose other packets than those before, less all of them, by forecast.

    Args: repetitions: by cell.
    """
    total, packets = repetitions[checked.cell.index], checked.forecast.packets
    loss = (checked.effect.forward.loss + checked.effect.reverse.loss) / 2
    lost = packets * loss
    none, one = math.exp(-lost), lost * math.exp(-lost)
    singles = packets * (1 - math.exp(-total * one / max(packets, 1)))
    return min(total, math.ceil(1 + singles + total * max(1 - none - one, 0.0))) - total


def plan_costs(
    plan: Plan, checked: Sequence[CheckedCell], *, packets: bool = False, capture: bool = False
) -> PlanCosts:
    """A plan's forecast costs on this machine. Args: packets, capture: whether such files are kept."""
    learned = read_durations()
    processors = len(os.sched_getaffinity(0))
    runs = Counter(item.cell.index for item in runs_of(plan, checked)) + further_repetitions(plan.study, checked)
    if not (packets or capture):
        repeated = repeats_of(plan.study, checked)
        runs.update({cell.cell.index: _distinct(cell, repeated) for cell in checked if cell.cell.index in repeated})
    cells = [(cell, runs[cell.cell.index], learned.of(cell.parameters)) for cell in checked if cell.cell.index in runs]
    real = [(cell, times, took) for cell, times, took in cells if not cell.is_virtual]
    virtual = [(cell, times, took) for cell, times, took in cells if cell.is_virtual]

    def together_s(some: Sequence[tuple[CheckedCell, int, tuple[float, float] | None]], *, virtual: bool) -> float:
        """Known cells' shares of earlier sessions, and new cells side by side."""
        new = [(cell.forecast, times) for cell, times, took in some if took is None]
        shares_s = sum(times * took[1] for _, times, took in some if took is not None)
        return shares_s + packed_s(new, processors, virtual=virtual)

    real_s, virtual_s = together_s(real, virtual=False), together_s(virtual, virtual=True)
    serial_s = sum((took[0] if took else cell.forecast.duration_ns / 1e9) * times for cell, times, took in real)
    if_virtual_s = packed_s([(cell.forecast, times) for cell, times, _ in cells], processors, virtual=True)
    return PlanCosts(
        serial_ns=round(serial_s * 1e9),
        parallel_ns=round(real_s * 1e9),
        virtual_runs=sum(times for _, times, _ in virtual),
        virtual_ns=round(virtual_s * 1e9),
        alone_runs=sum(times for cell, times, _ in real if cell.forecast.runs_alone),
        unknown_runs=sum(times for cell, times, _ in cells if not cell.is_known),
        if_virtual_ns=round(if_virtual_s * 1e9),
        packets=sum(cell.forecast.packets * times for cell, times, _ in cells),
        bytes=sum(cell.forecast.bytes * times for cell, times, _ in cells),
        disk_bytes=sum(cell.disk_bytes(packets=packets, capture=capture) * times for cell, times, _ in cells),
        processors=processors,
        capacity=CAPACITY * processors,
        most=AT_A_TIME * processors,
        learned_from=learned.runs,
        measured_runs=sum(times for _, times, took in cells if took is not None),
        runs=runs.total(),
        wall_ns=round((real_s + virtual_s + AROUND_S) * 1e9),
    )


def precision(study: Study) -> dict[str, Any] | None:
    """The intervals' targets, and the numbers of repetitions between looks at each cell."""
    if not study.precisions:
        return None
    cells = tuple(study.cells())
    by_looks: dict[tuple[int, ...], list[int]] = {}
    for cell in cells:
        if looks := study.looks_of(cell):
            by_looks.setdefault(looks, []).append(cell.index)
    return {
        "seed": study.seed,
        "targets": [target for asked in study.precisions for target in asked.as_dict(cells)],
        "looks": [{"cells": own, "repetitions": list(looks)} for looks, own in by_looks.items()],
    }


def presentation(study: Study) -> dict[str, Any]:
    """A study's parts of the report beside its measurements, each with its cells' indices."""
    cells = tuple(study.cells())

    declared = study.declared
    declared_cells = () if declared is None else tuple(declared.cells())

    def told(kind: str, finding: Declared) -> dict[str, Any]:
        plain = finding.as_dict(cells)
        # What is asked of cells says something of all levels that the file has.
        if declared is None or not {"asks", "cells"} <= plain.keys():
            return plain
        is_declared = any(other.table == finding.table for other in declared.findings[kind])
        # What is absent leaves a question without an answer, and decides no status.
        kept = tuple(study.every_cell()) if kind == "threshold" else cells
        missing = missing_levels(finding, kept, declared_cells) if is_declared else []
        return {**plain, "missing": missing, "is_quick": study.is_quick}

    return {
        "name": study.name,
        "title": study.title,
        "asked": {kind: [told(kind, finding) for finding in findings] for kind, findings in study.findings.items()},
        "models": list(study.models),
        "compare_by": list(study.compare_by),
        "limits": [
            {"at_most": limit.at_most, "cells": [cell.index for cell in limit.where.among(cells)]}
            for limit in study.limits
        ],
        "left_out": list(study.left_out),
        "notes": [
            *study.notes,
            *study.network_notes,
            *(f"Excluded: {table.text}." for table in study.exclusions),
            *filter(None, [study.note_on_unmeasured]),
        ],
    }


def missing_levels(finding: Declared, cells: Sequence[Cell], declared_cells: Sequence[Cell]) -> list[str]:
    """As "path.delay 50ms", in the order of the study as it was declared. Args: declared_cells: those it had then."""
    about = _about(finding, cells)
    kinds = {cell.kind for cell in about}
    before = [cell for cell in _about(finding, declared_cells) if cell.kind in kinds]
    # A study's question is answered for the present cells, once they have all compared levels.
    factor = getattr(finding.table, "factor", None) if getattr(finding.table, "asks", None) else None
    keys = dict.fromkeys(key for cell in before for key in cell.levels if factor in (None, key))
    known = {(key, _value(key, cell)) for cell in about for key in keys}
    missing = (
        f"{key} {cell.levels[key]}"
        for key in keys
        for cell in before
        if key in cell.levels and (key, _value(key, cell)) not in known
    )
    return list(dict.fromkeys(missing))


def _about(finding: Declared, cells: Sequence[Cell]) -> list[Cell]:
    """A finding's cells; with compared levels, only cells at one of them."""
    where: Where = getattr(finding, "where")  # noqa: B009 -- every finding that levels bind has one
    matching = where.among(cells)
    levels: tuple[Where, ...] = getattr(finding, "named_levels", ())
    return [cell for cell in matching if any(level.matches(cell) for level in levels)] if levels else matching


def _value(key: str, cell: Cell) -> object:
    if key == "part":
        return cell.part
    return cell.settings[key].value if key in cell.settings else None
