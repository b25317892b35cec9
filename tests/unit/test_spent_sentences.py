"""What is said of why exchanges of one cell take longer than those of another."""

from collections.abc import Sequence

import pytest

from crosswind.analysis.result import PartOfDifference, SpentDifference
from crosswind.report.text.spent import difference_sentences
from crosswind.stats.estimate import Interval

MS = 1e6


def exact(ms: float) -> Interval:
    return Interval(value=ms * MS, low=None, high=None, n=3, level=0.95, method="exact")


def single(interval: Interval) -> Interval:
    """The same value of one repetition."""
    return Interval(value=interval.value, low=None, high=None, n=1, level=0.95, method="none", units=1)


def difference(*parts: tuple[str, float], other: str = "b", asked: bool = False) -> SpentDifference:
    """Of transports a and another one, of groups and by how many ms that takes longer in each."""
    made: Sequence[PartOfDifference] = [PartOfDifference(group=group, difference=exact(ms)) for group, ms in parts]
    return SpentDifference(
        factor="workload.transport", reference="a", other=other, fixed={}, reference_cell=0, other_cell=1,
        difference=exact(sum(ms for _, ms in parts)), parts=list(made), asked=asked,
    )  # fmt: skip


@pytest.mark.parametrize(("parts", "says"), [
    ([("recovery", 9), ("hosts", 1)], "Of the 10.00 ms that b takes longer than a, exactly 9 ms are loss recovery."),
    ([("recovery", -9), ("hosts", -1)], "Of the 10.00 ms that a takes longer than b, exactly 9 ms are loss recovery."),
    ([("handshakes", 6), ("queueing", 4)],
     "Of the 10.00 ms that b takes longer than a, exactly 6 ms are handshakes, exactly 4 ms queues."),
    ([("link", 16), ("receive_window", -6)],
     "Of the 10.00 ms that b takes longer than a, exactly 16 ms are the rate of the link, less exactly 6 ms of the "
     "receiver's window."),
    ([("pacing", -30), ("link", 20), ("jitter", 20)],
     "Of the 10.00 ms that b takes longer than a, exactly 20 ms are the rate of the link, exactly 20 ms jitter, less "
     "exactly 30 ms of pacing."),
])  # fmt: skip
def test_a_difference_is_said_to_be_what_makes_most_of_it(parts: list[tuple[str, float]], says: str) -> None:
    assert list(difference_sentences([difference(*parts)])) == [says]


def test_nothing_is_said_of_a_difference_whose_parts_make_up_for_each_other() -> None:
    # As of transfers that last ten seconds: 10 s less for one reason, 10 s more for another.
    assert list(difference_sentences([difference(("unknown", 10_032), ("link", -6_023), ("pacing", -4_005))])) == []
    assert list(difference_sentences([difference(("unknown", 1e-6))])) == []


def test_parts_without_intervals_are_called_so_once() -> None:
    said = difference(("link", 6), ("queueing", 4))
    bare = [part.model_copy(update={"difference": single(part.difference)}) for part in said.parts]
    (sentence,) = difference_sentences([said.model_copy(update={"parts": bare})])
    assert sentence.endswith("6.000 ms are the rate of the link, 4.000 ms queues (without intervals).")


def test_what_questions_compare_comes_first() -> None:
    large = difference(("recovery", 90), other="c")
    asked = [difference(("hosts", 5), other=name, asked=True) for name in ("b", "d")]
    said = list(difference_sentences([large, *asked]))
    assert [sentence.partition("that ")[2].partition(" takes")[0] for sentence in said] == ["b", "d", "c"]
