"""The page at the end of `crosswind live`: what its charts and tables hold, of sessions on virtual times."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from crosswind.live.events import LiveEvent
from crosswind.live.goodput import Goodput
from crosswind.live.report.account import Account
from crosswind.live.report.distribution import distribution_charts
from crosswind.live.report.goodput import goodput_chart
from crosswind.live.report.history import MOST_PERIODS, History, Outage
from crosswind.live.report.over_time import loss_over_time, reordering_over_time, rtt_over_time, variation_over_time
from crosswind.live.report.page import origin_now, page_of
from crosswind.live.report.tables import (
    events_table,
    expectation_tables,
    measured_table,
    numbers_table,
    windows_table,
)
from crosswind.live.targets import Target
from crosswind.live.thresholds import judge_thresholds, parse_threshold
from crosswind.live.views import Subject
from crosswind.live.watch import News
from crosswind.report.html import render, write_html
from crosswind.stats.estimate import without_interval
from crosswind.stats.share import clopper_pearson
from live_hosts import MS, Host

ORIGIN: dict[str, Any] = {
    "command": ["crosswind", "live", "example.org"],
    "started": "2026-01-02 03:04:05 UTC",
    "clock": "CLOCK_MONOTONIC, resolution 1 ns, clock source tsc",
    "versions": {"crosswind": "1.2.3", "python": "3.11.2"},
    "machine": {
        "system": "Linux", "kernel": "6.1", "architecture": "x86_64", "cpu_model": "A processor", "cpus": 2,
        "virtualisation": None,
    },
    "sysctls": {"net.ipv4.tcp_sack": "1"},
}  # fmt: skip


def page_text(account: Account) -> str:
    """The page of a session."""
    return render(page_of(account))


def account_of(
    host: Host, *fail_if: str, news: list[News] | None = None, measured: tuple[Goodput, ...] = ()
) -> Account:
    """A session that is over at the host's time."""
    history = History()
    for each in [*(host.news if news is None else news), *host.watch.close(host.now * MS)]:
        history.handle_news(each)
    target = Target("example.org", socket.AF_INET, ("192.0.2.1", 0))
    subject = Subject(target, "icmp", "ICMP echo requests of 56 bytes", 100 * MS, None, measured)
    judged = judge_thresholds(
        [parse_threshold(text) for text in fail_if], host.watch.probes.between(0, host.watch.probes.sent)
    )
    return Account(host.watch, subject, history, judged, host.now * MS, ORIGIN)


def rows_of(chart: Any) -> list[dict[str, Any]]:
    """The rows that a chart draws."""
    assert chart is not None
    return [row for rows in chart.specification["datasets"].values() for row in rows]


