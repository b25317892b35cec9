"""Which clock a cell gets: the machine's, where it lets cells run, else that of a kernel of virtual time."""

from functools import cache
from pathlib import Path
from typing import Literal

from crosswind.cell.binary import find_binary
from crosswind.cell.kernels import find_kernel

Clock = Literal["real", "virtual"]

_CAPABILITIES = 1 << 12 | 1 << 21
"""CAP_NET_ADMIN and CAP_SYS_ADMIN: what namespaces and devices take."""


def clock_for(wanted: str, kernel: str | None = None) -> Clock:
    """What `host.clock` means on this machine. Args: kernel: `host.kernel`.

    Raises: EngineError when it is virtual time and there is no such kernel.
    """
    if wanted == "real" or (wanted == "auto" and real_time_is_possible()):
        return "real"
    find_kernel(kernel)
    return "virtual"


@cache
def real_time_is_possible() -> bool:
    """Whether cells can make their hosts and their path here: as root, or as root of a user namespace."""
    if not Path("/dev/net/tun").exists():
        return False
    if _capabilities() & _CAPABILITIES == _CAPABILITIES:
        return True
    # Imported here: only those who are not root need it.
    from crosswind.cell.doctor import cells_can_run

    return cells_can_run(find_binary())


def _capabilities() -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
