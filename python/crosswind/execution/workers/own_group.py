"""What a worker of a local cluster does first: it leaves the terminal's group, whose Ctrl-C ends the study and not it.

It was started with interrupts held back, which the cells that it runs must not be.
"""

import os
import signal


def dask_setup(_worker: object) -> None:
    """Called by Dask in the process of the worker."""
    os.setpgid(0, 0)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # One that came before is dropped.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, before)
