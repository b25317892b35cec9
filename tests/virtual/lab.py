"""Guests of a kernel of virtual time: cells in them, and programs of the tests' own."""

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chance import seed_that_loses
from conftest import requires
from crosswind.cell.events import CellEvent
from crosswind.cell.guests import GUEST_ENDED, Guest, GuestRequest, Template, read_ended
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.cell.result import Finished
from crosswind.execution.workers.worker import followed
from linux.lab import CellOutput, Object, assert_closed, cell_of

ADDED_NS = 5_000
"""What virtual time adds to one exchange or one handshake at most: each wait ends up to 0.5 us late (a high-resolution
timer fires at the end of its slot), a reading of the clock takes 1 ns, and a call that finds nothing in a loop 1 us."""

TICK_NS = 1_000_000
"""In what TCP counts its timers."""

ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


HOSTS = """
set -e
ip netns add a
ip netns add b
ip link add v netns a type veth peer name v netns b
for host in a b; do
    ip -n $host link set lo up
    # Without an IPv6 address of its own a host sends nothing by itself.
    ip -n $host link set v address 02:00:00:00:00:0$host gso_max_segs 1 addrgenmode none up
done
ip -n a addr add 10.0.0.1/24 dev v
ip -n b addr add 10.0.0.2/24 dev v
# Asking for each other's address would take a round trip, which a device without addresses does not have.
ip -n a neigh add 10.0.0.2 lladdr 02:00:00:00:00:0b dev v
ip -n b neigh add 10.0.0.1 lladdr 02:00:00:00:00:0a dev v
"""
"""Two hosts with a wire between them, for a shell in a guest: its queueing disciplines are the test's."""


@dataclass(frozen=True)
class Ran:
    """A program that a guest ran to its end. `status` is None when the guest ended before it said how it went."""

    status: int | None
    problem: str | None
    output: str
    errors: str


def start(template: Template, *program: str, writable: Path | None = None, **settings: Any) -> Guest:
    """A guest that runs one program."""
    request = GuestRequest(
        seed=settings.pop("seed", 1), input="", program=program, writable=writable, environment=ENVIRONMENT
    )
    return template.start(request, **settings)


def ended(guest: Guest) -> Ran:
    """What a guest's program wrote, once it has ended."""
    errors: list[bytes] = []
    reader = threading.Thread(target=lambda: errors.append(guest.errors.read()))
    reader.start()
    lines = []
    end = None
    for line in guest.output:
        end = read_ended(line)
        if end is not None:
            lines.append(line[: line.rindex(GUEST_ENDED)])
            break
        lines.append(line)
    guest.kill()
    reader.join()
    guest.output.close()
    guest.errors.close()
    said = (None, None) if end is None else (end["status"], end["error"])
    return Ran(*said, b"".join(lines).decode(errors="replace"), b"".join(errors).decode(errors="replace"))


def run(template: Template, *program: str, writable: Path | None = None, **settings: Any) -> Ran:
    """Runs a program in a guest to its end."""
    return ended(start(template, *program, writable=writable, **settings))


def between_hosts(template: Template, commands: str, *arguments: str, **settings: Any) -> str:
    """What commands write that run between two hosts."""
    for program in ("ip", "tc", "ping"):
        requires(program)
    ran = run_script(template, HOSTS + commands, *arguments, **settings)
    assert ran.status == 0, ran.errors
    return ran.output


def run_script(template: Template, script: str, *arguments: str, writable: Path | None = None, **settings: Any) -> Ran:
    """Runs a shell script in a guest to its end."""
    return run(template, "sh", "-c", script, "sh", *arguments, writable=writable, **settings)


