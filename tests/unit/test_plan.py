"""Plans: complete blocks, a reproducible order, seeds shared within a repetition only."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from crosswind.study.design import Study
from crosswind.study.plan import Plan, path_seed

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


def test_a_block_holds_the_cells_that_have_a_further_repetition() -> None:
    whole = with_seed(7, 4)
    limits = [
        {"where": {"path.loss": "5%"}, "at_most": 1},
        {"where": {"path.loss": 0.01, "workload.size": "1B"}, "at_most": 3},
    ]
    plan = Plan.of(Study.from_document({**whole.document, "repetitions": limits}, name="limited"))
    # 12 cells: 2 transports x 3 losses x 2 sizes. The four with 5 % go after the first block, two with 1 % after three.
    assert Counter(item.block for item in plan) == {0: 12, 1: 8, 2: 8, 3: 6}
    assert [item.order for item in plan] == list(range(34))
    assert all(item.block == item.repetition for item in plan)
    # What is left keeps its key, its seed and its place in the block.
    kept = {item.key for item in plan}
    of_whole = [(item.key, item.seed) for item in Plan.of(whole) if item.key in kept]
    assert [(item.key, item.seed) for item in plan] == of_whole
