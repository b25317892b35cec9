"""A cell's clock: the machine's if it allows cells, else a virtual-time kernel's."""

from functools import cache
from pathlib import Path
from typing import Literal

from crosswind.cell.binary import find_binary
from crosswind.cell.kernels import find_kernel
from crosswind.errors import EngineError

Clock = Literal["real", "virtual"]

_CAPABILITIES = 1 << 12 | 1 << 21
"""CAP_NET_ADMIN and CAP_SYS_ADMIN, for namespaces and devices."""


def clock_for(wanted: str) -> Clock:
    """Resolves `host.clock` on this machine.

    Raises: EngineError for virtual time without the kernel; after `auto`, with both clocks' obstacles and remedies.
    """
    if wanted == "real":
        return "real"
    obstacle = real_time_obstacle() if wanted == "auto" else None
    if wanted == "auto" and obstacle is None:
        return "real"
    try:
        find_kernel()
    except EngineError as error:
        if obstacle is None:
            raise
        raise EngineError(
            f"cells can run neither on the machine's clock ({obstacle.message}) nor in virtual time ({error.message})",
            hint=f"for the machine's clock: {obstacle.hint}. For virtual time: {error.hint}",
        ) from error
    return "virtual"


@cache
def real_time_obstacle() -> EngineError | None:
    """Why cells cannot make their hosts and their path here, if so: as root, or as root of a user namespace."""
    device = Path("/dev/net/tun")
    if not device.exists():
        return EngineError(
            f"there is no {device}", hint="load its module (`modprobe tun`), or give it to the container"
        )
    if _is_privileged():
        return None
    # Imported here: trying it takes a while, and root need not.
    from crosswind.cell.doctor import obstacle_to_cells

    return obstacle_to_cells(find_binary())


def _is_privileged() -> bool:
    """Whether nothing can hold this process back: it has the capabilities, and no seccomp filter."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(status.get("CapEff", "0"), 16) & _CAPABILITIES == _CAPABILITIES and status.get("Seccomp", "0") == "0"
