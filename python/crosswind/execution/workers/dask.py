"""Repetitions on a Dask cluster, a task each, on machines equivalent for a cell's outcome.

Dask keeps the queue, moves tasks from a dead machine to another, and shows them on its dashboard. Dask's own
configuration describes a cluster: addresses, TLS, processes per job.
"""

import logging
import os
import shlex
import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from multiprocessing import resource_tracker
from typing import IO, Any

from crosswind.cell.events import CellEvent
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.process import CellEnd
from crosswind.errors import EngineError
from crosswind.execution.admission import ATTEMPTS, Admitted
from crosswind.execution.clusters import HINT, QUEUES, scheduler_of
from crosswind.execution.workers import remote
from crosswind.execution.workers.worker import Launched, RunningCell, Start, Worker
from crosswind.files.safe_path import python_command, safe_children
from crosswind.store.plan import PlannedCell

_CONNECT_S = 30
"""Timeout for a scheduler's answer, and a machine's identity."""
_ANSWER_S = 5.0
"""Wait at a run's beginning for all machines' identities."""
_WAIT_S = 120.0
"""How long the run waits for a cluster without a worker."""
_WAIT_FOR_ANOTHER_S = 10.0
"""Wait while no worker fits the rest."""
_LOOK_S = 1.0
"""Interval between looks at the cluster's machines."""
_AHEAD = 2
"""Repetitions handed over per thread in the cluster: none waits for this process."""
_UNFIT_TRIES = 5
"""Maximum moves after reaching an unfit machine."""

_PRELOAD = "crosswind.execution.workers.own_group"


class DaskWorker(Worker):
    """A cluster for one session.

    Args: on: as in `clusters.HINT`. jobs: cells at a time; None for as many as keep it busy.
    Raises: EngineError for an unreachable cluster.
    """

    def __init__(self, missing: Sequence[PlannedCell], *, on: str, jobs: int | None) -> None:
        refused = next((planned for planned in missing if not self.takes(planned)), None)
        if refused is not None:
            raise EngineError(
                f"{refused.key} runs over the network that is there, which a cluster does not have",
                hint="leave out --on",
            )
        self._ready = deque(missing)
        self._jobs = jobs
        self._attempts: dict[str, int] = {}
        self._session = uuid.uuid4().hex[:12]
        self._wanted = remote.identity()
        with ExitStack() as opened:
            self._cluster, self._client = _connected(on, opened)
            self._opened = opened.pop_all()
        self._machines = _Machines(self._client)
        self._idle_since = time.monotonic()

    def takes(self, planned: PlannedCell) -> bool:
        """Every repetition except over a real network."""
        return not planned.is_over_network

    def add(self, added: Sequence[PlannedCell]) -> None:
        """Appends to the queue."""
        self._ready.extend(added)

    def __len__(self) -> int:
        return len(self._ready)

    def next(self, running: Sequence[RunningCell]) -> Admitted | None:
        """The next repetition with a fitting machine, until the cluster is busy.

        Raises: EngineError after a long time without any fitting machine.
        """
        if running:
            self._idle_since = time.monotonic()
        if not self._ready:
            return None
        most = _AHEAD * self._machines.threads() if self._jobs is None else self._jobs
        if len(running) < most:
            for _ in range(len(self._ready)):
                planned = self._ready.popleft()
                if self._machines.for_cell(planned, self._wanted):
                    return Admitted(planned, beside=len(running))
                self._ready.append(planned)
        if time.monotonic() - self._idle_since > self._machines.longest_wait_s() or self._machines.lost:
            message, hint = self._machines.why_none(self._ready[0], self._wanted)
            raise EngineError(message, hint=hint)
        return None

    def next_wakeup(self) -> float:
        """The next check for machines."""
        return time.monotonic() + _LOOK_S if self._ready else float("inf")

    def start(self, asked: Start) -> Launched:
        """A task."""
        planned = asked.planned
        task = _Task(self._machines, asked, self._wanted, session=self._session)
        return Launched(task, attempt=self._attempts.get(planned.key, 0) + 1)

    def is_to_repeat(self, cell: RunningCell, end: CellEnd, *, is_last: bool) -> bool:
        """A real-clock cell over its fidelity budget, though alone on its machine."""
        if end.finished is None or end.finished.kept_budget is not False or cell.started.attempt >= ATTEMPTS:
            return False
        self._attempts[cell.planned.key] = cell.started.attempt
        if not is_last:
            self._ready.append(cell.planned)
        return True

    def close(self) -> None:
        """Leaves the cluster, and ends it where it was started for this session."""
        self._machines.close()
        with suppress(Exception):  # A dead scheduler needs no farewell.
            self._client.close(timeout=5)
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=10)
        self._opened.close()


