"""The captures as Wireshark's own reader sees them, against the ledger and packets.arrow of the same cell."""

import subprocess

import polars as pl
import pytest

from conftest import requires
from linux.lab import NEVER_TWICE, Ended, Lab, Object, ms

INBOUND, OUTBOUND = 1, 2
# A segment sent again within a round trip of its successors counts as out of order to tshark.
SENT_AGAIN = " or ".join(
    f"tcp.analysis.{name}"
    for name in ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
)
CLEAN: Object = {"forward": {"delay_ns": ms(3)}, "reverse": {"delay_ns": ms(2)}}
LOSSY: Object = {"forward": {"delay_ns": ms(3), "loss": 0.05}, "reverse": {"delay_ns": ms(2), "loss": 0.05}}
NARROW: Object = {"forward": {"rate_bps": 20_000_000, "queue": {"packets": 10}}, "reverse": {"delay_ns": ms(5)}}


def tshark(ended: Ended, host: str, fields: list[str], display: str = "", *options: str) -> pl.DataFrame:
    """The fields of every packet that the filter lets through, as text."""
    command = [requires("tshark"), "-r", str(ended.directory / f"{host}.pcapng"), "-n", "-T", "fields", *options]
    command += [word for name in fields for word in ("-e", name)] + (["-Y", display] if display else [])
    # Its standard error says that it is not wise to run it as root.
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    rows = [line.split("\t") for line in output.splitlines()]
    return pl.DataFrame(rows, schema=dict.fromkeys(fields, pl.String), orient="row")


def nanoseconds(column: pl.Series) -> list[int]:
    """Seconds with nine digits, exactly."""
    return [int(text.replace(".", "")) for text in column]


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize(
    ("path", "workload"),
    [
        (CLEAN, {"kind": "echo", "transport": "udp", "messages": 60, "size_bytes": 300}),
        (LOSSY, {"kind": "transfer", "transport": "tcp", "size_bytes": 400_000}),
        (NARROW, {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}),
    ],
    ids=["clean", "lossy", "narrow"],
)
def test_tshark_counts_what_the_ledger_counts(lab: Lab, path: Object, workload: Object, family: str) -> None:
    ended = lab.run(workload, capture=True, family=family, **path)
    fields = ["frame.time_epoch", "frame.packet_flags_direction", "frame.comment", "frame.len"]
    origins = set()
    for host, away, home in (("client", "forward", "reverse"), ("server", "reverse", "forward")):
        frames = tshark(ended, host, fields)
        times = pl.Series("at", nanoseconds(frames["frame.time_epoch"]))
        assert times.is_sorted()
        flags = [int(text, 16) for text in frames["frame.packet_flags_direction"]]
        frames = frames.with_columns(times, pl.Series("flag", flags))
        sent, received = (frames.filter(pl.col("flag") == flag) for flag in (OUTBOUND, INBOUND))
        assert len(sent) + len(received) == len(frames)

        # What the host sent: every packet of the direction, each with the time it entered and its own verdict.
        packets, book = ended.packets(away), ended.book(away)
        assert len(sent) == book["in"]
        assert sent["frame.len"].cast(int).to_list() == packets["size_bytes"].to_list()
        comments = [f"dropped: {cause}" if cause else "" for cause in packets["cause"]]
        assert sent["frame.comment"].to_list() == comments
        for cause in ("loss", "queue"):
            assert comments.count(f"dropped: {cause}") == book["dropped"][cause]
        origins |= set(sent["at"] - packets["in_ns"])

        # What it received: what the other direction delivered, when it did.
        delivered = ended.packets(home).drop_nulls("out_ns").sort("out_ns", "index")
        assert len(received) == ended.book(home)["delivered"]
        assert received["frame.len"].cast(int).to_list() == delivered["size_bytes"].to_list()
        assert set(received["frame.comment"]) <= {""}
        origins |= set(received["at"] - delivered["out_ns"])
    # One clock for both files and the table: the same distance everywhere.
    assert len(origins) == 1


