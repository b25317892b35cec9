"""Several flows on one path: exact shares, exact books, beginnings and ends; and studies that say which flows run."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from scipy.stats import t

import crosswind
from captures import tshark
from conftest import ROOT, requires
from crosswind.analysis.flow_counts import INTERVAL_NS, Flows, jain
from crosswind.cell.guests import START_NS
from crosswind.study.design import Study
from linux.lab import Object, ms
from virtual.conftest import requires_kernel
from virtual.lab import ADDED_NS, VirtualCells, VirtualRun

LINK = {"rate_bps": 10_000_000, "queue": {"packets": 100}, "delay_ns": ms(20)}
FAIR_LINK = {**LINK, "discipline": "fq_codel", "queue": {"packets": 1000}}


def s(count: float) -> int:
    return int(count * 1e9)


def beside(name: str, workload: Object, **keys: Any) -> Object:
    return {"name": name, **keys, "workload": workload}


def upload(**keys: Any) -> Object:
    return {"kind": "transfer", "transport": "tcp", **keys}


def flows(ran: VirtualRun) -> pl.DataFrame:
    return pl.read_ipc((ran.directory / "flows.arrow").read_bytes())


def delivered(ran: VirtualRun, direction: str = "forward") -> dict[int, int]:
    """Bytes of each flow."""
    own = flows(ran).filter(pl.col("direction") == direction, pl.col("flow").is_not_null())
    return dict(own.group_by("flow").agg(pl.col("bytes").sum()).iter_rows())


def test_the_workload_comes_out_the_same_without_flows_and_with_none_of_one(cells: VirtualCells) -> None:
    echo = {"kind": "echo", "transport": "tcp", "messages": 20}
    alone = cells.run(echo, forward=LINK, reverse=LINK)
    none = cells.run(echo, forward=LINK, reverse=LINK, flows=[beside("upload", upload(), count=0)])
    assert none.samples().equals(alone.samples())


def test_every_packet_belongs_to_a_flow_and_their_sum_is_the_ledgers(cells: VirtualCells) -> None:
    """Transfers of three transports in both directions, an echo, and handshakes behind an access link that loses."""
    ran = cells.run(
        {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 50, "messages": 100, "size_bytes": 100},
        forward={**LINK, "background_rate_bps": 500_000, "background_arrivals": "poisson"},
        reverse=LINK,
        flows=[
            beside("up", upload(), count=2, start_ns=s(0.5)),
            beside("down", {"kind": "transfer", "transport": "quic", "direction": "download"}, stop_ns=s(1.5)),
            beside("web", {"kind": "connect", "transport": "tls"}, access_delay_ns=ms(5), access_loss=0.05),
        ],
    )
    counted = flows(ran)
    for direction in ("forward", "reverse"):
        by_kind = counted.filter(pl.col("direction") == direction).partition_by("background", as_dict=True)
        sums = by_kind[0,].select(pl.exclude("flow", "direction", "from_ns").sum())
        ledger = ran.result["ledger"][direction]
        if direction == "forward":
            others, kept = by_kind[1,].select(pl.exclude("flow", "direction").sum()), ledger["background"]
            assert others.select("packets", "bytes").row(0) == (kept["carried"], kept["carried_bytes"])
            assert others["dropped"].item() == sum(kept["dropped"].values()) < others["packets"].item()
        assert sums["packets"].item() == ledger["delivered"]
        assert sums["bytes"].item() == ledger["delivered_bytes"]
        assert sums["dropped"].item() == sum(ledger["dropped"].values())
        assert sums["queued"].item() == ledger["queued"]
        path, access = ([*hop["dropped"].values()] for hop in ledger["hops"])
        assert sum(path) + sum(access) == sums["dropped"].item() and sum(access) > 0
    reports = ran.result["flows"]
    assert [(flow["flow"], flow["name"], flow["port"]) for flow in reports] == [
        (1, "up", 7001),
        (2, "up", 7002),
        (3, "down", 7003),
        (4, "web", 7004),
    ]
    samples = ran.samples()
    assert set(samples["flow"]) == {0, 1, 2, 3, 4}
    assert samples.filter(pl.col("flow") == 0).height == ran.result["samples"]["rows"] == 100
    assert {flow["name"] for flow in reports if flow["samples"]["lost"]} == set()
    # Handshakes follow one another until the workload has ended; one may be under way then.
    web = reports[3]
    assert web["samples"]["ok"] > 0 and web["unfinished"] <= 1


def test_an_access_link_is_as_if_the_path_were_longer(cells: VirtualCells) -> None:
    """Nothing queues, so that hosts of their own make no difference. Each reading of the clock takes 1 ns."""
    clock = {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 10, "messages": 20}

    def times(path_ns: int, **access: int) -> pl.DataFrame:
        delay = {"delay_ns": path_ns}
        flow = beside("far", upload(size_bytes=300_000), **access)
        ran = cells.run(clock, forward=delay, reverse=delay, flows=[flow])
        return ran.samples().filter(pl.col("flow") > 0).select(cs.ends_with("_ns"))

    far, expected = times(ms(5), access_delay_ns=ms(35)), times(ms(40))
    assert far.height == expected.height == 4
    apart = [(of - to).abs().max() for of, to in zip(far, expected, strict=True) if of.len() > of.null_count()]
    assert len(apart) > 4 and max(apart) <= 1000


def test_reno_gets_less_the_longer_its_round_trip_is(cells: VirtualCells) -> None:
    """Round trips of 10 and 80 ms, and up to 20 ms of queue: by the least ratio, up to the square of the greatest.

    T. V. Lakshman and U. Madhow, 1997.
    """
    way = {**LINK, "queue": {"packets": 17}, "delay_ns": ms(5)}
    ran = cells.run(
        upload(duration_ns=s(20)),
        forward=way,
        reverse=way,
        host={"congestion_control": "reno"},
        flows=[beside("far", upload(), access_delay_ns=ms(35))],
    )
    near, far = (delivered(ran)[flow] for flow in (0, 1))
    assert 100 / 30 < near / far < 64


def test_equal_flows_share_equally_within_an_interval(cells: VirtualCells) -> None:
    """Two of Reno, the second up to a second later: neither is favoured. The interval is Student's, at 95 %."""
    shares = []
    for seed in range(1, 6):
        ran = cells.run(
            upload(duration_ns=s(12)),
            forward={**LINK, "queue": {"packets": 33}},
            reverse=LINK,
            host={"congestion_control": "reno"},
            flows=[beside("rival", upload(), spread_ns=s(1))],
            seed=seed,
        )
        inner = flows(ran).filter(pl.col("direction") == "forward", pl.col("from_ns") >= s(2))
        own, rival = (inner.filter(pl.col("flow") == flow)["bytes"].sum() for flow in (0, 1))
        shares.append(own / (own + rival))
    mean, error = np.mean(shares), np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert abs(mean - 0.5) < t.ppf(0.975, len(shares) - 1) * error < 0.15


