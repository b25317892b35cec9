"""Setup for a local cluster's worker: it leaves the terminal's process group, so Ctrl-C ends only the study.

It starts with interrupts blocked; its cells must not inherit this.
"""

import os
import signal


def dask_setup(_worker: object) -> None:
    """Called by Dask in the worker's process."""
    os.setpgid(0, 0)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # An earlier one is dropped.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, before)
