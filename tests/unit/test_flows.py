"""Flows beside a workload: what a study says of them, what a cell gets, and what is made of what they measured."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import records
from crosswind.analysis.cells import collect
from crosswind.analysis.flow_counts import INTERVAL_NS, Flows, flow_counts, jain
from crosswind.analysis.flows import flows_of
from crosswind.catalog.endpoints import all_peers_of
from crosswind.catalog.tables import FLOWS
from crosswind.cell.record import CellRun
from crosswind.cell.spec import cell_json
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.edits import FurtherTables

STUDY = """
[workload]
kind = "echo"
transport = "udp"
[[flow]]
name = "upload"
kind = "transfer"
congestion_control = ["cubic", "bbr"]
start = "2s"
[[flow]]
kind = "echo"
transport = "quic"
size = "1kB"
"""


def study(text: str = STUDY) -> Study:
    return Study.from_toml(text, name="study", file="study.toml")


def test_a_cell_has_its_flows_in_their_order_and_a_list_is_a_factor() -> None:
    first, second = study().cells()
    assert first.levels == {"flow.upload.congestion_control": "cubic"}
    assert cell_json(first, {})["flows"] == [
        {
            "name": "upload",
            "congestion_control": "cubic",
            "start_ns": 2_000_000_000,
            "workload": {"kind": "transfer", "transport": "tcp"},
        },
        {"name": "2", "workload": {"kind": "echo", "transport": "quic", "size_bytes": 1000}},
    ]
    assert cell_json(second, {})["flows"][0]["congestion_control"] == "bbr"


def test_a_command_line_adds_flows_and_sets_their_keys() -> None:
    of = Study.adhoc("echo", {"workload.transport": "udp"})
    uploads = "transfer --transport tcp --count 4 --start=2s", "transfer --name other --size 1MB"
    of = of.edited(FurtherTables(flows=(*uploads, "page --transport http2 --client chromium")))
    (cell,) = of.with_overrides({"flow.transfer.count": 2, "flow.page.server": "node"}).cells()
    first, other, page = cell_json(cell, {})["flows"]
    assert first == {
        "name": "transfer",
        "count": 2,
        "start_ns": 2_000_000_000,
        "workload": {"kind": "transfer", "transport": "tcp"},
    }
    assert other["name"] == "other" and other["workload"]["size_bytes"] == 1_000_000
    assert [page["workload"][end]["name"] for end in ("client", "server")] == ["chromium", "node"]
    assert all_peers_of({"workload": {"kind": "echo"}, "flows": [page | {"count": 2}]}) == {
        ("flows", 0, "workload", end, number): name
        for end, name in (("client", "chromium"), ("server", "node"))
        for number in range(2)
    }


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ('name = "x"\ntransport = "tcp"', "the flow x has no kind"),
        ('kind = "transfer"\nmessages = 3', "a flow of the workload transfer does not take messages"),
        ('kind = "echo"\nname = "2"\n[[flow]]\nkind = "echo"', 'two flows are named "2"'),
        ('kind = "echo"\nclient = "chrome"', "chrome"),
        ('kind = "echo"\nserver = "chromium"', "chromium cannot be a server"),
    ],
)
def test_what_a_flow_cannot_be_is_refused_with_its_place(flow: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        list(study(f'[workload]\nkind = "echo"\n[[flow]]\n{flow}\n').cells())
    assert said in refused.value.message


def intervals(*rows: tuple[int, str, int, int]) -> pl.DataFrame:
    """Flow, direction, the number of the interval, and bytes, in packets of 1000 that each waited 1 ms."""
    made = [
        {
            "flow": flow,
            "direction": direction,
            "from_ns": at * INTERVAL_NS,
            "packets": size // 1000,
            "bytes": size,
            "dropped": 1,
            "marked": 0,
            "queued": 0,
            "queueing_ns": size // 1000 * records.MS,
            "background": 0,
        }
        for flow, direction, at, size in rows
    ]
    return pl.DataFrame(made, schema=FLOWS.schema)


def ran(*rows: tuple[int, str, int, int], began: int | None = 0, repetition: int = 0) -> CellRun:
    """A transfer beside one, which began in the interval `began`, of ten intervals in all."""
    report = {
        "flow": 1,
        "name": "rival",
        "port": 7001,
        "began_ns": None if began is None else began * INTERVAL_NS,
        "ended_ns": 10 * INTERVAL_NS,
        "samples": {"rows": 1, "ok": 1, "lost": 0, "outcomes": []},
        "unfinished": 0,
        "client_socket": None,
        "server_socket": None,
    }
    transfer: dict[str, Any] = {"kind": "transfer", "transport": "tcp"}
    parameters = {
        "path": records.path(rate_bps=1_000_000),
        "workload": transfer,
        "flows": [{"name": "rival", "count": 1, "workload": transfer}],
    }
    end = {**records.finished(), "flows": [report], "elapsed_ns": 10 * INTERVAL_NS}
    made = records.run(0, records.timed([8 * INTERVAL_NS]), parameters=parameters, end=end, repetition=repetition)
    return replace(made, intervals=intervals(*rows))


def responsiveness(run: CellRun) -> dict[str, float | None]:
    return {name: value for name, value in flow_counts(run).items() if name.startswith("responsiveness")}


def test_shares_count_the_time_in_which_all_flows_run() -> None:
    # Alone for five intervals, then 9000 against 3000 bytes in each; what goes back is less.
    own = [(0, "forward", at, 12_000 if at < 5 else 9000) for at in range(10)]
    rival = [(1, "forward", at, 3000) for at in range(5, 10)]
    run = ran(*own, *rival, (0, "reverse", 7, 1000), began=5)
    flows = Flows.of(run)
    assert flows is not None
    assert (flows.from_ns, flows.to_ns) == (5 * INTERVAL_NS, 10 * INTERVAL_NS)
    assert flows.bytes.tolist() == [45_000, 15_000]
    counted = flow_counts(run)
    assert counted["flow_bytes"] == 45_000 and counted["bulk_bytes"] == 60_000
    assert counted["fairness"] == pytest.approx(16 / 20)
    assert counted["fair_after_ns"] is None
    # 60 000 bytes in half a second of 1 Mbit/s.
    assert counted["utilisation_forward"] == pytest.approx(0.96)
    assert counted["utilisation_reverse"] == pytest.approx(0.016)


def test_flows_that_go_two_ways_are_each_counted_in_their_own() -> None:
    """A transfer and two beside it: one with it, one against it; acknowledgements the other way are no share."""
    rows = [
        (flow, direction, at, size)
        for at in range(10)
        for flow, direction, size in (
            (0, "forward", 6000),
            (0, "reverse", 1000),
            (1, "forward", 2000),
            (2, "reverse", 30_000),
            (2, "forward", 1000),
        )
    ]
    run = ran(*rows)
    assert run.finished is not None
    beside = [run.parameters["flows"][0], {**run.parameters["flows"][0], "name": "down"}]
    reports = (run.finished.flows[0], run.finished.flows[0].model_copy(update={"flow": 2, "name": "down"}))
    run = replace(
        run,
        parameters={**run.parameters, "flows": beside},
        finished=run.finished.model_copy(update={"flows": reports}),
    )
    flows = Flows.of(run)
    assert flows is not None and flows.directions == ("forward", "forward", "reverse")
    counted = flow_counts(run)
    assert (counted["flow_bytes"], counted["beside_bytes"], counted["bulk_bytes"]) == (60_000, 320_000, 80_000)
    assert counted["fairness"] == pytest.approx(jain(np.array([3.0, 1.0])))
    told = {
        flow.name: (flow.direction, flow.share.value) for flow in flows_of(collect(records.record(run)), level=0.95)
    }
    assert told == {
        "workload": ("forward", pytest.approx(6 / 9)),
        "rival": ("forward", pytest.approx(2 / 9)),
        "down": ("reverse", pytest.approx(30 / 31)),
    }


def test_a_share_is_fair_from_the_first_second_of_nearly_equal_rates_on() -> None:
    own = [(0, "forward", at, 9000 if at < 5 else 6000) for at in range(10)]
    rival = [(1, "forward", at, 1000 if at < 5 else 6000) for at in range(10)]
    # Over all ten intervals 75 000 against 35 000 bytes: an index of 0.883.
    assert flow_counts(ran(*own, *rival))["fair_after_ns"] is None
    rival = [(1, "forward", at, 3000 if at < 5 else 6000) for at in range(10)]
    assert flow_counts(ran(*own, *rival))["fair_after_ns"] == 10 * INTERVAL_NS


def test_responsiveness_is_that_of_the_draft() -> None:
    """By hand: of 40 exchanges while both flows run, the longest two of each part do not count, nor one that fails."""
    ms, count = records.MS, 41
    samples = records.table(
        count,
        flow=[0] * count,
        sent_ns=[at * 20 * ms for at in range(count)],
        received_ns=[at * 20 * ms + (1000 if at < 2 else 30) * ms for at in range(count)],
        transport_ns=[(500 if at < 2 else 10) * ms for at in range(count)],
        security_ns=[(500 if at < 2 else 20) * ms for at in range(count)],
        outcome=["ok"] * (count - 1) + ["timeout"],
    )
    run = replace(ran(*((flow, "forward", at, 1000) for flow in (0, 1) for at in range(10))), samples=samples)
    assert responsiveness(run) == {}, "connections are kept"
    probing = {"kind": "echo", "transport": "tls", "connection": "new"}
    run = replace(run, parameters={**run.parameters, "workload": probing})
    # 60 000 ms / ((10 + 20 + 30) / 3 ms).
    assert responsiveness(run) == {"responsiveness_foreign": pytest.approx(3000)}
    plain = replace(run, samples=samples.with_columns(security_ns=pl.lit(None, pl.Int64)))
    assert responsiveness(plain) == {"responsiveness_foreign": pytest.approx(3000)}, "60 000 ms / ((10 + 30) / 2 ms)"
    # Of 20 requests on the loaded connection the longest does not count, nor one that is sent once a flow has ended.
    requests = records.table(
        21,
        flow=[1] * 21,
        sent_ns=[at * 50 * ms for at in range(21)],
        received_ns=[at * 50 * ms + (900 if at in (0, 20) else 60) * ms for at in range(21)],
        outcome=["ok"] * 21,
    )
    both = replace(run, probes=requests)
    assert responsiveness(both) == {
        "responsiveness_foreign": pytest.approx(3000),
        "responsiveness_loaded": pytest.approx(1000),
        "responsiveness": pytest.approx(2000),
    }
    kept = replace(both, parameters={**both.parameters, "workload": {**probing, "connection": "kept"}})
    assert responsiveness(kept) == {"responsiveness_loaded": pytest.approx(1000)}


def test_a_flow_that_never_began_shares_nothing() -> None:
    assert flow_counts(ran((0, "forward", 0, 1000), began=None)) == {}


def test_background_traffic_is_no_flow_and_has_a_row_beside_them() -> None:
    plain = ran((0, "forward", 0, 6000), (1, "forward", 9, 4000))
    others = intervals((0, "forward", 3, 8000), (0, "reverse", 3, 1000))
    others = others.with_columns(flow=pl.lit(None, pl.UInt16), background=pl.lit(1, pl.UInt16))
    run = replace(plain, intervals=plain.intervals.vstack(others))
    assert flow_counts(run) == flow_counts(plain)
    *flows, background = flows_of(collect(records.record(run)), level=0.95)
    assert [flow.name for flow in flows] == ["workload", "rival"]
    assert (background.name, background.rate.value, background.share.value) == ("background traffic", 64_000, None)
    assert background.dropped.value == pytest.approx(1 / 9)
    assert [(row.from_ns, row.bytes) for row in background.over_time] == [
        (3 * INTERVAL_NS, 8000),
        (3 * INTERVAL_NS, 1000),
    ]


def test_what_each_flow_got_has_an_interval_over_repetitions() -> None:
    runs = [
        ran(
            *((0, "forward", at, size) for at in range(10)),
            *((1, "forward", at, 4000) for at in range(10)),
            repetition=n,
        )
        for n, size in enumerate((4000, 5000, 6000, 5000, 4000, 6000))
    ]
    workload, rival = flows_of(collect(records.record(*runs)), level=0.95)
    assert (workload.name, rival.name, rival.count) == ("workload", "rival", 1)
    assert workload.rate.value == pytest.approx(8 * 5000 / 0.1)
    assert workload.rate.low is not None and workload.rate.low < 400_000 < (workload.rate.high or 0)
    assert rival.rate.value == pytest.approx(320_000)
    assert workload.share.value == pytest.approx(sum(size / (size + 4) for size in (4, 5, 6, 5, 4, 6)) / 6)
    assert rival.queueing.value == pytest.approx(records.MS)
    assert len(workload.over_time) == 10