def test_flows_begin_and_stop_when_they_are_to(cells: VirtualCells) -> None:
    ran = cells.run(
        {"kind": "echo", "transport": "tcp", "mode": "open", "rate_per_s": 20, "messages": 60},
        forward=LINK,
        reverse=LINK,
        flows=[beside("upload", upload(), start_ns=s(1), stop_ns=s(2)), beside("late", upload(), start_ns=s(60))],
    )
    first, late = ran.result["flows"]
    assert s(1) <= first["began_ns"] < s(1) + ms(1)
    assert s(2) <= first["ended_ns"] < s(2) + ms(1)
    assert late["began_ns"] is None and late["samples"]["rows"] == 0
    assert [warning["name"] for warning in ran.result["warnings"]] == ["flows_apart"]
    own = flows(ran).filter(pl.col("flow") == 1, pl.col("direction") == "forward")
    # What was in the queue and on the line when the connection was reset arrives afterwards: 120 ms and 20.
    assert own["from_ns"].min() == s(1)
    assert own["from_ns"].max() <= s(2.1)
    sample = ran.samples().filter(pl.col("flow") == 1)
    assert sample["outcome"].to_list() == ["ok"]
    assert sample["received_bytes"].item() > 500_000


def test_two_transfers_share_a_fair_queue_equally_and_fill_the_link(cells: VirtualCells) -> None:
    ran = cells.run(
        upload(duration_ns=s(5)),
        forward=FAIR_LINK,
        reverse=LINK,
        host={"congestion_control": "cubic"},
        flows=[beside("rival", upload(), congestion_control="bbr")],
    )
    inner = flows(ran).filter(pl.col("direction") == "forward", pl.col("from_ns").is_between(s(1), s(4)))
    by_time = inner.group_by("from_ns").agg(pl.col("bytes").sum())["bytes"]
    own, rival = (inner.filter(pl.col("flow") == flow)["bytes"].sum() for flow in (0, 1))
    # CoDel lets CUBIC's own queue run empty now and then, and BBR has what is left.
    assert own / (own + rival) == pytest.approx(0.5, abs=0.03)
    assert by_time.mean() == pytest.approx(10e6 / 8 * INTERVAL_NS / 1e9, rel=0.005)
    assert [ran.result["flows"][0][f"{end}_socket"]["congestion_control"] for end in ("client", "server")] == [
        "bbr"
    ] * 2
    assert ran.result["readback"]["client"]["socket"]["congestion_control"] == "cubic"