def specifications(page: str) -> list[dict[str, Any]]:
    found = re.search(r'<script id="specs" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return list(json.loads(found[1]).values())


@pytest.fixture
def host() -> Host:
    """Ten seconds of a probe every 100 ms: round trips of 20 ms, and of 30 ms from the sixth second on.

    Probes 3 and 4 are lost; 20 to 29 too, which is an outage; the reply to 60 comes after two later ones.
    """
    made = Host(interval=100, timeout=500, window=1000)
    lost: dict[int, int | None] = dict.fromkeys([3, 4, *range(20, 30)])
    slow: dict[int, int | None] = dict.fromkeys(range(50, 100), 30)
    made.run(10_600, lost | slow | {60: 250})
    return made


def test_the_loss_of_a_window_stands_in_its_middle_with_its_interval(host: Host) -> None:
    rows = [row for row in rows_of(loss_over_time(account_of(host))) if row.get("what") == "lost"]
    low, high = clopper_pearson(2, 10)
    first = rows[0]
    assert (first["at"], first["value"], first["n"]) == (0.5, 20, 10)
    assert (first["low"], first["high"]) == (pytest.approx(100 * low, abs=1e-5), pytest.approx(100 * high, abs=1e-5))
    assert first["window"] == "0.000 to 1.000 s"
    assert [row["value"] for row in rows][:4] == [20, 0, 100, 0]


def test_an_outage_is_a_band_from_its_first_lost_probe_to_the_next_answer(host: Host) -> None:
    account = account_of(host)
    assert account.outages == [Outage(2000 * MS, 3000 * MS)]
    for chart in (loss_over_time(account), rtt_over_time(account)):
        assert {"begin": 2, "end": 3, "text": "outage"} in rows_of(chart)


def test_an_outage_that_goes_on_ends_with_the_session() -> None:
    host = Host()
    host.run(3000, dict.fromkeys(range(10, 40)))
    account = account_of(host)
    assert account.outages == [Outage(1000 * MS, None)]
    assert {"begin": 1, "end": 3, "text": "outage"} in rows_of(loss_over_time(account))


def test_round_trips_are_drawn_by_window_and_by_probe(host: Host) -> None:
    rows = rows_of(rtt_over_time(account_of(host)))
    dots = [row for row in rows if row.get("what") == "a probe"]
    assert len(dots) == host.watch.total().answered
    assert {row["value"] for row in dots} == {20, 30, 250}
    assert dots[0]["at"] == 0
    medians = {row["at"]: row["value"] for row in rows if row.get("what") == "median"}
    assert (medians[0.5], medians[5.5], 2.5 in medians) == (20, 30, False)


def test_reordering_and_delay_variation_are_those_of_their_window(host: Host) -> None:
    account = account_of(host)
    shares = {row["at"]: row["value"] for row in rows_of(reordering_over_time(account)) if "value" in row}
    assert (shares[6.5], shares[5.5]) == (10, 0)
    varied = [row for row in rows_of(variation_over_time(account)) if row.get("what") == "delay variation, p95"]
    assert {row["at"]: row["value"] for row in varied}[0.5] == 0
    assert any("without an interval" in row.get("estimate", "") for row in rows_of(variation_over_time(account)))


def test_every_round_trip_is_in_one_bar_and_the_curve_ends_at_all_of_them(host: Host) -> None:
    account = account_of(host)
    histogram, curve = distribution_charts(account)
    answered = account.total.answered
    notes = " ".join(histogram.notes)
    beyond = int(found[1]) if (found := re.search(r"(\d+) round trip", notes)) else 0
    assert sum(row["n"] for row in rows_of(histogram)) == answered - beyond
    assert rows_of(curve)[-1] == {"x": 250, "share": 100, "text": "250.0 ms"}


def test_round_trips_that_are_all_the_same_have_an_axis() -> None:
    host = Host()
    host.run(2000, {})
    histogram, _ = distribution_charts(account_of(host))
    (bar,) = rows_of(histogram)
    assert bar["begin"] < 20 < bar["end"]


def test_more_windows_than_a_chart_can_show_are_taken_together() -> None:
    host = Host(interval=100, timeout=100, window=100)
    host.run(100 * (2 * MOST_PERIODS + 50), {0: None, 2: None})
    account = account_of(host)
    assert len(account.history.windows) > 2 * MOST_PERIODS
    assert account.windows_together == 3
    assert len(account.periods) <= MOST_PERIODS
    assert sum(period.summary.sent for period in account.periods) == sum(
        report.summary.sent for report in account.history.windows
    )
    first = account.periods[0]
    assert (first.start_ns, first.end_ns, first.summary.sent, first.summary.lost) == (0, 300 * MS, 3, 2)
    assert "A dot is 3 windows together." in loss_over_time(account).notes[0]


def test_every_number_has_its_n_and_how_its_interval_was_made(host: Host) -> None:
    table = numbers_table(account_of(host))
    rows = {row[0]: row[1:] for row in table.rows}
    total = host.watch.total()
    assert rows["loss"][1] == str(total.sent)
    assert "Clopper-Pearson" in rows["loss"][2]
    assert rows["median round-trip time"][1:] == [str(total.answered), "Woodruff's, by Student's t over repetitions"]
    assert rows["jitter"][2].startswith("none: a moving mean")
    assert all(text for row in table.rows for text in row)
    # p95 has a lower limit only, and says why.
    assert any("an interval of p95 needs 400 probes" in note for note in table.footnotes)


def test_windows_and_events_have_a_row_each(host: Host) -> None:
    account = account_of(host)
    windows = windows_table(account)
    assert [row[2:4] for row in windows.rows[:3]] == [["10", "2"], ["10", "0"], ["10", "10"]]
    events = events_table(account)
    assert events is not None
    assert ["2.0", "outage: 3 probes in a row have no answer"] in events.rows
    quiet = Host()
    quiet.run(2000, {})
    assert events_table(account_of(quiet)) is None


def test_each_model_is_there_with_its_assumptions(host: Host) -> None:
    expected, assumed = expectation_tables(account_of(host))
    assert [row[0] for row in expected.rows] == [row[0] for row in assumed.rows]
    assert len(expected.rows) == 4
    assert all(text for row in assumed.rows for text in row)


def test_what_tcp_got_stands_beside_what_it_can_get(host: Host) -> None:
    rate = without_interval(6.5e6, "one transfer", n=1, level=0.95, units=1)
    download = Goodput("download", rate, 4_062_500, 5 * 10**9, "cubic", 2800, 12)
    account = account_of(host, measured=(download,))
    table = measured_table(account)
    assert table is not None
    (row,) = table.rows
    assert row == ["download", "6.5 Mbit/s (no interval)", "1", "4.062 MB", "5 s", "cubic", "2\u202f800", "12"]
    rows = rows_of(goodput_chart(account))
    (measured,) = [row for row in rows if row["source"] == "measured"]
    assert (measured["row"], measured["text"]) == ("TCP, download", "6.5 Mbit/s, one transfer")
    expected = [row for row in rows if row["source"] == "expected"]
    assert len(expected) == 3  # BBR's is a share of the link's rate, which nobody said.
    mathis = next(each for each in account.expectations if each.model.name == "mathis").goodput
    assert mathis.value is not None
    assert expected[0]["value"] / measured["value"] == pytest.approx(mathis.value / 6.5e6, rel=1e-5)
    assert (
        "TCP reached 6.5 Mbit/s: one download, 4.062 MB in 5 s, cubic, 12 of 2\u202f800 segments retransmitted"
        in page_text(account)
    )
    assert measured_table(account_of(host)) is None


def test_a_model_that_expects_at_least_so_much_is_a_line_without_a_dot() -> None:
    quiet = Host(interval=10)
    quiet.run(10_000, {})
    chart = goodput_chart(account_of(quiet))
    assert chart is not None
    assert {row.get("value") for row in rows_of(chart)} == {None}
    assert chart.notes == ("A line without a dot begins at the model's minimum, because no loss was seen.",)


def test_the_page_has_everything_in_it_and_refers_to_no_other_host(host: Host) -> None:
    page = page_text(account_of(host, "loss > 1%", "p95(rtt) > 1s"))
    for text in (
        "example.org: loss and round-trip time", "There was 1 outage.", "Inconclusive: fail if p95(rtt) &gt; 1s",
        "2026-01-02 03:04:05 UTC", "A processor", "Crosswind 1.2.3", "clock source tsc", "Mathis",
        "ICMP echo requests of 56 bytes",
    ):  # fmt: skip
        assert text in page, text
    assert len(specifications(page)) == 7
    visible = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(?:src=|href="(?!#))', visible)


@pytest.mark.parametrize(
    ("fail_if", "says"),
    [
        (("median(rtt) > 10ms",), ("bad", "A threshold fails.")),
        (("loss > 90%",), ("doubtful", "There was 1 outage.")),
        ((), ("doubtful", "There was 1 outage.")),
    ],
)
def test_the_banner_says_the_worst(host: Host, fail_if: tuple[str, ...], says: tuple[str, str]) -> None:
    assert f'<div class="banner {says[0]}">{says[1]}</div>' in page_text(account_of(host, *fail_if))


def test_the_banner_of_a_session_without_trouble() -> None:
    host = Host()
    host.run(3000, {})
    assert '<div class="banner good">There was no outage.</div>' in page_text(account_of(host))
    kept = page_text(account_of(host, "loss > 90%"))
    assert '<div class="banner good">Every threshold passes, and there was no outage.</div>' in kept


def test_a_host_that_never_answers_has_a_page_too() -> None:
    host = Host(timeout=200)
    host.run(2000, {}, default=None)
    page = page_text(account_of(host))
    assert '<div class="banner bad">example.org (192.0.2.1) never answered 20 probes.</div>' in page
    assert "<h2>Round-trip time</h2>" not in page
    assert len(specifications(page)) == 1


def test_refused_connections_are_on_the_page() -> None:
    host = Host(refused=range(20), window=500)
    host.run(1500, {})
    account = account_of(host)
    rows = [row for row in rows_of(loss_over_time(account)) if row.get("what") == "refused"]
    assert [row["value"] for row in rows] == [100, 100, 100]
    assert windows_table(account).columns[5].heading == "refused [95 %], %"
    page = page_text(account)
    assert '<div class="banner bad">example.org (192.0.2.1) refused all 15 connections.</div>' in page
    assert "15 probes; 0 lost: 0 % [0 %, 21.8 %]; 15 refused: 100 % [78.2 %, 100 %] (95 % interval)." in page
    host.run(3500, {})
    assert "There was 1 outage." in page_text(account_of(host))


def test_a_session_without_a_probe_has_a_page_too() -> None:
    page = page_text(account_of(Host()))
    assert "never answered 0 probes" in page


def test_what_a_host_is_called_is_no_markup(host: Host) -> None:
    news: list[News] = [*host.news, LiveEvent("route change", 4000 * MS, "<script>alert(1)</script>", {})]
    page = page_text(account_of(host, news=news))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_file_is_written_and_the_machine_is_named(host: Host, tmp_path: Path) -> None:
    account = account_of(host)
    write_html(page_of(account), tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8") == page_text(account)
    origin = origin_now()
    assert set(origin) == set(ORIGIN)
    assert origin["machine"]["kernel"]
    assert origin["clock"].startswith("CLOCK_MONOTONIC, resolution ")
