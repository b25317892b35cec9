"""Cardwell, BBR and QUIC's ping-pong against sums and numbers worked out without them; all models on arrays."""

import math

import numpy as np
import pytest

from crosswind.models.bbr import bbr
from crosswind.models.caia import caia
from crosswind.models.cardwell import before_first_loss, cardwell, slow_start_latency, slow_start_window
from crosswind.models.cubic import cubic
from crosswind.models.mathis import mathis
from crosswind.models.pftk import pftk, pftk_approximate, pftk_goodput
from crosswind.models.ping_pong import deviation, ping_pong
from crosswind.models.quic_ping_pong import probe_timeout, quic_ping_pong
from crosswind.models.slow_start import slow_start
from effects import predict


@pytest.mark.parametrize(("segments", "loss"), [(1, 0.3), (10, 0.02), (100, 0.1)])
def test_segments_before_the_first_loss_by_their_sum(segments: int, loss: float) -> None:
    # k segments arrive before the first loss with probability (1-p)^k p, all with (1-p)^d; the lost one counts too.
    whole = sum((1 - loss) ** k * loss * k for k in range(segments)) + (1 - loss) ** segments * segments
    assert before_first_loss(segments, loss) == pytest.approx(min(segments, whole + 1))


def test_cardwell_doubles_a_window_each_round() -> None:
    # 1 + 2 + 4 segments take three rounds; with a window of 2, 1 + 2 + 2 + 2 take four.
    assert slow_start_latency(7, 0.1, initial_window=1) == pytest.approx(0.3)
    assert slow_start_latency(7, 0.1, initial_window=1, window_segments=2) == pytest.approx(0.4)
    assert slow_start_latency(90, 0.1, initial_window=3, window_segments=np.inf) == pytest.approx(0.1 * math.log2(31))


def test_cardwell_without_loss_is_slow_start_and_with_it_goes_on_as_pftk() -> None:
    path = {"rtt_s": 0.1, "timeout_s": 0.3, "initial_window": 3}
    assert cardwell(21, loss=0.0, **path) == pytest.approx(0.3)
    more = [cardwell(segments, loss=0.05, **path) for segments in (10_000, 20_000)]
    assert more[1] - more[0] == pytest.approx(10_000 / pftk_goodput(0.05, 0.1, 0.3))


def test_cardwell_of_one_segment_waits_for_its_timeout_and_no_more() -> None:
    # Lost with 1 %, from a window of one: nothing behind it shows the loss, so the timer must. G = 1.010204.
    found = cardwell(1, rtt_s=0.1, timeout_s=0.3, loss=0.01, initial_window=1)
    assert found == pytest.approx(0.1 + 0.01 * 0.3 * 1.0102041 / 0.99, abs=1e-8)


def test_cardwells_first_loss_meets_the_window_of_slow_start() -> None:
    # Equation 20. At 2 % of 100 segments 43.502 are sent up to the first loss, (1 - .98^100) * .98 / .02 + 1, which
    # leaves a window of 43.502 / 2 + 3 / 2 = 23.251. Equation 24 worked out apart: Q(23.251) = .206474, where
    # congestion avoidance has E[W] = 1 + sqrt(8 * .98 / .06 + 1) = 12.474 and Q(12.474) = .307278.
    sent = (1 - 0.98**100) * 0.98 / 0.02 + 1
    begun = 0.1 * math.log2(sent / 3 + 1)
    share, backoff = 0.20647445, 1 + 0.02 + 2 * 0.02**2 + 4 * 0.02**3 + 8 * 0.02**4
    repair = (1 - 0.98**100) * (share * backoff * 0.3 / 0.98 + (1 - share) * 0.1)
    rest = (100 - sent) / pftk_goodput(0.02, 0.1, 0.3)
    found = cardwell(100, rtt_s=0.1, timeout_s=0.3, loss=0.02, initial_window=3)
    assert found == pytest.approx(begun + repair + rest, abs=1e-6)
    # A receiver's window of 8 segments is what the loss meets then.
    assert slow_start_window(sent, initial_window=3, window_segments=8) == 8


