"""A cell of a study as the JSON of docs/cell-protocol.md: exact objects."""

import json
import subprocess
from typing import Any

import pytest

from cells import adhoc, checked, only_cell, only_item
from conftest import requires_binary
from crosswind.cell.spec import cell_json
from crosswind.study.design import Study
from crosswind.study.files import load_study

WHOLE = """
[path]
family = "ipv6"
mtu = 1400
delay = "10ms"
loss = "5%"
count = "ethernet"
[path.forward]
rate = "1.5mbit"
queue = "64kB"
[path.reverse]
delay = "2.5ms"
loss = 0.001
[host]
profile = "freebsd-8"
congestion_control = "reno"
sack = false
send_buffer = "64KiB"
initial_window = 3
min_rto = "230ms"
[workload]
kind = "echo"
transport = "udp"
size = 1000
messages = 500
mode = "open"
rate = 50
[study]
seed = 7
[budget]
delay_error_p99 = "500us"
starvation = "1%"
"""


def json_of(study: Study) -> dict[str, Any]:
    (cell,) = study.cells()
    return cell_json(cell, study.budget)


def test_a_cell_has_what_the_study_sets_in_whole_numbers() -> None:
    assert json_of(Study.from_toml(WHOLE, name="whole")) == {
        "schema": "crosswind.cell/1",
        "path": {
            "family": "ipv6",
            "mtu_bytes": 1400,
            "forward": {
                "delay_ns": 10_000_000,
                "loss": 0.05,
                "rate_bps": 1_500_000,
                "queue": {"bytes": 64_000},
                "count": "ethernet",
            },
            "reverse": {"delay_ns": 2_500_000, "loss": 0.001, "count": "ethernet"},
        },
        "host": {
            "profile": "freebsd-8",
            "congestion_control": "reno",
            "sack": False,
            "send_buffer_bytes": 65_536,
            "initial_window": 3,
            "min_rto_ns": 230_000_000,
        },
        "workload": {
            "kind": "echo",
            "transport": "udp",
            "size_bytes": 1000,
            "messages": 500,
            "mode": "open",
            "rate_per_s": 50,
        },
        "budget": {"delay_error_p99_ns": 500_000, "starvation": 0.01},
    }


@pytest.mark.parametrize(
    ("kind", "options", "workload"),
    [
        ("transfer", {"size": "1MB", "direction": "download"}, {"size_bytes": 10**6, "direction": "download"}),
        ("transfer", {"duration": "10s", "timeout": "20s"}, {"duration_ns": 10**10, "timeout_ns": 20 * 10**9}),
        ("connect", {"connections": 4}, {"connections": 4}),
        ("page", {"transport": "http2", "html_size": "1kB"}, {"transport": "http2", "html_bytes": 1000}),
    ],
)
def test_each_kind_gets_its_own_keys(kind: str, options: dict[str, object], workload: dict[str, Any]) -> None:
    assert json_of(adhoc(kind, **options))["workload"] == {"kind": kind, "transport": "tcp"} | workload


def test_a_program_has_no_transport() -> None:
    workload = json_of(adhoc("program", client="echo 3 {server}"))["workload"]
    assert workload == {"kind": "program", "client": ["echo", "3", "{server}"]}


def test_a_key_is_left_out_where_it_has_no_effect() -> None:
    paced = adhoc("echo", mode="open,closed", rate=10, path__rate="1mbit,unlimited", path__queue="9p")
    cells = [cell_json(cell, {}) for cell in paced.cells()]
    assert [(cell["path"]["forward"].get("queue"), cell["workload"].get("rate_per_s")) for cell in cells] == [
        ({"packets": 9}, 10),
        ({"packets": 9}, None),
        (None, 10),
        (None, None),
    ]


def test_a_run_of_a_cell_has_its_name_its_seed_and_what_is_kept() -> None:
    study = Study.from_toml(WHOLE, name="whole")
    item, (cell,) = only_item(study), checked(study)
    run = cell.for_run(item, packets=True)
    assert (run["id"], run["seed"], run["deadline_ns"]) == ("c000-r00", 8955840711975808, cell.deadline_ns)
    assert run["output"] == {
        "directory": None, "packets": True, "spent": False, "keys": False, "capture": False, "qlog": False,
        "profile": False,
    }  # fmt: skip
    assert run["workload"]["timeout_ns"] == 1_050_000_000


