"""`crosswind live` without I/O: probes, windows and events on virtual times."""

import numpy as np
import pytest

from crosswind.live.events import LiveEvent
from crosswind.live.probe import Reply
from crosswind.live.probes import ProbeOutcome
from crosswind.live.summary import loss_of
from live_hosts import MS, Host


def test_a_reply_within_the_timeout_is_an_answer_and_one_after_it_is_late() -> None:
    host = Host(timeout=250)
    host.run(1000, {1: 249, 2: 250, 3: 251, 4: None})
    assert host.verdicts[:6] == [(0, 20), (1, 249), (2, 250), (3, None), (4, None), (5, 20)]
    total = host.watch.total()
    assert (total.sent, total.answered, total.lost, total.late) == (10, 8, 2, 1)


def test_a_refused_probe_is_neither_lost_nor_answered_and_three_in_a_row_are_an_outage() -> None:
    host = Host(refused=range(4, 8))
    host.run(1100, {6: None})
    host.run(2200, {})
    total = host.watch.total()
    assert (total.sent, total.answered, total.refused, total.lost) == (22, 18, 3, 1)
    assert (total.loss and total.loss.value, total.refusal and total.refusal.value) == (1 / 22, 3 / 22)
    assert total.median is not None
    assert total.median.n == 18
    assert list(host.events) == [("outage begins", 400), ("outage ends", 800)]
    (ended,) = (each for each in host.news if isinstance(each, LiveEvent) and each.kind == "outage ends")
    assert ended.values == {"lost": 1, "refused": 3, "length_ns": 400 * MS}
    assert ended.text == "the outage is over: 4 probes without an answer (1 lost, 3 refused) in 400 ms"


def test_a_host_that_refuses_every_probe_has_never_answered() -> None:
    host = Host(refused=range(100))
    host.run(1000, {})
    assert (host.watch.has_answered, host.watch.is_out) == (False, True)


def test_verdicts_come_in_the_order_of_sending_though_replies_do_not() -> None:
    host = Host()
    host.run(600, {0: 350})
    # Probes 1 to 3 are answered at 120, 220 and 320 ms; probe 0 at 350 ms, after three later ones.
    assert host.verdicts[:4] == [(0, 350), (1, 20), (2, 20), (3, 20)]
    total = host.watch.total()
    assert (total.reordered, total.duplicates) == (1, 0)


def test_a_second_reply_is_a_duplicate_also_of_a_late_one() -> None:
    host = Host(timeout=100)
    host.replies += [(30, 0, 64), (31, 0, 64), (230, 0, 64), (330, 1, 64), (340, 1, 64), (340, 99, 64)]
    host.run(500, {1: None})
    total = host.watch.total()
    assert (total.duplicates, total.late, total.lost, total.reordered) == (4, 1, 1, 0)


def test_who_comes_late_sends_one_probe_and_no_burst() -> None:
    probes = Host(interval=100).watch.probes
    assert [probes.poll_send(at * MS) for at in (0, 50, 100, 1234, 1235, 1299, 1300)] == [0, None, 1, 2, None, None, 3]


