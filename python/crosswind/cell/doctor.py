"""This machine's abilities, with remedies.

`crosswind-cell --probe` tries the kernel's features; the rest are programs on PATH and this Python's packages.
"""

import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from crosswind.cell.binary import REINSTALL, find_binary
from crosswind.cell.guests import try_kernel
from crosswind.cell.kernels import Kernel, build_hint, installed_kernel, kernels_directory
from crosswind.errors import CrosswindError, EngineError
from crosswind.peers.find_program import find_program, program_version
from crosswind.peers.node.install import deno_version, package_versions

REQUIRED = frozenset({"python", "crosswind-cell", "namespaces", "tun"})
"""Required for the machine's clock. Everything else widens or improves measurements."""

_DOCTOR = re.compile(r"(?:[;,] )?(?:or )?`crosswind doctor`[^;,]*")

VIRTUAL_TIME = "virtual time"
"""The check for the other clock; it needs only crosswind-cell."""

_NAMES = {
    "namespaces": "network namespaces",
    "user_namespaces": "namespaces without root",
    "tun": "TUN devices",
    "realtime": "real-time priority",
    "memory_lock": "locked memory",
    "netem": "netem",
    "congestion_controls": "congestion controls",
    "cpus": "cores",
    "kernel": "kernel",
}

_PROGRAMS: tuple[tuple[str, str], ...] = (
    ("chromium", "needed for the peer chromium; `crosswind browser install`"),
    ("node", "needed for the peer node; `crosswind browser install`"),
    ("tshark", "needed to read captures; `apt install tshark`"),
    ("iperf3", "needed to check rates independently; `apt install iperf3`"),
)

_PACKAGES: tuple[tuple[str, str], ...] = (
    ("websocket-client", "needed for the study client-profile; `pip install websocket-client`"),
)


@dataclass(frozen=True)
class MachineCheck:
    """One ability. `required`: whether cells need it. `hint`: the remedy, when not ok."""

    name: str
    ok: bool
    required: bool
    detail: str
    hint: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All checks of a machine."""

    checks: list[MachineCheck]

    @property
    def ok(self) -> bool:
        """Whether a cell can run, on one of the clocks."""
        return self.on_the_machines_clock or any(check.ok for check in self.checks if check.name == VIRTUAL_TIME)

    @property
    def on_the_machines_clock(self) -> bool:
        """Whether a cell can run on the machine's clock."""
        return all(check.ok for check in self.checks if check.required)

    def as_json(self) -> dict[str, Any]:
        """The published shape, `crosswind.doctor/1`."""
        return {"schema": "crosswind.doctor/1", "ok": self.ok, "checks": [asdict(check) for check in self.checks]}


def examine_machine() -> Diagnosis:
    """Checks this machine's abilities. Takes a second or two and changes nothing."""
    checks = [_python(), *_cell(), _virtual_time(), *(_program(*program) for program in _PROGRAMS)]
    checks.append(_optional("npm packages", "needed for the peers node and deno, and Socket.IO", _npm_packages))
    checks.append(_optional("deno", "needed for the peer deno", deno_version))
    checks += [_optional(name, use, partial(metadata.version, name)) for name, use in _PACKAGES]
    return Diagnosis([replace(check, hint=_without_doctor(check.hint)) for check in checks])


def _without_doctor(hint: str | None) -> str | None:
    """A hint without the clause naming this command: its reader has just called it."""
    return None if hint is None else _DOCTOR.sub("", hint) or None


def obstacle_to_cells(binary: Path) -> EngineError | None:
    """Why this machine does not let a cell make its hosts and its path, if so.

    Raises: EngineError when nobody can say.
    """
    findings = _probe(binary)
    unsaid = "crosswind-cell does not say whether it can make networks"
    unknown = MachineCheck("", False, True, unsaid, REINSTALL)
    needed = [findings.get("privilege"), findings.get("namespaces", unknown), findings.get("tun", unknown)]
    problem = next((check for check in needed if check is not None and not check.ok), None)
    return None if problem is None else EngineError(problem.detail, hint=problem.hint)


def _python() -> MachineCheck:
    ok = sys.version_info >= (3, 11)
    return MachineCheck("python", ok, True, platform.python_version(), None if ok else "install Python 3.11 or later")


def _cell() -> list[MachineCheck]:
    try:
        binary = find_binary()
        probe = _probe(binary)
    except CrosswindError as error:
        return [MachineCheck("crosswind-cell", False, True, error.message, error.hint)]
    return [MachineCheck("crosswind-cell", True, True, _shown(binary)), *probe.values()]


def _virtual_time() -> MachineCheck:
    kernel = installed_kernel()
    if kernel is None:
        return MachineCheck(VIRTUAL_TIME, False, False, f"no kernel in {_shown(kernels_directory())}", build_hint())
    try:
        try_kernel(kernel, find_binary())
    except CrosswindError as error:
        return MachineCheck(VIRTUAL_TIME, False, False, error.message, error.hint)
    described = f"Linux {kernel.release} from {_origin(kernel)}{_own_randomness()}"
    return MachineCheck(VIRTUAL_TIME, True, False, described)


def _own_randomness() -> str:
    """What a guest cannot hide of this processor, if it has that."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    return "; a program that asks the processor for randomness (rdrand) is not repeatable" if " rdrand" in flags else ""


def _origin(kernel: Kernel) -> str:
    path = Path(kernel.origin)
    return _shown(path) if path.is_absolute() else kernel.origin


def _probe(binary: Path) -> dict[str, MachineCheck]:
    """`crosswind-cell --probe`, by key. Raises: EngineError without an answer."""
    try:
        answer = subprocess.run([binary, "--probe"], capture_output=True, text=True, timeout=30, check=True)
        probe = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EngineError(f"{binary} --probe did not answer: {error}", hint=REINSTALL) from error
    if not isinstance(probe, dict):
        raise EngineError(f"{binary} --probe did not print an object", hint=REINSTALL)
    return {
        key: MachineCheck(
            name=_NAMES.get(key, key.replace("_", " ")),
            ok=bool(outcome["ok"]),
            required=key in REQUIRED,
            detail=str(outcome.get("detail", "")),
            hint=None if outcome["ok"] else outcome.get("hint"),
        )
        for key, outcome in probe.items()
        if isinstance(outcome, dict) and "ok" in outcome
    }


def _optional(name: str, use: str, find: Callable[[], str | None]) -> MachineCheck:
    """Args: find: describes it; None or EngineError without it, PackageNotFoundError for a package."""
    try:
        found = find()
    except EngineError as error:
        return MachineCheck(name, False, False, "not found", f"{use}; {error.hint}")
    except metadata.PackageNotFoundError:
        found = None
    if found is None:
        return MachineCheck(name, False, False, "not found", use)
    return MachineCheck(name, True, False, found)


def _program(name: str, use: str) -> MachineCheck:
    try:
        program = find_program(name)
    except EngineError as error:
        return MachineCheck(name, False, False, error.message, error.hint)
    return _optional(name, use, lambda: program and (program_version(program) or program))


def _npm_packages() -> str:
    return ", ".join(f"{name} {version}" for name, version in package_versions().items())


def _shown(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
