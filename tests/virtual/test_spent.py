"""What the time of exchanges was spent on, where that is known: in cells without chance, with packets lost by index."""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT
from crosswind.api.running import run
from crosswind.catalog import catalog
from crosswind.execution.virtual import VirtualCell, virtual
from crosswind.study.design import Study
from linux.lab import Object

MS = 1_000_000
PROMPT = MS // 50
"""What hosts and the clock of virtual time take, at most."""


def spent(cell: VirtualCell) -> dict[str, float]:
    """What the exchanges of a cell spent their time on, ms altogether, without what takes next to none."""
    summed = cell.spent.drop("exchange", "whole_ns").sum().row(0, named=True)
    return {name.removesuffix("_ns"): round(ns / MS, 2) for name, ns in summed.items() if ns > PROMPT}


def tcp(path: Object, workload: Object, **host: object) -> VirtualCell:
    """A cell over TCP with CUBIC."""
    return virtual(path, workload={"transport": "tcp", **workload}, host={"congestion_control": "cubic", **host})


def echoes(count: int = 1, **settings: object) -> Object:
    return {"kind": "echo", "messages": count, **settings}


def transfer(size: str, **settings: object) -> Object:
    return {"kind": "transfer", "size": size, **settings}


WORKLOADS: dict[str, Object] = {
    "echo": {"messages": 20, "size": "3000B"},
    "connect": {"count": 10},
    "transfer": {"size": "200kB", "direction": "download", "count": 2},
    "multiplex": {"messages": 40, "streams": 4, "rate": 50},
}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_parts_sum_to_the_whole_over_every_transport(kind: str) -> None:
    path = {"delay": "10ms", "loss": "5%", "rate": "10mbit", "queue": "20p"}
    for transport in catalog().workloads[kind].transports:
        settings = WORKLOADS[kind] | ({"size": "500B"} if "datagram" in transport or transport == "udp" else {})
        settings = settings if kind != "connect" else WORKLOADS[kind]
        cell = virtual(path, workload={"kind": kind, "transport": transport, **settings})
        succeeded = cell.samples.filter(pl.col("outcome") == "ok")
        assert cell.spent["exchange"].to_list() == succeeded["exchange"].to_list()
        parts = cell.spent.select(pl.sum_horizontal(pl.exclude("exchange", "whole_ns"))).to_series()
        assert parts.to_list() == cell.spent["whole_ns"].to_list()
        took = succeeded.select((pl.col("received_ns") - pl.col("sent_ns")).fill_null(pl.col("connect_ns"))).to_series()
        if kind == "transfer":
            assert (cell.spent["whole_ns"] >= took).all()
        else:
            assert cell.spent["whole_ns"].to_list() == took.to_list(), transport
        of_pieces = cell.pieces.group_by("exchange").agg((pl.col("to_ns") - pl.col("from_ns")).sum()).sort("exchange")
        assert of_pieces["to_ns"].to_list() == cell.spent.filter(pl.col("whole_ns") > 0)["whole_ns"].to_list()


@pytest.mark.parametrize("control", ["cubic", "bbr"])
def test_a_transfer_that_fills_its_link_takes_what_the_link_takes(control: str) -> None:
    cell = tcp({"delay": "10ms", "rate": "10mbit"}, transfer("1MB"), congestion_control=control)
    found = spent(cell)
    # 690 segments of 1448 bytes and one of 880, each with 52 bytes of headers. The first ten are on the wire for 12 ms,
    # and the acknowledgement of the first comes after 21.2 ms: only in between a larger window would have helped.
    assert found["serialisation_forward"] == pytest.approx((690 * 1500 + 932) * 8 / 10_000, abs=0.1)
    assert found["congestion_window"] == pytest.approx(21.2 - 12, abs=0.05)
    # What a short queue drops is sent again while the link is busy, and costs nothing.
    lossy = tcp({"delay": "10ms", "rate": "10mbit", "queue": "20p"}, transfer("1MB"), congestion_control="cubic")
    assert lossy.packets.filter(pl.col("verdict") == "dropped").height > 0
    assert spent(lossy).keys() == {
        "tcp_handshake",
        "propagation_forward",
        "serialisation_forward",
        "congestion_window",
    } | (spent(lossy).keys() & {"serialisation_reverse", "queueing_forward"})


