"""Which repetition starts next, with whom: order, loads, attempts, hope; and what holds in every session."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.execution.admission import ATTEMPTS, CAPACITY, Admission, Admitted, Entry, Loads
from crosswind.forecast.cost import HEAVY
from runs import entry

LIGHT, MANY = 0.01, 100


def planned(cell: int, load: float = LIGHT, *, repetition: int = 0, kind: str = "echo") -> dict[str, Any]:
    return {
        **entry(cell),
        "key": f"c{cell}-r{repetition}",
        "repetition": repetition,
        "expected_load": load,
        "parameters": {"workload": {"kind": kind}},
    }


def finished(load: float, seconds: int = 2) -> dict[str, Any]:
    """The end of a cell that kept so many processors busy, of which the kernel's interrupts are 0.3 / 1.3."""
    cpu_ns = round(load / 1.3 * seconds * 1e9)
    return {"elapsed_ns": seconds * 1_000_000_000, "cpu": {"client_ns": cpu_ns, "server_ns": 0, "emulator_ns": 0}}


def start_all(admission: Admission, running: list[Entry], *, limit: int = MANY) -> list[str]:
    """Starts what may start beside `running`, which grows by it. The keys, with a ! where it must be alone."""
    keys: list[str] = []
    alone = False
    while admitted := admission.next(running, limit=limit, alone=alone):
        running.append(admitted.entry)
        alone = not admitted.beside
        keys.append(admitted.entry["key"] + "!" * alone)
    return keys


def one(admission: Admission) -> Admitted:
    """What starts when nothing runs."""
    admitted = admission.next([], limit=MANY)
    assert admitted is not None
    return admitted


# Order and capacity


def test_light_cells_start_together_in_the_order_of_the_plan() -> None:
    admission = Admission([planned(cell) for cell in (3, 1, 2, 0)], processors=2)
    assert len(admission) == 4
    assert start_all(admission, []) == ["c3-r0", "c1-r0", "c2-r0", "c0-r0"]
    assert len(admission) == 0


def test_no_more_than_the_limit_at_once() -> None:
    admission = Admission([planned(cell) for cell in range(5)], processors=2)
    running: list[Entry] = []
    assert start_all(admission, running, limit=3) == ["c0-r0", "c1-r0", "c2-r0"]
    assert start_all(admission, running, limit=3) == []
    del running[1]
    assert start_all(admission, running, limit=3) == ["c3-r0"]
    assert start_all(admission, running[:1], limit=1) == []


def test_loads_fill_half_of_the_processors() -> None:
    # 0.25 is not heavy; of four processors two may be busy, which is eight of these, exact in float64.
    admission = Admission([planned(cell, HEAVY) for cell in range(10)], processors=4)
    assert (CAPACITY, HEAVY) == (0.5, 0.25)
    running: list[Entry] = []
    assert len(start_all(admission, running)) == 8
    del running[0]
    assert start_all(admission, running) == ["c8-r0"]


def test_what_does_not_fit_is_not_overtaken() -> None:
    # Half a processor of one: 0.25 + 0.2 leave no room for 0.25, and 0.01 waits its turn.
    loads = (0.25, 0.2, 0.25, 0.01)
    admission = Admission([planned(cell, load) for cell, load in enumerate(loads)], processors=1)
    assert start_all(admission, []) == ["c0-r0", "c1-r0"]


def test_a_cell_that_fills_the_capacity_starts_when_nothing_runs() -> None:
    admission = Admission([planned(cell, 0.25) for cell in range(3)], processors=0)
    assert start_all(admission, []) == ["c0-r0"]
    assert start_all(admission, []) == ["c1-r0"]


def test_how_many_may_run_beside_it_is_told() -> None:
    admission = Admission([planned(cell) for cell in range(5)], processors=2)
    running: list[Entry] = []
    beside = []
    while admitted := admission.next(running, limit=4):
        beside.append(admitted.beside)
        running = [*running, admitted.entry][-2:]
    # Four at a time; of the last three, all; two run then beside the last.
    assert beside == [3, 3, 3, 3, 2]


# Heavy cells


def test_heavy_cells_run_last_and_alone() -> None:
    loads = (1.0, LIGHT, 0.26, LIGHT)
    admission = Admission([planned(cell, load) for cell, load in enumerate(loads)], processors=64)
    running: list[Entry] = []
    assert start_all(admission, running) == ["c1-r0", "c3-r0"]
    del running[0]
    assert start_all(admission, running) == []
    assert start_all(admission, []) == ["c0-r0!"]
    assert start_all(admission, []) == ["c2-r0!"]
    assert len(admission) == 0


