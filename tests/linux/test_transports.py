"""Every transport on the emulated path: what is exact whatever the timing. Round trips are counted from the packets."""

import json
import subprocess

import polars as pl
import pytest

from conftest import requires
from linux.lab import DIRECTIONS, Ended, Lab, Object, ms

DATAGRAM = ["udp", "quic-datagram", "webtransport-datagram"]
HTTP = ["http1", "https1", "h2c", "http2", "http3"]
STREAM = [
    "tcp", "tls", *HTTP, "websocket", "wss", "quic", "webtransport", "socketio-websocket", "socketio-webtransport",
]  # fmt: skip
ALL = [*STREAM, *DATAGRAM]
SECURE = [
    "tls", "https1", "http2", "http3", "wss", "quic", "quic-datagram", "webtransport", "webtransport-datagram",
    "socketio-webtransport",
]  # fmt: skip
# Round trips until the connection is open, and in which of the steps.
# A host that pauses between two packets of one flight makes it two if the pause is longer than the path's round trip.
DELAY = ms(20)
DELAYED: Object = {"forward": {"delay_ns": DELAY}, "reverse": {"delay_ns": DELAY}}


def check(lab: Lab, workload: Object, **path: object) -> Object:
    """What `--check` says of a workload."""
    cell = {"schema": "crosswind.cell/1", "path": path, "workload": workload}
    ended = subprocess.run(
        [str(lab.binary), "--check"], input=json.dumps(cell), capture_output=True, text=True, timeout=20, check=False
    )
    said: Object = json.loads(ended.stdout)
    assert ended.stderr == ""
    assert (ended.returncode, said["event"]) in ((0, "checked"), (2, "refused"))
    return said


def refused(lab: Lab, workload: Object) -> str:
    """The message and the hint with which a workload is refused."""
    said = check(lab, workload)
    assert said.get("kind") == "bad_cell", said
    return f"{said['key']} {said['problem']}: {said['hint']}"


# --- echo -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ALL)
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_messages_come_back_on_every_transport_and_family(lab: Lab, transport: str, family: str) -> None:
    ended = lab.run({"kind": "echo", "transport": transport, "messages": 12, "size_bytes": 900}, family=family)
    samples = ended.samples()
    assert set(samples["outcome"]) == {"ok"}
    assert set(samples["sent_bytes"]) == set(samples["received_bytes"]) == {900}
    # The server is seen between sending and receiving, on one clock.
    assert (samples["request_ns"] > 0).all() and (samples["reply_ns"] > 0).all() and (samples["server_ns"] >= 0).all()
    traffic, result = ended.result["traffic"], ended.result
    for direction in DIRECTIONS:
        amounts = [traffic[phase][direction] for phase in ("setup", "exchanges")]
        assert sum(amount["packets"] for amount in amounts) == result["ledger"][direction]["in"]
        assert sum(amount["bytes"] for amount in amounts) == result["ledger"][direction]["in_bytes"]
        assert traffic["exchanges"][direction]["bytes"] > 12 * 900


@pytest.mark.parametrize("transport", STREAM)
@pytest.mark.parametrize("direction", ["upload", "download"])
def test_direction_says_which_way_the_bytes_go(lab: Lab, transport: str, direction: str) -> None:
    workload = {"kind": "echo", "transport": transport, "messages": 4, "size_bytes": 300_000, "direction": direction}
    ended = lab.run(workload, packets=False)
    samples = ended.samples()
    assert set(samples["outcome"]) == {"ok"}
    sizes = (samples["sent_bytes"].to_list(), samples["received_bytes"].to_list())
    assert sizes == (([300_000] * 4, [1] * 4) if direction == "upload" else ([1] * 4, [300_000] * 4))
    traffic = ended.result["traffic"]["exchanges"]
    there, back = traffic["forward"]["bytes"], traffic["reverse"]["bytes"]
    assert (there > 4 * 300_000 > 8 * back) if direction == "upload" else (back > 4 * 300_000 > 8 * there)


@pytest.mark.parametrize("transport", ["websocket", "wss", "socketio-websocket", "socketio-webtransport"])
def test_text_is_a_kind_of_message(lab: Lab, transport: str) -> None:
    ended = lab.run({"kind": "echo", "transport": transport, "messages": 10, "size_bytes": 50, "payload": "text"})
    assert set(ended.samples()["outcome"]) == {"ok"}


