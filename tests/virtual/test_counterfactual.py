"""What random cells' time is said to be spent on: against the kernel's counts, and against cells without the cause."""

from collections import Counter

import pytest

from virtual.conftest import requires_kernel
from virtual.random_cells import counterfactual, random_cells, window_problem


@pytest.fixture(autouse=True)
def _kernel() -> None:
    requires_kernel()


def test_a_receive_window_is_told_where_the_kernel_counts_one() -> None:
    problems = {str(cell): problem for cell in random_cells(200, seed=7) if (problem := window_problem(cell))}
    assert not problems


def test_without_a_cause_a_cell_saves_what_was_told() -> None:
    """Its own time, or, where another limit lies behind it, what a sentence says of the cell without it."""
    found = [it for cell in random_cells(100, seed=2) if (it := counterfactual(cell)) is not None]
    every = {"recovery", "link", "nagle", "receive_window", "send_buffer"}
    assert Counter(it.cause for it in found).keys() == every
    assert sum(it.error <= 0.1 for it in found) >= 0.9 * len(found)
