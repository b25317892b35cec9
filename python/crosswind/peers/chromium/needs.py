"""What Chromium can be asked for on this machine."""

from collections.abc import Mapping
from typing import Any

from crosswind.peers.chromium.job import check_workload
from crosswind.peers.node.install import socketio_bundle


def check(end: str, workload: Mapping[str, Any]) -> None:
    """Raises: CrosswindError for a workload that a browser cannot run, or whose client of Socket.IO is missing."""
    check_workload(end, workload)
    if workload["transport"].startswith("socketio-"):
        socketio_bundle()