def test_nothing_starts_beside_one_that_must_be_alone() -> None:
    admission = Admission([planned(0), planned(1)], processors=2)
    assert admission.next([planned(9)], limit=MANY, alone=True) is None
    assert len(admission) == 2


def test_a_plan_without_forecasts_runs_one_after_another() -> None:
    plan = [{**planned(cell)} for cell in range(3)]
    for item in plan:
        del item["expected_load"]
    admission = Admission(plan, processors=64)
    assert [start_all(admission, []) for _ in range(3)] == [["c0-r0!"], ["c1-r0!"], ["c2-r0!"]]


def test_a_cell_that_turned_out_heavy_waits_for_all_others() -> None:
    plan = [planned(0), planned(0, repetition=1), planned(1, kind="transfer"), planned(0, repetition=2)]
    admission = Admission(plan, processors=2)
    assert one(admission).entry["key"] == "c0-r0"
    admission.loads.learn(plan[0], finished(0.5))
    assert [start_all(admission, []) for _ in range(3)] == [["c1-r0"], ["c0-r1!"], ["c0-r2!"]]
    assert len(admission) == 0


def test_a_cell_that_turned_out_light_comes_back() -> None:
    plan = [planned(0, 1.0), *[planned(0, 1.0, repetition=repetition) for repetition in (1, 2)]]
    admission = Admission(plan, processors=2)
    assert start_all(admission, []) == ["c0-r0!"]
    admission.loads.learn(plan[0], finished(0.1))
    assert start_all(admission, []) == ["c0-r1", "c0-r2"]


# Loads


def test_loads_are_forecast_until_measured() -> None:
    loads = Loads()
    assert loads.of(planned(0, 0.1)) == 0.1
    loads.learn(planned(0, 0.1), finished(0.2))
    loads.learn(planned(0, 0.1), finished(0.4))
    assert loads.of(planned(0, 0.1)) == pytest.approx(0.3, rel=1e-9)  # whole nanoseconds of 2 s


def test_cells_of_the_same_kind_are_as_wrong() -> None:
    loads = Loads()
    loads.learn(planned(0, 0.1), finished(0.2))
    assert loads.of(planned(1, 0.3)) == pytest.approx(0.6, rel=1e-8)
    assert loads.of(planned(2, 0.3, kind="transfer")) == 0.3


def test_a_forecast_is_corrected_by_no_more_than_a_factor_of_five() -> None:
    loads = Loads()
    loads.learn(planned(0, 0.01), finished(1.0))
    assert loads.of(planned(1, 0.1)) == 0.5
    loads = Loads()
    loads.learn(planned(0, 1.0), finished(0.01))
    assert loads.of(planned(1, 0.1)) == pytest.approx(0.02, rel=1e-15)


@pytest.mark.parametrize(
    "event", [finished(1.0) | {"elapsed_ns": 999_999_999}, {"elapsed_ns": 2_000_000_000}, {"cpu": {"client_ns": 1}}, {}]
)
def test_short_cells_and_those_that_tell_nothing_teach_nothing(event: dict[str, Any]) -> None:
    loads = Loads()
    loads.learn(planned(0, 0.1), event)
    assert loads.of(planned(0, 0.1)) == loads.of(planned(1, 0.1)) == 0.1


def test_all_three_threads_count() -> None:
    loads = Loads()
    cpu = {"client_ns": 100_000_000, "server_ns": 200_000_000, "emulator_ns": 700_000_000}
    loads.learn(planned(0), {"elapsed_ns": 2_000_000_000, "cpu": cpu})
    assert loads.of(planned(0)) == 1.3 * 0.5


# Fixed by hand


def test_a_number_given_by_hand_ignores_loads_and_limit() -> None:
    loads = (1.0, 2.0, LIGHT, 1.0)
    admission = Admission([planned(cell, load) for cell, load in enumerate(loads)], processors=1, jobs=3)
    running: list[Entry] = []
    assert start_all(admission, running, limit=1) == ["c0-r0", "c1-r0", "c2-r0"]
    del running[0]
    assert start_all(admission, running, limit=1) == ["c3-r0"]


