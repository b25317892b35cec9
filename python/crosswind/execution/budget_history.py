"""What the repetitions of a run say of its fidelity budget: whether it was kept, how often missed, and by how much."""

from collections.abc import Sequence

from crosswind.errors import EngineError
from crosswind.execution.admission import Admission
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.plan import PlannedCell


def note_earlier_sessions(admission: Admission, missing: Sequence[PlannedCell], store: Store) -> None:
    """Tells the queues whether an earlier session kept the budget, and how often a missing repetition missed it."""
    if any(result.finished is not None and result.finished.kept_budget for result in store.results().values()):
        admission.handle_budget_kept()
    missed = CellsFolder(store.directory, store.manifest.id).missed()
    for planned in missing:
        if missed[planned.key]:
            admission.note_earlier_attempts(planned, missed[planned.key])


def unattainable_budget(store: Store, tried: Sequence[PlannedCell]) -> EngineError:
    """Why a run ends whose budget no cell keeps, with the figures that show it."""
    results = store.results()
    finished = {planned.key: results[planned.key].finished for planned in tried}
    figures = [f"{key}: {'; '.join(result.reasons) if result else 'no result'}" for key, result in finished.items()]
    return EngineError(
        f"no cell of this run keeps the fidelity budget, not even alone: {' · '.join(figures)}",
        hint="ask for less (a lower rate, fewer connections), or for a budget that this machine can keep: "
        "--set budget.delay_error_p99=5ms",
    )