def test_a_server_that_sends_first_waits_for_the_end_of_the_handshake() -> None:
    download = spent(tcp({"delay": "50ms"}, transfer("14480B", direction="download")))
    assert download == {"tcp_handshake": 100, "propagation_forward": 50, "propagation_reverse": 50}


def test_a_server_that_sends_first_waits_for_its_answer_to_a_syn_to_be_sent_again() -> None:
    # Packet 1 to the server ends the handshake. The first timeout of a SYN and of its answer is 1 s (RFC 6298, 2.1).
    path = {"delay": "50ms", "forward": {"lose": [1]}}
    for settings in (transfer("14480B"), {"kind": "transfer", "duration": "1500ms"}):
        cell = tcp(path, {**settings, "direction": "download"})
        found = spent(cell)
        assert "unknown" not in found and found["tcp_handshake"] == 150
        # From the answer's arrival at the client to when it is sent again, which is 50 ms after it was sent first.
        (waited,) = cell.pieces.filter(part="syn_timer").select("from_ns", "to_ns", "place", "index", "count").rows()
        again = cell.packets.filter(direction="reverse")["in_ns"][1]
        assert 950 <= (waited[1] - waited[0]) / MS < 1100 and waited[1:] == (again, "server", 1, 1)
    assert tcp(path, transfer("14480B", direction="download")).spent.select(
        (pl.col("propagation_forward_ns", "propagation_reverse_ns") / MS).round(2)
    ).row(0) == (50, 50)


def test_a_syn_that_was_sent_again_in_vain_is_not_what_a_handshake_waits_for() -> None:
    # The answer is on its way when the timer of 1 s expires.
    assert spent(tcp({"delay": "600ms"}, {"kind": "connect", "count": 1})) == {"tcp_handshake": 1200}
    # The answer was lost: whichever timer sent it again, what is left are the handshake's own two ways.
    lost = spent(tcp({"delay": "300ms", "reverse": {"lose": [0]}}, {"kind": "connect", "count": 1}))
    assert lost["tcp_handshake"] == 600 and 1000 <= lost["syn_timer"] < 1100


def test_a_server_that_is_busy_with_another_answer_reads_late() -> None:
    # On one connection the server answers before it reads on, and the link holds its answers up.
    messages = echoes(5, size="100kB", mode="open", rate=100)
    found = spent(virtual({"delay": "10ms", "reverse": {"rate": "10mbit"}}, workload={"transport": "tls", **messages}))
    assert found["server_host"] > 200


def test_a_transfer_for_a_time_is_told_whatever_its_forecast() -> None:
    # The forecast is 2 Gbit/s. What limits it are the buffers.
    cell = tcp({"delay": "50ms"}, {"kind": "transfer", "duration": "10s"})
    assert cell.packets.height < 250_000 and spent(cell)["send_buffer"] > 8000


def test_a_full_send_buffer_is_told_from_the_congestion_window() -> None:
    # The window grows from 14,480 bytes by doubling, until the buffer holds no more. That is more than its size: the
    # kernel counts pages, and a page may have several segments.
    host = {"receive_buffer": "8MiB"}
    small, large = (tcp({"delay": "50ms"}, transfer("1MB"), send_buffer=size, **host) for size in ("16KiB", "64KiB"))
    usual = {"tcp_handshake": 100, "propagation_forward": 50}
    assert spent(small) == usual | {"congestion_window": 300, "send_buffer": 700}
    assert spent(large) == usual | {"congestion_window": 400, "send_buffer": 500}
    assert "send_buffer" not in spent(tcp({"delay": "50ms"}, transfer("1MB"), **host))


