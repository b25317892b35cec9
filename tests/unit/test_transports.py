"""Transports and workloads of a study: which keys each takes, what is refused, and the cell that comes of it."""

from typing import Any

import pytest

from crosswind.catalog import TRANSPORTS, fitting, is_datagram
from crosswind.cell.spec import cell_json, deadline_ns
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.plan import Plan, PlanItem

STREAM = "tcp tls http1 https1 h2c http2 http3 websocket wss quic webtransport socketio-websocket socketio-webtransport"
DATAGRAM = "udp quic-datagram webtransport-datagram"
SECURE = "tls https1 http2 http3 wss quic quic-datagram webtransport webtransport-datagram socketio-webtransport"


def item_of(kind: str, **options: object) -> PlanItem:
    """The one run of a study; `transport=...` is workload.transport, `path__delay=...` path.delay."""
    keys = {key.replace("__", ".") if "__" in key else f"workload.{key}": value for key, value in options.items()}
    (item,) = Plan.of(Study.adhoc(kind, keys)).items
    return item


def workload_of(kind: str, **options: object) -> dict[str, Any]:
    return dict(cell_json(item_of(kind, **options))["workload"])


def test_the_table_of_transports() -> None:
    assert set(TRANSPORTS) == {*STREAM.split(), *DATAGRAM.split()}
    assert {name for name in TRANSPORTS if is_datagram(name)} == set(DATAGRAM.split())
    assert {name for name, one in TRANSPORTS.items() if one.secure} == set(SECURE.split())
    assert {name for name, one in TRANSPORTS.items() if one.http} == {"http1", "https1", "h2c", "http2", "http3"}
    assert {name for name, one in TRANSPORTS.items() if one.opens_streams} == {"quic", "webtransport"}
    assert {name for name, one in TRANSPORTS.items() if one.typed} == {
        "websocket", "wss", "socketio-websocket", "socketio-webtransport",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        ("echo", f"{STREAM} {DATAGRAM}"),
        ("multiplex", f"{STREAM} {DATAGRAM}"),
        ("transfer", STREAM),
        ("connect", f"{STREAM} quic-datagram webtransport-datagram"),
        ("page", "http1 https1 h2c http2 http3"),
    ],
)
def test_what_each_workload_runs_over(kind: str, some: str) -> None:
    assert {one.name for one in fitting(kind)} == set(some.split())
    options = {"size": 100} if kind in ("echo", "transfer", "multiplex") else {}
    for name in TRANSPORTS:
        if name in some.split():
            assert workload_of(kind, transport=name, **options)["transport"] == name
        else:
            with pytest.raises(StudyError, match=f"workload {kind} needs .*, not {name}"):
                item_of(kind, transport=name, **options)


@pytest.mark.parametrize(
    ("kind", "options", "workload"),
    [
        (
            "multiplex",
            {"transport": "http2"},
            {
                "kind": "multiplex", "transport": "http2", "timeout_ns": 60 * 10**9,
                "streams": 4, "size_bytes": 200, "messages": 100, "rate_per_s": 20,
            },
        ),
        (
            "multiplex",
            {"transport": "quic-datagram", "streams": 2, "size": 1000, "rate": "5/s", "path__delay": "10ms"},
            {
                "kind": "multiplex", "transport": "quic-datagram", "timeout_ns": 1_080_000_000,
                "streams": 2, "size_bytes": 1000, "messages": 100, "rate_per_s": 5,
            },
        ),
        (
            "page",
            {"transport": "https1"},
            {
                "kind": "page", "transport": "https1", "connections": 6, "timeout_ns": 60 * 10**9, "count": 10,
                "html_bytes": 36_000, "scripts_bytes": 150_000, "scripts": 5, "images_bytes": 450_000, "images": 15,
                "request_bytes": 400,
            },
        ),
        (
            "page",
            {"transport": "http3", "images": 1, "images_size": "1MB", "count": 2},
            {
                "kind": "page", "transport": "http3", "connections": 1, "timeout_ns": 60 * 10**9, "count": 2,
                "html_bytes": 36_000, "scripts_bytes": 150_000, "scripts": 5, "images_bytes": 1_000_000, "images": 1,
                "request_bytes": 400,
            },
        ),
        (
            "connect",
            {"transport": "wss", "resumption": "session"},
            {
                "kind": "connect", "transport": "wss", "connections": 1, "timeout_ns": 60 * 10**9, "count": 100,
                "resumption": "session",
            },
        ),
    ],
)  # fmt: skip
def test_new_workloads_as_cells(kind: str, options: dict[str, object], workload: dict[str, Any]) -> None:
    assert workload_of(kind, **options) == workload


