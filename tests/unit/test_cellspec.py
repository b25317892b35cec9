"""A planned run as the JSON of docs/cell-protocol.md: exact objects."""

import json
from pathlib import Path
from typing import Any

import pytest

from crosswind.cell.spec import cell_json, deadline_ns
from crosswind.forecast.cost import forecast
from crosswind.study.design import Study, builtin_studies, load_study
from crosswind.study.plan import Plan, PlanItem


def item_of(kind: str, **options: object) -> PlanItem:
    (item,) = Plan.of(Study.adhoc(kind, {key.replace("__", "."): value for key, value in options.items()})).items
    return item


def test_a_whole_cell() -> None:
    study = Study.from_toml(
        """
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
""",
        name="whole",
    )
    (item,) = Plan.of(study).items
    assert cell_json(item, output_directory=Path("/tmp/x"), packets=True, capture=False) == {
        "schema": "crosswind.cell/1",
        "id": "c000-r00",
        "seed": 8955840711975808,
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
        "output": {"directory": "/tmp/x", "packets": True, "capture": False},
        "budget": {"delay_error_p99_ns": 500_000, "starvation": 0.01},
        "deadline_ns": deadline_ns(item),
    }


def test_what_the_study_does_not_set_is_left_to_the_profile() -> None:
    cell = cell_json(item_of("echo"))
    assert cell["host"] == {}
    assert "budget" not in cell
    assert cell["output"] == {"directory": None, "packets": False, "capture": False}


@pytest.mark.parametrize(
    ("kind", "options", "workload"),
    [
        (
            "transfer",
            {"workload__size": "1MB", "workload__direction": "download"},
            {
                "kind": "transfer",
                "transport": "tcp",
                "connections": 1,
                "timeout_ns": 60 * 10**9,
                "size_bytes": 10**6,
                "direction": "download",
                "count": 1,
            },
        ),
        (
            "transfer",
            {"workload__duration": "10s", "workload__timeout": "20s"},
            {
                "kind": "transfer",
                "transport": "tcp",
                "connections": 1,
                "timeout_ns": 20 * 10**9,
                "duration_ns": 10**10,
                "direction": "upload",
                "count": 1,
            },
        ),
        (
            "connect",
            {"workload__connections": 4},
            {"kind": "connect", "transport": "tcp", "connections": 4, "timeout_ns": 60 * 10**9, "count": 100},
        ),
        (
            "program",
            {"workload__client": "ping -c 3 {server}"},
            {"kind": "program", "client": ["ping", "-c", "3", "{server}"], "server": None},
        ),
    ],
)
def test_each_kind_gets_its_own_keys(kind: str, options: dict[str, object], workload: dict[str, Any]) -> None:
    assert cell_json(item_of(kind, **options))["workload"] == workload


def test_deadlines_are_generous_and_bounded() -> None:
    assert deadline_ns(item_of("echo")) == 60 * 10**9
    # Ten times what is expected ...
    ten_seconds = item_of("transfer", workload__duration="10s")
    assert deadline_ns(ten_seconds) == 10 * forecast(ten_seconds.cell).duration_ns
    # ... but not longer than all timeouts together,
    slow = item_of("echo", path__delay="1s", workload__messages=100, workload__timeout="3s")
    assert deadline_ns(slow) == 300 * 10**9
    # nor than an hour, unless more than that was asked for.
    assert deadline_ns(item_of("echo", path__delay="1s", workload__messages=500)) == 3600 * 10**9
    assert deadline_ns(item_of("transfer", workload__duration="1h")) >= 2 * 3600 * 10**9
    assert deadline_ns(item_of("program", workload__client="true")) == 3600 * 10**9


@pytest.mark.parametrize("name", [name for name, _ in builtin_studies()])
def test_every_cell_of_the_built_in_studies_is_json(name: str) -> None:
    for item in Plan.of(load_study(name)):
        cell = cell_json(item, output_directory=Path("/tmp"))
        assert json.loads(json.dumps(cell)) == cell