@dataclass
class VirtualCells:
    """Runs cells in virtual time, each with an output directory of its own."""

    template: Template
    binary: Path
    home: Path
    cpu: int | None = None
    count: int = field(default=0)

    def directory(self) -> Path:
        """A new, empty directory. The tests' own names differ in length, so that nothing may depend on it."""
        self.count += 1
        path = self.home / f"cell-{'x' * self.count}"
        path.mkdir(parents=True)
        return path

    def start(self, workload: Object, directory: Path, on_event: Any = None, **sections: Any) -> CellProcess:
        """Starts a cell."""
        files = sections.pop("files", {"packets": True, "capture": True})
        output = {"directory": str(directory), **files}
        host = {**sections.pop("host", {}), "clock": "virtual"}
        cell = {**cell_of(workload, output=output, host=host, **sections), "heartbeat_ns": 100_000_000}
        return CellProcess(
            cell,
            binary=self.binary,
            template=self.template,
            cpu=self.cpu,
            on_event=on_event or (lambda _event: None),
        )

    def run(self, workload: Object, **sections: Any) -> "VirtualRun":
        """Runs a cell to its end."""
        directory = self.directory()
        events: list[CellEvent] = []
        end = followed(self.start(workload, directory, events.append, **sections))
        return VirtualRun(directory, end, events)

    def run_losing(self, workload: Object, lost: Object, *, among: int, **sections: Any) -> "VirtualRun":
        """Runs a cell whose path loses just the packets with these indices: {"forward": {3}}.

        Args: among: more packets than any direction has that loses some. Other sections as for `run`.
        """
        # The probability with which so many of so many are lost most often, so that few seeds are tried.
        loss = max(map(len, lost.values())) / among
        for direction in lost:
            sections[direction] = {**sections.get(direction, {}), "loss": loss}
        ran = self.run(workload, seed=seed_that_loses(lost, loss, among), **sections)
        for direction, indices in lost.items():
            assert len(ran.packets(direction)) <= among
            assert set(ran.dropped(direction)) == indices
        return ran


@dataclass(frozen=True)
class VirtualRun(CellOutput):
    """A cell that has ended."""

    directory: Path
    end: CellEnd
    events: Sequence[CellEvent]

    @property
    def ended(self) -> Finished:
        """Its result, be it valid or not."""
        assert self.end.failure is None, self.end.failure
        assert self.end.finished is not None
        return self.end.finished

    @property
    def finished(self) -> Finished:
        """Its result, which has to be valid."""
        assert self.ended.reasons == ()
        return self.ended

    @property
    def result(self) -> Object:
        """Its result, which has to be valid, as JSON."""
        result: Object = self.finished.model_dump(mode="json")
        assert_closed(result["ledger"])
        return result

    def digests(self) -> dict[str, str]:
        """SHA-256 of every file that it left, and of its events.

        The kernel counts a process's memory in batches, so that the peak may differ by a few pages.
        """
        files = sorted(path for path in self.directory.rglob("*") if path.is_file())
        events = [event.model_dump(mode="json", exclude={"peak_memory_bytes"}) for event in self.events]
        contents = {str(path.relative_to(self.directory)): path.read_bytes() for path in files} | {
            "events": json.dumps(events).encode()
        }
        return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def whole_ms(took_ns: int) -> int:
    """A time that is whole milliseconds of the path, and what virtual time adds to it."""
    milliseconds, added_ns = divmod(took_ns, 1_000_000)
    assert added_ns <= ADDED_NS, took_ns
    return milliseconds


def latest_ns(timer_ns: int) -> int:
    """When a timer of TCP has fired at the latest, after a time of which it may have measured a little more.

    The time is rounded up to ticks and counts from the next one. Timers of 64 ticks and more are kept in slots, which
    expire at their ends: of 8 ticks up to 511, of 64 up to 4095, of 512 up to 32767 (kernel/time/timer.c).
    """
    ticks = timer_ns // TICK_NS
    slot = next(slot for slot, end in ((1, 64), (8, 512), (64, 4096), (512, 32768)) if ticks < end)
    return timer_ns + (slot + 2) * TICK_NS


def round_trips_ms(ran: VirtualRun) -> list[int]:
    """The round trip of each exchange, all of which have to succeed, in whole milliseconds of the path."""
    samples = ran.samples().sort("exchange")
    assert set(samples["outcome"]) == {"ok"}
    return [whole_ms(took_ns) for took_ns in samples["received_ns"] - samples["sent_ns"]]


def usable_cpus() -> list[int]:
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0))
