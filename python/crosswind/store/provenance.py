"""A run's origin: versions, machine, kernel settings.

Possible influences on a result are recorded, the user's name is not.
"""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from crosswind.text.version import __version__

_PACKAGES = ("altair", "numpy", "polars", "scipy")
_TCP = Path("/proc/sys/net/ipv4")

_SYSCTLS = (
    "net/core/default_qdisc",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/somaxconn",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_ecn",
    "net/ipv4/tcp_early_retrans",
    "net/ipv4/tcp_fastopen",
    "net/ipv4/tcp_mem",
    "net/ipv4/tcp_no_metrics_save",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/tcp_wmem",
    "kernel/sched_rt_runtime_us",
)
"""Of the machine. A cell sets its own in its own namespaces and reads them back into its `readback`."""


def provenance(
    binary: Path, *, command: Sequence[str], seed: int, started: str, programs: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A run's surroundings.

    Args: binary: crosswind-cell. command: the command line. started: UTC, as stored. programs: values for placeholders
        in argument lists.
    Returns: {"command", "seed", "started", "versions", "machine", "sysctls"}, and "programs" if a placeholder was used;
        null where unreadable.
    """
    meanings = {name.strip("{}"): without_home(path) for name, path in (programs or {}).items()}
    known = surroundings(command=command, started=started, binary=binary)
    return {
        "command": known.pop("command"),
        "seed": seed,
        **known,
        **({"programs": meanings} if meanings else {}),
    }


def surroundings(*, command: Sequence[str], started: str, binary: Path | None = None) -> dict[str, Any]:
    """As `provenance`, without a seed, for measurements without a plan.

    Args: binary: crosswind-cell; None if unused.
    """
    return {
        "command": [without_home(word) for word in command],
        "started": started,
        "versions": _versions(binary),
        "machine": _machine(),
        "sysctls": {name.replace("/", "."): _first_line(Path("/proc/sys") / name) for name in _SYSCTLS},
    }


def _versions(binary: Path | None) -> dict[str, str | None]:
    return {
        "crosswind": __version__,
        **({"crosswind_cell": cell_version(binary)} if binary else {}),
        "python": platform.python_version(),
        **{name: _package_version(name) for name in _PACKAGES},
    }


def _machine() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu_model": _field("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "virtualisation": _virtualisation(),
        "clock_source": _first_line(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "congestion_control": _first_line(_TCP / "tcp_congestion_control"),
        "congestion_controls": (_first_line(_TCP / "tcp_available_congestion_control") or "").split(),
    }


def _virtualisation() -> str | None:
    """The hypervisor's name, or None: an absence proves nothing."""
    name = _first_line(Path("/sys/class/dmi/id/product_name"))
    if name and re.search(
        r"kvm|qemu|vmware|virtualbox|hvm|virtual machine|compute engine|droplet", name, re.IGNORECASE
    ):
        return name
    flags = _field("/proc/cpuinfo", "flags") or ""
    return "hypervisor" if "hypervisor" in flags.split() else None


def cell_version(binary: Path) -> str | None:
    """The version printed by crosswind-cell; None without an answer."""
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip().rpartition(" ")[2] or None


def _package_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0].strip() or None
    except OSError:
        return None


def _field(path: str, name: str) -> str | None:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    line = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
    return line[1].strip() if line else None


def without_home(word: str) -> str:
    """The word without the user's home directory: a published run should not name its user."""
    home = str(Path.home())
    # Not of /root-cause, where the home is /root.
    return re.sub(rf"{re.escape(home)}(?![\w.-])", "~", word) if len(home) > 1 else word


def command_line() -> list[str]:
    """This process's, with the program's bare name."""
    return [Path(sys.argv[0]).name or "python", *sys.argv[1:]]
