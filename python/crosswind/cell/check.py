"""Checks a study's cells: one `crosswind-cell --check` judges them all, and fills in defaults.

A refusal becomes a StudyError in the author's words: the place, the study's own key and value, its levels, and
crosswind-cell's hint.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from crosswind.catalog import Carrier, catalog
from crosswind.catalog.endpoints import EMULATOR, NETWORK, all_peers_of, is_virtual, starting_ns
from crosswind.catalog.path_effect import NO_EFFECT, PathEffect
from crosswind.catalog.warning import ResultWarning
from crosswind.cell.binary import REINSTALL
from crosswind.cell.clocks import Clock, clock_for
from crosswind.cell.forecast import HOUR_NS, Demand, Forecast, deadline_ns, disk_bytes, forecast
from crosswind.cell.kernels import Kernel, find_kernel
from crosswind.cell.others import refusal_of_programs
from crosswind.cell.refusal import Refusal, refusal_error
from crosswind.cell.spec import cell_json
from crosswind.errors import EngineError
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.plan import PlanItem

START_TIMEOUT_S = 30.0
TIMEOUT_OF_A_CELL_S = 0.01
KEPT_STDERR_BYTES = 1000

MOST_PACKETS = 1_000_000
"""A cell with more data than this many packets gets no time breakdown: it would cover hardly any exchange."""


@dataclass(frozen=True)
class _Checked:
    """The `checked` event."""

    event: Literal["checked"]
    index: int
    cell: dict[str, Any]
    demand: Demand
    exact: bool
    repeats_losses: bool
    warnings: tuple[ResultWarning, ...]


@dataclass(frozen=True, kw_only=True)
class _Refused(Refusal):
    """The `refused` event."""

    event: Literal["refused"]
    index: int


_Answer = _Checked | _Refused


@dataclass(frozen=True)
class CheckedCell:
    """An accepted cell.

    Attributes: cell: the study's. parameters: with every default filled in. demand: its traffic and path, for
        forecasts. exact: whether it runs in virtual time and nothing in it is random, so every repetition is the same.
        repeats_losses: whether it runs in virtual time, and repetitions that lose the same packets are the same.
        warnings: known before it runs.
    """

    cell: Cell
    parameters: Mapping[str, Any] = field(repr=False)
    demand: Demand
    exact: bool
    repeats_losses: bool
    warnings: tuple[ResultWarning, ...]

    @property
    def is_virtual(self) -> bool:
        """Whether it runs in virtual time."""
        return is_virtual(self.parameters)

    @property
    def effect(self) -> PathEffect:
        """Its path's effect; none known for a real network."""
        return NO_EFFECT if self.is_over_network else PathEffect(self.demand.forward, self.demand.reverse)

    @cached_property
    def forecast(self) -> Forecast:
        """One run's costs."""
        return forecast(self.demand, self.parameters)

    @property
    def is_over_network(self) -> bool:
        """Whether it runs over a real network, without forecasts."""
        return bool(self.parameters["path"]["backend"] == NETWORK)

    @property
    def tells_spent(self) -> bool:
        """Whether it records time breakdowns: not where most packets are certain to be left out.

        The cell itself keeps no more packets than its guest's memory takes, and warns where it left some out.
        """
        emulated = self.parameters["path"]["backend"] == EMULATOR
        return bool(emulated) and self.forecast.fewest_packets <= MOST_PACKETS

    @property
    def is_known(self) -> bool:
        """Whether its traffic has a forecast; a user's program has none."""
        return self.demand.traffic.pattern != "unknown"

    @property
    def deadline_ns(self) -> int:
        """When a run of it is given up."""
        within_ns = deadline_ns(self.demand, self.forecast, peers=len(all_peers_of(self.parameters)))
        return min(within_ns + starting_ns(self.parameters), 24 * HOUR_NS)

    def disk_bytes(self, *, packets: bool, capture: bool) -> int:
        """One run's bytes on the disk, roughly."""
        return disk_bytes(self.demand, self.forecast, packets=packets, capture=capture)

    def for_run(
        self,
        item: PlanItem,
        *,
        packets: bool = False,
        spent: bool = False,
        keys: bool = False,
        capture: bool = False,
        qlog: bool = False,
        profile: bool = False,
    ) -> dict[str, Any]:
        """The cell protocol's object for one planned run, without its directory.

        `qlog` is only for QUIC transports; `spent`, the time breakdown, only for packets that can be kept.
        """
        transport = catalog().transports.get(self.parameters["workload"].get("transport"))
        is_quic = transport is not None and transport.carrier is Carrier.QUIC
        return {
            **self.parameters,
            "id": item.key,
            "seed": item.seed,
            "output": {
                "directory": None,
                "packets": packets,
                "spent": spent and self.tells_spent,
                "keys": keys,
                "capture": capture,
                "qlog": qlog and is_quic,
                "profile": profile,
            },
            "deadline_ns": self.deadline_ns,
        }


