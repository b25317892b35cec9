"""Which way probes of `crosswind live` were lost, by what the server's answers say."""

import socket

import pytest

from crosswind.live.expectations import common_assumption, expectations_of
from crosswind.live.lines import expectation_lines
from crosswind.live.one_way import BACK, THERE, UNKNOWN, Arrivals
from crosswind.live.probe import Reply
from crosswind.live.report.account import Account
from crosswind.live.report.charts import loss_over_time
from crosswind.live.report.history import History
from crosswind.live.targets import Target
from crosswind.live.views import Subject
from crosswind.live.watch import ProbeWindow, Watch, WindowReport
from crosswind.models.cubic import cubic
from crosswind.models.mathis import mathis

MS = 10**6


def watched(fates: str, *, connections: str = "") -> Watch:
    """A probe every 10 ms over a path of 1 ms, whose server counts what it receives.

    Args:
        fates: of each probe: "." is answered, "t" lost on the way there, "b" on the way back, "l" answered too late.
        connections: the number of the connection that each is sent on; without it all are sent on the first.
    """
    watch = Watch(
        interval_ns=10 * MS, timeout_ns=5 * MS, window_ns=10**12, start_ns=0, outage=99, keeps_order=True,
        tells_ways=True,
    )  # fmt: skip
    sent: dict[int, int] = {}
    received: dict[int, int] = {}
    late: list[Reply] = []
    for number, fate in enumerate(fates):
        now_ns = number * 10 * MS
        assert watch.probes.poll_send(now_ns) == number
        connection = int(connections[number]) if connections else 0
        sent[connection] = sent.get(connection, 0) + 1
        received[connection] = received.get(connection, 0) + (fate != "t")
        reply = Reply(number, now_ns + MS, None, Arrivals(connection, sent[connection] - received[connection]))
        if fate == ".":
            watch.probes.handle_reply(reply)
        for each in late:
            watch.probes.handle_reply(each)
        late = [Reply(number, now_ns + 9 * MS, None, reply.arrivals)] if fate == "l" else []
        list(watch.handle_time(now_ns + 8 * MS))
    return watch


def ways(fates: str, *, connections: str = "") -> str:
    """Where each probe was lost, as is known at the end: "?" for one of which nobody knows."""
    watch = watched(fates, connections=connections)
    part = watch.probes.between(0, watch.probes.sent)
    names = {UNKNOWN: "?", THERE: "t", BACK: "b"}
    lost = part.rtt_ns != part.rtt_ns
    return "".join(names[int(way)] if is_lost else "." for way, is_lost in zip(part.way, lost, strict=True))


@pytest.mark.parametrize(
    ("fates", "known"),
    [
        ("......", "......"),
        (".t.b..", ".t.b.."),
        ("tb.", "tb."),
        (".ttt.", ".ttt."),
        (".bbb.", ".bbb."),
        # Of several in a row it is known how many were lost each way, not which.
        (".btb.", ".tbb."),
        # No later answer tells.
        (".t.tt", ".t.??"),
        ("bbb", "???"),
    ],
)
def test_a_lost_probe_was_lost_there_or_back(fates: str, known: str) -> None:
    assert ways(fates) == known


def test_a_late_answer_has_gone_both_ways() -> None:
    assert ways(".l.b.") == ".?.b."
    watch = watched(".b.")
    assert watch.probes.between(0, 3).way.tolist() == [UNKNOWN, BACK, UNKNOWN]
    watch.probes.handle_reply(Reply(1, 500 * MS))
    assert watch.probes.between(0, 3).way.tolist() == [UNKNOWN] * 3
    total = watched(".l.b.").total()
    assert (total.lost, total.late) == (2, 1)


def test_what_was_lost_between_two_connections_was_lost_nobody_knows_where() -> None:
    assert ways(".tb.t.", connections="000111") == ".??.t."


def test_a_share_of_each_way_is_of_what_went_that_way() -> None:
    total = watched("." + "t.b." * 5).total()
    assert total.loss is not None
    assert total.loss_there is not None
    assert total.loss_back is not None
    assert (total.loss.value, total.loss.n) == (10 / 21, 21)
    assert (total.loss_there.value, total.loss_there.n) == (5 / 21, 21)
    # Five of the sixteen that had arrived.
    assert (total.loss_back.value, total.loss_back.n) == (5 / 16, 16)


def test_a_download_is_expected_to_lose_what_is_lost_on_the_way_back() -> None:
    watch = watched("." + "t.b.." * 100)
    part = watch.probes.between(0, watch.probes.sent)
    found = {each.title: each for each in expectations_of(part, family="ipv4", tells_ways=True)}
    rtt_s = 0.001
    for direction, loss in (("download", 100 / 401), ("upload", 100 / 501)):
        cubic_of = found[f"CUBIC, RFC 9438, {direction}"]
        assert cubic_of.goodput.value == pytest.approx(float(cubic(1448, rtt_s, loss)))
        assert cubic_of.as_dict()["direction"] == direction
    assert len(found) == 8
    either = expectations_of(part, family="ipv4")
    assert [each.direction for each in either] == [""] * 4
    assert either[0].goodput.value == pytest.approx(float(mathis(1448, rtt_s, 200 / 501)))
    assert common_assumption(either).startswith("every lost probe counts as a loss of data, though it may have been ")
    assert common_assumption(list(found.values())).startswith("data is lost as often as probes on the same way")
    # Each model is explained once.
    assert sum(" assumes " in line for line in expectation_lines(list(found.values()))) == 4


def test_the_chart_of_loss_has_both_ways() -> None:
    watch = watched("." + "t.b.." * 4)
    history = History([WindowReport(ProbeWindow(0, 210 * MS, 0, 21), watch.total())])
    target = Target("example.org", socket.AF_INET, ("192.0.2.1", 0))
    subject = Subject(target, "udp", "messages", 10 * MS, None)
    account = Account(watch, subject, history, [], 210 * MS, {})
    rows = {row["what"]: row for rows in loss_over_time(account).specification["datasets"].values() for row in rows}
    assert (rows["lost"]["value"], rows["lost there"]["value"], rows["lost back"]["value"]) == (
        pytest.approx(100 * 8 / 21, abs=1e-6),
        pytest.approx(100 * 4 / 21, abs=1e-6),
        pytest.approx(100 * 4 / 17, abs=1e-6),
    )
    assert rows["lost there"]["at"] < rows["lost"]["at"] < rows["lost back"]["at"]


def test_what_nobody_knows_is_in_neither_share() -> None:
    total = watched(".t" + "..." + "tt").total()
    assert total.loss_there is not None
    assert total.loss_back is not None
    assert (total.loss_there.n, total.loss_back.n) == (5, 4)
    assert (total.lost, total.loss_there.value, total.loss_back.value) == (3, 1 / 5, 0)
