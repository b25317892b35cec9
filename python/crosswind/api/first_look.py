"""`--quick` on this machine: a study's quick variant, in virtual time wherever it answers as well.

Virtual time costs seconds where the real clock costs minutes, so a first look can afford enough repetitions.
"""

import math

from crosswind.catalog.metrics import METRICS, MetricPlace
from crosswind.cell.binary import find_binary
from crosswind.cell.check import check_study
from crosswind.cell.kernels import installed_kernel
from crosswind.errors import EngineError
from crosswind.execution.planning import plan_costs
from crosswind.peers.registry import NATIVE, PEERS
from crosswind.study.cells import Cell
from crosswind.study.circumstances import ENDS
from crosswind.study.design import Study
from crosswind.study.edits import QUICK_REPETITIONS
from crosswind.study.plan import Plan

_KEY = "host.clock"
NOTE = "The quick variant runs in virtual time; --clock real runs it on the machine's clock."
_DECIDES, _MINUTE_S = 6, 60.0
"""The fewest pairs for a sign test at 5 %, and the longest first look on the machine's clock."""
_FEW = (
    f"On the machine's clock {_DECIDES} repetitions take longer than a minute: {QUICK_REPETITIONS} run, and decide "
    "little; add --clock virtual."
)


def as_run_here(study: Study, *, quick: bool, clock: str | None = None) -> tuple[Study, tuple[str, ...]]:
    """A study, or its quick variant, as this machine runs it. Args, Returns, Raises: as of `first_look`."""
    if quick:
        return first_look(study, clock=clock)
    here = study.on_this_machine()
    return here, here.left_out


def first_look(study: Study, *, clock: str | None = None) -> tuple[Study, tuple[str, ...]]:
    """A study's quick variant on this machine.

    Args:    clock: the caller's choice, if any.
    Returns: the study, and its changes in sentences, for notes.
    Raises:  StudyError.
    """
    quick = study.quick().on_this_machine()
    notes = quick.left_out
    if asks_the_machine(quick) or clock == "virtual":
        return quick, notes
    if clock is None and has_kernel():
        return quick.with_overrides({_KEY: "virtual"}, flags={_KEY: "--quick"}), (*notes, NOTE)
    if quick.repetitions <= QUICK_REPETITIONS:
        return quick, notes
    decides = _repeated(quick, min(quick.repetitions, _DECIDES))
    if _takes_s(decides) <= _MINUTE_S:
        return decides, notes
    return _repeated(quick, QUICK_REPETITIONS), (*notes, _FEW)


def _repeated(quick: Study, times: int) -> Study:
    """The quick variant with another number of repetitions."""
    return quick.with_overrides({"study.repetitions": times}, flags={"study.repetitions": "--quick"})


def _takes_s(study: Study) -> float:
    """How long a run of a study takes here, by forecast. Raises: StudyError for an impossible cell."""
    try:
        checked = check_study(study, binary=find_binary())
    except EngineError:
        return math.inf
    return plan_costs(Plan.of(study), checked).wall_ns / 1e9


def asks_the_machine(study: Study) -> bool:
    """Whether a study is about a machine, or chooses its clock itself, so virtual time would not answer it.

    Its first question decides: one about processor time needs the real clock.
    """
    cells = list(study.every_cell())
    if study.profile or any("host.clock" in cell.settings or _runs_strangers(cell) for cell in cells):
        return True
    first = next(iter(study.findings["question"]), None)
    metric = METRICS.get(str(getattr(first, "metric", "")))
    return metric is not None and metric.place is MetricPlace.PROCESSOR


def _runs_strangers(cell: Cell) -> bool:
    """Whether a cell runs programs that Crosswind does not know, whose processor time may be what matters."""
    ends = [cell.settings[end].text for end in ENDS if end in cell.settings]
    return cell.kind == "program" or any(end not in (NATIVE, *PEERS) for end in ends)


def has_kernel() -> bool:
    """Whether the virtual-time kernel is here."""
    return installed_kernel() is not None
