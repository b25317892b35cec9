"""Which repetition starts next and beside which: order, loads, attempts, budgets that no cell can keep; and what holds
in every session.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cell_events import finished
from crosswind.cell.forecast import HEAVY
from crosswind.cell.result import Finished
from crosswind.execution.admission import ATTEMPTS, CAPACITY, Admission, Admitted, Loads
from crosswind.store.plan import PlannedCell
from runs import planned_cell

LIGHT, MANY = 0.01, 100


def planned(cell: int, load: float = LIGHT, *, repetition: int = 0, kind: str = "echo") -> PlannedCell:
    return planned_cell(
        cell,
        key=f"c{cell}-r{repetition}",
        repetition=repetition,
        expected_load=load,
        parameters={"workload": {"kind": kind}},
    )


def result(load: float, seconds: float = 2) -> Finished:
    """The result of a cell that kept so many processors busy, of which the kernel's interrupts are 0.3 / 1.3."""
    cpu_ns = round(load / 1.3 * seconds * 1e9)
    cpu = {"client_ns": cpu_ns, "server_ns": 0, "emulator_ns": 0}
    return finished(elapsed_ns=round(seconds * 1e9), cpu=cpu)


def start_all(admission: Admission, running: list[PlannedCell], *, limit: int = MANY) -> list[str]:
    """Starts what may start beside `running`, which grows by it. The keys, with a ! where it must be alone."""
    keys: list[str] = []
    alone = False
    while admitted := admission.next(running, limit=limit, alone=alone):
        running.append(admitted.planned)
        alone = not admitted.beside
        keys.append(admitted.planned.key + "!" * alone)
    return keys


def only_start(admission: Admission) -> Admitted:
    """What starts when nothing runs."""
    admitted = admission.next([], limit=MANY)
    assert admitted is not None
    return admitted


# Order and capacity


def test_loads_fill_half_of_the_processors() -> None:
    # 0.25 is not heavy; of four processors two may be busy, which is eight of these, exact in float64.
    admission = Admission([planned(cell, HEAVY) for cell in range(10)], processors=4)
    assert (CAPACITY, HEAVY) == (0.5, 0.25)
    running: list[PlannedCell] = []
    assert len(start_all(admission, running)) == 8
    del running[0]
    assert start_all(admission, running) == ["c8-r0"]


def test_a_cell_without_delay_runs_alone_whatever_its_load_was_measured_to_be() -> None:
    undelayed = [replace(planned(0, repetition=number), undelayed=True) for number in range(3)]
    admission = Admission([*undelayed, planned(1)], processors=4)
    running: list[PlannedCell] = []
    assert start_all(admission, running) == ["c1-r0!"]
    admission.loads.learn(undelayed[0], result(LIGHT))
    running.clear()
    assert start_all(admission, running) == ["c0-r0!"]


def test_cells_without_delay_run_side_by_side_where_the_user_says_how_many() -> None:
    undelayed = [replace(planned(cell), undelayed=True) for cell in range(3)]
    assert start_all(Admission(undelayed, processors=4, jobs=2), []) == ["c0-r0", "c1-r0"]


def test_what_does_not_fit_is_not_overtaken() -> None:
    # Half a processor of one: 0.25 + 0.2 leave no room for 0.25, and 0.01 waits its turn.
    loads = (0.25, 0.2, 0.25, 0.01)
    admission = Admission([planned(cell, load) for cell, load in enumerate(loads)], processors=1)
    assert start_all(admission, []) == ["c0-r0", "c1-r0"]


def test_a_cell_that_fills_the_capacity_starts_when_nothing_runs() -> None:
    admission = Admission([planned(cell, 0.25) for cell in range(3)], processors=0)
    assert start_all(admission, []) == ["c0-r0"]
    assert start_all(admission, []) == ["c1-r0"]


def test_an_admitted_cell_knows_how_many_may_run_beside_it() -> None:
    admission = Admission([planned(cell) for cell in range(5)], processors=2)
    running: list[PlannedCell] = []
    beside = []
    while admitted := admission.next(running, limit=4):
        beside.append(admitted.beside)
        running = [*running, admitted.planned][-2:]
    # Four at a time; of the last three, all; two run then beside the last.
    assert beside == [3, 3, 3, 3, 2]


# Heavy cells


def test_nothing_starts_beside_one_that_must_be_alone() -> None:
    admission = Admission([planned(0), planned(1)], processors=2)
    assert admission.next([planned(9)], limit=MANY, alone=True) is None
    assert len(admission) == 2


