"""What Wireshark's own reader finds in captures of TCP and QUIC, against the packets of the same cell."""

import sys
from pathlib import Path

import polars as pl
import pytest

from captures import RETRANSMITTED, fields_of, tshark
from e2e_cli import Cli
from linux.lab import Object, ms
from virtual.conftest import requires_kernel
from virtual.lab import VirtualCells, VirtualRun

CLEAN: Object = {"forward": {"delay_ns": ms(3)}, "reverse": {"delay_ns": ms(2)}}


def test_tshark_sees_no_retransmission_where_nothing_was_dropped(cells: VirtualCells) -> None:
    workload: Object = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}
    ran = cells.run(workload, **CLEAN)
    assert ran.dropped("forward") == ran.dropped("reverse") == []
    assert len(tshark(ran, "client", ["frame.len"], RETRANSMITTED)) == 0
    assert len(tshark(ran, "client", ["frame.len"], "tcp.analysis.lost_segment or tcp.analysis.duplicate_ack")) == 0


def test_tshark_sees_a_retransmission_of_every_segment_that_was_dropped(cells: VirtualCells) -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}
    path: Object = {"forward": {"delay_ns": ms(3), "loss": 0.02}, "reverse": {"delay_ns": ms(2)}}
    ran = cells.run(workload, **path)
    packets = ran.packets("forward")
    dropped = packets.filter((pl.col("verdict") == "dropped") & (pl.col("payload_bytes") > 0))
    assert len(dropped) > 0
    fields = ["tcp.seq", "tcp.len", "frame.comment"]
    data = tshark(ran, "client", fields, "tcp.dstport == 7 and tcp.len > 0")
    lost = data.filter(pl.col("frame.comment") == "dropped: loss")
    assert len(lost) == len(dropped)
    again = tshark(ran, "client", fields, f"tcp.dstport == 7 and tcp.len > 0 and ({RETRANSMITTED})")
    assert len(again) > 0
    assert set(lost["tcp.seq"]) <= set(again["tcp.seq"])
    # Nothing was lost on the way back: the server has each byte, and the client sent each lost one again.
    assert ran.samples()["received_bytes"].to_list() == [1_000_000]


LOSSY: Object = {name: {"delay_ns": ms(20), "loss": 0.05} for name in ("forward", "reverse")}


def sent_again(ran: VirtualRun, host: str, side: str) -> pl.DataFrame:
    """What tshark takes for sent again by a host, beside its packets, and whether an earlier one of it had arrived."""
    fields = ["frame.number", "tcp.stream", "tcp.srcport", "tcp.seq", "tcp.analysis.rto"]
    frames = tshark(ran, host, fields).filter((pl.col("tcp.srcport") == "7") == (host == "server"))
    again = tshark(ran, host, ["frame.number"], RETRANSMITTED)["frame.number"]
    data = pl.concat([frames, ran.packets(side)], how="horizontal").filter(pl.col("payload_bytes") > 0)
    arrived = (pl.col("verdict") == "delivered").cum_max().shift(1).over("tcp.stream", "tcp.seq")
    return data.with_columns(is_spurious=arrived).filter(pl.col("frame.number").is_in(again.implode()))


def heard(ran: VirtualRun, host: str, side: str) -> pl.DataFrame:
    """The packets that a host received, as tshark sees them in its capture, beside the packet table."""
    fields = ["tcp.stream", "tcp.srcport", "tcp.analysis.duplicate_ack_num", "tcp.options.sack_re"]
    frames = tshark(ran, host, fields).filter((pl.col("tcp.srcport") == "7") == (host == "client"))
    back = ran.packets("reverse" if side == "forward" else "forward")
    arrived = back.filter(pl.col("verdict") == "delivered").sort("out_ns", "in_ns")
    return pl.concat([frames, arrived.select("out_ns")], how="horizontal")