def test_bbr_keeps_what_is_not_lost_up_to_the_window() -> None:
    assert bbr(100e6, 0.1) == pytest.approx(90e6)
    assert bbr(100e6, 0.0, mss_bytes=1250, rtt_s=0.1, window_segments=10) == pytest.approx(1e6)


def test_quic_waits_by_their_sum() -> None:
    # One direction: the message is lost, then both probes of k-1 timeouts: T (2^k - 1), P = p p^(2(k-1)) (1 - p²).
    loss, timeout = 0.15, 0.03
    waits = sum(loss * loss ** (2 * (k - 1)) * (1 - loss**2) * timeout * (2**k - 1) for k in range(1, 60))
    assert quic_ping_pong(0.001, loss, timeout) == pytest.approx(0.001 + 2 * waits)


@pytest.mark.parametrize(("loss", "mean_ms"), [(0.10, 6.42), (0.15, 9.72), (0.20, 13.34)])
def test_quic_golden_vectors(loss: float, mean_ms: float) -> None:
    assert 1e3 * quic_ping_pong(0.0003, loss, 0.030) == pytest.approx(mean_ms, abs=0.01)


def test_quic_at_more_loss_has_a_warning() -> None:
    def warnings(loss: float) -> tuple[str, ...]:
        way = {"delay_ns": 10_000_000, "loss": loss}
        echo = {"path": {"forward": way, "reverse": way}, "workload": {"kind": "echo", "transport": "quic"}}
        return predict("quic-ping-pong", echo).violated

    assert warnings(0.05) == ()
    assert any("timer longer" in text for text in warnings(0.1))


def test_a_probe_timeout_is_the_round_trip_and_26_ms() -> None:
    assert probe_timeout(0.02) == pytest.approx(0.046)


LOSSES = np.array([0.001, 0.01, 0.1])
SEGMENTS = {"mss_bytes": 1448.0, "packet_bytes": 1500.0, "initial_window": 3}


@pytest.mark.parametrize(
    "formula",
    [
        lambda p: mathis(1448, 0.1, p, window_segments=45),
        lambda p: pftk(p, 0.1, 0.3, window_segments=45),
        lambda p: pftk_goodput(p, 0.1, 0.3),
        lambda p: pftk_approximate(p, 0.1, 0.3, window_segments=45),
        lambda p: cubic(1448, 0.1, p, window_segments=45),
        lambda p: bbr(1e8, p, rtt_s=0.1, window_segments=4500),
        lambda p: caia(256_000, 6e6, p),
        lambda p: ping_pong(0.01, p, 0.4),
        lambda p: deviation(p, 0.2),
        lambda p: quic_ping_pong(0.01, p, 0.03),
        lambda p: cardwell(100, rtt_s=0.1, timeout_s=0.3, loss=p, initial_window=3, window_segments=45),
        lambda p: slow_start(256_000 * (1 + p), rtt_s=0.1, rate_bps=6e6, **SEGMENTS),
    ],
)
def test_a_formula_of_an_array_is_that_of_each_number(formula) -> None:
    found = formula(LOSSES)
    assert found.shape == LOSSES.shape
    assert found.tolist() == pytest.approx([float(formula(float(loss))) for loss in LOSSES])
    assert len(set(found.tolist())) > 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: bbr(0.0, 0.1),
        lambda: quic_ping_pong(0.0, 0.7, 0.03),
        lambda: cardwell(0, rtt_s=0.1, timeout_s=0.3, loss=0.1, initial_window=3),
        lambda: mathis(1448, 0.1, np.array([0.1, 0.0])),
    ],
)
def test_arguments_out_of_range_are_refused(call) -> None:
    with pytest.raises(ValueError):
        call()
