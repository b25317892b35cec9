"""Plans: complete blocks, a reproducible order, seeds shared within a repetition only."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.plan import Plan, path_seed
from crosswind.study import Study

STUDY = Study.adhoc(
    "echo",
    {
        "workload.transport": "tcp,udp",
        "path.loss": "0%,1%,5%",
        "workload.size": "1,1000",
        "study.repetitions": "4",
        "study.seed": "7",
    },
)


def with_seed(seed: int, repetitions: int = 4) -> Study:
    return STUDY.with_overrides({"study.seed": seed, "study.repetitions": repetitions})


@given(seed=st.integers(0, 2**53 - 1), repetitions=st.integers(1, 5))
def test_every_block_holds_every_cell_once(seed: int, repetitions: int) -> None:
    plan = Plan.of(with_seed(seed, repetitions))
    cells = len(STUDY)
    assert len(plan) == cells * repetitions
    assert [item.order for item in plan] == list(range(len(plan)))
    for block in range(repetitions):
        items = plan.items[block * cells : (block + 1) * cells]
        assert {item.block for item in items} == {item.repetition for item in items} == {block}
        assert sorted(item.cell.index for item in items) == list(range(cells))
    assert len({item.key for item in plan}) == len(plan)


@given(seed=st.integers(0, 2**53 - 1))
def test_the_seed_is_shared_within_a_repetition_and_fresh_in_the_next(seed: int) -> None:
    plan = Plan.of(with_seed(seed))
    seeds = {(item.repetition, item.seed) for item in plan}
    assert len(seeds) == 4
    assert len({seed for _, seed in seeds}) == 4
    assert all(0 <= seed < 2**53 for _, seed in seeds)


def test_the_order_is_reproducible_and_differs_between_blocks_and_seeds() -> None:
    def order(seed: int) -> list[int]:
        return [item.cell.index for item in Plan.of(with_seed(seed))]

    assert order(7) == order(7)
    assert order(7) != order(8)
    blocks = [tuple(order(7)[start : start + 12]) for start in range(0, 48, 12)]
    assert len(set(blocks)) == 4


def test_the_first_cell_of_a_block_is_any_cell() -> None:
    first = Counter(Plan.of(with_seed(seed, 1)).items[0].cell.index for seed in range(600))
    # Expected 50 each, standard deviation sqrt(600 * 1/12 * 11/12) = 6.8; the seeds are fixed, so this cannot flicker.
    assert set(first) == set(range(12))
    assert all(abs(count - 50) < 4 * 6.8 for count in first.values())


def test_what_an_earlier_run_was_given_stays() -> None:
    # A resumed run must meet the seeds and keys that it began with: these are written down in old run directories.
    assert [path_seed(1, 0), path_seed(1, 1), path_seed(7, 0)] == [
        3815962447320633,
        7409992771494587,
        8955840711975808,
    ]
    longer, shorter = Plan.of(with_seed(7, 4)), Plan.of(with_seed(7, 2))
    assert [(i.key, i.seed) for i in shorter] == [(i.key, i.seed) for i in longer.items[: len(shorter)]]
    assert min(item.key for item in longer) == "c000-r00"
    assert max(item.key for item in longer) == "c011-r03"


@pytest.mark.parametrize(
    ("kind", "options", "expected_ns"),
    [
        # 0.3 s + 100 x (20 ms + 0.1 ms + one byte each way at 2 Gbit/s = 8 ns)
        ("echo", {"path.delay": "10ms"}, 2_310_000_800),
        # 0.3 s + 25 x (20.1 ms + 1000 bytes twice at 1 Mbit/s = 16 ms)
        (
            "echo",
            {"path.delay": "10ms", "workload.connections": 4, "workload.size": 1000, "path.rate": "1mbit"},
            1_202_500_000,
        ),
        # 0.3 s + 50 at 100 a second + 20.1 ms
        (
            "echo",
            {"path.delay": "10ms", "workload.mode": "open", "workload.rate": 100, "workload.messages": 50},
            820_100_000,
        ),
        # 0.3 s + 5 s + 2 x 20.1 ms
        ("transfer", {"path.delay": "10ms", "workload.duration": "5s"}, 5_340_200_000),
        # 0.3 s + 10 x 20.1 ms
        ("connect", {"path.delay": "10ms", "workload.count": 10}, 501_000_000),
        ("program", {"workload.client": "ping -c 3 {server}"}, 10_300_000_000),
    ],
)
def test_expected_duration(kind: str, options: dict[str, object], expected_ns: int) -> None:
    (item,) = Plan.of(Study.adhoc(kind, options)).items
    assert Plan.expected_ns(item) == pytest.approx(expected_ns, rel=1e-9)


def test_loss_is_expected_to_take_time() -> None:
    def expected(transport: str, loss: str) -> int:
        options = {"workload.transport": transport, "path.loss": loss, "workload.messages": 200}
        return Plan.expected_ns(Plan.of(Study.adhoc("echo", options)).items[0])

    # 200 messages, 1 - 0.95^2 of them lost, 1 s of timeout each.
    assert expected("udp", "5%") - expected("udp", "0%") == pytest.approx(200 * 0.0975 * 1e9)
    assert expected("tcp", "5%") - expected("tcp", "0%") == pytest.approx(200 * 0.0975 * 200.1e6)
