"""Booted kernels that are kept for the next cell: one that could not start a cell is ended, whatever the reason."""

from pathlib import Path
from typing import Any

import pytest

from crosswind.cell.kernels import Kernel
from crosswind.errors import EngineError
from crosswind.execution import virtual

KERNEL = Kernel(Path("linux"), "6.12", "6.12.1", "source", "digest", "here")
BINARY = Path("/opt/crosswind-cell")


class FakeTemplate:
    """A booted kernel that counts how often it was closed."""

    made: list["FakeTemplate"]

    def __init__(self, *_: object, **__: object) -> None:
        self.closed = 0
        self.made.append(self)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def templates(monkeypatch: pytest.MonkeyPatch) -> Any:
    FakeTemplate.made = []
    monkeypatch.setattr(virtual, "Template", FakeTemplate)
    return virtual._Templates()


def start(templates: Any, *errors: BaseException) -> object:
    """Starts a cell; each attempt fails with one of the errors as long as there are any."""
    left = list(errors)

    def attempt(template: object) -> object:
        if left:
            raise left.pop(0)
        return template

    return templates.start(KERNEL, BINARY, attempt)


def closed() -> list[int]:
    return [template.closed for template in FakeTemplate.made]


def test_a_template_is_kept_and_used_again(templates: Any) -> None:
    first = start(templates)
    assert start(templates) is first
    assert closed() == [0]
    templates.close()
    assert closed() == [1]


def test_one_that_somebody_ended_is_replaced(templates: Any) -> None:
    start(templates)
    second = start(templates, EngineError("it has ended"))
    assert closed() == [1, 0]
    assert start(templates) is second


@pytest.mark.parametrize("booted_before", [True, False])
def test_an_interrupt_leaves_none_open(templates: Any, *, booted_before: bool) -> None:
    if booted_before:
        start(templates)
    with pytest.raises(KeyboardInterrupt):
        start(templates, KeyboardInterrupt())
    assert closed() == [1]
    templates.close()
    assert closed() == [1]


def test_cells_that_run_programs_have_a_template_of_their_own(templates: Any) -> None:
    small, large = (templates.start(KERNEL, BINARY, lambda it: it, memory_mb=memory) for memory in (512, 3072))
    assert small is not large
    assert start(templates) is small