def test_a_cell_measured_to_be_heavy_waits_for_all_others() -> None:
    plan = [planned(0), planned(0, repetition=1), planned(1, kind="transfer"), planned(0, repetition=2)]
    admission = Admission(plan, processors=2)
    assert only_start(admission).planned.key == "c0-r0"
    admission.loads.learn(plan[0], result(0.5))
    assert [start_all(admission, []) for _ in range(3)] == [["c1-r0"], ["c0-r1!"], ["c0-r2!"]]
    assert len(admission) == 0


def test_a_cell_measured_to_be_light_runs_beside_others_again() -> None:
    plan = [planned(0, 1.0), *[planned(0, 1.0, repetition=repetition) for repetition in (1, 2)]]
    admission = Admission(plan, processors=2)
    assert start_all(admission, []) == ["c0-r0!"]
    admission.loads.learn(plan[0], result(0.1))
    assert start_all(admission, []) == ["c0-r1", "c0-r2"]


# Loads


def test_loads_are_forecast_until_measured() -> None:
    loads = Loads()
    assert loads.of(planned(0, 0.1)) == 0.1
    loads.learn(planned(0, 0.1), result(0.2))
    loads.learn(planned(0, 0.1), result(0.4))
    assert loads.of(planned(0, 0.1)) == pytest.approx(0.3, rel=1e-9)  # whole nanoseconds of 2 s


def test_cells_of_the_same_kind_are_as_wrong() -> None:
    loads = Loads()
    loads.learn(planned(0, 0.1), result(0.2))
    assert loads.of(planned(1, 0.3)) == pytest.approx(0.6, rel=1e-8)
    assert loads.of(planned(2, 0.3, kind="transfer")) == 0.3


def test_a_forecast_is_corrected_by_no_more_than_a_factor_of_five() -> None:
    loads = Loads()
    loads.learn(planned(0, 0.01), result(1.0))
    assert loads.of(planned(1, 0.1)) == 0.5
    loads = Loads()
    loads.learn(planned(0, 1.0), result(0.01))
    assert loads.of(planned(1, 0.1)) == pytest.approx(0.02, rel=1e-15)


def test_short_cells_correct_no_forecast() -> None:
    loads = Loads()
    loads.learn(planned(0, 0.1), result(1.0, seconds=0.999_999_999))
    assert loads.of(planned(0, 0.1)) == loads.of(planned(1, 0.1)) == 0.1


def test_all_three_threads_count() -> None:
    loads = Loads()
    cpu = {"client_ns": 100_000_000, "server_ns": 200_000_000, "emulator_ns": 700_000_000}
    loads.learn(planned(0), finished(elapsed_ns=2_000_000_000, cpu=cpu))
    assert loads.of(planned(0)) == 1.3 * 0.5


# Fixed by hand


def test_one_at_a_time_keeps_that_order_in_a_later_session() -> None:
    plan = [planned(cell) for cell in range(3)]
    admission = Admission(plan, processors=4, jobs=1)
    admission.handle_budget_kept()
    admission.note_earlier_attempts(plan[0], ATTEMPTS - 1)
    assert [start_all(admission, []) for _ in plan] == [["c0-r0!"], ["c1-r0!"], ["c2-r0!"]]


# Attempts


def test_what_missed_its_budget_goes_to_the_end() -> None:
    plan = [planned(cell) for cell in range(4)]
    admission = Admission(plan, processors=2)
    running: list[PlannedCell] = []
    assert start_all(admission, running, limit=2) == ["c0-r0", "c1-r0"]
    admission.handle_budget_kept()
    assert admission.handle_budget_missed(plan[0], alone=False)
    assert admission.attempts(plan[0]) == 1
    assert start_all(admission, []) == ["c2-r0", "c3-r0", "c0-r0"]


def test_the_last_attempt_is_alone_and_counts() -> None:
    plan = [planned(cell) for cell in range(3)]
    admission = Admission(plan, processors=2)
    admission.handle_budget_kept()
    assert start_all(admission, []) == ["c0-r0", "c1-r0", "c2-r0"]
    assert admission.handle_budget_missed(plan[0], alone=False)
    assert admission.handle_budget_missed(plan[1], alone=False)
    assert start_all(admission, []) == ["c0-r0", "c1-r0"]
    assert admission.handle_budget_missed(plan[0], alone=False)
    assert start_all(admission, [plan[1]]) == []
    assert start_all(admission, []) == ["c0-r0!"]
    assert not admission.handle_budget_missed(plan[0], alone=True)
    assert (admission.attempts(plan[0]), len(admission)) == (ATTEMPTS, 0)
    assert admission.unattainable == []


