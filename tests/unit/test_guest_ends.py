"""What a guest's last lines say of its end, and its state of why it will never end."""

import io
import time
from types import SimpleNamespace
from typing import Any

import pytest

from crosswind.cell.guests import GuestState
from crosswind.cell.programs import LEAST_STUCK_S, STUCK_S, InGuest

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
    assert guest.last_words() == "cannot copy: ENOMEM"
    assert guest.interference() is None


@pytest.mark.parametrize(("lost", "said"), [("null", False), ('"userspace - failed, errno = 3"', True)])
def test_a_guest_says_with_which_status_it_ended_and_whether_it_lost_a_process(
    guest: InGuest, lost: str, said: bool
) -> None:
    line = f'rest of a line{{"event":"guest_ended","status":139,"error":null,"lost_process":{lost}}}'
    assert guest.takes(line.encode())
    assert (guest.wait(), guest.last_words()) == (-11, "")
    assert ("userspace - failed, errno = 3" in (guest.interference() or "")) == said


@pytest.mark.parametrize(("why", "is_lost"), [(b"Out of memory", False), (LOST, True)])
def test_a_panic_tells_a_lost_process_from_other_reasons(guest: InGuest, why: bytes, is_lost: bool) -> None:
    assert not guest.takes(b'{"event": "progress"}')
    for line in (b"kmsg_dump:", b"<6>something before", b"<0>" + PANIC + why, b"<4>something after"):
        assert guest.takes(line)
    assert guest.wait() is None
    assert guest.last_words() == (PANIC + why).decode()
    assert (guest.interference() is not None) == is_lost


def stuck(ns_a_second: int, calls_a_second: int, call: int, timeout_s: int | None = None) -> tuple[int, str] | None:
    """After how many seconds a guest in which this goes on is given up, and why; None when it is not in 40."""
    begun = time.monotonic()
    states = (GuestState(ns_a_second * second, 500 + calls_a_second * second, "spin", call) for second in range(1, 41))
    made = SimpleNamespace(pid=1, output=io.BytesIO(), errors=io.BytesIO(), state=lambda: next(states))
    template: Any = SimpleNamespace(start=lambda _request, cpu: made)
    workload = {"kind": "echo"} if timeout_s is None else {"kind": "program", "timeout_ns": timeout_s * 10**9}
    guest = InGuest(template, {"workload": workload}, b"{}", None)
    for second in range(1, 41):
        if (problem := guest.problem(begun + second + 0.5)) is not None:
            return second, problem
    return None


@pytest.mark.parametrize(
    ("ns_a_second", "calls_a_second", "call", "said"),
    [
        (0, 0, 228, "spin computes without ever waiting (its last system call was number 228); a program that"),
        (2, 9, 232, "spin polls a descriptor that is always ready (epoll_wait, 9 system calls in a second)"),
        (2_000, 9, 1, "spin makes system calls without ever waiting (9 in a second, the last one number 1)"),
    ],
)
def test_virtual_time_that_hardly_moves_stands_still(
    ns_a_second: int, calls_a_second: int, call: int, said: str
) -> None:
    found = stuck(ns_a_second, calls_a_second, call)
    assert found is not None
    assert found[0] == STUCK_S
    assert found[1].startswith(f"virtual time stood still at 0.000 s for 30 s: {said}")
    assert stuck(4_000, calls_a_second, call) is None


@pytest.mark.parametrize(("timeout_s", "given_up_s"), [(60, STUCK_S), (20, 20), (1, LEAST_STUCK_S)])
def test_a_program_computes_no_longer_than_its_timeout(timeout_s: int, given_up_s: float) -> None:
    found = stuck(0, 0, 0, timeout_s)
    assert found is not None
    assert found[0] == given_up_s
