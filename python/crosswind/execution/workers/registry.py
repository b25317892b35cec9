"""The workers that there are."""

from collections.abc import Sequence
from pathlib import Path

from crosswind.execution.workers.local import LocalWorker
from crosswind.execution.workers.virtual import VirtualWorker
from crosswind.execution.workers.worker import Worker
from crosswind.store.directory import Store


def workers_of(store: Store, *, binary: Path, jobs: int | None) -> Sequence[Worker]:
    """The workers of one session, with what the store misses.

    Args: binary: of crosswind-cell. jobs: cells at a time, fixed by hand; None for as many as a worker allows.
    """
    missing = store.missing()
    return [
        LocalWorker(store, missing, binary=binary, jobs=jobs),
        VirtualWorker(missing, binary=binary, jobs=jobs),
    ]