def test_one_at_a_time_keeps_the_order_of_the_plan() -> None:
    loads = (1.0, LIGHT, 1.0, LIGHT)
    admission = Admission([planned(cell, load) for cell, load in enumerate(loads)], processors=4, jobs=1)
    assert [start_all(admission, []) for _ in loads] == [["c0-r0!"], ["c1-r0!"], ["c2-r0!"], ["c3-r0!"]]


def test_one_at_a_time_keeps_that_order_in_a_later_session() -> None:
    plan = [planned(cell) for cell in range(3)]
    admission = Admission(plan, processors=4, jobs=1)
    admission.handle_kept()
    admission.recall(plan[0], ATTEMPTS - 1)
    assert [start_all(admission, []) for _ in plan] == [["c0-r0!"], ["c1-r0!"], ["c2-r0!"]]


# Attempts


def test_what_missed_its_budget_goes_to_the_end() -> None:
    plan = [planned(cell) for cell in range(4)]
    admission = Admission(plan, processors=2)
    running: list[Entry] = []
    assert start_all(admission, running, limit=2) == ["c0-r0", "c1-r0"]
    admission.handle_kept()
    assert admission.handle_missed(plan[0], alone=False)
    assert admission.attempts(plan[0]) == 1
    assert start_all(admission, []) == ["c2-r0", "c3-r0", "c0-r0"]


def test_before_anything_kept_its_budget_a_miss_goes_to_the_end_too() -> None:
    plan = [planned(cell) for cell in range(4)]
    admission = Admission(plan, processors=2)
    running: list[Entry] = []
    start_all(admission, running, limit=2)
    assert admission.handle_missed(plan[0], alone=False)
    assert len(admission) == 3
    assert start_all(admission, running[1:]) == ["c2-r0", "c3-r0", "c0-r0"]


def test_the_last_attempt_is_alone_and_counts() -> None:
    plan = [planned(cell) for cell in range(3)]
    admission = Admission(plan, processors=2)
    admission.handle_kept()
    assert start_all(admission, []) == ["c0-r0", "c1-r0", "c2-r0"]
    assert admission.handle_missed(plan[0], alone=False)
    assert admission.handle_missed(plan[1], alone=False)
    assert start_all(admission, []) == ["c0-r0", "c1-r0"]
    assert admission.handle_missed(plan[0], alone=False)
    assert start_all(admission, [plan[1]]) == []
    assert start_all(admission, []) == ["c0-r0!"]
    assert not admission.handle_missed(plan[0], alone=True)
    assert (admission.attempts(plan[0]), len(admission)) == (ATTEMPTS, 0)
    assert admission.hopeless == []


def test_attempts_of_an_earlier_session_count() -> None:
    plan = [planned(cell) for cell in range(3)]
    admission = Admission(plan, processors=2)
    admission.handle_kept()
    admission.recall(plan[0], ATTEMPTS - 1)
    admission.recall(plan[1], 1)
    assert [admission.attempts(item) for item in plan] == [2, 1, 0]
    assert start_all(admission, []) == ["c1-r0", "c2-r0"]
    assert start_all(admission, []) == ["c0-r0!"]
    assert not admission.handle_missed(plan[0], alone=True)
    assert admission.handle_missed(plan[1], alone=False)
    assert start_all(admission, []) == ["c1-r0!"]


# Hope


def all_missed(cells: int) -> tuple[Admission, list[dict[str, Any]]]:
    """Cells that all ran together and missed their budget."""
    plan = [planned(cell) for cell in range(cells)]
    admission = Admission(plan, processors=2)
    assert len(start_all(admission, [])) == cells
    for item in plan:
        assert admission.handle_missed(item, alone=False)
    return admission, plan


def test_when_nothing_keeps_the_budget_some_are_tried_alone_once_nothing_runs() -> None:
    plan = [planned(cell) for cell in range(5)]
    admission = Admission(plan, processors=2)
    running: list[Entry] = []
    start_all(admission, running, limit=4)
    for item in plan[:3]:
        assert admission.handle_missed(item, alone=False)
    # In doubt, nothing else starts, not even what never ran.
    assert start_all(admission, [plan[3]]) == []
    assert start_all(admission, []) == ["c0-r0!"]


def test_three_that_miss_it_alone_are_enough() -> None:
    admission, plan = all_missed(5)
    for item in plan[:3]:
        assert admission.hopeless == []
        assert start_all(admission, []) == [item["key"] + "!"]
        assert not admission.handle_missed(item, alone=True)
    assert admission.hopeless == plan[:3]
    assert len(admission) == 2