def test_attempts_of_an_earlier_session_count() -> None:
    plan = [planned(cell) for cell in range(3)]
    admission = Admission(plan, processors=2)
    admission.handle_budget_kept()
    admission.note_earlier_attempts(plan[0], ATTEMPTS - 1)
    admission.note_earlier_attempts(plan[1], 1)
    assert [admission.attempts(item) for item in plan] == [2, 1, 0]
    assert start_all(admission, []) == ["c1-r0", "c2-r0"]
    assert start_all(admission, []) == ["c0-r0!"]
    assert not admission.handle_budget_missed(plan[0], alone=True)
    assert admission.handle_budget_missed(plan[1], alone=False)
    assert start_all(admission, []) == ["c1-r0!"]


# Budgets that no cell can keep


def all_missed(cells: int) -> tuple[Admission, list[dict[str, Any]]]:
    """Cells that all ran together and missed their budget."""
    plan = [planned(cell) for cell in range(cells)]
    admission = Admission(plan, processors=2)
    assert len(start_all(admission, [])) == cells
    for item in plan:
        assert admission.handle_budget_missed(item, alone=False)
    return admission, plan


def test_when_no_cell_keeps_the_budget_some_are_tried_alone_once_nothing_runs() -> None:
    plan = [planned(cell) for cell in range(5)]
    admission = Admission(plan, processors=2)
    running: list[PlannedCell] = []
    start_all(admission, running, limit=4)
    for item in plan[:3]:
        assert admission.handle_budget_missed(item, alone=False)
    # When it is doubtful that any cell can keep its budget, nothing else starts, not even cells that never ran.
    assert start_all(admission, [plan[3]]) == []
    assert start_all(admission, []) == ["c0-r0!"]


def test_it_takes_three_cells_and_not_three_repetitions() -> None:
    plan = [planned(cell, repetition=repetition) for cell in range(3) for repetition in range(2)]
    admission = Admission(plan, processors=2)
    start_all(admission, [])
    for item in plan:
        admission.handle_budget_missed(item, alone=False)
    for item in plan[:5]:
        assert admission.unattainable == []
        assert only_start(admission) == Admitted(item, beside=0)
        assert not admission.handle_budget_missed(item, alone=True)
    assert [item.cell for item in admission.unattainable] == [0, 1, 2]


@pytest.mark.parametrize("cells", [1, 2])
def test_where_there_are_fewer_than_three_cells_they_have_all_their_attempts(cells: int) -> None:
    plan = [planned(cell, repetition=repetition) for repetition in range(2) for cell in range(cells)]
    admission = Admission(plan, processors=2)
    assert len(start_all(admission, [])) == 2 * cells
    for item in plan:
        assert admission.handle_budget_missed(item, alone=False)
    # All repetitions alone a second time, and one of each cell a third.
    for attempt, items in ((2, plan), (3, plan[:cells])):
        for item in items:
            assert admission.unattainable == []
            assert only_start(admission) == Admitted(item, beside=0)
            assert admission.handle_budget_missed(item, alone=True) is (attempt < ATTEMPTS)
    assert admission.unattainable == plan[:cells]
    assert len(admission) == cells


def test_a_cell_that_keeps_it_alone_shows_that_it_can_be_kept() -> None:
    admission, plan = all_missed(6)
    for item in plan[:2]:
        assert only_start(admission).planned == item
        assert not admission.handle_budget_missed(item, alone=True)
    assert only_start(admission).planned == plan[2]
    admission.handle_budget_kept()
    # Those that wait run together again; their next attempt is their second and their third is alone.
    running: list[PlannedCell] = []
    assert start_all(admission, running) == ["c3-r0", "c4-r0", "c5-r0"]
    assert all(admission.handle_budget_missed(item, alone=False) for item in plan[3:])
    assert [start_all(admission, []) for _ in plan[3:]] == [["c3-r0!"], ["c4-r0!"], ["c5-r0!"]]
    assert not any(admission.handle_budget_missed(item, alone=True) for item in plan[3:])
    assert admission.unattainable == []


# What always holds


@dataclass
class Session:
    """A scheduler's session without processes: starts what may start, ends one of what runs, and checks each start."""

    admission: Admission
    limit: int
    keeps: Callable[[PlannedCell, bool], bool]
    random: Random
    load: Callable[[PlannedCell], float] | None = None
    running: list[Admitted] = field(default_factory=list)
    starts: list[Admitted] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)

    def run(self) -> None:
        while self.running or len(self.admission):
            self._start()
            assert self.running, "what waits must start some time"
            self._end(self.running.pop(self.random.randrange(len(self.running))))
            if self.admission.unattainable:
                return

    def _start(self) -> None:
        while True:
            beside = [admitted.planned for admitted in self.running]
            alone = any(not admitted.beside for admitted in self.running)
            admitted = self.admission.next(beside, limit=self.limit, alone=alone)
            if admitted is None:
                return
            assert not alone
            assert admitted.beside or not beside
            assert admitted.planned.key not in [item.key for item in beside]
            self.running.append(admitted)
            self.starts.append(admitted)
            assert len(self.running) <= self.limit

    def _end(self, ended: Admitted) -> None:
        key = ended.planned.key
        if self.load:
            self.admission.loads.learn(ended.planned, result(self.load(ended.planned)))
        if self.keeps(ended.planned, not ended.beside):
            self.admission.handle_budget_kept()
            self.kept.append(key)
        elif not self.admission.handle_budget_missed(ended.planned, alone=not ended.beside):
            self.given_up.append(key)

    def attempts(self) -> Counter[str]:
        return Counter(start.planned.key for start in self.starts)