class _Task:
    """A repetition as a Dask task. Reports from Dask's threads arrive by a pipe."""

    def __init__(self, machines: "_Machines", asked: Start, wanted: remote.Identity, *, session: str) -> None:
        self._machines = machines
        self._asked = asked
        self._wanted = wanted
        self._session = session
        self._started = time.monotonic()
        self._tries = 0
        self._outcome: remote.Outcome | None = None
        self._failure: Failure | None = None
        self._future: Any = None
        self._places: list[str] = []
        """The fitting machines at its last try."""
        self._next_look = self._stranded_since = float("inf")
        reading, self._writing = os.pipe()
        self._reading: IO[bytes] | None = os.fdopen(reading, "rb", buffering=0)
        self._submit()

    # An execution

    @property
    def done(self) -> bool:
        """Whether its outcome is here."""
        return self._reading is None

    def streams(self) -> list[IO[bytes]]:
        """The pipe."""
        return [] if self._reading is None else [self._reading]

    def next_wakeup(self) -> float:
        """The next check for its machines. The executing machine ends an overdue cell."""
        return self._next_look

    def handle_readable(self, stream: IO[bytes]) -> None:  # noqa: ARG002
        """The outcome is here, or the repetition has to go elsewhere."""
        assert self._reading is not None
        if self._reading.read(1) == b"u":
            self._submit()
            return
        self._close()
        if self._outcome is not None:
            self._write_files(self._outcome)
            end = self._outcome.end
            event: CellEvent | None = end.finished
            if event is not None:
                self._asked.on_event(event)

    def handle_time(self, now: float) -> None:
        """Goes to other machines when all of its own are gone. Dask itself moves it among its own."""
        self._next_look = now + _LOOK_S
        if any(map(self._machines.is_known, self._places)):
            self._stranded_since = float("inf")
            return
        self._stranded_since = min(self._stranded_since, now)
        if self._machines.for_cell(self._asked.planned, self._wanted):
            before = self._future
            self._submit()
            with suppress(Exception):
                before.cancel()
        elif now - self._stranded_since > self._machines.longest_wait_s():
            message, hint = self._machines.why_none(self._asked.planned, self._wanted)
            self._failure = Failure(ErrorKind.NETWORK, message, hint)
            self._close()

    def interrupt(self) -> None:
        """Has the machine interrupt it, and waits no longer."""
        if self.done:
            return
        self._machines.stop(self._session)
        self.kill()

    def kill(self) -> None:
        """Waits no longer."""
        if not self.done:
            self._failure = Failure(ErrorKind.INTERRUPTED, "interrupted", None)
            self._close()
        with suppress(Exception):
            self._future.cancel()

    def end(self) -> CellEnd:
        """How it ended. Its files are in its directory."""
        if self._outcome is not None:
            return self._outcome.end
        return CellEnd(None, self._failure, round((time.monotonic() - self._started) * 1e9))

    # Called from Dask's threads

    def _submit(self) -> None:
        self._tries += 1
        planned = self._asked.planned
        self._places = self._machines.for_cell(planned, self._wanted)
        self._next_look = time.monotonic() + _LOOK_S
        self._future = self._machines.client.submit(
            remote.run_repetition,
            planned.as_json(),
            dict(self._asked.output),
            self._wanted,
            self._session,
            # The dashboard groups by the first part.
            key=(
                " · ".join(planned.levels.values()) or planned.workload,
                f"{planned.key} {self._session} {self._tries}",
            ),
            # An idle worker steals tasks where it may, even a frozen one.
            workers=self._places or None,
            pure=False,
        )
        self._future.add_done_callback(partial(self._handle_done, self._tries))

    def _handle_done(self, number: int, future: Any) -> None:
        if self.done or number != self._tries:
            return
        said = b"d"
        try:
            outcome: remote.Outcome = future.result(timeout=_CONNECT_S)
            self._outcome = outcome
        except remote.UnfitError as error:
            if self._tries < _UNFIT_TRIES:
                said = b"u"
            else:
                self._failure = Failure(ErrorKind.HOST, f"no machine of the cluster takes it: {error}", None)
        except EngineError as error:
            self._failure = Failure(ErrorKind.HOST, error.message, error.hint)
        except BaseException as error:
            self._failure = _failure_of(error)
        with suppress(OSError):
            os.write(self._writing, said)

    # Files

    def _write_files(self, outcome: remote.Outcome) -> None:
        for name, content in outcome.files.items():
            path = self._asked.directory / name
            if not path.resolve().is_relative_to(self._asked.directory.resolve()):
                raise EngineError(f"{outcome.end.machine} sent a file with the path {name!r}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._outcome = replace(outcome, files={})

    def _close(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None
            os.close(self._writing)


class _Machines:
    """A cluster's processes and their identities. A thread tracks arrivals and departures; others query each process.

    A frozen or disconnected process never answers, and nobody waits for it.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._lock = threading.Condition()
        self._known: dict[str, remote.Identity | str] = {}
        self._asked: set[str] = set()
        """Processes asked and still silent."""
        self._fitting: dict[bool, list[str]] = {}
        """Fitting machines by kind of repetition, since the last arrival or departure: a cluster may have thousands."""
        self._threads: dict[str, int] = {}
        self._over = threading.Event()
        self.lost = False
        """Whether the scheduler is gone."""
        self._look()
        with self._lock:
            self._lock.wait_for(lambda: not self._asked, _ANSWER_S)
        self._watch = threading.Thread(target=self._watching, name="crosswind-cluster", daemon=True)
        self._watch.start()

    def is_known(self, address: str) -> bool:
        """Whether a process is there, with a known identity."""
        with self._lock:
            return address in self._known

    def threads(self) -> int:
        """The number of threads in known processes."""
        with self._lock:
            return sum(threads for address, threads in self._threads.items() if address in self._known)

    def longest_wait_s(self) -> float:
        """Seconds to wait for a fitting machine: longer while some identity is still unknown."""
        with self._lock:
            is_known = bool(self._known) and not self._asked
        return _WAIT_FOR_ANOTHER_S if is_known else _WAIT_S

    def for_cell(self, planned: PlannedCell, wanted: remote.Identity) -> list[str]:
        """Addresses of processes fit for a repetition."""
        is_virtual = planned.is_virtual
        with self._lock:
            if is_virtual not in self._fitting:
                self._fitting[is_virtual] = [
                    address
                    for address, identity in self._known.items()
                    if isinstance(identity, remote.Identity) and identity.obstacle(planned, wanted) is None
                ]
            return self._fitting[is_virtual]

    def why_none(self, planned: PlannedCell, wanted: remote.Identity) -> tuple[str, str]:
        """The error's message and hint without a fitting machine."""
        if self.lost:
            return "the cluster's scheduler is gone", "start it again"
        with self._lock:
            known = dict(self._known)
        with self._lock:
            known |= dict.fromkeys(self._asked, "it does not answer")
        if not known:
            return f"the cluster has had no worker for {_WAIT_S:.0f} s", "start one: `dask worker tcp://HOST:PORT`"
        reasons: dict[str, list[str]] = {}
        for address, identity in known.items():
            reason = identity if isinstance(identity, str) else identity.obstacle(planned, wanted) or "busy"
            reasons.setdefault(reason, []).append(address)
        told = "; ".join(f"{', '.join(addresses[:3])}: {reason}" for reason, addresses in reasons.items())
        return (
            f"no worker of the cluster may take {planned.key}: {told}",
            "install the same wheel of Crosswind, and the same kernel, on every machine; "
            "`crosswind doctor` says what one lacks",
        )

    def stop(self, session: str) -> None:
        """Interrupts a session's cells in all processes."""
        with suppress(Exception):
            self.client.run(remote.stop, session, wait=False)

    def close(self) -> None:
        """Looks no longer."""
        self._over.set()
        self._watch.join(timeout=_LOOK_S)

    def _watching(self) -> None:
        while not self._over.wait(_LOOK_S):
            try:
                self._look()
            except Exception:
                self.lost = self.client.status not in ("running", "connecting")

    def _look(self) -> None:
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        self.lost = self.client.status not in ("running", "connecting")
        with self._lock:
            if gone := self._known.keys() - workers.keys():
                self._known = {address: known for address, known in self._known.items() if address not in gone}
                self._fitting = {}
            self._asked &= workers.keys()
            new = workers.keys() - self._known.keys() - self._asked
            self._asked |= new
            self._threads = {address: worker["nthreads"] for address, worker in workers.items()}
        for address in new:
            threading.Thread(target=self._ask, args=(address,), daemon=True).start()

    def _ask(self, address: str) -> None:
        try:
            answer = self.client.run(remote.identity, workers=[address], on_error="return")[address]
        except Exception as error:
            answer = error
        with self._lock:
            if address in self._asked:
                self._asked.discard(address)
                known = isinstance(answer, remote.Identity)
                self._fitting = {}
                self._known[address] = (
                    answer if known else f"it cannot say what it is: {answer or type(answer).__name__}"
                )
            self._lock.notify_all()


def _connected(on: str, opened: ExitStack) -> tuple[Any, Any]:
    """This session's own cluster, if one was started, and a client.

    Args: opened: is closed after them. Raises: EngineError.
    """
    try:
        with safe_children():  # The import starts one.
            distributed = import_module("distributed")
    except ImportError:
        raise EngineError("--on needs Dask", hint="pip install 'crosswind[dask]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    scheduler = scheduler_of(on)
    try:
        cluster = None if scheduler else _started(on, distributed, opened)
        return cluster, distributed.Client(scheduler or cluster, timeout=_CONNECT_S, set_as_default=False)
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(f"cannot reach the cluster {on}: {_first_line(error)}", hint=HINT) from error


def _started(on: str, distributed: Any, opened: ExitStack) -> Any:
    kind, _, count = on.partition(":")
    if kind == "local":
        workers = int(count) if count else len(os.sched_getaffinity(0))
        environment = opened.enter_context(safe_children())
        with _deferred_interrupts() as noticed:
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                preload=_PRELOAD,
                silence_logs=logging.CRITICAL,
                env=environment,
            )
        if noticed:
            cluster.close(timeout=10)
            raise KeyboardInterrupt
        return cluster
    module, name, package = QUEUES[kind]
    try:
        make: Callable[..., Any] = getattr(import_module(module), name)
    except ImportError:
        raise EngineError(f"--on {kind} needs {package}", hint=f"pip install {package}") from None
    # A job begins in its submission directory.
    python = {} if kind == "k8s" else {"python": shlex.join(python_command())}
    cluster = make(**python)
    cluster.scale(int(count) if count else 1)
    return cluster


@contextmanager
def _deferred_interrupts() -> Iterator[list[int]]:
    """Only records Ctrl-C until a cluster is there: a half-started one prints tracebacks.

    Its processes inherit the mask and get no interrupt either: the session tells them to stop.
    """
    noticed: list[int] = []
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGINT, lambda number, _frame: noticed.append(number))
    resource_tracker.ensure_running()  # Whichever thread starts it gets interrupts again.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield noticed
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _failure_of(error: BaseException) -> Failure:
    kind = type(error).__name__
    if kind == "KilledWorker":
        return Failure(
            ErrorKind.KILLED,
            "every machine that ran it died",
            "see the workers' logs: memory is the most frequent cause",
        )
    if kind in ("CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError", "FuturesTimeoutError"):
        return Failure(ErrorKind.NETWORK, "the connection to the cluster's scheduler is lost", "start it again")
    return Failure(ErrorKind.HOST, f"its worker failed: {kind}: {_first_line(error)}", None)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