def test_witnesses_are_three_cells_and_not_three_repetitions() -> None:
    plan = [planned(cell, repetition=repetition) for cell in range(3) for repetition in range(2)]
    admission = Admission(plan, processors=2)
    start_all(admission, [])
    for item in plan:
        admission.handle_missed(item, alone=False)
    for item in plan[:5]:
        assert admission.hopeless == []
        assert one(admission) == Admitted(item, beside=0)
        assert not admission.handle_missed(item, alone=True)
    assert [item["cell"] for item in admission.hopeless] == [0, 1, 2]


@pytest.mark.parametrize("cells", [1, 2])
def test_fewer_cells_than_witnesses_have_all_their_attempts(cells: int) -> None:
    plan = [planned(cell, repetition=repetition) for repetition in range(2) for cell in range(cells)]
    admission = Admission(plan, processors=2)
    assert len(start_all(admission, [])) == 2 * cells
    for item in plan:
        assert admission.handle_missed(item, alone=False)
    # All repetitions alone a second time, and one of each cell a third.
    for attempt, items in ((2, plan), (3, plan[:cells])):
        for item in items:
            assert admission.hopeless == []
            assert one(admission) == Admitted(item, beside=0)
            assert admission.handle_missed(item, alone=True) is (attempt < ATTEMPTS)
    assert admission.hopeless == plan[:cells]
    assert len(admission) == cells


def test_one_that_keeps_it_alone_gives_hope_back() -> None:
    admission, plan = all_missed(6)
    for item in plan[:2]:
        assert one(admission).entry == item
        assert not admission.handle_missed(item, alone=True)
    assert one(admission).entry == plan[2]
    admission.handle_kept()
    # Those that wait run together again; their next attempt is their second and their third is alone.
    running: list[Entry] = []
    assert start_all(admission, running) == ["c3-r0", "c4-r0", "c5-r0"]
    assert all(admission.handle_missed(item, alone=False) for item in plan[3:])
    assert [start_all(admission, []) for _ in plan[3:]] == [["c3-r0!"], ["c4-r0!"], ["c5-r0!"]]
    assert not any(admission.handle_missed(item, alone=True) for item in plan[3:])
    assert admission.hopeless == []


def test_a_session_that_begins_with_hope_never_loses_it() -> None:
    plan = [planned(cell) for cell in range(4)]
    admission = Admission(plan, processors=2)
    admission.handle_kept()
    for _ in range(ATTEMPTS - 1):
        start_all(admission, [])
        assert all(admission.handle_missed(item, alone=False) for item in plan)
    for item in plan:
        assert one(admission) == Admitted(item, beside=0)
        assert not admission.handle_missed(item, alone=True)
    assert (admission.hopeless, len(admission)) == ([], 0)


# What always holds


@dataclass
class Session:
    """A scheduler's session without processes: starts what may start, ends one of what runs, and checks each start."""

    admission: Admission
    limit: int
    keeps: Callable[[Entry, bool], bool]
    random: Random
    load: Callable[[Entry], float] | None = None
    running: list[Admitted] = field(default_factory=list)
    starts: list[Admitted] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)

    def run(self) -> None:
        while self.running or len(self.admission):
            self._start()
            assert self.running, "what waits must start some time"
            self._end(self.running.pop(self.random.randrange(len(self.running))))
            if self.admission.hopeless:
                return

    def _start(self) -> None:
        while True:
            entries = [one.entry for one in self.running]
            alone = any(not one.beside for one in self.running)
            admitted = self.admission.next(entries, limit=self.limit, alone=alone)
            if admitted is None:
                return
            assert not alone
            assert admitted.beside or not entries
            assert admitted.entry["key"] not in [one["key"] for one in entries]
            self.running.append(admitted)
            self.starts.append(admitted)
            assert len(self.running) <= self.limit

    def _end(self, ended: Admitted) -> None:
        key = ended.entry["key"]
        if self.load:
            self.admission.loads.learn(ended.entry, finished(self.load(ended.entry)))
        if self.keeps(ended.entry, not ended.beside):
            self.admission.handle_kept()
            self.kept.append(key)
        elif not self.admission.handle_missed(ended.entry, alone=not ended.beside):
            self.given_up.append(key)

    def attempts(self) -> Counter[str]:
        return Counter(one.entry["key"] for one in self.starts)


