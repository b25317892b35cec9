"""The captures as Wireshark's own reader sees them, against the ledger and packets.arrow of the same cell."""

import polars as pl
import pytest

from captures import tshark
from linux.lab import Lab, Object, ms

INBOUND, OUTBOUND = 1, 2
CLEAN: Object = {"forward": {"delay_ns": ms(3)}, "reverse": {"delay_ns": ms(2)}}
LOSSY: Object = {"forward": {"delay_ns": ms(3), "loss": 0.05}, "reverse": {"delay_ns": ms(2), "loss": 0.05}}
NARROW: Object = {"forward": {"rate_bps": 20_000_000, "queue": {"packets": 10}}, "reverse": {"delay_ns": ms(5)}}


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
        if host == "client":
            # What the cell was asked for.
            assert path is not LOSSY or book["dropped"]["loss"] > 0
            assert path is not NARROW or book["dropped"]["queue"] > 0
    # One clock for both files and the table: the same distance everywhere.
    assert len(origins) == 1
