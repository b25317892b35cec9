"""Which processors cells get, on machines of every size; and the affinity of this process, put back afterwards."""

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.execution.processors import WATCHED, Placement, Processors, restore


@pytest.fixture
def affinity() -> Iterator[set[int]]:
    """What this process may use; every thread has it again after the test."""
    before = os.sched_getaffinity(0)
    yield before
    restore(before)


@pytest.mark.parametrize(
    ("count", "hosts", "emulators"),
    [
        (1, [0], [0]),
        (2, [0], [1]),
        (3, [0, 1], [2]),
        (4, [0, 1, 2], [3]),
        (8, list(range(6)), [6, 7]),
        (64, list(range(48)), list(range(48, 64))),
    ],
)
def test_the_last_quarter_is_the_emulators(count: int, hosts: list[int], emulators: list[int]) -> None:
    processors = Processors(range(count))
    assert (processors.hosts, processors.emulators) == (hosts, emulators)


@pytest.mark.parametrize("count", [2, 3, 4, 8, 64])
def test_alone_a_cell_has_the_last_for_its_emulator_and_all_others_for_its_hosts(count: int) -> None:
    processors = Processors(range(count))
    alone = Placement(emulator_cpus=[count - 1], host_cpus=list(range(count - 1)))
    assert processors.place("tun") == alone
    assert processors.place("tun") == alone


@pytest.mark.parametrize(
    ("count", "placements"),
    [
        (2, [([1], [0]), ([1], [0]), ([1], [0])]),
        (3, [([2], [0, 1]), ([2], [0, 1]), ([2], [0, 1])]),
        (4, [([3], [0, 1]), ([3], [2, 0]), ([3], [1, 2]), ([3], [0, 1])]),
        (8, [([6], [0, 1]), ([7], [2, 3]), ([6], [4, 5]), ([7], [0, 1])]),
    ],
)
def test_together_cells_take_turns(count: int, placements: list[tuple[list[int], list[int]]]) -> None:
    processors = Processors(range(count))
    given = [processors.place("tun", beside=9) for _ in placements]
    assert [(place["emulator_cpus"], place["host_cpus"]) for place in given] == placements


def test_on_many_processors_every_emulator_has_its_own_first() -> None:
    processors = Processors(range(64))
    given = [processors.place("tun", beside=31) for _ in range(32)]
    assert [place["emulator_cpus"] for place in given] == [[cpu] for cpu in (*range(48, 64), *range(48, 64))]
    assert [place["host_cpus"] for place in given[:24]] == [[cpu, cpu + 1] for cpu in range(0, 48, 2)]
    assert given[24]["host_cpus"] == [0, 1]


def test_one_processor_is_not_shared_out_and_nobody_watches_the_clock_on_it() -> None:
    processors = Processors([0])
    assert processors.place("tun") == Placement()
    assert processors.place("tun", beside=3) == Placement(watch=0.0)
    assert processors.place("direct", beside=3) == Placement(watch=0.0)
    processors.release(Placement(watch=0.0))


@pytest.mark.parametrize("beside", [0, 5])
@pytest.mark.parametrize("backend", ["direct", "netem"])
def test_a_path_without_the_emulator_takes_no_share(backend: str, beside: int) -> None:
    processors = Processors(range(4))
    placement = processors.place(backend, beside=beside)
    assert placement == Placement(host_cpus=[0, 1, 2, 3])
    processors.release(placement)
    assert processors.place("tun", beside=1) == Placement(watch=0.0375, emulator_cpus=[3], host_cpus=[0, 1])


def test_numbers_need_not_begin_at_zero_nor_be_in_order() -> None:
    processors = Processors([9, 3, 5, 7])
    assert processors.place("tun") == Placement(emulator_cpus=[9], host_cpus=[3, 5, 7])
    assert processors.place("tun", beside=1)["host_cpus"] == [3, 5]


@pytest.mark.parametrize(
    ("count", "beside", "watch"),
    [
        (2, 1, 0.0375),  # 0.3 of one processor for four times two
        (2, 2, 0.025),
        (2, 6, 0.010714),  # 0.3 / 28, six digits
        (8, 1, 0.075),  # of two for two
        (8, 15, 0.009375),
        (80, 1, 0.7),  # never more, however much there is: 20 x 0.3 / 8 is 0.75
        (64, 31, 0.0375),
    ],
)
def test_cells_share_the_time_to_watch_the_clock(count: int, beside: int, watch: float) -> None:
    assert Processors(range(count)).place("tun", beside=beside)["watch"] == watch


@given(count=st.integers(2, 64), cells=st.integers(2, 100))
def test_emulators_never_watch_for_longer_than_their_share(count: int, cells: int) -> None:
    processors = Processors(range(count))
    given = [processors.place("tun", beside=cells - 1) for _ in range(cells)]
    # Each is rounded to six digits.
    assert sum(place["watch"] for place in given) <= WATCHED * len(processors.emulators) + cells * 0.5e-6
    assert all(not set(place["emulator_cpus"]) & set(place["host_cpus"]) for place in given)
    taken = [sum(place["emulator_cpus"] == [cpu] for place in given) for cpu in processors.emulators]
    assert max(taken) - min(taken) <= 1


def test_what_is_released_is_given_next() -> None:
    processors = Processors(range(12))
    first, second, third = (processors.place("tun", beside=5) for _ in range(3))
    assert [place["emulator_cpus"] for place in (first, second, third)] == [[9], [10], [11]]
    processors.release(second)
    assert processors.place("tun", beside=5)["emulator_cpus"] == [10]
    assert processors.place("tun", beside=5)["emulator_cpus"] == [9]


def test_a_cell_that_ran_alone_releases_nothing() -> None:
    processors = Processors(range(8))
    processors.release(processors.place("tun"))
    assert processors.place("tun", beside=1)["emulator_cpus"] == [6]


def test_by_default_they_are_those_of_this_process(affinity: set[int]) -> None:
    assert Processors().usable == sorted(affinity)


def test_this_process_leaves_the_emulators_alone_with_every_thread(affinity: set[int]) -> None:
    processors = Processors()
    go = threading.Event()
    found: list[set[int]] = []

    def look() -> None:
        go.wait()
        found.append(os.sched_getaffinity(0))

    moved, restored = threading.Thread(target=look), threading.Thread(target=look)
    moved.start()
    assert processors.leave_to_emulators() == affinity
    assert os.sched_getaffinity(0) == set(processors.hosts)
    go.set()
    moved.join()
    go.clear()
    restored.start()
    restore(affinity)
    go.set()
    restored.join()
    assert found == [set(processors.hosts), affinity]
    assert os.sched_getaffinity(0) == affinity


def test_processors_that_are_not_there_are_left_out_silently(affinity: set[int]) -> None:
    restore({4095})
    assert os.sched_getaffinity(0) == affinity
