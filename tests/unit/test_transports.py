"""Transports and workloads of a study: which keys each takes, what is refused, and the cell that comes of it."""

from typing import Any

import pytest

from cells import adhoc, checked, only_cell, only_item
from crosswind.catalog import catalog, is_datagram
from crosswind.errors import StudyError
from crosswind.study.design import Study

STREAM = "tcp tls http1 https1 h2c http2 http3 websocket wss quic webtransport socketio-websocket socketio-webtransport"
DATAGRAM = "udp quic-datagram webtransport-datagram"
SECURE = "tls https1 http2 http3 wss quic quic-datagram webtransport webtransport-datagram socketio-webtransport"


TRANSPORTS = catalog().transports


def workload_of(kind: str, **options: object) -> dict[str, Any]:
    return dict(only_cell(kind, **options).parameters["workload"])


def test_the_table_of_transports() -> None:
    assert set(TRANSPORTS) == {*STREAM.split(), *DATAGRAM.split()}
    assert {name for name in TRANSPORTS if is_datagram(name)} == set(DATAGRAM.split())
    assert {name for name, transport in TRANSPORTS.items() if transport.secure} == set(SECURE.split())
    assert {name for name, transport in TRANSPORTS.items() if transport.http} == {
        "http1", "https1", "h2c", "http2", "http3",
    }  # fmt: skip
    assert {name for name, transport in TRANSPORTS.items() if transport.streams == "many"} == {"quic", "webtransport"}
    assert {name for name, transport in TRANSPORTS.items() if transport.text} == {
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
    assert set(catalog().workloads[kind].transports) == set(some.split())
    options = {"size": 100} if kind in ("echo", "transfer", "multiplex") else {}
    for name in TRANSPORTS:
        if name in some.split():
            assert workload_of(kind, transport=name, **options)["transport"] == name
        else:
            with pytest.raises(StudyError, match=f"workload.transport {name} cannot do {kind}"):
                checked(adhoc(kind, transport=name, **options))


@pytest.mark.parametrize(
    ("kind", "options", "workload"),
    [
        (
            "multiplex",
            {"transport": "quic-datagram", "streams": 2, "size": 1000, "rate": "5/s", "path__delay": "10ms"},
            {
                "kind": "multiplex", "transport": "quic-datagram", "timeout_ns": 1_080_000_000,
                "streams": 2, "size_bytes": 1000, "messages": 100, "rate_per_s": 5,
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
    assert workload.items() <= workload_of(kind, **options).items()


ECHO = {
    "kind": "echo", "connections": 1, "timeout_ns": 60 * 10**9, "size_bytes": 1, "messages": 100, "mode": "closed",
    "connection": "kept",
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "own"),
    [
        (
            {"transport": "tls", "connection": "new", "resumption": "0-rtt"},
            {"transport": "tls", "connection": "new", "resumption": "0-rtt"},
        ),
        ({"transport": "quic", "stream": "new"}, {"transport": "quic", "stream": "new"}),
        ({"transport": "wss", "payload": "text"}, {"transport": "wss", "payload": "text"}),
        (
            {"transport": "socketio-websocket", "polling": True},
            {"transport": "socketio-websocket", "polling": True},
        ),
        ({"transport": "http1", "direction": "upload"}, {"transport": "http1", "direction": "upload"}),
        # What a cell does anyway can be said of any transport: it is a level that others are compared with.
        (
            {"resumption": "none", "stream": "kept", "payload": "binary", "polling": False, "direction": "echo"},
            {"transport": "tcp"},
        ),
    ],
)
def test_new_keys_of_an_echo(options: dict[str, object], own: dict[str, Any]) -> None:
    assert (ECHO | own).items() <= workload_of("echo", **options).items()


@pytest.mark.parametrize(
    ("kind", "options", "message", "hint"),
    [
        (
            "echo",
            {"transport": "http1", "resumption": "session"},
            "workload.resumption session: workload.resumption (session) is set, and http1 has no sessions",
            "tls, ",
        ),
        (
            "connect",
            {"transport": "http2", "resumption": "1-rtt"},
            '"1-rtt" is not one of none, session, 0-rtt',
            'did you mean "0-rtt"?',
        ),
        ("page", {}, "workload.transport is missing", "one of http1, https1, h2c, http2, http3"),
        ("multiplex", {"size": 1001}, "workload.size (1001) is too large", "from 8B to 1kB"),
        (
            "page",
            {"transport": "http3", "resumption": "session"},
            "workload page does not take resumption",
            "html_size",
        ),
        ("multiplex", {"connections": 2}, "workload multiplex does not take connections", "streams"),
        ("echo", {"streams": 2}, "workload echo does not take streams", "stream"),
        (
            "transfer",
            {"size": 1, "direction": "echo"},
            "workload.direction (echo) is not one of upload, download",
            "known: upload, download",
        ),
        ("echo", {"transport": "htp2"}, '"htp2" is not one of tcp, ', 'did you mean "http2"'),
    ],
)
def test_what_is_refused_names_the_key_and_says_what_is_right(
    kind: str, options: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(StudyError) as caught:
        only_cell(kind, **{key: str(value).lower() for key, value in options.items()})
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_qlog_is_asked_of_quic_alone_and_a_profile_of_all() -> None:
    for name, quic in (("webtransport", True), ("http3", True), ("http2", False), ("tcp", False)):
        study = adhoc("echo", transport=name)
        (cell,) = checked(study)
        output = cell.for_run(only_item(study), qlog=True, profile=True)["output"]
        kept = {key for key, value in output.items() if value}
        assert kept == {"profile", *(["qlog"] if quic else [])}
    study = adhoc("program", client="true")
    (program,) = checked(study)
    assert not any(program.for_run(only_item(study), qlog=True)["output"].values())


def test_a_study_may_ask_for_a_profile() -> None:
    text = '[workload]\nkind = "echo"\n[study]\nprofile = true\n'
    study = Study.from_toml(text, name="s")
    assert study.profile
    assert not study.with_overrides({"study.profile": "false"}).profile


def test_deadlines_of_new_workloads() -> None:
    # Paced: ten times the 100 messages at 4 x 1 a second, and no matter what all timeouts would be together.
    paced = only_cell("multiplex", transport="quic-datagram", rate=1, messages=100)
    assert 250 * 10**9 < paced.deadline_ns < 300 * 10**9
    pages = only_cell("page", transport="http3", count=2, timeout="10s")
    assert pages.deadline_ns == 60 * 10**9