def preflight_warnings(checked: Sequence[CheckedCell]) -> dict[ResultWarning, list[int]]:
    """Preflight warnings, with cell indices."""
    cells: dict[ResultWarning, list[int]] = {}
    for cell in checked:
        for warning in cell.warnings:
            cells.setdefault(warning, []).append(cell.cell.index)
    return cells


def preflight_sentences(checked: Sequence[CheckedCell]) -> Iterator[str]:
    """The same in words."""
    for warning, cells in preflight_warnings(checked).items():
        some = f"in {len(cells)} of {len(checked)} cells, " if len(cells) < len(checked) else ""
        yield f"{some}{warning.sentence}"


def check_study(study: Study, *, binary: Path) -> tuple[CheckedCell, ...]:
    """A study's cells by index, filled in by crosswind-cell.

    Raises: StudyError, with its place, for an impossible cell. EngineError without an answer.
    """
    cells = tuple(study.cells())
    budget = study.budget
    # Each reads files, and cells share most answers.
    clock_of, kernel_of, refused_programs = cache(clock_for), cache(find_kernel), refusal_of_programs(binary)
    asked = [_on_its_clock({**cell_json(cell, budget), "id": f"c{cell.index:03d}"}, clock_of) for cell in cells]
    answers = _ask([json.dumps(cell) for cell in asked], binary)
    refused: dict[int, Refusal] = {}
    for answer in answers:
        refusal = (
            answer
            if isinstance(answer, _Refused)
            else refused_programs(answer.cell) or _missing_in_guest(asked[answer.index], kernel_of)
        )
        if refusal is not None:
            refused[cells[answer.index].index] = refusal
    if refused:
        raise refusal_error(study, cells, refused)
    checked = [answer for answer in answers if isinstance(answer, _Checked)]
    return tuple(
        CheckedCell(
            cell,
            said.cell,
            said.demand,
            said.exact and is_virtual(said.cell),
            said.repeats_losses and is_virtual(said.cell),
            said.warnings,
        )
        for cell, said in zip(cells, checked, strict=True)
    )


def _missing_in_guest(cell: Mapping[str, Any], kernel_of: Callable[[], Kernel]) -> Refusal | None:
    """A feature missing in the virtual-time kernel, if any.

    crosswind-cell checks the machine's own kernel.
    """
    host = cell["host"]
    wanted = host.get("congestion_control")
    if host.get("clock") != "virtual" or wanted is None:
        return None
    kernel = kernel_of()
    if kernel.congestion_controls is None or wanted in kernel.congestion_controls:
        return None
    return Refusal(
        key="host.congestion_control",
        problem=f"is not offered by the kernel of virtual time ({kernel.release})",
        hint=f"it offers: {' '.join(sorted(kernel.congestion_controls))}",
    )


def _on_its_clock(cell: dict[str, Any], clock_of: Callable[[str], Clock]) -> dict[str, Any]:
    """The cell with its clock instead of `auto`. Raises: EngineError without its kernel."""
    host = cell["host"]
    wanted = host.get("clock", "auto")
    # A real network takes no namespace, and so no other clock.
    is_here = cell["path"].get("backend") != NETWORK
    if wanted == "virtual" or (wanted == "auto" and is_here):
        return {**cell, "host": {**host, "clock": clock_of(wanted)}}
    return cell


def _ask(lines: Sequence[str], binary: Path) -> list[_Answer]:
    """crosswind-cell's answer for each cell, one JSON value a line."""
    try:
        process = subprocess.run(
            [binary, "--check"],
            input="\n".join(lines).encode(),
            capture_output=True,
            timeout=START_TIMEOUT_S + TIMEOUT_OF_A_CELL_S * len(lines),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        text = f"{binary} --check has not answered within {error.timeout:.0f} s"
        raise EngineError(text, hint="is the machine overloaded? Try again, or with fewer cells") from None
    except OSError as error:
        raise EngineError(f"cannot run {binary} --check: {error.strerror}", hint=REINSTALL) from error
    try:
        answers = [_answer_reader().validate_json(line) for line in process.stdout.splitlines() if line.strip()]
    except ValidationError as error:
        text = f"{binary} --check says what this version does not read: {str(error).splitlines()[0]}"
        raise EngineError(text, hint=REINSTALL) from None
    if process.returncode not in (0, 2) or [answer.index for answer in answers] != list(range(len(lines))):
        said = process.stderr[-KEPT_STDERR_BYTES:].decode(errors="replace").strip()
        text = f"{binary} --check ended with status {process.returncode} after {len(answers)} of {len(lines)} cells"
        raise EngineError(f"{text}: {said}" if said else text, hint=REINSTALL)
    return answers


@cache
def _answer_reader() -> TypeAdapter[_Answer]:
    return TypeAdapter(Annotated[_Answer, Field(discriminator="event")])
