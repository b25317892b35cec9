"""What a guest's last lines say of its end."""

import io
from types import SimpleNamespace
from typing import Any

import pytest

from crosswind.cell.programs import InGuest

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