# What a study asks of each cell; crosswind-cell fills in the rest.
ASKED = [
    (
        Study.from_toml(WHOLE, name="whole"),
        {
            "path": {
                "backend": "tun",
                "family": "ipv6",
                "mtu_bytes": 1400,
                "forward": {
                    "delay_ns": 10_000_000,
                    "loss": 0.05,
                    "rate_bps": 1_500_000,
                    "queue": {"bytes": 64_000},
                    "count": "ethernet",
                },
                "reverse": {"delay_ns": 2_500_000, "loss": 0.001, "rate_bps": None, "queue": None, "count": "ethernet"},
            },
            "host": {
                "profile": "freebsd-8",
                "congestion_control": "reno",
                "sack": False,
                "send_buffer_bytes": 65_536,
                "initial_window": 3,
                "min_rto_ns": 230_000_000,
            },
            "workload": {
                "kind": "echo",
                "transport": "udp",
                "connections": 1,
                "timeout_ns": 1_050_000_000,
                "size_bytes": 1000,
                "messages": 500,
                "mode": "open",
                "rate_per_s": 50,
                "connection": "kept",
            },
            "budget": {"delay_error_p99_ns": 500_000, "starvation": 0.01},
        },
    ),
    (
        adhoc("transfer", size="1MB", direction="download", path__network="wan"),
        {
            "path": {
                "backend": "tun",
                "family": "ipv4",
                "mtu_bytes": 1500,
                "forward": {
                    "delay_ns": 20_000_000,
                    "loss": 0.0,
                    "rate_bps": 5_000_000,
                    "queue": {"bytes": 62_500},
                    "count": "ip",
                },
                "reverse": {
                    "delay_ns": 20_000_000,
                    "loss": 0.0,
                    "rate_bps": 20_000_000,
                    "queue": {"bytes": 250_000},
                    "count": "ip",
                },
            },
            "host": {},
            "workload": {
                "kind": "transfer",
                "transport": "tcp",
                "connections": 1,
                "timeout_ns": 60_000_000_000,
                "size_bytes": 1_000_000,
                "direction": "download",
                "count": 1,
            },
        },
    ),
    (
        adhoc("page", transport="https1", path__rate="6mbit", path__delay="15ms"),
        {
            "path": {
                "backend": "tun",
                "family": "ipv4",
                "mtu_bytes": 1500,
                **{
                    direction: {
                        "delay_ns": 15_000_000,
                        "loss": 0.0,
                        "rate_bps": 6_000_000,
                        "queue": None,
                        "count": "ip",
                    }
                    for direction in ("forward", "reverse")
                },
            },
            "host": {},
            "workload": {
                "kind": "page",
                "transport": "https1",
                "connections": 6,
                "timeout_ns": 60_000_000_000,
                "count": 10,
                "html_bytes": 36_000,
                "scripts_bytes": 150_000,
                "scripts": 5,
                "images_bytes": 450_000,
                "images": 15,
                "request_bytes": 400,
            },
        },
    ),
    (
        adhoc("multiplex", transport="quic-datagram", streams=2, payload="binary"),
        {
            "host": {},
            "workload": {
                "kind": "multiplex",
                "transport": "quic-datagram",
                "timeout_ns": 1_000_000_000,
                "streams": 2,
                "size_bytes": 200,
                "messages": 100,
                "rate_per_s": 20,
            },
        },
    ),
    (
        adhoc("program", client="echo 3 {server}"),
        {"workload": {"kind": "program", "client": ["echo", "3", "{server}"], "server": None}},
    ),
]


@pytest.mark.parametrize(("study", "given"), ASKED, ids=lambda value: getattr(value, "name", ""))
def test_a_study_has_the_cells_that_it_asks_for(study: Study, given: dict[str, Any]) -> None:
    (cell,) = checked(study.with_overrides({"host.clock": "real"}))
    host = {**given.get("host", {}), "clock": "real"}
    asked = {"schema": "crosswind.cell/1", "id": "c000", **given, "host": host}
    answer = subprocess.run(
        [requires_binary(), "--check"], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    assert json.loads(answer.stdout)["cell"] == cell.parameters


def test_what_crosswind_cell_fills_in_it_accepts() -> None:
    cells = [*checked(load_study("latency-by-link")), *checked(load_study("client-profile"))]
    lines = "\n".join(json.dumps(cell.parameters) for cell in cells)
    answer = subprocess.run([requires_binary(), "--check"], input=lines, capture_output=True, text=True, check=True)
    assert [json.loads(line)["cell"] for line in answer.stdout.splitlines()] == [cell.parameters for cell in cells]


def test_deadlines_are_generous_and_bounded() -> None:
    assert only_cell("connect", timeout="1s", count=1).deadline_ns == 60 * 10**9
    # Ten times what is expected, and one exchange may time out ...
    echo = only_cell("echo", timeout="20m")
    assert echo.deadline_ns == 10 * echo.forecast.duration_ns + 1200 * 10**9
    ten_seconds = only_cell("transfer", duration="10s")
    # ... so may connecting, and then an exchange, within a bounded duration: that is a result ...
    assert ten_seconds.deadline_ns == ten_seconds.forecast.duration_ns + 120 * 10**9
    # ... but not longer than one timeout after all of them together,
    slow = only_cell("echo", path__delay="1s", messages=100, timeout="3s")
    assert slow.deadline_ns == 303 * 10**9
    # ten where losses come in bursts,
    bursts = only_cell("echo", path__loss="2%", path__loss_burst=20, timeout="10s")
    assert bursts.deadline_ns == 10 * bursts.forecast.duration_ns + 100 * 10**9
    # nor than an hour beside it, unless more than that was asked for.
    assert only_cell("echo", path__delay="1s", messages=500, timeout="1m").deadline_ns == 3660 * 10**9
    assert only_cell("transfer", duration="1h").deadline_ns >= 2 * 3600 * 10**9
    # Messages at a rate end by themselves, but for those that a connection or an outage holds up.
    at_a_rate = '[workload]\nkind = "echo"\nmode = "open"\nrate = 1\ntimeout = "20m"\n'
    (steady,) = checked(Study.from_toml(at_a_rate, name="steady"))
    (held_up,) = checked(Study.from_toml(at_a_rate + '[[path.at]]\nname = "outage"\nloss = "100%"\n', name="held-up"))
    assert steady.deadline_ns == steady.forecast.duration_ns + 2400 * 10**9
    assert held_up.deadline_ns == (3600 + 1200) * 10**9
    # A program's own timeout ends it, a minute before.
    assert only_cell("program", client="true").deadline_ns == 660 * 10**9
    assert only_cell("program", client="true", timeout="1h").deadline_ns == 3660 * 10**9