@pytest.mark.parametrize("workload", [{"kind": "echo", "messages": 300, "size_bytes": 1000}, {
    "kind": "transfer", "size_bytes": 500_000, "count": 3,
}], ids=["echo", "transfer"])  # fmt: skip
def test_tshark_agrees_with_the_waits_for_retransmissions(cells: VirtualCells, workload: Object) -> None:
    files = {"packets": True, "capture": True, "spent": True}
    ran = cells.run({"transport": "tcp", **workload}, files=files, **LOSSY)
    pieces = pl.read_ipc((ran.directory / "pieces.arrow").read_bytes())
    named = pieces.filter(pl.col("part").is_in(["fast_recovery", "tail_loss_probe", "retransmission_timer"]))
    assert named.height > 2
    # A tail loss probe may be what told of an earlier loss: the wait of one lost packet is two pieces then.
    is_one = pl.struct("exchange", "direction", "index").pipe(lambda lost: lost == lost.shift(1))
    is_one &= pl.col("part").shift(1) == "tail_loss_probe"
    named = named.with_columns(since_ns=pl.when(is_one).then(pl.col("from_ns").shift(1)).otherwise("from_ns"))
    for host, side in (("client", "forward"), ("server", "reverse")):
        again = sent_again(ran, host, side)
        assert again.height == getattr(ran.finished.tcp_retransmits, host)
        own = named.filter(direction=side).join(again, left_on="to_ns", right_on="in_ns", how="left")
        # A tail loss probe may send new data, which nobody calls sent again, or other data than was lost.
        assert own.filter(pl.col("tcp.seq").is_null(), pl.col("part") != "tail_loss_probe").is_empty()
        # Each fast recovery was told of: by a duplicate acknowledgement, or by one that has news and says what else had
        # arrived, which tshark calls no duplicate, but RFC 6675 does.
        acks = heard(ran, host, side)
        for recovery in own.filter(pl.col("part") == "fast_recovery").iter_rows(named=True):
            within = acks.filter(
                pl.col("out_ns").is_between(recovery["from_ns"], recovery["to_ns"], closed="right"),
                pl.col("tcp.stream") == recovery["tcp.stream"],
            )
            told = within.select("tcp.analysis.duplicate_ack_num", "tcp.options.sack_re").rows()
            beyond = (int(edge) > int(recovery["tcp.seq"]) for _, edges in told for edge in edges.split(",") if edge)
            assert any(duplicate for duplicate, _ in told) or any(beyond)
        # tshark has no time of what was sent again within a round trip. It counts from the first transmission, and
        # pieces from the one before.
        timed = own.filter(pl.col("tcp.analysis.rto") != "").with_columns(pl.col("tcp.analysis.rto").cast(pl.Float64))
        for took_ns, told_s, count in timed.select(
            pl.col("to_ns") - pl.col("since_ns"), "tcp.analysis.rto", "count"
        ).rows():
            assert round(told_s * 1e9) == took_ns or (count > 0 and told_s * 1e9 > took_ns)
        if workload["kind"] == "echo":
            # Nothing else is under way that could hide a wait. What nobody waited for had arrived: its acknowledgement
            # was lost or late. tshark calls no more spurious than what it has seen an acknowledgement of.
            assert (again["in_ns"].is_in(own["to_ns"].implode()) != again["is_spurious"]).all()


