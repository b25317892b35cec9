"""Names for a Dask cluster: `--on local:4`, `tcp://HOST:PORT`, a scheduler's file, `slurm:8`."""

import json
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from crosswind.errors import EngineError, UsageError
from crosswind.files.damage import NOT_WHAT_WAS_WRITTEN
from crosswind.files.regular_files import read_regular

QUEUES = {
    name: ("dask_jobqueue", f"{name.upper() if name != 'htcondor' else 'HTCondor'}Cluster", "dask-jobqueue")
    for name in ("slurm", "pbs", "sge", "lsf", "oar", "htcondor")
} | {"k8s": ("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes")}
"""Clusters started by Dask as configured: module, class and package by name."""

HINT = (
    f"--on takes local[:N], tcp://HOST:PORT, tls://HOST:PORT, a scheduler file (.json), or {', '.join(QUEUES)} with :N"
)
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}")
_MOST_WORKERS = 10_000
_MOST_BYTES = 1 << 20
_CONNECT_S = 10
_MOST_PORT = 65_535


def scheduler_of(on: str) -> str | None:
    """A running scheduler's address; None for a cluster to be started.

    Raises: UsageError for an unknown cluster, or an unreadable scheduler's file: nothing waits for it.
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
    if not on.isascii() or _ADDRESS.fullmatch(on) is None or int(on.rpartition(":")[2]) > _MOST_PORT:
        raise UsageError(f"{ascii(on)[1:-1]} is not the address of a scheduler", hint=HINT)
    return on


def check_cluster(on: str) -> None:
    """Asks whether a scheduler listens, before anything is written. Raises: UsageError; EngineError where none does."""
    address = scheduler_of(on)
    if address is None:
        return
    place = urlsplit(address)
    try:
        socket.create_connection((place.hostname, place.port), timeout=_CONNECT_S).close()
    except OSError as error:
        raise EngineError(
            f"cannot reach the cluster {on}: {error.strerror or error}", hint="is its scheduler running there?"
        ) from None