@pytest.mark.parametrize("transport", ["quic", "webtransport"])
def test_a_new_stream_for_each_message_is_on_the_same_connection(lab: Lab, transport: str) -> None:
    samples = lab.run({"kind": "echo", "transport": transport, "messages": 30, "stream": "new"}).samples()
    assert set(samples["outcome"]) == {"ok"}
    assert samples["connect_ns"].drop_nulls().len() == 1


@pytest.mark.parametrize("transport", ALL)
def test_several_connections_share_the_messages(lab: Lab, transport: str) -> None:
    samples = lab.run({"kind": "echo", "transport": transport, "messages": 15, "connections": 3}).samples()
    assert set(samples["outcome"]) == {"ok"}
    assert samples["connection"].value_counts().sort("connection")["count"].to_list() == [5, 5, 5]


# --- connections ----------------------------------------------------------------------------------------------------


def accepted_tickets(ended: Ended) -> list[str]:
    """Of each hello of the server, in order, the number of the session ticket that it accepts, or "" for none."""
    command = [
        requires("tshark"), "-r", str(ended.directory / "server.pcapng"), "-n",
        "-d", "udp.port==7,quic", "-d", "tcp.port==7,tls",
        "-Y", "tls.handshake.type == 2", "-T", "fields", "-e", "tls.handshake.extensions.psk.identity.selected",
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split("\n")[:-1]


@pytest.mark.parametrize("transport", SECURE)
def test_a_session_is_resumed(lab: Lab, transport: str) -> None:
    workload = {"kind": "connect", "transport": transport, "count": 3}
    full = lab.run(workload, capture=True)
    resumed = lab.run({**workload, "resumption": "session"}, capture=True)
    for ended in (full, resumed):
        assert ended.result["warnings"] == []
        assert ended.samples()["outcome"].to_list() == ["ok"] * 3
    assert accepted_tickets(full) == [""] * 3
    # The first connection, which has no sample, receives the ticket.
    assert accepted_tickets(resumed) == ["", "0", "0", "0"]


# --- transfer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", STREAM)
@pytest.mark.parametrize("direction", ["upload", "download"])
def test_every_byte_of_a_transfer_arrives(lab: Lab, transport: str, direction: str) -> None:
    workload = {"kind": "transfer", "transport": transport, "size_bytes": 3_000_000, "direction": direction}
    samples = lab.run({**workload, "count": 2}, packets=False).samples()
    assert set(samples["outcome"]) == {"ok"}
    assert set(samples["received_bytes"]) == set(samples["sent_bytes"]) == {3_000_000}


@pytest.mark.parametrize("transport", ["tcp", "http1", "http3", "websocket", "quic"])
def test_a_transfer_by_duration_ends_by_itself(lab: Lab, transport: str) -> None:
    for direction in ("upload", "download"):
        workload = {"kind": "transfer", "transport": transport, "duration_ns": ms(100), "direction": direction}
        samples = lab.run(workload, packets=False).samples()
        assert set(samples["outcome"]) == {"ok"}
        assert set(samples["received_ns"] - samples["sent_ns"]) == {ms(100)}
        assert (samples["received_bytes"] > 0).all()


# --- multiplex ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ALL)
def test_streams_share_the_messages_evenly(lab: Lab, transport: str) -> None:
    workload = {"kind": "multiplex", "transport": transport, "streams": 4, "messages": 40, "rate_per_s": 100}
    ended = lab.run(workload)
    samples = ended.samples()
    assert set(samples["outcome"]) == {"ok"}
    assert set(samples["own_drops"]) == {0}
    assert samples["stream"].to_list() == [number % 4 for number in samples["exchange"]]
    connections = 4 if transport in ("tcp", "http1", "https1") else 1
    assert samples["connection"].n_unique() == samples["connect_ns"].drop_nulls().len() or transport in DATAGRAM
    assert samples["connection"].n_unique() == connections


# --- page -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", HTTP)
def test_a_page_is_all_its_objects(lab: Lab, transport: str) -> None:
    ended = lab.run({"kind": "page", "transport": transport, "count": 2}, packets=False, **DELAYED)
    samples, objects = ended.samples(), pl.read_ipc(ended.directory / "objects.arrow")
    assert set(samples["outcome"]) == set(objects["outcome"]) == {"ok"}
    assert set(samples["received_bytes"]) == {636_000}
    assert objects["page"].value_counts().sort("page")["count"].to_list() == [21, 21]
    names = ["html", *(f"script {i}" for i in range(1, 6)), *(f"image {i}" for i in range(1, 16))]
    assert sorted(objects.filter(pl.col("page") == 0)["object"]) == sorted(names)
    html = objects.filter(pl.col("object") == "html").sort("page")
    rest = objects.filter(pl.col("object") != "html")
    assert (html["bytes"] == 36_000).all()
    # The document is whole before anything else is known to be needed.
    for page in (0, 1):
        assert (rest.filter(pl.col("page") == page)["queued_ns"] >= html["received_ns"][page]).all()
    assert objects["connection"].n_unique() == (6 if transport in ("http1", "https1") else 1)
    for row in objects.iter_rows(named=True):
        assert row["queued_ns"] <= row["sent_ns"] < row["first_ns"] <= row["received_ns"]
    last = objects.group_by("page").agg(pl.col("received_ns").max()).sort("page")["received_ns"]
    assert last.to_list() == samples.sort("exchange")["received_ns"].to_list()


# --- what cannot be -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", DATAGRAM)
def test_a_datagram_over_the_limit_is_refused_with_the_limit(lab: Lab, transport: str) -> None:
    echo: Object = {"kind": "echo", "transport": transport, "messages": 2}
    said = refused(lab, {**echo, "size_bytes": 100_000})
    limit = int(said.split("limit of ")[1].split(": ")[1].split(" ")[0])
    assert "use a stream transport" in said
    assert "over the limit" in refused(lab, {**echo, "size_bytes": limit + 1})
    ended = lab.run({**echo, "size_bytes": limit})
    assert set(ended.samples()["outcome"]) == {"ok"}


# --- what else is written -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["https1", "http3"])
def test_wireshark_reads_a_capture_with_its_keys(lab: Lab, transport: str) -> None:
    tshark = requires("tshark")
    ended = lab.run({"kind": "echo", "transport": transport, "messages": 2, "size_bytes": 20}, capture=True)
    assert ended.files() >= {"keys.log", "client.pcapng", "server.pcapng"}
    assert (ended.directory / "keys.log").stat().st_mode & 0o777 == 0o600
    command = [
        tshark, "-r", str(ended.directory / "client.pcapng"), "-o", f"tls.keylog_file:{ended.directory / 'keys.log'}",
        "-d", "udp.port==7,quic", "-d", "tcp.port==7,tls", "-Y", "http or http3 or quic.stream_data", "-V",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "/echo" in done.stdout or "STREAM" in done.stdout, done.stderr


@pytest.mark.parametrize("transport", ["quic", "http3", "webtransport"])
def test_quic_tells_what_it_did(lab: Lab, transport: str) -> None:
    directory = lab.directory()
    cell: Object = {
        "schema": "crosswind.cell/1", "workload": {"kind": "echo", "transport": transport, "messages": 2},
        "output": {"directory": str(directory), "qlog": True},
    }  # fmt: skip
    ended = lab.end(lab.start(cell), directory)
    assert ended.status == 0, ended.out
    for name in ("client.qlog", "server.qlog"):
        records = [
            json.loads(record) for record in (directory / name).read_text("utf-8").split("\x1e") if record.strip()
        ]
        assert records[0]["qlog_version"]
        assert any("packet" in str(record.get("name")) for record in records[1:])


@pytest.mark.parametrize(("transport", "masks"), [("websocket", True), ("http1", False)])
def test_a_profile_knows_masking(lab: Lab, transport: str, masks: bool) -> None:
    directory = lab.directory()
    cell: Object = {
        "schema": "crosswind.cell/1", "path": {"backend": "direct"},
        "workload": {
            "kind": "echo", "transport": transport, "direction": "upload", "size_bytes": 10_000_000, "messages": 120,
        },
        "output": {"directory": str(directory), "profile": True},
    }  # fmt: skip
    ended = lab.end(lab.start(cell), directory)
    assert ended.status == 0, ended.out
    profile = ended.events[-1]["profile"]
    for host in (profile["client"], profile["server"]):
        # Every sample belongs to one part. Each stands for the time since the last one, in whole intervals: rounded.
        assert 0 < sum(host["parts"].values()) == host["samples"] <= 1.01 * host["cpu_ns"] / profile["interval_ns"] + 1
        assert (host["parts"]["masking"] > 0) == masks