READS_LATE = """
import socket, sys, time
listening = socket.create_server(("", int(sys.argv[1])))
listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)
connection = listening.accept()[0]
time.sleep(2)
while connection.recv(65536):
    pass
"""
SENDS = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    connection.sendall(bytes(100_000))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
"""


def test_tshark_sees_a_zero_window_where_a_program_reads_late(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    (tmp_path / "server.py").write_text(READS_LATE)
    (tmp_path / "client.py").write_text(SENDS)
    crosswind(
        "exec", "--clock", "virtual", "--delay", "10ms", "--output", "ran", "--capture", "client.pcapng",
        "--server", f"{sys.executable} server.py {{port}}", "--", sys.executable, "client.py", "{server}", "{port}",
    )  # fmt: skip
    (connection,) = crosswind("explain", "ran", "--json").json["connections"]
    waited_ns = sum(
        piece["to_ns"] - piece["from_ns"] for piece in connection["pieces"] if piece["part"] == "zero_window"
    )
    shut, opened = (
        fields_of(tmp_path / "client.pcapng", ["frame.time_epoch"], display).to_series().cast(pl.Float64)
        for display in ("tcp.analysis.zero_window", "tcp.analysis.window_update")
    )
    # The wait begins when the segment was sent whose acknowledgement shut the window: a round trip and a delayed
    # acknowledgement of 40 ms and a tick earlier.
    assert waited_ns / 1e9 - (opened[0] - shut[0]) == pytest.approx(0.061, abs=0.001)


def test_tshark_agrees_that_freebsd_8_has_no_more_than_64_kb_in_flight(cells: VirtualCells) -> None:
    path: Object = {"forward": {"delay_ns": ms(10)}, "reverse": {"delay_ns": ms(10)}}
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}
    ran = cells.run(workload, host={"profile": "freebsd-8"}, **path)
    flight = tshark(ran, "client", ["tcp.analysis.bytes_in_flight"], "tcp.analysis.bytes_in_flight")
    most = max(int(text) for text in flight["tcp.analysis.bytes_in_flight"])
    assert 32_768 < most <= 65_535
    handshake = tshark(ran, "client", ["tcp.options.wscale.shift", "tcp.window_size_value"], "tcp.flags.syn == 1")
    assert handshake["tcp.options.wscale.shift"].to_list() == ["", ""]


def stream_frames(ran: VirtualRun, host: str, display: str) -> list[tuple[int, range, bool]]:
    """Stream, bytes and whether the path dropped it, of every STREAM frame that tshark decrypts, in order."""
    keys = f"tls.keylog_file:{ran.directory / 'keys.log'}"
    fields = ["quic.frame_type", "quic.stream.stream_id", "quic.stream.offset", "quic.stream_data", "frame.comment"]
    found = []
    for *values, comment in tshark(ran, host, fields, display, "-o", keys, "-d", "udp.port==7,quic").rows():
        types, streams, offsets, contents = (value.split(",") if value else [] for value in values)
        # RFC 9000, 19.8: types 0x08 to 0x0f; without the bit 0x04 the offset is left out, being 0.
        kinds = [int(kind) for kind in types if 0x08 <= int(kind) <= 0x0F]
        for kind, stream, content in zip(kinds, streams, contents, strict=True):
            start = int(offsets.pop(0)) if kind & 0x04 else 0
            length = 0 if content == "<MISSING>" else len(bytes.fromhex(content))
            found.append((int(stream), range(start, start + length), comment == "dropped: loss"))
    return found


def test_tshark_finds_in_quics_streams_the_drops_that_a_message_calls_its_own(cells: VirtualCells) -> None:
    size_bytes, streams, messages = 200, 2, 40
    # So few a second that most losses are mended before the next message: by time and size the two would look alike.
    workload = {"kind": "multiplex", "transport": "quic", "streams": streams, "messages": messages, "rate_per_s": 10}
    lossy = {"delay_ns": ms(5), "loss": 0.05}
    ran = cells.run({**workload, "size_bytes": size_bytes}, seed=3, forward=lossy, reverse=lossy)
    samples = ran.samples().sort("exchange")
    dropped = [0] * messages
    for host, display in (("client", "udp.dstport == 7"), ("server", "udp.srcport == 7")):
        first_sent = set()
        for stream, data, lost in stream_frames(ran, host, display):
            # A client's streams are numbered in steps of four. What is retransmitted is not the message's own.
            numbers = {at // size_bytes * streams + stream // 4 for at in data} - first_sent
            first_sent |= numbers
            for number in numbers:
                dropped[number] += lost
        assert first_sent == set(range(messages))
    assert sum(dropped) > 0
    differ = [number for number, own in enumerate(samples["own_drops"]) if own != dropped[number]]
    assert len(differ) <= 2, differ
