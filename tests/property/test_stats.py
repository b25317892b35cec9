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
from crosswind.stats import (
    TooFewSamples,
    cliffs_delta,
    clopper_pearson,
    hodges_lehmann,
    holm,
    mean_interval,
    median_interval,
    quantile_interval,
    wilson,
)

times = st.integers(1, 10**10)
many = st.lists(times, min_size=6, max_size=120)
losses = st.floats(1e-4, 0.4)
rtts = st.floats(1e-4, 2.0)


@given(many)
def test_a_median_lies_in_its_interval_whatever_the_order(samples: list[int]) -> None:
    found = median_interval(samples, unit="ns")
    assert found.low <= found.value <= found.high
    assert found == median_interval(samples[::-1], unit="ns")


@given(many, st.floats(0.01, 0.99))
def test_a_quantile_lies_in_its_interval_or_is_refused(samples: list[int], q: float) -> None:
    try:
        found = quantile_interval(samples, q, unit="ns")
    except TooFewSamples as refusal:
        assert refusal.needed > len(samples)
    else:
        assert min(samples) <= found.low <= found.value <= found.high <= max(samples)


@settings(max_examples=40, deadline=None)
@given(st.lists(times, min_size=2, max_size=80), st.integers(0, 3))
def test_a_mean_lies_in_its_interval_or_is_refused(samples: list[int], seed: int) -> None:
    try:
        found = mean_interval(samples, unit="ns", seed=seed, resamples=199)
    except TooFewSamples:
        assert len(set(samples)) > 1  # equal samples are never refused
    else:
        assert found.low <= found.value <= found.high
        assert np.isfinite([found.low, found.high]).all()
        assert found.value == np.mean(samples) or abs(found.value / np.mean(samples) - 1) < 1e-12


@given(st.integers(1, 5000), st.data())
def test_a_share_lies_in_both_of_its_intervals(n: int, data: st.DataObject) -> None:
    lost = data.draw(st.integers(0, n))
    for found in (clopper_pearson(lost, n), wilson(lost, n)):
        assert 0 <= found.low <= found.value <= found.high <= 1


@given(st.lists(times, min_size=5, max_size=60), st.lists(times, min_size=5, max_size=60))
def test_a_comparison_turned_round_changes_its_sign(a: list[int], b: list[int]) -> None:
    there, back = hodges_lehmann(a, b, unit="ns").estimate, hodges_lehmann(b, a, unit="ns").estimate
    assert (there.low, there.value, there.high) == (-back.high, -back.value, -back.low)
    assert there.low <= there.value <= there.high
    delta = cliffs_delta(a, b)
    assert delta.value == -cliffs_delta(b, a).value
    assert -1 <= delta.low <= delta.value <= delta.high <= 1


@given(st.lists(times, min_size=5, max_size=60), st.integers(-(10**9), 10**9))
def test_a_shifted_set_is_shifted_by_as_much(a: list[int], shift: int) -> None:
    assert hodges_lehmann(a, [x + shift for x in a], unit="ns").estimate.value == shift


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
    assert found >= (segments - 1) * 12_000 / rate * (1 - 1e-9)
    assert more <= found * (1 + 1e-9)


@given(st.lists(times, min_size=1, max_size=2000), st.integers(10, 600))
def test_a_drawn_curve_rises_from_the_smallest_to_the_largest_sample(samples: list[int], points: int) -> None:
    values, shares = curve(np.asarray(samples, dtype=np.float64), points)
    assert (values[0], values[-1], shares[-1]) == (min(samples), max(samples), 1.0)
    assert len(values) <= max(points, 1) or len(values) == len(samples)
    assert np.all(np.diff(values) >= 0)
    assert np.all(np.diff(shares) > 0)
