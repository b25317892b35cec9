"""What always holds of intervals, comparisons and models, whatever the samples."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.models.cubic import cubic
from crosswind.models.mathis import mathis
from crosswind.models.pftk import pftk, pftk_approximate, pftk_goodput
from crosswind.models.ping_pong import ping_pong
from crosswind.models.slow_start import slow_start
from crosswind.report.charts.distributions import curve
from crosswind.stats.design import Design, Tail
from crosswind.stats.differences import Side, difference
from crosswind.stats.estimate import Interval
from crosswind.stats.mean import mean_interval, trimmed_mean_interval
from crosswind.stats.multiplicity import holm
from crosswind.stats.quantile import quantile_interval
from crosswind.stats.ranks import cliffs_delta, paired_shift, unpaired_shift
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.share import Share, share_interval

times = st.integers(1, 10**10)
many = st.lists(times, min_size=6, max_size=120)
losses = st.floats(1e-4, 0.4)
rtts = st.floats(1e-4, 2.0)


repeated = st.lists(st.lists(times, min_size=1, max_size=30), min_size=1, max_size=12)
designs = st.sampled_from([Design(), Design(Tail.SKEWED, 0.1), Design(Tail.SKEWED), Design(Tail.HEAVY)])


def units_of(repetitions: list[list[int]]) -> Repetitions:
    values = [value for own in repetitions for value in own]
    return Repetitions.of(values, [at for at, own in enumerate(repetitions) for _ in own])


def lies_inside(found: Interval) -> bool:
    """Whether an estimate is in order: between its limits, and with a reason where one is missing."""
    ordered = (found.low is None or found.low <= found.value) and (found.high is None or found.value <= found.high)
    return ordered and (found.low is not None and found.high is not None) == (found.reason is None)


@given(many)
def test_a_median_lies_in_its_interval_whatever_the_order(samples: list[int]) -> None:
    found = quantile_interval(Repetitions.of(samples), 0.5)
    assert found.low <= found.value <= found.high
    assert found == quantile_interval(Repetitions.of(samples[::-1]), 0.5)


@given(repeated, st.floats(0.01, 0.99))
def test_a_quantile_lies_in_its_interval(repetitions: list[list[int]], q: float) -> None:
    found = quantile_interval(units_of(repetitions), q)
    assert lies_inside(found)
    values = [value for own in repetitions for value in own]
    assert all(min(values) <= end <= max(values) for end in (found.low, found.value, found.high) if end is not None)


@settings(max_examples=60, deadline=None)
@given(repeated, designs)
def test_a_mean_lies_in_its_interval(repetitions: list[list[int]], design: Design) -> None:
    units = units_of(repetitions)
    for found in (mean_interval(units, design=design), trimmed_mean_interval(units)):
        assert lies_inside(found)
        assert all(np.isfinite(end) for end in (found.low, found.high) if end is not None)
    assert np.isclose(mean_interval(units).value, np.mean(units.values), rtol=1e-12)


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(0, 1)), min_size=1, max_size=20))
def test_a_share_lies_in_its_interval(given_: list[tuple[int, float]]) -> None:
    sizes = [size for size, _ in given_]
    found = share_interval(Share.of([int(size * part) for size, part in given_], sizes))
    assert lies_inside(found)
    assert all(0 <= end <= 1 for end in (found.low, found.high) if end is not None)


@given(st.integers(6, 40), st.data())
def test_a_comparison_turned_round_changes_its_sign(n: int, data: st.DataObject) -> None:
    a, b = (np.array(data.draw(st.lists(times, min_size=n, max_size=n)), dtype=float) for _ in range(2))
    for there, back in (
        (paired_shift(b - a, n=n), paired_shift(a - b, n=n)),
        (unpaired_shift(a, b, n=n), unpaired_shift(b, a, n=n)),
    ):
        assert (there.low, there.value, there.high) == (-back.high, -back.value, -back.low)
        assert there.low <= there.value <= there.high
    delta = cliffs_delta(a, b, n=n)
    assert np.isclose(delta.value, -cliffs_delta(b, a, n=n).value)
    assert -1 <= delta.low <= delta.value <= delta.high <= 1
    there, back = (difference(Side(Repetitions.of(x)), Side(Repetitions.of(y))) for x, y in ((a, b), (b, a)))
    assert (there.value, there.p) == (-back.value, back.p)


@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_never_shrinks_a_p_value_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(given <= made <= 1 for given, made in zip(p_values, adjusted, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert all(adjusted[smaller] <= adjusted[larger] for smaller, larger in pairwise(order))


@given(losses, rtts, st.floats(1.01, 3))
def test_more_loss_or_a_longer_round_trip_never_makes_a_flow_faster(loss: float, rtt: float, more: float) -> None:
    worse = min(loss * more, 0.9)
    timeout = rtt + 0.2
    for rate in (pftk, pftk_goodput, pftk_approximate):
        assert rate(worse, rtt, timeout) <= rate(loss, rtt, timeout)
        assert rate(loss, rtt * more, timeout * more) <= rate(loss, rtt, timeout)
    assert mathis(1448, rtt, worse) < mathis(1448, rtt, loss)
    assert mathis(1448, rtt * more, loss) < mathis(1448, rtt, loss)
    assert cubic(1448, rtt, worse) < cubic(1448, rtt, loss)
    assert cubic(1448, rtt * more, loss) < cubic(1448, rtt, loss)


@given(losses, rtts)
def test_goodput_is_no_more_than_what_is_sent(loss: float, rtt: float) -> None:
    assert pftk_goodput(loss, rtt, rtt + 0.2) <= pftk(loss, rtt, rtt + 0.2)


@given(st.floats(0, 0.48), st.floats(0, 1), st.floats(0, 1))
def test_ping_pong_grows_with_loss(loss: float, base: float, timer: float) -> None:
    assert base <= ping_pong(base, loss, timer) <= ping_pong(base, loss + 0.01, timer)


@given(st.integers(1, 200_000), st.floats(0, 0.5), st.floats(1e5, 1e9), st.integers(1, 20))
def test_slow_start_is_never_faster_than_the_link(size: int, rtt: float, rate: float, window: int) -> None:
    found = slow_start(size, rtt_s=rtt, rate_bps=rate, mss_bytes=1448, packet_bytes=1500, initial_window=window)
    more = slow_start(size, rtt_s=rtt, rate_bps=rate, mss_bytes=1448, packet_bytes=1500, initial_window=window + 1)
    segments = -(-size // 1448)
    # The last segment is as long as what is left: at least 1 byte and 52 of headers.
    assert found >= ((segments - 2) * 12_000 + 53 * 8) / rate * (1 - 1e-9)
    assert more <= found * (1 + 1e-9)


@given(st.lists(times, min_size=1, max_size=2000), st.integers(10, 600))
def test_a_drawn_curve_rises_from_the_smallest_to_the_largest_sample(samples: list[int], points: int) -> None:
    values, shares = curve(np.asarray(samples, dtype=np.float64), points)
    assert (values[0], values[-1], shares[-1]) == (min(samples), max(samples), 1.0)
    assert len(values) <= max(points, 1) or len(values) == len(samples)
    assert np.all(np.diff(values) >= 0)
    assert np.all(np.diff(shares) > 0)