@pytest.mark.parametrize("transport", ["tcp", "wss"])
def test_what_kernels_know_of_sockets_is_kept(transport: str) -> None:
    path = {"delay": "10ms", "forward": {"lose": [30]}}
    workload = {"transport": transport, **transfer("100kB")}
    cell = virtual(path, workload=workload, host={"congestion_control": "cubic", "sample_tcp": "10ms"})
    client = cell.tcp.filter(host="client")
    assert client["last"].to_list() == [0] * (client.height - 1) + [1]
    sampled = (client["at_ns"].diff().drop_nulls().head(client.height - 2) / MS).round(0).to_list()
    assert set(sampled) == {10} and len(sampled) > 5
    end = client.row(-1, named=True)
    lost = cell.packets.filter(pl.col("verdict") == "dropped")["payload_bytes"].sum()
    assert (end["retransmitted"], end["retransmitted_bytes"]) == (1, lost)
    assert end["sent_bytes"] == cell.packets.filter(direction="forward")["payload_bytes"].sum()
    assert end["slow_start_threshold"] >= 2 and client["slow_start_threshold"][0] is None
    assert end["srtt_ns"] == pytest.approx(20 * MS, rel=0.01)
    assert cell.tcp.filter(host="server", last=1).height == 1


def test_each_recovery_of_tcp_has_its_name() -> None:
    # Packet 0 is the SYN, 1 its acknowledgement, 2 the message.
    probed = tcp({"delay": "10ms", "forward": {"lose": [2]}}, echoes())
    assert spent(probed).keys() == {"tail_loss_probe", "propagation_forward", "propagation_reverse"}
    expired = tcp({"delay": "10ms", "forward": {"lose": [2, 3]}}, echoes())
    assert spent(expired).keys() == {
        "tail_loss_probe",
        "retransmission_timer",
        "propagation_forward",
        "propagation_reverse",
    }
    timer_alone = tcp({"delay": "10ms", "forward": {"lose": [2]}}, echoes(), tail_loss_probe=False)
    assert spent(timer_alone).keys() == {"retransmission_timer", "propagation_forward", "propagation_reverse"}
    # The first of ten segments: acknowledgements of the others say that it is missing.
    fast = tcp({"delay": "10ms", "forward": {"lose": [2]}}, transfer("14480B"))
    assert spent(fast) == {"tcp_handshake": 20, "fast_recovery": 20, "propagation_forward": 10}


def test_early_data_over_tls_is_on_its_way_or_lost() -> None:
    # The second connection resumes the first one's session: packet 14 is its ClientHello with the message.
    path: Object = {"delay": "10ms"}
    again = {"transport": "tls", "connection": "new", "resumption": "0-rtt", **echoes(1)}
    usual = {"tcp_handshake": 20, "propagation_forward": 10, "propagation_reverse": 10}
    assert spent(virtual(path, workload=again)) == usual
    lost = spent(virtual({**path, "forward": {"lose": [14]}}, workload=again))
    assert lost.pop("tail_loss_probe") >= 40 and lost == usual


def quic(workload: Object, lose: list[int] | None = None, **host: object) -> dict[str, float]:
    """What a cell over QUIC spends its time on."""
    path = {"delay": "10ms"} | ({"forward": {"lose": lose}} if lose else {})
    cell = virtual(path, workload={"transport": "quic", **workload}, host=host)
    return spent(cell)


def test_each_recovery_of_quic_has_its_name() -> None:
    # Packets 0 to 2 are the handshake's, 3 to 10 the first flight, 11 to 13 the second, 14 an acknowledgement.
    usual = {"security_handshake": 20, "propagation_forward": 10}
    same_size = {"quic_mtu_discovery": False}
    assert quic(transfer("12kB"), **same_size) == usual | {"congestion_window": 20}
    assert quic(transfer("12kB"), [11], **same_size) == usual | {"congestion_window": 20, "packet_threshold": 20}
    # 9/8 of the round trip of 20 ms, by a timer that counts milliseconds.
    assert quic(transfer("12kB"), [8], **same_size) == usual | {"time_threshold": 23}
    assert quic(transfer("12kB"), [11], quic_packet_threshold=4, **same_size) == usual | {
        "congestion_window": 20,
        "time_threshold": 23,
    }
    # The second of three messages, behind which nothing comes: a probe, whose acknowledgement tells.
    probed = quic(echoes(3), [5, 6], **same_size)
    assert probed.pop("probe_timer") > 60
    assert probed == {"propagation_forward": 30, "propagation_reverse": 30, "time_threshold": 20}