def test_nothing_is_sent_in_a_pause() -> None:
    host = Host()
    host.run(250, {})
    host.watch.probes.pause()
    host.run(1900, {})
    assert host.watch.probes.next_wakeup() is None
    host.watch.probes.resume(host.now * MS)
    host.run(2300, {})
    assert [verdict[0] for verdict in host.verdicts] == [0, 1, 2, 3, 4, 5, 6]
    assert [(each.window.start_ns // MS, each.summary.sent) for each in host.windows] == [(0, 3), (1000, 1)]


def test_a_probe_that_cannot_be_sent_is_lost_at_once() -> None:
    host = Host()
    host.watch.probes.poll_send(0)
    host.watch.probes.handle_failure(0)
    assert [each for each in host.watch.handle_time(0) if isinstance(each, ProbeOutcome)] == [ProbeOutcome(0, 0, None)]
    host.watch.probes.handle_failure(0)
    assert host.watch.total().lost == 1


def test_the_next_wakeup_is_the_next_probe_or_the_end_of_a_timeout() -> None:
    probes = Host(interval=300, timeout=500).watch.probes
    probes.poll_send(0)
    assert probes.next_wakeup() == 300 * MS
    probes.poll_send(300 * MS)
    assert probes.next_wakeup() == 500 * MS
    probes.handle_reply(Reply(0, 400 * MS))
    assert probes.next_wakeup() == 600 * MS


def test_a_window_has_the_probes_that_were_sent_in_it_whenever_they_are_answered() -> None:
    host = Host(interval=100, timeout=900, window=500)
    host.run(3000, {4: 800, 9: None})
    reports = [(each.window.start_ns // MS, each.window.first, each.window.last) for each in host.windows]
    assert (
        reports
        == [(0, 0, 5), (500, 5, 10), (1000, 10, 15), (1500, 15, 20), (2000, 20, 25), (2500, 25, 30)][: len(reports)]
    )
    first, second = (each.summary for each in host.windows[:2])
    assert (first.largest_ns, first.lost, second.largest_ns, second.lost) == (800 * MS, 0, 20 * MS, 1)
    assert first.reordered == 1


def test_another_length_of_windows_begins_at_once() -> None:
    host = Host(window=1000)
    host.run(350, {})
    host.news += host.watch.change_window(200 * MS, 350 * MS)
    host.run(900, {})
    cut, *others = (each.window for each in host.windows)
    assert (cut.start_ns, cut.end_ns, cut.first, cut.last) == (0, 350 * MS, 0, 4)
    assert [(each.start_ns // MS, each.first, each.last) for each in others] == [(350, 4, 6), (550, 6, 8)]


def test_an_outage_begins_with_its_first_lost_probe_and_ends_with_the_next_answer() -> None:
    host = Host(timeout=200, outage=3)
    host.run(2000, {2: None, 3: None, 6: None, 7: None, 8: None, 9: None})
    assert list(host.events) == [("outage begins", 600), ("outage ends", 1000)]
    (ended,) = (each for each in host.news if isinstance(each, LiveEvent) and each.kind == "outage ends")
    assert ended.values == {"lost": 4, "refused": 0, "length_ns": 400 * MS}
    assert not host.watch.is_out


def test_a_route_changes_with_the_third_reply_in_a_row_that_has_another_ttl() -> None:
    host = Host()
    host.run(500, {}, ttl=64)
    host.run(700, {}, ttl=63)
    host.run(1000, {}, ttl=64)
    assert list(host.events) == []
    host.run(1500, {}, ttl=60)
    assert list(host.events) == [("route change", 1000)]


def test_a_step_of_the_median_is_one_event_and_noise_is_none() -> None:
    host = Host(interval=100, window=1000)
    host.run(5000, {number: 20 + number % 3 for number in range(50)})
    assert list(host.events) == []
    host.run(9000, {number: 40 + number % 3 for number in range(50, 90)})
    assert list(host.events) == [("latency step", 5000)]


def test_a_step_of_less_than_a_tenth_is_no_event() -> None:
    host = Host(interval=100, window=1000)
    host.run(5000, {}, default=100)
    host.run(9000, {}, default=109)
    assert list(host.events) == []


def test_jitter_is_that_of_rfc_3550_and_variation_that_of_rfc_3393() -> None:
    host = Host(interval=100)
    host.run(500, {0: 20, 1: 36, 2: 20, 3: None, 4: 20})
    # Differences in the order of arrival: 16, 16, 0. J is J + (|D| - J) / 16 each time.
    expected = 0.0
    for difference in (16, 16, 0):
        expected += (difference - expected) / 16
    assert host.watch.current().jitter_ns == pytest.approx(expected * MS, rel=1e-12)
    host.run(1500, {})
    # Of probes next to each other: +16 and -16; none across the lost one.
    assert host.watch.probes.between(0, 5).delay_variation.tolist() == [16 * MS, -16 * MS]


def test_a_window_without_an_answer_has_no_round_trip() -> None:
    host = Host(timeout=100)
    host.run(2000, {}, default=None)
    summary = host.windows[0].summary
    assert (summary.lost, summary.median, summary.jitter_ns, summary.variation_p95) == (10, None, None, None)
    assert summary.loss is not None
    # Of 10 independent losses among 10: 0.025^(1/10).
    assert summary.loss.low == pytest.approx(0.025 ** (1 / 10))
    assert not host.watch.has_answered


def test_many_probes_are_divided_into_blocks_so_that_bursts_widen_the_interval() -> None:
    spread, burst = Host(interval=10, timeout=50), Host(interval=10, timeout=50)
    spread.run(4100, dict.fromkeys(range(5, 400, 10)))
    burst.run(4100, dict.fromkeys(range(100, 140)))
    limits = []
    for host in (spread, burst):
        part = host.watch.probes.between(0, 400)
        assert np.isnan(part.rtt_ns).sum() == 40
        loss = loss_of(part)
        assert loss is not None
        assert loss.low is not None
        assert loss.high is not None
        limits.append(loss.high - loss.low)
    assert limits[1] > 2 * limits[0]
