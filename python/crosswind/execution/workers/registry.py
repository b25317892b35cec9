"""The workers."""

from collections.abc import Sequence
from pathlib import Path

from crosswind.execution.workers.local import LocalWorker
from crosswind.execution.workers.virtual import VirtualWorker
from crosswind.execution.workers.worker import Worker
from crosswind.store.directory import Store
from crosswind.store.program_files import directory_of


def workers_of(store: Store, *, binary: Path, jobs: int | None, on: str | None = None) -> Sequence[Worker]:
    """One session's workers, with the store's missing repetitions.

    Args: binary: crosswind-cell. jobs: fixed concurrency; None for as many as a worker allows. on: the cluster; None
        for this machine.
    Raises: EngineError for an unreachable cluster.
    """
    missing = store.missing()
    if on is not None:
        from crosswind.execution.workers.dask import DaskWorker

        return [DaskWorker(missing, on=on, jobs=jobs)]
    directory = directory_of(store.manifest.provenance)
    return [
        LocalWorker(store, missing, binary=binary, jobs=jobs, directory=directory),
        VirtualWorker(missing, binary=binary, jobs=jobs, directory=directory),
    ]