def test_what_comes_before_the_end_of_quics_handshake_is_dropped_by_its_receiver() -> None:
    # Datagram 1 ends the handshake and is sent again by the first probe timer, 20 + 4 * 10 ms. Its answer tells of the
    # message, which had come before; it is sent again once three later packets are acknowledged.
    workload = {"kind": "multiplex", "transport": "quic", "streams": 4, "messages": 8}
    cell = virtual({"delay": "10ms", "forward": {"lose": [1]}}, workload=workload, host={"congestion_control": "cubic"})
    first = cell.spent.filter(pl.col("exchange") == 0)
    assert {name: round(first[f"{name}_ns"].item() / MS) for name in ("probe_timer", "packet_threshold")} == {
        "probe_timer": 60,
        "packet_threshold": 25,
    }
    assert first["server_host_ns"].item() < PROMPT


@pytest.mark.parametrize("transport", ["http3", "webtransport"])
@pytest.mark.parametrize("direction", ["upload", "download"])
def test_a_transfer_with_a_duration_ends_with_what_its_receiver_waits_for(transport: str, direction: str) -> None:
    # The queue overflows in slow start: what was lost arrives late in the second that counts, or after it.
    workload = {"kind": "transfer", "transport": transport, "duration": "1s", "direction": direction}
    cell = virtual({"delay": "30ms", "rate": "20mbit", "queue": "200p"}, workload=workload)
    assert cell.packets.filter(pl.col("verdict") == "dropped").height > 0
    found = spent(cell)
    assert not {"client_host", "server_host", "unknown"} & found.keys()
    side = "forward" if direction == "upload" else "reverse"
    assert found[f"serialisation_{side}"] > 700
    parts = cell.spent.select(pl.sum_horizontal(pl.exclude("exchange", "whole_ns"))).to_series()
    assert parts.to_list() == cell.spent["whole_ns"].to_list()


@pytest.mark.parametrize(("transport", "recovery"), [("tcp", "fast_recovery"), ("quic", "packet_threshold")])
@pytest.mark.parametrize("direction", ["upload", "download"])
def test_the_end_of_a_duration_cuts_off_a_recovery(transport: str, recovery: str, direction: str) -> None:
    # The third flight leaves 30 ms before the first byte has been there for 50 ms, and packet 40 is one of its own.
    side = "forward" if direction == "upload" else "reverse"
    usual = {"tcp_handshake" if transport == "tcp" else "security_handshake": 20, "congestion_window": 40}
    if direction == "download":
        usual["propagation_forward"] = 10
    elif transport == "tcp":
        # The first segments arrive before the others of their flight, which are still on their way then.
        usual |= {"congestion_window": 30, "propagation_forward": 10}
    for duration, ends in (
        # It is known to be lost 20 ms after it was sent; it is on its way again for the last 5 ms.
        ("45ms", {recovery: 15}),
        ("55ms", {recovery: 20, f"propagation_{side}": usual.get(f"propagation_{side}", 0) + 5}),
    ):
        workload = {"kind": "transfer", "transport": transport, "duration": duration, "direction": direction}
        path = {"delay": "10ms", side: {"lose": [40]}}
        cell = virtual(path, workload=workload, host={"congestion_control": "cubic", "quic_mtu_discovery": False})
        assert spent(cell) == usual | ends


