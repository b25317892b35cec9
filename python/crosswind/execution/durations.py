"""Where it is kept what runs really took, so that `crosswind plan` forecasts better: a file in the user's cache.

`timekeeper` measures it.

It is a help and nothing else: a run never fails for it. Where it is missing or damaged forecasts are computed as if
nothing had been measured, and the next run begins it anew.
"""

import fcntl
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from crosswind.cache import cache_directory
from crosswind.ends import peers_of
from crosswind.execution.admission import CAPACITY
from crosswind.forecast.cost import Forecast, makespan_ns, virtual_wall_ns
from crosswind.forecast.kinds import CellTime, Kind, company, key_of, plan_key
from crosswind.forecast.learned import Durations
from crosswind.regular_files import read_regular
from crosswind.store.manifest import Session
from crosswind.store.plan import PlannedCell

VARIABLE = "CROSSWIND_DURATIONS"
OFF = "off"

AT_A_TIME = 3
"""Cells for each processor that a forecast lets run at a time: measured on a virtual machine were 1 to 4, as means of
sessions. What runs tells more."""


def durations_file() -> Path | None:
    """Where durations are kept; None where nothing is to be learned."""
    named = os.environ.get(VARIABLE)
    if named == OFF:
        return None
    return Path(named) if named else cache_directory() / "durations.json"


def read_durations() -> Durations:
    """What was learned on this machine; nothing where the file is missing or damaged."""
    file = durations_file()
    try:
        return Durations() if file is None else Durations.from_json(json.loads(read_regular(file)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Durations()


def learn(change: Callable[[Durations], None]) -> None:
    """Changes what was learned. Several runs may do so at a time; where the file cannot be written, nothing is."""
    file = durations_file()
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _locked(file):
            durations = read_durations()
            change(durations)
            part = file.with_name(f"{file.name}.part")
            part.write_text(json.dumps(durations.as_json(), separators=(",", ":")), encoding="utf-8")
            part.rename(file)
    except OSError:
        return


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    lock = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def cell_time(planned: PlannedCell) -> CellTime:
    """What tells a planned repetition's cell from others, and what it is computed to take."""
    return cell_time_of(planned.parameters, forecast_of(planned))


def forecast_of(planned: PlannedCell) -> Forecast:
    """What a repetition was forecast to take when it was planned."""
    return Forecast(
        planned.expected_ns,
        planned.expected_packets,
        planned.expected_bytes,
        planned.expected_load,
        planned.undelayed,
        alone=planned.is_over_network,
    )


def cell_time_of(parameters: Mapping[str, Any], forecast: Forecast) -> CellTime:
    """The same of a cell as crosswind-cell takes it."""
    kind = Kind.of(parameters)
    is_virtual = kind.clock == "virtual"
    predicted_s = virtual_s(parameters, forecast) if is_virtual else forecast.duration_ns / 1e9
    return CellTime(key_of(parameters), kind, predicted_s, alone=forecast.runs_alone and not is_virtual)


def virtual_s(parameters: Mapping[str, Any], forecast: Forecast) -> float:
    """What a cell is computed to take of the machine's time in virtual time, in seconds."""
    return virtual_wall_ns(forecast, peers_of(parameters).values()) / 1e9


def learned_s(repetitions: Iterable[PlannedCell]) -> dict[int, float]:
    """What a repetition of each of some cells takes in seconds, by what was learned on this machine."""
    durations = read_durations()
    return {planned.cell: durations.cell_s(cell_time(planned))[0] for planned in one_of_each(repetitions)}


def process_age_s() -> float:
    """For how many seconds this process has run."""
    stat = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace")
    # After the name, which is in parentheses and may hold anything, come the fields from the third on.
    started_ticks = int(stat.rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")


def learn_around(session: Session, plan: Iterable[PlannedCell]) -> None:
    """Learns what this process, a command that is about to end, took before and after a session that ran a plan."""
    if session.ended is None:
        return
    took_s = (datetime.fromisoformat(session.ended) - datetime.fromisoformat(session.started)).total_seconds()
    seconds = process_age_s() - took_s
    key = key_of_plan(plan)
    if seconds > 0:
        learn(lambda durations: durations.learn_around(key, seconds))


def key_of_plan(plan: Iterable[PlannedCell]) -> str:
    """What tells a plan from others: which cells it runs, and how often."""
    repetitions = list(plan)
    keys = {planned.cell: key_of(planned.parameters) for planned in one_of_each(repetitions)}
    return plan_key(keys[planned.cell] for planned in repetitions)


def one_of_each(repetitions: Iterable[PlannedCell]) -> Iterable[PlannedCell]:
    """One repetition of each cell: they differ in what tells no cell from others."""
    return {planned.cell: planned for planned in repetitions}.values()


def company_of(run: Forecast, clock: str) -> str:
    """With which repetitions of a session on a clock a run is under way, as `company` names them.

    In virtual time none runs alone.
    """
    return company(clock, alone=run.runs_alone and clock == "real")


def computed_s(runs: Iterable[Forecast], clock: str) -> dict[str, float]:
    """What the runs of each company take together, in seconds."""
    companies: defaultdict[str, list[Forecast]] = defaultdict(list)
    for run in runs:
        companies[company_of(run, clock)].append(run)
    return {name: _side_by_side_ns(own, virtual=clock == "virtual") / 1e9 for name, own in companies.items()}


def _side_by_side_ns(runs: Sequence[Forecast], *, virtual: bool) -> int:
    """Wall time of runs side by side as far as this machine's processors carry them; `duration_ns` is that of each.

    Args: virtual: whether they are in virtual time, where each keeps one processor busy.
    """
    processors = len(os.sched_getaffinity(0))
    if virtual:
        each = [run.duration_ns for run in runs]
        return max(sum(each) // processors, max(each, default=0))
    return makespan_ns(runs, capacity=CAPACITY * processors, most=AT_A_TIME * processors)