def test_tshark_finds_the_drops_that_the_cell_was_asked_for(lab: Lab) -> None:
    lossy = lab.run({"kind": "transfer", "transport": "tcp", "size_bytes": 400_000}, capture=True, **LOSSY)
    assert len(tshark(lossy, "client", ["frame.len"], 'frame.comment == "dropped: loss"')) > 0
    narrow = lab.run({"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}, capture=True, **NARROW)
    assert len(tshark(narrow, "client", ["frame.len"], 'frame.comment == "dropped: queue"')) > 0


def test_tshark_sees_no_retransmission_where_nothing_was_dropped(lab: Lab) -> None:
    workload: Object = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}
    ended = lab.run(workload, capture=True, host=NEVER_TWICE, **CLEAN)
    assert ended.dropped("forward") == ended.dropped("reverse") == []
    assert len(tshark(ended, "client", ["frame.len"], SENT_AGAIN)) == 0
    assert len(tshark(ended, "client", ["frame.len"], "tcp.analysis.lost_segment or tcp.analysis.duplicate_ack")) == 0


def test_tshark_sees_a_retransmission_of_every_segment_that_was_dropped(lab: Lab) -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}
    path: Object = {"forward": {"delay_ns": ms(3), "loss": 0.02}, "reverse": {"delay_ns": ms(2)}}
    ended = lab.run(workload, capture=True, **path)
    packets = ended.packets("forward")
    dropped = packets.filter((pl.col("verdict") == "dropped") & (pl.col("payload_bytes") > 0))
    assert len(dropped) > 0
    fields = ["tcp.seq", "tcp.len", "frame.comment"]
    data = tshark(ended, "client", fields, "tcp.dstport == 7 and tcp.len > 0")
    lost = data.filter(pl.col("frame.comment") == "dropped: loss")
    assert len(lost) == len(dropped)
    again = tshark(ended, "client", fields, f"tcp.dstport == 7 and tcp.len > 0 and ({SENT_AGAIN})")
    assert len(again) > 0
    assert set(lost["tcp.seq"]) <= set(again["tcp.seq"])
    # Nothing was lost on the way back: the server has each byte, and the client sent each lost one again.
    assert ended.samples()["received_bytes"].to_list() == [1_000_000]


def test_tshark_agrees_that_freebsd_8_has_no_more_than_64_kb_in_flight(lab: Lab) -> None:
    path: Object = {"forward": {"delay_ns": ms(10)}, "reverse": {"delay_ns": ms(10)}}
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}
    ended = lab.run(workload, capture=True, host={"profile": "freebsd-8"}, **path)
    flight = tshark(ended, "client", ["tcp.analysis.bytes_in_flight"], "tcp.analysis.bytes_in_flight")
    most = max(int(text) for text in flight["tcp.analysis.bytes_in_flight"])
    assert 32_768 < most <= 65_535
    handshake = tshark(ended, "client", ["tcp.options.wscale.shift", "tcp.window_size_value"], "tcp.flags.syn == 1")
    assert handshake["tcp.options.wscale.shift"].to_list() == ["", ""]


def stream_frames(ended: Ended, host: str, display: str) -> list[tuple[int, range, bool]]:
    """Stream, bytes and whether the path dropped it, of every STREAM frame that tshark decrypts, in order."""
    keys = f"tls.keylog_file:{ended.directory / 'keys.log'}"
    fields = ["quic.frame_type", "quic.stream.stream_id", "quic.stream.offset", "quic.stream_data", "frame.comment"]
    found = []
    for *values, comment in tshark(ended, host, fields, display, "-o", keys, "-d", "udp.port==7,quic").rows():
        types, streams, offsets, contents = (value.split(",") if value else [] for value in values)
        # RFC 9000, 19.8: types 0x08 to 0x0f; without the bit 0x04 the offset is left out, being 0.
        kinds = [int(kind) for kind in types if 0x08 <= int(kind) <= 0x0F]
        for kind, stream, content in zip(kinds, streams, contents, strict=True):
            start = int(offsets.pop(0)) if kind & 0x04 else 0
            length = 0 if content == "<MISSING>" else len(bytes.fromhex(content))
            found.append((int(stream), range(start, start + length), comment == "dropped: loss"))
    return found


def test_tshark_finds_in_quics_streams_the_drops_that_a_message_calls_its_own(lab: Lab) -> None:
    size_bytes, streams, messages = 200, 2, 40
    # So few a second that most losses are mended before the next message: by time and size the two would look alike.
    workload = {"kind": "multiplex", "transport": "quic", "streams": streams, "messages": messages, "rate_per_s": 10}
    lossy = {"delay_ns": ms(5), "loss": 0.05}
    ended = lab.run({**workload, "size_bytes": size_bytes}, seed=3, capture=True, forward=lossy, reverse=lossy)
    samples = ended.samples().sort("exchange")
    dropped = [0] * messages
    for host, display in (("client", "udp.dstport == 7"), ("server", "udp.srcport == 7")):
        first_sent = set()
        for stream, data, lost in stream_frames(ended, host, display):
            # A client's streams are numbered in steps of four. What is sent again is not the message's own.
            numbers = {at // size_bytes * streams + stream // 4 for at in data} - first_sent
            first_sent |= numbers
            for number in numbers:
                dropped[number] += lost
        assert first_sent == set(range(messages))
    assert sum(dropped) > 0
    differ = [number for number, own in enumerate(samples["own_drops"]) if own != dropped[number]]
    assert len(differ) <= 2, differ
