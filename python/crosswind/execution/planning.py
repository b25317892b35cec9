"""From a study to what its run directory begins with: its plan, whose cells are checked, and what a report shows."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crosswind.cell.check import CheckedCell, check_study
from crosswind.errors import StudyError
from crosswind.models import MODELS, unknown_models
from crosswind.store.manifest import Options
from crosswind.store.plan import PlannedCell
from crosswind.study.design import Study
from crosswind.study.plan import Plan, PlanItem


def refuse_unknown_models(study: Study) -> None:
    """Raises: StudyError for a name that is no model, with the place that names it."""
    for place, names in study.named_models.items():
        if unknown := unknown_models(names):
            raise StudyError(f'{place}: "{unknown[0]}" is no model', hint=f"known: {', '.join(MODELS)}")


def planned_cells(study: Study, options: Options, *, binary: Path) -> tuple[PlannedCell, ...]:
    """The plan of a study: each repetition with its cell as crosswind-cell takes it and what it is forecast to take.

    Raises: StudyError when a cell is impossible. EngineError when crosswind-cell cannot say.
    """
    asked = asdict(options) | {"profile": options.profile or study.profile}
    checked = check_study(study, binary=binary)
    return tuple(_planned(item, checked[item.cell.index], asked) for item in Plan.of(study))


def _planned(item: PlanItem, checked: CheckedCell, asked: Mapping[str, bool]) -> PlannedCell:
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
        expected_ns=cost.duration_ns,
        expected_packets=cost.packets,
        expected_bytes=cost.bytes,
        expected_load=cost.load,
    )


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