def test_bbr_takes_most_of_a_shallow_queue_from_cubic(cells: VirtualCells) -> None:
    """Half of what the path holds, as in the public reports: 1.71 and 7.83 Mbit/s of 10."""
    ran = cells.run(
        upload(duration_ns=s(10)),
        forward={**LINK, "queue": {"packets": 17}},
        reverse=LINK,
        host={"congestion_control": "cubic"},
        flows=[beside("rival", upload(), congestion_control="bbr")],
    )
    own, rival = (delivered(ran)[flow] for flow in (0, 1))
    assert rival > 2 * own


def test_beside_a_program_a_flow_has_a_congestion_control_of_its_own(cells: VirtualCells) -> None:
    ran = cells.run(
        {"kind": "program", "client": ["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]},
        forward=LINK,
        reverse=LINK,
        host={"congestion_control": "bbr"},
        flows=[beside("upload", upload(), congestion_control="reno")],
    )
    assert (ran.directory / "client.out").read_text(encoding="utf-8") == "bbr\n"
    assert ran.result["flows"][0]["client_socket"]["congestion_control"] == "reno"


def test_programs_run_beside_a_workload_until_their_flow_ends(cells: VirtualCells) -> None:
    iperf3 = requires("iperf3")
    server = [iperf3, "-s", "-p", "{port}"]
    client = [iperf3, "-c", "{server}", "-p", "{port}", "-t", "60"]
    ran = cells.run(
        {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 50, "messages": 200},
        forward=FAIR_LINK,
        reverse=LINK,
        flows=[
            beside("iperf3", {"kind": "program", "client": client, "server": server}, stop_ns=s(3)),
        ],
    )
    (stopped,) = ran.result["flows"]
    assert (stopped["unfinished"], stopped["samples"]["rows"]) == (1, 0)
    # Its time counts from when its server listens.
    assert stopped["ended_ns"] - stopped["began_ns"] == pytest.approx(s(3), abs=100_000)
    assert "the client has terminated" in ran.text("flow-1/client.err")
    assert delivered(ran)[1] > 2_500_000
    unheard = beside("unheard", {"kind": "program", "client": [*client, "-B", "203.0.113.1"], "server": server})
    failure = cells.run({"kind": "program", "client": ["sleep", "60"]}, flows=[unheard]).end.failure
    assert failure is not None
    assert failure.message.startswith(
        "unheard, beside the workload, failed: the client program ended with exit status 1"
    )


def test_nothing_is_measured_before_the_programs_beside_it_are_ready(cells: VirtualCells) -> None:
    """Readiness takes 40 s: more than it may without saying so. Times of flows count from there."""
    ready = {"ready": "log:prepared", "start_timeout_ns": s(60)}
    helper = {"kind": "program", "client": ["sh", "-c", "sleep 40; echo prepared; exec sleep 60"], **ready}
    echo = {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 10, "messages": 20}
    way = {"forward": LINK, "reverse": LINK}
    company = [beside("helper", helper), beside("upload", upload(), start_ns=s(1))]
    ran = cells.run(echo, **way, flows=company)
    sent = ran.samples().filter(pl.col("flow") == 0)["sent_ns"].min()
    assert s(40) <= sent < s(40.1)
    upload_began = ran.result["flows"][1]["began_ns"]
    assert upload_began == pytest.approx(sent + s(1), abs=ms(5))
    assert ran.result["warnings"] == []
    late = {**helper, "start_timeout_ns": s(39)}
    failure = cells.run(echo, **way, flows=[beside("helper", late)]).end.failure
    assert failure is not None
    assert failure.message == (
        "helper, beside the workload, failed: the client program did not become ready (log:prepared): "
        'within 39 s no line of its output has "prepared"'
    )


def test_peers_run_beside_a_workload_until_they_are_done_or_their_flow_ends(cells: VirtualCells) -> None:
    requires("iperf3")
    mine, theirs = (
        {"name": name, "command": [sys.executable, str(ROOT / "docs/examples" / file)]}
        for name, file in (("mine", "echo_client.py"), ("theirs", "echo_server.py"))
    )
    iperf3 = {"name": "iperf3", "command": [sys.executable, "-m", "crosswind.peers.iperf3"]}
    echo = {"kind": "echo", "transport": "tcp"}
    ran = cells.run(
        {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 50, "messages": 100},
        forward=FAIR_LINK,
        reverse=LINK,
        flows=[
            beside("mine", {**echo, "messages": 20, "client": mine}),
            beside("theirs", {**echo, "server": theirs}, access_delay_ns=ms(5)),
            beside("iperf3", upload(client=iperf3, server=iperf3), stop_ns=s(1)),
        ],
    )
    done, served, stopped = ran.result["flows"]
    assert (done["samples"]["ok"], done["unfinished"], done["client_socket"]) == (20, 0, None)
    # Its client is our own, and there is one exchange in every 50 ms and a little of the 2 s that the workload takes.
    assert (served["samples"]["ok"], served["unfinished"], served["server_socket"]) == (
        pytest.approx(37, abs=3),
        1,
        None,
    )
    assert (stopped["samples"]["rows"], stopped["unfinished"]) == (0, 1)
    assert stopped["ended_ns"] == pytest.approx(s(1), abs=100_000)
    assert delivered(ran)[3] > 500_000
    assert sum(delivered(ran).values()) == ran.result["ledger"]["forward"]["delivered_bytes"]
    assert ran.result["warnings"] == []


def test_programs_that_poll_and_threads_that_end_delay_no_packet(cells: VirtualCells) -> None:
    """Two pollers wait for each other's turn. Each thread of the server that ends waits in the kernel for another."""
    iperf3 = requires("iperf3")
    pollers = {
        "kind": "program",
        "client": [iperf3, "-c", "{server}", "-p", "{port}", "-t", "60", "-b", "2M"],
        "server": [iperf3, "-s", "-p", "{port}"],
    }
    ran = cells.run(
        {
            "kind": "program",
            "client": [requires("curl"), "-s", "-o", "/dev/null", *["http://{server}:8000/"] * 20],
            "server": [sys.executable, "-m", "http.server", "8000"],
            "port": 8000,
        },
        forward=LINK,
        reverse=LINK,
        flows=[beside("pollers", pollers, count=2, stop_ns=s(1)), beside("upload", upload(), stop_ns=s(1))],
    )
    assert ran.result["program"] == {"exit_code": 0, "signal": None}
    packets = ran.packets()
    assert packets.height > 400
    assert packets.select(pl.col("out_ns") - pl.col("due_ns")).max().item() <= 1000


@pytest.mark.parametrize("transport", ["tcp", "quic", "websocket", "http2"])
def test_an_end_interrupts_whatever_waits(cells: VirtualCells, transport: str) -> None:
    """A flow whose answers never come: every packet back is lost once the connection stands."""
    ran = cells.run(
        {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 10, "messages": 20},
        forward=LINK,
        reverse={**LINK, "loss": 0.5},
        seed=3,
        flows=[beside("other", {"kind": "echo", "transport": transport, "size_bytes": 2000}, stop_ns=s(1))],
    )
    other = ran.result["flows"][0]
    assert other["ended_ns"] == pytest.approx(s(1), abs=ms(1))
    assert ran.result["elapsed_ns"] < s(5)


def test_flows_at_constant_rates_wait_as_in_a_queue_of_d_d_1(cells: VirtualCells) -> None:
    """Eight flows of 1250 bytes every 10 ms, over a link that takes 1 ms for each: Lindley's recursion, to the ns."""
    clock = {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 100, "messages": 50, "size_bytes": 1222}
    way = {"rate_bps": 10_000_000, "queue": {"packets": 100}, "delay_ns": ms(20)}
    ran = cells.run(clock, forward=way, reverse=way, flows=[beside("other", clock, count=7, spread_ns=ms(10))])
    packets = ran.packets("forward").sort("in_ns", "index")
    assert packets.height == 8 * 50
    free_at, waits = 0, []
    for arrived in packets["in_ns"]:
        waits.append(max(0, free_at - arrived))
        free_at = max(free_at, arrived) + ms(1)
    assert packets["queueing_ns"].to_list() == waits
    # A period later all is as it was, but for when timers fire.
    middle = packets.filter(pl.col("in_ns").is_between(ms(100), ms(400)))["queueing_ns"].to_numpy()
    assert max(abs(middle[8:] - middle[:-8])) < 5_000 and middle.max() > ms(1)


RRUL = """
[path]
delay = "10ms"
queue = "100p"
forward.rate = "10mbit"
reverse.rate = "30mbit"
[host]
clock = "virtual"
[workload]
kind = "echo"
transport = "udp"
mode = "open"
rate = 5
messages = 25
[[flow]]
name = "up"
kind = "transfer"
transport = "tcp"
count = 2
[[flow]]
name = "down"
kind = "transfer"
transport = "tcp"
direction = "download"
count = 2
[study]
repetitions = 1
"""


def test_a_report_has_what_flent_draws_of_the_same_packets(tmp_path: Path) -> None:
    """Its rrul_be.conf: sums of the transfers in intervals of 100 ms (`-s 0.1`), their mean, and that of the pings."""
    requires_kernel()
    run = crosswind.run(Study.from_toml(RRUL, name="rrul", file="rrul.toml"), output=tmp_path / "run", packets=True)
    (cell,) = run.record().cells
    together = Flows.of(cell)
    assert together is not None
    packets = pl.read_parquet(next(run.directory.rglob("packets.parquet")))
    in_time = pl.col("out_ns").is_between(together.from_ns, together.to_ns - 1), pl.col("verdict") == "delivered"
    series = packets.filter(pl.col("protocol") == 6, *in_time).with_columns(
        port=pl.min_horizontal("source_port", "destination_port"), at=pl.col("out_ns") // INTERVAL_NS
    )

    def mean_sum(direction: str, ports: list[int]) -> float:
        """The mean of "TCP upload sum" or "TCP download sum", in bit/s."""
        data = series.filter(pl.col("direction") == direction, pl.col("port").is_in(ports))
        sums = data.group_by("at").agg(pl.col("size_bytes").sum())
        return float(sums["size_bytes"].mean()) * 8e9 / INTERVAL_NS  # type: ignore[arg-type]

    up, down = mean_sum("forward", [7001, 7002]), mean_sum("reverse", [7003, 7004])
    rates = {flow.name: flow.rate.value for flow in crosswind.analyse(run).flows}
    assert rates["up"] == pytest.approx(up) and rates["down"] == pytest.approx(down)
    ping = cell.samples.select(took=pl.col("received_ns") - pl.col("sent_ns"))["took"].mean()
    estimates = dict(run.estimates().filter(pl.col("statistic") == "mean").select("metric", "value").iter_rows())
    assert estimates["rate_beside"] == pytest.approx(up + down), "TCP totals"
    assert estimates["rtt"] == pytest.approx(ping)


def test_a_flow_alone_is_the_workload_alone(cells: VirtualCells) -> None:
    """To the nanosecond, from its beginning on: the same transfer, and as a flow while the workload says nothing."""
    transfer = upload(size_bytes=300_000, count=1)
    way = {**LINK, "queue": {"packets": 20}}
    alone = cells.run(transfer, forward=way, reverse=way).samples()
    # Two messages, ten seconds apart.
    clock = {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 0.1, "messages": 2, "size_bytes": 100}
    flow = beside("flow", transfer, start_ns=s(1))
    ran = cells.run(clock, forward=way, reverse=way, flows=[flow]).samples().filter(pl.col("flow") == 1)
    columns = [cs.matches("wire_ns|connect_ns|transport_ns"), pl.col("received_ns") - pl.col("sent_ns")]
    assert ran["outcome"].to_list() == ["ok"]
    assert ran.select(columns).rows() == alone.select(columns).rows()


@pytest.mark.parametrize("direction", ["download", "upload"])
def test_requests_beside_a_transfer_take_as_long_as_tshark_sees(cells: VirtualCells, direction: str) -> None:
    """What http_l is in draft-ietf-ippm-responsiveness: from sending a request until its whole answer has come."""
    load = {"kind": "transfer", "transport": "h2c", "direction": direction, "probe_rate_per_s": 10}
    ran = cells.run(
        {"kind": "echo", "transport": "tls", "connection": "new", "messages": 30, "size_bytes": 1},
        forward=LINK,
        reverse=LINK,
        flows=[beside("load", load)],
    )
    own = ran.samples().filter(pl.col("flow") == 1)
    requests = own.filter(pl.col("stream") == 1).sort("exchange")
    assert requests.height > 20 and set(requests["outcome"]) == {"ok"}
    assert requests["exchange"].to_list() == list(range(requests.height))
    # Each was sent when it was due.
    assert (requests["sent_ns"] - requests["intended_ns"]).max() < ADDED_NS  # type: ignore[operator]
    assert requests["intended_ns"].diff().drop_nulls().unique().to_list() == [ms(100)]
    asked, answered = whole_requests(ran, port=7001)
    # The last ones have no answer when the flow ends, and are no samples.
    whole = [stream for stream in asked if stream in answered][: requests.height]
    sent, received = (requests[column].to_list() for column in ("sent_ns", "received_ns"))
    late = [at - answered[stream] for at, stream in zip(received, whole, strict=True)]
    waited = [asked[stream] - at for at, stream in zip(sent, whole, strict=True)]
    # Captures begin some ns earlier than the cell's time.
    assert max(map(abs, late)) < 1000
    # A request waits behind the bytes that its own kernel holds, of which a download has none.
    assert min(waited) > -1000 and (max(waited) > ms(100) if direction == "upload" else max(waited) < 1000)


def whole_requests(ran: VirtualRun, *, port: int) -> tuple[dict[int, int], dict[int, int]]:
    """When tshark sees each stream of HTTP/2 but the first end: as the client sends it, and as it comes."""
    fields = ["frame.time_epoch", "tcp.dstport", "http2.streamid", "http2.type", "http2.flags.end_stream"]
    in_order = "-o", "tcp.reassemble_out_of_order:TRUE"
    seen = tshark(ran, "client", fields, "http2 && http2.streamid > 1", "-d", f"tcp.port=={port},http2", *in_order)
    ends: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for time, to, streams, types, flags in seen.rows():
        # Frames of data and of headers alone say whether they are the last of their stream.
        ending = iter(flags.split(","))
        for stream, kind in zip(streams.split(","), types.split(","), strict=True):
            if kind in ("0", "1") and next(ending) == "1" and stream != "1":
                ends[int(to) != port][int(stream)] = int(time.replace(".", "")) - START_NS
    return ends


def test_jains_index() -> None:
    assert jain(np.array([3.0, 3.0, 3.0])) == pytest.approx(1)
    assert jain(np.array([5.0, 0.0])) == pytest.approx(0.5)
    assert jain(np.array([2.0, 1.0])) == pytest.approx(0.9)


def test_a_flows_codepoint_is_in_all_its_packets_and_cake_sorts_by_it(cells: VirtualCells) -> None:
    link = {**LINK, "discipline": "cake", "cake_tins": "diffserv3"}
    ran = cells.run(
        {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 20, "messages": 160, "size_bytes": 100},
        forward=link,
        reverse=link,
        host={"dscp": "ef"},
        flows=[beside("bulk", upload(), dscp="cs1"), beside("usual", upload(), dscp="cs0")],
    )
    marked = tshark(ran, "client", ["ip.src", "tcp.dstport", "tcp.srcport", "ip.dsfield.dscp"])
    port = pl.min_horizontal(pl.col("tcp.dstport", "tcp.srcport").cast(pl.Int32, strict=False))
    codepoints = marked.select(port.alias("port"), pl.col("ip.src"), pl.col("ip.dsfield.dscp").cast(int)).unique()
    assert set(codepoints.rows()) == {
        (port, host, dscp) for host in ("198.18.0.1", "198.18.0.2") for port, dscp in ((None, 46), (7001, 8), (7002, 0))
    }
    # In one tin each upload has half of the rate. Bulk has what best effort leaves, and at least a sixteenth.
    got = delivered(ran)
    assert 1 / 16 < got[1] / (got[1] + got[2]) < 1 / 4