ECHO = {
    "kind": "echo", "connections": 1, "timeout_ns": 60 * 10**9, "size_bytes": 1, "messages": 100, "mode": "closed",
    "connection": "kept",
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({"transport": "tls", "resumption": "0-rtt"}, {"transport": "tls", "resumption": "0-rtt"}),
        ({"transport": "quic", "stream": "new"}, {"transport": "quic", "stream": "new"}),
        ({"transport": "wss", "payload": "text"}, {"transport": "wss", "payload": "text"}),
        (
            {"transport": "socketio-webtransport", "polling": True},
            {"transport": "socketio-webtransport", "polling": True},
        ),
        ({"transport": "http1", "direction": "upload"}, {"transport": "http1", "direction": "upload"}),
        # What a cell does anyway is not sent, whatever the transport: it is a level that others are compared with.
        (
            {"resumption": "none", "stream": "kept", "payload": "binary", "polling": False, "direction": "echo"},
            {"transport": "tcp"},
        ),
    ],
)
def test_new_keys_of_an_echo(options: dict[str, object], own: dict[str, Any]) -> None:
    assert workload_of("echo", **options) == ECHO | own


@pytest.mark.parametrize(
    ("kind", "options", "message", "hint"),
    [
        (
            "echo",
            {"transport": "http1", "resumption": "session"},
            "workload.resumption session: http1 takes no workload.resumption: there is no TLS session to resume",
            "use one of tls, https1, http2, http3, wss, quic,",
        ),
        ("echo", {"transport": "quic", "payload": "text"}, "quic takes no workload.payload", "use one of websocket, "),
        ("connect", {"transport": "wss", "polling": True}, "wss takes no workload.polling", "socketio-websocket"),
        ("echo", {"transport": "http3", "stream": "new"}, "http3 takes no workload.stream", "quic, webtransport"),
        (
            "connect",
            {"transport": "http2", "resumption": "1-rtt"},
            '"1-rtt" is not one of none, session, 0-rtt',
            'did you mean "0-rtt"?',
        ),
        ("page", {}, "workload page needs HTTP, not tcp", "one of http1, https1, h2c, http2, http3"),
        ("multiplex", {"size": 1001}, "1001 bytes are too many", "from 8 to 1000"),
        ("multiplex", {"size": 7}, "7 bytes are too few", "from 8 to 1000"),
        (
            "page",
            {"transport": "http3", "resumption": "session"},
            "workload page does not take resumption",
            "html_size",
        ),
        ("multiplex", {"streams": 101}, "101 is more than it can be", "from 1 to 100"),
        ("multiplex", {"connections": 2}, "workload multiplex does not take connections", "streams"),
        ("echo", {"streams": 2}, "workload echo does not take streams", "stream"),
        ("transfer", {"size": 1, "direction": "echo"}, "a transfer goes one way", '"upload" or "download"'),
        (
            "echo",
            {"mode": "open", "rate": 5, "direction": "upload"},
            "an open loop sends each message back",
            'mode = "closed"',
        ),
        ("echo", {"transport": "htp2"}, '"htp2" is not one of tcp, tls, udp,', 'did you mean "http2"'),
    ],
)
def test_what_is_refused_names_the_key_and_says_what_is_right(
    kind: str, options: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(StudyError) as caught:
        item_of(kind, **{key: str(value).lower() for key, value in options.items()})
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_qlog_is_asked_of_quic_alone_and_a_profile_of_all() -> None:
    plain = {"directory": None, "packets": False, "capture": False}
    for name, quic in (("webtransport", True), ("http3", True), ("http2", False), ("tcp", False)):
        cell = cell_json(item_of("echo", transport=name), qlog=True, profile=True)
        assert cell["output"] == plain | ({"qlog": True} if quic else {}) | {"profile": True}
    program = cell_json(item_of("program", client="true"), qlog=True)
    assert program["output"] == plain


def test_a_study_may_ask_for_a_profile() -> None:
    text = '[workload]\nkind = "echo"\n[study]\nprofile = true\n'
    study = Study.from_toml(text, name="s")
    assert study.profile
    assert not study.with_overrides({"study.profile": "false"}).profile


def test_deadlines_of_new_workloads() -> None:
    # Paced: ten times the 100 messages at 4 x 1 a second, and no matter what all timeouts would be together.
    paced = item_of("multiplex", transport="quic-datagram", rate=1, messages=100)
    assert 250 * 10**9 < deadline_ns(paced) < 300 * 10**9
    pages = item_of("page", transport="http3", count=2, timeout="10s")
    assert deadline_ns(pages) == 60 * 10**9


PRESET = '[path]\npreset = {}\n{}\n[workload]\nkind = "echo"\n'


def path_of(preset: str, more: str = "") -> dict[str, Any]:
    (item,) = Plan.of(Study.from_toml(PRESET.format(f'"{preset}"', more), name="s")).items
    return dict(cell_json(item)["path"])


def test_a_preset_gives_both_directions() -> None:
    usual = {"loss": 0.0, "count": "ip"}
    assert path_of("localhost")["forward"] == usual | {"delay_ns": 0, "rate_bps": None, "queue": None}
    wan = path_of("wan")
    # 100 ms of each link: 5 Mbit/s up, 20 Mbit/s down
    assert wan["forward"] == usual | {"delay_ns": 20_000_000, "rate_bps": 5_000_000, "queue": {"bytes": 62_500}}
    assert wan["reverse"] == usual | {"delay_ns": 20_000_000, "rate_bps": 20_000_000, "queue": {"bytes": 250_000}}
    # Never less than ten full packets: 100 ms of 384 kbit/s would be 4800 bytes.
    assert path_of("dsl")["forward"]["queue"] == {"bytes": 15_000}


def test_a_key_beside_a_preset_overrides_it() -> None:
    both = path_of("hsdpa+", 'loss = "1%"\nqueue = "50p"\nforward.delay = "1ms"')
    assert both["forward"] == {
        "delay_ns": 1_000_000, "loss": 0.01, "rate_bps": 2_000_000, "queue": {"packets": 50}, "count": "ip",
    }  # fmt: skip
    assert both["reverse"] == {
        "delay_ns": 35_000_000, "loss": 0.01, "rate_bps": 8_000_000, "queue": {"packets": 50}, "count": "ip",
    }  # fmt: skip
    assert path_of("lan", 'rate = "unlimited"')["forward"]["queue"] is None


def test_presets_are_levels_of_a_factor() -> None:
    study = Study.from_toml(PRESET.format('["localhost", "lan", "wan", "hsdpa+"]', ""), name="s")
    assert study.factors == {"path.preset": ("localhost", "lan", "wan", "hsdpa+")}
    assert [cell.parameters.path.rtt_ns for cell in study.cells()] == [0, 500_000, 40_000_000, 70_000_000]


def test_a_path_without_an_emulator_has_no_distance() -> None:
    assert path_of("localhost", 'backend = "direct"')["backend"] == "direct"
    with pytest.raises(StudyError, match='cannot be "lan"') as caught:
        path_of("lan", 'backend = "direct"')
    assert "localhost" in (caught.value.hint or "")