def test_a_server_that_sends_unasked_is_on_its_way_since_the_connection_was_there() -> None:
    # A client that counts for a time begins with the first message, of 64 kB: windows hold its end back.
    workload = {"kind": "transfer", "transport": "wss", "duration": "45ms", "direction": "download"}
    assert spent(virtual({"delay": "10ms"}, workload=workload, host={"congestion_control": "cubic"})) == {
        "tcp_handshake": 20, "security_handshake": 20, "upgrade_handshake": 20, "propagation_reverse": 10,
        "congestion_window": 80, "receive_window": 15,
    }  # fmt: skip


def test_quics_flow_control_is_told_from_its_congestion_window() -> None:
    usual = {"security_handshake": 20, "propagation_forward": 10}
    # 200 kB in windows of 20 kB, of which a receiver tells as soon as it has read an eighth.
    assert quic(transfer("200kB"), quic_stream_window="20kB") == usual | {"stream_window": 200}
    assert quic(transfer("200kB"), quic_connection_window="20kB") == usual | {"connection_window": 200}


@pytest.mark.parametrize("transport", ["h2c", "http2"])
def test_http2s_flow_control_is_told_from_tcps_congestion_window(transport: str) -> None:
    # A window of 65,535 bytes over 113 ms is 4.64 Mbit/s. Slow start lets the first of them go in three flights, of
    # which the last has some of the second window as well.
    def download(**host: object) -> dict[str, float]:
        workload = {"transport": transport, **transfer("1MB", direction="download")}
        found = spent(virtual({"delay": "56.5ms"}, workload=workload, host={"congestion_control": "cubic", **host}))
        del found["tcp_handshake"], found["propagation_forward"], found["propagation_reverse"]
        return found

    usual = {"security_handshake": 113} if transport == "http2" else {}
    waits = {"congestion_window": 2 * 113, "stream_window": 15 * 113}
    assert download(http2_stream_window="65535B") == usual | waits
    assert download(http2_connection_window="65535B")["connection_window"] > 14 * 113
    assert not {"stream_window", "connection_window"} & download().keys()


def test_an_exchange_of_http1_waits_for_the_one_before_it() -> None:
    # 100 a second, each of which takes a round trip of 20 ms.
    workload = {"transport": "http1", **echoes(5, mode="open", rate=100)}
    waited = virtual({"delay": "10ms"}, workload=workload).spent["head_of_line_ns"]
    assert [round(ns / MS, 1) for ns in waited] == [0, 10, 20, 30, 40]


def test_a_page_takes_what_its_last_object_waited_for() -> None:
    # The second image is loaded over a connection of its own where a connection carries one request at a time.
    page = {"kind": "page", "count": 1, "html_size": "1kB", "scripts": 0, "images": 2, "images_size": "2kB"}
    requests = {"propagation_forward": 20, "propagation_reverse": 20}
    handshakes = {"http1": {"tcp_handshake": 40}, "h2c": {"tcp_handshake": 20}, "http3": {"security_handshake": 20}}
    for transport, handshake in handshakes.items():
        assert spent(virtual({"delay": "10ms"}, workload={"transport": transport, **page})) == handshake | requests
    lossy = {"delay": "10ms", "loss": "5%", "rate": "10mbit"}
    for transport in handshakes:
        cell = virtual(lossy, workload={"transport": transport, "kind": "page", "count": 2})
        parts = cell.spent.select(pl.sum_horizontal(pl.exclude("exchange", "whole_ns"))).to_series().to_list()
        took = cell.samples["received_ns"] - cell.samples["sent_ns"]
        assert parts == cell.spent["whole_ns"].to_list() == took.to_list()
        assert cell.spent["unknown_ns"].sum() < 0.01 * sum(parts)