LOADS = st.sampled_from([0.001, 0.01, 0.1, 0.25, 0.26, 1.0, 2.0])
PLANS = st.lists(st.tuples(st.integers(0, 5), LOADS), max_size=25).map(
    lambda cells: [planned(cell, load, repetition=number) for number, (cell, load) in enumerate(cells)]
)


@given(plan=PLANS, processors=st.integers(1, 64), limit=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_without_misses_everything_runs_once_and_in_order(
    plan: Sequence[Entry], processors: int, limit: int, seed: int
) -> None:
    session = Session(Admission(plan, processors=processors), limit, lambda *_: True, Random(seed))
    session.run()
    light = [item["key"] for item in plan if item["expected_load"] <= HEAVY]
    heavy = [item["key"] for item in plan if item["expected_load"] > HEAVY]
    assert [one.entry["key"] for one in session.starts] == light + heavy
    assert sorted(session.kept) == sorted(item["key"] for item in plan)
    assert all(one.beside == 0 for one in session.starts[len(light) :])


@given(plan=PLANS, jobs=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_by_hand_without_misses_the_order_is_the_plans(plan: Sequence[Entry], jobs: int, seed: int) -> None:
    session = Session(Admission(plan, processors=2, jobs=jobs), jobs, lambda *_: True, Random(seed))
    session.run()
    assert [one.entry["key"] for one in session.starts] == [item["key"] for item in plan]


@given(plan=PLANS, processors=st.integers(1, 64), seed=st.integers(0, 2**32))
def test_forecasts_of_what_runs_together_fit_into_the_capacity(
    plan: Sequence[Entry], processors: int, seed: int
) -> None:
    admission = Admission(plan, processors=processors)
    random = Random(seed)
    running: list[Entry] = []
    while running or len(admission):
        start_all(admission, running)
        assert len(running) == 1 or sum(one["expected_load"] for one in running) <= CAPACITY * processors
        running.pop(random.randrange(len(running)))
        admission.handle_kept()


@given(
    plan=PLANS,
    jobs=st.none() | st.integers(1, 20),
    limit=st.integers(1, 20),
    misses=st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    learns=st.booleans(),
    recalled=st.integers(0, ATTEMPTS - 1),
    seed=st.integers(0, 2**32),
)
def test_with_misses_everything_ends_kept_or_after_its_last_attempt(
    *, plan: Sequence[Entry], jobs: int | None, limit: int, misses: float, learns: bool, recalled: int, seed: int
) -> None:
    random = Random(seed)
    admission = Admission(plan, processors=4, jobs=jobs)
    for item in plan[::3]:
        admission.recall(item, recalled)
    before = {item["key"]: admission.attempts(item) for item in plan}
    session = Session(
        admission,
        jobs or limit,
        keeps=lambda _entry, _alone: random.random() >= misses,
        random=random,
        load=(lambda _entry: random.choice([0.01, 0.2, 0.5])) if learns else None,
    )
    session.run()
    attempts = session.attempts()
    assert all(before[key] + count <= ATTEMPTS for key, count in attempts.items())
    last = {one.entry["key"]: one for one in session.starts}
    assert all(last[key].beside == 0 for key in session.given_up)
    done = session.kept + session.given_up
    assert len(done) == len(set(done))
    if admission.hopeless:
        assert session.kept == []
    else:
        assert sorted(done) == sorted(item["key"] for item in plan)
    if session.kept:
        assert admission.hopeless == []


@given(plan=PLANS.filter(bool), jobs=st.none() | st.integers(1, 20), seed=st.integers(0, 2**32))
def test_a_budget_that_nothing_keeps_ends_with_a_witness_of_each_cell_or_three(
    plan: Sequence[Entry], jobs: int | None, seed: int
) -> None:
    admission = Admission(plan, processors=4, jobs=jobs)
    session = Session(admission, jobs or 16, keeps=lambda *_: False, random=Random(seed))
    session.run()
    cells = {item["cell"] for item in plan}
    assert len({item["cell"] for item in admission.hopeless}) == len(admission.hopeless) == min(3, len(cells))
    assert {item["key"] for item in admission.hopeless} <= set(session.given_up)


@given(plan=PLANS, seed=st.integers(0, 2**32))
def test_what_is_only_kept_alone_is_kept_by_all(plan: Sequence[Entry], seed: int) -> None:
    admission = Admission(plan, processors=4)
    session = Session(admission, 16, keeps=lambda _entry, alone: alone, random=Random(seed))
    session.run()
    assert session.given_up == []
    assert sorted(session.kept) == sorted(item["key"] for item in plan)
