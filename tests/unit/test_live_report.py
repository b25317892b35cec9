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
from crosswind.live.report.history import History
from crosswind.live.report.page import origin_now, page_of
from crosswind.live.targets import Target
from crosswind.live.thresholds import judge_thresholds, parse_threshold
from crosswind.live.views import Subject
from crosswind.live.watch import News
from crosswind.report.html import render, write_html
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