@pytest.mark.parametrize("resolution", [1, 5000])
def test_exchanges_of_peers_have_the_parts_that_the_wire_tells(resolution: int, tmp_path: Path) -> None:
    # A browser's clock counts in steps of 5 us, so that its answers seem to be there before they come.
    text = (ROOT / "docs/examples/echo_client.py").read_text()
    steps = f"lambda: time.monotonic_ns() // {resolution} * {resolution}"
    text = text.replace("time.monotonic_ns,", f"{steps},").replace('_ns": 1,', f'_ns": {resolution},')
    (tmp_path / "client.py").write_text(text)
    program = {"command": ["{python}", str(tmp_path / "client.py")]}
    workload = {"transport": "tcp", "client": [program], **echoes(3)}
    # Packets 0 and 1 are the handshake's, 2 is the message.
    found = spent(virtual({"delay": "10ms", "forward": {"lose": [2]}}, workload=workload))
    assert found.pop("tail_loss_probe") > 20
    assert found == {"propagation_forward": 30, "propagation_reverse": 30}


def test_every_loss_that_is_named_is_one_of_qlogs(tmp_path: Path) -> None:
    # With so many losses windows of two packets hold back what is sent again.
    study = Study.adhoc(
        "echo",
        {
            "workload.transport": "quic", "workload.messages": 250, "workload.size": "3000B", "path.loss": "10%",
            "path.delay": "10ms", "host.clock": "virtual", "study.repetitions": 1, "study.seed": 3,
        },
    )  # fmt: skip
    run(study, output=tmp_path / "run", packets=True, qlog=True)
    (cell,) = (tmp_path / "run" / "cells").iterdir()
    known = {end: sorted(losses(cell / f"{end}.qlog")) for end in ("client", "server")}
    pieces = pl.read_parquet(cell / "pieces.parquet")
    waits = ["congestion_window", "reduced_window", "delayed_acknowledgement"]
    held = pl.col("part").shift(-1).over("exchange").is_in(waits).fill_null(False)
    named = pieces.with_columns(held=held).filter(pl.col("part").is_in(["packet_threshold", "time_threshold"]))
    assert named.height > 50 and named["held"].any()
    for part, end, ended_ns, is_held in named.select("part", "place", "to_ns", "held").iter_rows():
        # qlog has 24 bits of a time in milliseconds. A timer at which nothing could be sent was up to 2 ms late.
        ended = ended_ns / MS
        precision, late = max(0.01, ended * 2**-22), 2 if is_held and part == "time_threshold" else 0
        assert any(ended - precision <= at <= ended + late + precision for at in known[end]), (end, ended_ns)


def losses(qlog: Path) -> Iterator[float]:
    """When QUIC took packets for lost, in milliseconds."""
    for record in qlog.read_text().split("\x1e")[1:]:
        event = json.loads(record)
        if event.get("name") == "recovery:packet_lost":
            yield event["time"]


def test_a_message_waits_for_one_that_was_sent_before_and_was_lost() -> None:
    streams = {"kind": "multiplex", "messages": 40, "streams": 4, "rate": 100}
    loss = {"delay": "10ms", "forward": {"lose": [30]}}
    one = virtual(loss, workload={"transport": "h2c", **streams})
    many = virtual(loss, workload={"transport": "http3", **streams})
    assert spent(one)["head_of_line"] > 0
    assert "head_of_line" not in spent(many)


def test_small_writes_wait_for_nagle_and_never_for_a_window() -> None:
    """Write-write-read over 40 ms: a round trip more for the second write, behind an acknowledgement 41 ms late."""
    cell = tcp({"delay": "20ms"}, echoes(20, size="64B", writes=2), nodelay=False)
    (last,) = cell.spent.drop("exchange").tail(1).to_dicts()
    assert {name: round(ns / MS) for name, ns in last.items() if ns > PROMPT} == {
        "whole_ns": 121, "propagation_forward_ns": 20, "propagation_reverse_ns": 20, "nagle_ns": 40,
        "delayed_acknowledgement_ns": 41,
    }  # fmt: skip


def test_messages_of_a_rate_wait_for_nagle_and_never_for_a_window() -> None:
    # A round trip has four messages; three wait for the first one's acknowledgement.
    cell = tcp({"delay": "50ms"}, echoes(60, size="100B", mode="open", rate=40), nodelay=False)
    assert cell.spent["congestion_window_ns"].sum() == 0
    assert cell.spent["nagle_ns"].sum() > 10 * MS
