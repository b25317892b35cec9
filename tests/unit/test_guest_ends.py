"""What a guest's last lines say of its end, and its state of why it will never end."""

import io
import itertools
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from crosswind.cell.binary import BINARY
from crosswind.cell.guests import GuestState
from crosswind.cell.started import LEAST_STUCK_S, STUCK_S, InGuest

PANIC = b"Kernel panic - not syncing: "
LOST = b"do_syscall_stub : PTRACE_SETREGS failed, errno = 3"


@pytest.fixture
def guest() -> InGuest:
    """A cell in a guest that never was."""
    made = SimpleNamespace(
        pid=1, output=io.BytesIO(), errors=io.BytesIO(), kill=lambda: None, complaint=lambda: "cannot copy: ENOMEM"
    )
    template: Any = SimpleNamespace(start=lambda _request, cpu: made)
    return InGuest(template, {}, b"{}", None)


def test_a_guest_that_ends_without_a_word_never_began(guest: InGuest) -> None:
    assert guest.wait() is None
    assert guest.output_tail() == "cannot copy: ENOMEM"
    assert guest.interference() is None


@pytest.mark.parametrize(("lost", "said"), [("null", False), ('"userspace - failed, errno = 3"', True)])
def test_a_guest_says_with_which_status_it_ended_and_whether_it_lost_a_process(
    guest: InGuest, lost: str, said: bool
) -> None:
    line = f'rest of a line{{"event":"guest_ended","status":139,"error":null,"lost_process":{lost}}}'
    assert guest.takes(line.encode())
    assert (guest.wait(), guest.output_tail()) == (-11, "")
    assert ("userspace - failed, errno = 3" in (guest.interference() or "")) == said


@pytest.mark.parametrize(("why", "is_lost"), [(b"Out of memory", False), (LOST, True)])
def test_a_panic_tells_a_lost_process_from_other_reasons(guest: InGuest, why: bytes, is_lost: bool) -> None:
    assert not guest.takes(b'{"event": "progress"}')
    for line in (b"kmsg_dump:", b"<6>something before", b"<0>" + PANIC + why, b"<4>something after"):
        assert guest.takes(line)
    assert guest.wait() is None
    assert guest.output_tail() == (PANIC + why).decode()
    assert (guest.interference() is not None) == is_lost


CALL_NS = 1_004
"""What a call that never waits costs in a loop: 1 us, and readings of the clock."""

CALLS = 30_000
"""So many a program makes in a second."""

COMPUTES = "spin computes without a system call (its last one was number 1)"
POLLS = "spin polls a descriptor that is always ready (epoll_wait)"
MADE_CALLS = "spin made the last of {} system calls that did not wait (number 1)"
STOOD_STILL = "virtual time stood still for"


@pytest.mark.parametrize(
    ("ns_a_second", "calls_a_second", "call", "timeout_s", "end"),
    [
        # No time passes at all, or what readings of the clock take.
        (0, 0, 1, None, (STUCK_S, f"{COMPUTES}: {STOOD_STILL} 30 s")),
        (0, 0, 1, 60, (STUCK_S, f"{COMPUTES}: {STOOD_STILL} 30 s")),
        (0, 0, 1, 20, (20, f"{COMPUTES}: {STOOD_STILL} 20 s")),
        (0, 0, 1, 0.1, (LEAST_STUCK_S, f"{COMPUTES}: {STOOD_STILL} 1 s")),
        (2, 9, 232, None, (STUCK_S, f"{POLLS}: {STOOD_STILL} 30 s")),
        (2_000, 9, 1, None, (STUCK_S, f"{MADE_CALLS.format(270)}: {STOOD_STILL} 30 s")),
        (4_000, 0, 1, None, None),
        # Only calls make time pass: that counts for a timeout alone.
        (CALLS * CALL_NS, CALLS, 1, None, None),
        (CALLS * CALL_NS, CALLS, 1, 60, (60, f"{MADE_CALLS.format(1_800_000)}: virtual time moved by 1.807 s in 60 s")),
        # Somebody waits for a part of the time.
        (CALLS * (CALL_NS + 100), CALLS, 1, 60, None),
    ],
)
def test_a_guest_is_given_up_after_so_many_seconds_without_progress(
    ns_a_second: int, calls_a_second: int, call: int, timeout_s: float | None, end: tuple[float, str] | None
) -> None:
    workload = {"kind": "program", **({} if timeout_s is None else {"timeout_ns": int(timeout_s * 1e9)})}
    found = given_up(workload, lambda second: GuestState(ns_a_second * second, calls_a_second * second, "spin", call))
    assert found == end


@pytest.mark.parametrize("name", [BINARY, "emulator"])
def test_what_the_cell_does_itself_counts_for_no_timeout(name: str) -> None:
    workload = {"kind": "program", "timeout_ns": 10**9}
    assert given_up(workload, lambda s: GuestState(200_000 * s, 9_000 * s, name, 1)) is None


def test_a_guest_that_waits_for_a_processor_is_given_so_much_longer() -> None:
    # 1.5 s pass before anybody looks at what it gets: 1.5 + 0.4 * 72 seconds.
    assert given_up({"kind": "program"}, lambda _: GuestState(0, 0, "spin", 1), share=0.4) == (
        73,
        f"{COMPUTES}: {STOOD_STILL} 30 s",
    )


@pytest.mark.parametrize("can_interrupt", [True, False])
def test_a_process_that_has_computed_for_a_second_without_a_call_is_interrupted(can_interrupt: bool) -> None:
    calls, processor, interrupted = 0, (7, 0.0), []
    made = SimpleNamespace(
        pid=1,
        output=io.BytesIO(),
        errors=io.BytesIO(),
        state=lambda: GuestState(0, calls, "spin", 1, len(interrupted), "waits", can_interrupt),
        processor_s=lambda: None,
        computing=lambda: processor,
        interrupt=interrupted.append,
    )
    template: Any = SimpleNamespace(start=lambda _request, cpu: made)
    guest = InGuest(template, {}, b"{}", None)
    assert guest.warning() is None
    begun = time.monotonic()
    # Half of a processor; one call, after which less than a second is left.
    for look in range(45):
        processor, calls = (7, look * 0.05), int(look > 25)
        assert guest.problem(begun + look * 0.1) is None
    assert interrupted == [7] * can_interrupt
    warning = guest.warning()
    assert (warning is not None) == can_interrupt
    if warning is not None:
        assert "waits computed for a second" in warning.text


def given_up(
    workload: dict[str, Any], state: Callable[[int], GuestState], share: float | None = None
) -> tuple[int, str] | None:
    """After how many seconds a guest is given up, and why; None when it is not in 100.

    Args: state: by the second. share: of a processor, which it gets; None for one that is not runnable.
    """
    begun = time.monotonic()
    states, seconds = map(state, range(1, 101)), itertools.count()
    made = SimpleNamespace(
        pid=1,
        output=io.BytesIO(),
        errors=io.BytesIO(),
        state=lambda: next(states),
        processor_s=lambda: None if share is None else share * next(seconds),
        computing=lambda: None,
    )
    template: Any = SimpleNamespace(start=lambda _request, cpu: made)
    guest = InGuest(template, {"workload": workload}, b"{}", None)
    for second in range(1, 101):
        # The guest started a moment later.
        if (problem := guest.problem(begun + second + 0.5)) is not None:
            return second, problem
    return None
