"""What names a cluster of Dask: `--on local:4`, `tcp://HOST:PORT`, a scheduler's file, `slurm:8`."""

import json
import re
from pathlib import Path

from crosswind.damage import NOT_WHAT_WAS_WRITTEN
from crosswind.errors import UsageError
from crosswind.regular_files import read_regular

QUEUES = {
    name: ("dask_jobqueue", f"{name.upper() if name != 'htcondor' else 'HTCondor'}Cluster", "dask-jobqueue")
    for name in ("slurm", "pbs", "sge", "lsf", "oar", "htcondor")
} | {"k8s": ("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes")}
"""Clusters that Dask starts as its configuration says: module, class and package by name."""

HINT = (
    f"--on takes local[:N], tcp://HOST:PORT, tls://HOST:PORT, a scheduler file (.json), or {', '.join(QUEUES)} with :N"
)
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}")
_MOST_WORKERS = 10_000
_MOST_BYTES = 1 << 20


def scheduler_of(on: str) -> str | None:
    """The address of a scheduler that is there already; None for a cluster that is to be started.

    Raises: UsageError for what names no cluster, or a scheduler's file that cannot be read: nothing waits for it.
    """
    kind, colon, count = on.partition(":")
    if on.endswith(".json"):
        try:
            on = str(json.loads(read_regular(Path(on), _MOST_BYTES))["address"])
        except OSError as error:
            raise UsageError(f"cannot read the scheduler file {on}: {error.strerror}", hint=HINT) from None
        except NOT_WHAT_WAS_WRITTEN:
            raise UsageError(f"{on} is no scheduler file: it has no address", hint=HINT) from None
    elif kind not in ("tcp", "tls"):
        if kind not in ("local", *QUEUES):
            raise UsageError(f"there is no cluster {on!r}", hint=HINT)
        if colon and not (re.fullmatch("[0-9]{1,5}", count) and 0 < int(count) <= _MOST_WORKERS):
            raise UsageError(f"{on}: {count!r} is no number of workers", hint=HINT)
        return None
    if _ADDRESS.fullmatch(on) is None:
        raise UsageError(f"{on} is not the address of a scheduler", hint=HINT)
    return on
