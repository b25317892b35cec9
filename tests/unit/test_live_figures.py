"""What `crosswind live` says in numbers and words: what TCP can get, thresholds, bars."""

import math

import numpy as np
import pytest

from crosswind.errors import UsageError
from crosswind.live.expectations import Expectation, expectations_of
from crosswind.live.goodput import Goodput
from crosswind.live.lines import expectation_lines, goodput_text, share_text, window_text
from crosswind.live.probes import Slice
from crosswind.live.screen import histogram, sparkline
from crosswind.live.summary import loss_of, quantile_of_times, summarise
from crosswind.live.thresholds import judge_thresholds, parse_threshold, read_thresholds
from crosswind.models.cubic import cubic
from crosswind.models.mathis import mathis
from crosswind.models.pftk import pftk_goodput
from crosswind.stats.arrays import Array
from crosswind.stats.estimate import without_interval
from crosswind.stats.share import clopper_pearson

MS = 10**6
MSS = 1448


def probes(n: int, *, lost: int = 0, rtt_ms: float = 20.0) -> Slice:
    """Some probes, of which every so many-th is lost."""
    rtt_ns = np.full(n, rtt_ms * MS)
    if lost:
        rtt_ns[np.arange(lost) * (n // lost)] = np.nan
    return part_of(rtt_ns)


def part_of(rtt_ns: Array, *, refused: int = 0) -> Slice:
    """Probes with these round trips, of which none came out of order. Args: refused: of the first ones, lost before."""
    none, is_refused = np.zeros(rtt_ns.size, dtype=np.bool_), np.arange(rtt_ns.size) < refused
    rtt_ns = np.where(is_refused, np.nan, rtt_ns)
    return Slice(rtt_ns, rtt_ns.size, 0, 0, none, is_refused, np.zeros(rtt_ns.size, dtype=np.int8))


def by_model(part: Slice, rate_bps: int | None = None, family: str = "ipv4") -> dict[str, Expectation]:
    return {each.model.name: each for each in expectations_of(part, family=family, rate_bps=rate_bps)}


def test_the_models_get_the_measured_loss_and_round_trip() -> None:
    found = by_model(probes(1000, lost=10))
    assert found["mathis"].goodput.value == pytest.approx(mathis(MSS, 0.02, 0.01))
    assert found["pftk-goodput"].goodput.value == pytest.approx(8 * MSS * float(pftk_goodput(0.01, 0.02, 0.22)))
    assert found["cubic"].goodput.value == pytest.approx(cubic(MSS, 0.02, 0.01))
    assert (found["bbr"].goodput.value, found["bbr"].unit) == (pytest.approx(0.99), "1")
    six = by_model(probes(1000, lost=10), family="ipv6")
    assert six["mathis"].goodput.value == pytest.approx(mathis(1428, 0.02, 0.01))


def test_the_interval_is_that_of_loss_at_97_5_percent() -> None:
    # Fewer than 40 probes are taken one by one, and all round trips are the same.
    found = by_model(probes(30, lost=3))["mathis"].goodput
    low, high = clopper_pearson(3, 30, level=0.975)
    assert (found.low, found.high) == (
        pytest.approx(mathis(MSS, 0.02, high)),
        pytest.approx(mathis(MSS, 0.02, low)),
    )


def test_without_a_loss_there_is_a_least_goodput_where_the_model_holds_for_what_the_loss_may_be() -> None:
    found = by_model(probes(1000))
    assert (found["mathis"].goodput.value, found["mathis"].goodput.high) == (None, None)
    loss = loss_of(probes(1000), level=0.975)
    assert loss is not None
    assert loss.high is not None
    assert loss.high < 0.01
    assert found["mathis"].goodput.low == pytest.approx(mathis(MSS, 0.02, loss.high))
    assert goodput_text(found["mathis"].goodput).startswith("at least ")
    assert found["mathis"].note == "no loss was seen"
    # 0.0125^(1/30) = 0.864: the loss may be 13.6 %.
    assert list(expectation_lines(expectations_of(probes(30), family="ipv4"))) == [
        "No prediction by Mathis, CUBIC: no loss was seen, and after 30 probes it may be up to 13.6 %, "
        "where the model holds up to 1 %.",
        "No prediction by PFTK: no loss was seen, and after 30 probes it may be up to 13.6 %, "
        "where the model holds up to 5 %.",
        "No prediction by BBR: no loss was seen, and without --rate it has no rate.",
    ]


def test_a_bound_below_what_tcp_got_and_a_rate_of_no_link_are_left_out() -> None:
    bounded = by_model(probes(1000))["mathis"]
    assert bounded.goodput.low is not None
    for rate_bps, says_something in ((bounded.goodput.low / 2, True), (bounded.goodput.low, False)):
        rate = without_interval(rate_bps, "one transfer", n=1, level=0.95, units=1)
        assert bounded.beside([Goodput("download", rate, 1, 1, None, None, None)]).says_something is says_something
    # Mathis: 1.22 * 1448 * 8 bit / 20 us / sqrt(0.001) = 22.4 Gbit/s; with 0.2 us 2.24 Tbit/s.
    assert by_model(probes(10_000, lost=10, rtt_ms=0.02))["mathis"].says_something
    silent = by_model(probes(10_000, lost=10, rtt_ms=0.0002))["mathis"]
    assert (silent.goodput.value, silent.note) == (None, "this loss limits it on no link of today")


def test_no_model_gives_more_than_the_link_carries() -> None:
    found = by_model(probes(1000), rate_bps=1_500_000)
    link = 1_448_000
    assert found["mathis"].goodput.high == link
    assert found["bbr"].goodput.value == pytest.approx(link)
    lossy = by_model(probes(1000, lost=10), rate_bps=1_500_000)
    assert lossy["mathis"].goodput.value == link
    assert lossy["mathis"].note == "limited by the link"


def test_loss_beyond_a_models_range_is_said() -> None:
    notes = {name: each.note for name, each in by_model(probes(30, lost=6)).items()}
    assert notes["mathis"] == "loss is above 1%, up to which the model is valid"
    assert notes["pftk-goodput"] == "loss is above 5%, up to which the model is valid"
    assert notes["bbr"].endswith("loss is above 15%, up to which the model is valid")


def test_without_an_answer_nothing_is_expected() -> None:
    nobody = part_of(np.full(5, np.nan))
    assert expectations_of(nobody, family="ipv4") == []
    assert list(expectation_lines([])) == []


def test_two_probes_give_no_interval_and_no_limit() -> None:
    found = by_model(probes(2, lost=1))["mathis"].goodput
    assert (found.low, found.high) == (None, None)
    assert goodput_text(found).endswith("(no interval)")
    loss = loss_of(probes(2, lost=1))
    assert loss is not None
    assert share_text(loss) == "50 % (no interval)"


def test_a_service_that_is_dead_does_not_pass_a_bound_on_loss() -> None:
    dead = part_of(np.full(300, 20.0 * MS), refused=300)
    loss, refused = judge_thresholds(read_thresholds(["loss > 2%"], can_be_refused=True), dead)
    assert (loss.verdict, refused.verdict) == ("pass", "fail")
    assert (
        refused.sentence == "Fail: fail if refused > 2% (as loss > 2%): refused is 100.0 [98.4, 100.0] %, 300 probes."
    )
    assert refused.as_dict()["fail_if"] == "refused > 2%"
    half = part_of(np.full(300, 20.0 * MS), refused=150)
    told = judge_thresholds(
        read_thresholds(["loss > 2%", "refused > 90%", "answered < 99%"], can_be_refused=True), half
    )
    assert [judged.verdict for judged in told] == ["pass", "pass", "fail"]


def test_only_a_connection_can_be_refused() -> None:
    assert [each.text for each in read_thresholds(["loss > 1%", "answered < 99%"], can_be_refused=False)] == [
        "loss > 1%", "answered < 99%",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="only a connection can be refused"):
        read_thresholds(["share(refused) > 1%"], can_be_refused=False)


@pytest.mark.parametrize(
    ("text", "lost", "verdict"),
    [
        ("loss > 50%", 2, "pass"),
        ("loss > 1%", 15, "fail"),
        ("share(lost) >= 10%", 3, "inconclusive"),
        ("median(rtt) > 20ms", 0, "pass"),
        ("median(rtt) >= 20ms", 0, "fail"),
        ("median(rtt) < 21ms", 0, "fail"),
        ("p95(rtt) > 200ms", 0, "inconclusive"),
    ],
)
def test_a_threshold_is_judged_by_the_interval(text: str, lost: int, verdict: str) -> None:
    (judged,) = judge_thresholds([parse_threshold(text)], probes(30, lost=lost))
    assert judged.verdict == verdict


def test_what_is_not_decided_says_how_many_more_probes_would_tell() -> None:
    loss, p95 = judge_thresholds([parse_threshold("loss > 10%"), parse_threshold("p95(rtt) > 1s")], probes(30, lost=2))
    _, high = clopper_pearson(2, 30)
    assert loss.cell.needed == math.ceil(30 * ((1 + 0.8416 / 1.96) * (high - 2 / 30) / (0.1 - 2 / 30)) ** 2) - 30
    assert loss.sentence == (
        "Inconclusive: fail if loss > 10%: loss is 7 [1, 22] %, 30 probes; about 1\u202f300 more probes would decide."
    )
    assert p95.sentence.endswith("28 probes; an interval of p95 needs 400 probes, there are 28: 372 more.")


def test_the_intervals_of_quantiles_need_6_and_400_answers() -> None:
    for q, needed in ((0.5, 6), (0.95, 400)):
        for n, is_whole in ((needed - 1, False), (needed, True)):
            # In an order that makes blocks alike: 151 is prime.
            found = quantile_of_times(np.arange(n, dtype=np.float64) * 151 % n, q)
            assert found is not None
            assert (found.low is not None and found.high is not None) is is_whole, (q, n)


def test_a_window_is_one_line() -> None:
    assert window_text(summarise(probes(30, lost=3), jitter_ns=0.0, keeps_order=True)) == (
        "30 sent; 3 lost: 10 % [2.11 %, 26.5 %]; round trip min 20.00, median 20.00 [20.00, 20.00], "
        "p95 20.00 (at least 20.00), max 20.00 ms (n = 27); "
        "jitter 0 ns (RFC 3550), delay variation p95 0 ns (RFC 3393); "
        "0 reordered, 0 duplicates"
    )


def test_bars_are_as_high_as_the_longest_round_trip_of_their_probes() -> None:
    part = part_of(np.array([10.0, 20, 80, 10, np.nan, 45]))
    assert sparkline(part, probes_a_column=1) == "▁▂█▁×▅"
    assert sparkline(part, probes_a_column=2) == "▂█×"
    assert sparkline(part_of(np.array([np.nan, np.nan])), probes_a_column=1) == "××"
    assert sparkline(part_of(np.array([1.0, 10, 80]), refused=1), probes_a_column=1) == "!▁█"


def test_a_histogram_has_every_round_trip_in_one_row() -> None:
    rows = histogram(np.concatenate([np.linspace(10 * MS, 20 * MS, 99), [900.0 * MS]]))
    assert sum(number for _, _, number in rows) == 100
    assert len(rows) == 8
    assert rows[0][0] == "10.00 ms"
    assert [number for *_, number in histogram(np.full(5, 20.0 * MS))] == [5, 0, 0, 0, 0, 0, 0, 0]


def test_intervals_of_loss_hold_where_it_comes_in_bursts() -> None:
    # 5 % loss in bursts of 3 probes on average (Gilbert's model), 400 probes, 200 series that are always the same. A
    # true coverage of 95 % has 184 or more in 98 % of cases; the interval of independent trials has about 136.
    random = np.random.default_rng(3)
    ends, begins = 1 / 3, 0.05 / 3 / 0.95
    blocks = independent = 0
    for _ in range(200):
        drawn, lost, is_lost = random.random(400), np.zeros(400, dtype=bool), bool(random.random() < 0.05)
        for number, chance in enumerate(drawn):
            lost[number] = is_lost
            is_lost = chance >= ends if is_lost else chance < begins
        found = loss_of(part_of(np.where(lost, np.nan, 20.0 * MS)))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        blocks += found.low <= 0.05 <= found.high
        low, high = clopper_pearson(int(lost.sum()), 400)
        independent += low <= 0.05 <= high
    assert blocks >= 184
    assert independent < 160