LOADS = st.sampled_from([0.001, 0.01, 0.1, 0.25, 0.26, 1.0, 2.0])
PLANS = st.lists(st.tuples(st.integers(0, 5), LOADS), max_size=25).map(
    lambda cells: [planned(cell, load, repetition=number) for number, (cell, load) in enumerate(cells)]
)


@given(plan=PLANS, processors=st.integers(1, 64), limit=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_without_misses_everything_runs_once_and_in_order(
    plan: Sequence[PlannedCell], processors: int, limit: int, seed: int
) -> None:
    session = Session(Admission(plan, processors=processors), limit, lambda *_: True, Random(seed))
    session.run()
    light = [item.key for item in plan if item.expected_load <= HEAVY]
    heavy = [item.key for item in plan if item.expected_load > HEAVY]
    assert [start.planned.key for start in session.starts] == light + heavy
    assert sorted(session.kept) == sorted(item.key for item in plan)
    assert all(start.beside == 0 for start in session.starts[len(light) :])


@given(plan=PLANS, jobs=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_by_hand_without_misses_the_order_is_the_plans(plan: Sequence[PlannedCell], jobs: int, seed: int) -> None:
    session = Session(Admission(plan, processors=2, jobs=jobs), jobs, lambda *_: True, Random(seed))
    session.run()
    assert [start.planned.key for start in session.starts] == [item.key for item in plan]


@given(plan=PLANS, processors=st.integers(1, 64), seed=st.integers(0, 2**32))
def test_forecasts_of_what_runs_together_fit_into_the_capacity(
    plan: Sequence[PlannedCell], processors: int, seed: int
) -> None:
    admission = Admission(plan, processors=processors)
    random = Random(seed)
    running: list[PlannedCell] = []
    while running or len(admission):
        start_all(admission, running)
        assert len(running) == 1 or sum(item.expected_load for item in running) <= CAPACITY * processors
        running.pop(random.randrange(len(running)))
        admission.handle_budget_kept()


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
    *, plan: Sequence[PlannedCell], jobs: int | None, limit: int, misses: float, learns: bool, recalled: int, seed: int
) -> None:
    random = Random(seed)
    admission = Admission(plan, processors=4, jobs=jobs)
    for item in plan[::3]:
        admission.note_earlier_attempts(item, recalled)
    before = {item.key: admission.attempts(item) for item in plan}
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
    last = {start.planned.key: start for start in session.starts}
    assert all(last[key].beside == 0 for key in session.given_up)
    done = session.kept + session.given_up
    assert len(done) == len(set(done))
    if admission.unattainable:
        assert session.kept == []
    else:
        assert sorted(done) == sorted(item.key for item in plan)
    if session.kept:
        assert admission.unattainable == []


@given(plan=PLANS.filter(bool), jobs=st.none() | st.integers(1, 20), seed=st.integers(0, 2**32))
def test_a_budget_that_no_cell_keeps_is_shown_by_one_repetition_each_of_three_cells_or_all(
    plan: Sequence[PlannedCell], jobs: int | None, seed: int
) -> None:
    admission = Admission(plan, processors=4, jobs=jobs)
    session = Session(admission, jobs or 16, keeps=lambda *_: False, random=Random(seed))
    session.run()
    cells = {item.cell for item in plan}
    assert len({item.cell for item in admission.unattainable}) == len(admission.unattainable) == min(3, len(cells))
    assert {item.key for item in admission.unattainable} <= set(session.given_up)


@given(plan=PLANS, seed=st.integers(0, 2**32))
def test_what_is_only_kept_alone_is_kept_by_all(plan: Sequence[PlannedCell], seed: int) -> None:
    admission = Admission(plan, processors=4)
    session = Session(admission, 16, keeps=lambda _entry, alone: alone, random=Random(seed))
    session.run()
    assert session.given_up == []
    assert sorted(session.kept) == sorted(item.key for item in plan)
