"""Background traffic beside a workload and its flows: exact books, and what it leaves of the link."""

import polars as pl

from crosswind.cell.failure import ErrorKind
from linux.lab import Object, ms
from virtual.lab import VirtualCells

LINK: Object = {"rate_bps": 10_000_000, "queue": {"packets": 20}, "delay_ns": ms(5)}
BACKGROUND: Object = {"background_rate_bps": 4_000_000, "background_arrivals": "poisson", "background_flows": 2}


def test_flows_and_background_traffic_are_all_that_the_link_carried(cells: VirtualCells) -> None:
    upload: Object = {"kind": "transfer", "transport": "tcp", "duration_ns": ms(2000)}
    beside = [{"name": "other", "count": 2, "workload": {"kind": "transfer", "transport": "tcp"}}]
    ran = cells.run(upload, forward={**LINK, **BACKGROUND}, reverse=LINK, flows=beside)
    ledger, flows = ran.result["ledger"], pl.read_ipc((ran.directory / "flows.arrow").read_bytes())
    by_kind = (
        flows.filter(pl.col("direction") == "forward")
        .group_by("background")
        .agg(pl.exclude("flow", "direction", "from_ns").sum())
    )
    counted, apart = (by_kind.filter(pl.col("background") == kind) for kind in (0, 1))
    forward = ledger["forward"]
    background = forward["background"]
    assert ledger["closed"] and ledger["reverse"]["background"] is None
    assert counted["packets"].item() == forward["delivered"]
    dropped = sum(background["dropped"].values())
    assert background["in"] == background["carried"] + dropped + background["queued"]
    assert background["carried_bytes"] == 1500 * background["carried"] == apart["bytes"].item()
    assert apart["dropped"].item() == dropped
    assert dropped > 0 < counted["dropped"].item()
    # The link is never idle once the transfers have begun. A few packets of background follow the last of a host.
    carried = 8 * (forward["delivered_bytes"] + background["carried_bytes"])
    packets = ran.packets("forward")
    lasted_ns = packets["due_ns"].max() - ms(5) - packets["in_ns"].min()  # type: ignore[operator]
    assert 0.95 <= carried / (lasted_ns / 100) <= 1.01


def test_the_same_seed_sends_the_same_background_whatever_the_workload(cells: VirtualCells) -> None:
    """Datagrams at a rate wait exactly as long in a second run, and each is sent in both."""
    echo: Object = {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 100, "messages": 100}
    forward = {**LINK, **BACKGROUND, "background_rate_bps": 9_000_000}
    one, two = (cells.run(echo, forward=forward, reverse=LINK) for _ in range(2))
    assert one.samples().equals(two.samples())
    waits = one.packets("forward")["queueing_ns"]
    assert waits.max() > ms(1) and one.packets("reverse")["queueing_ns"].max() == 0  # type: ignore[operator]


def test_an_overloaded_link_is_allowed_and_said(cells: VirtualCells) -> None:
    ping: Object = {"kind": "echo", "transport": "udp", "messages": 20, "timeout_ns": ms(200)}
    ran = cells.run(ping, forward={**LINK, "background_rate_bps": 20_000_000}, reverse=LINK)
    (warning,) = ran.result["warnings"]
    assert warning["name"] == "background_fills_link"
    assert warning["text"] == (
        "background traffic from client to server is 20 Mbit/s, and the link carries 10 Mbit/s: "
        "its queue is always full"
    )
    assert ran.result["ledger"]["forward"]["dropped"]["queue"] > 0


def test_a_transfer_that_an_overloaded_link_starves_ends_with_what_did_it(cells: VirtualCells) -> None:
    upload: Object = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}
    beside = [{"name": "other", "workload": {"kind": "transfer", "transport": "tcp"}}]
    forward = {**LINK, "background_rate_bps": 20_000_000}
    failure = cells.run(upload, forward=forward, reverse=LINK, flows=beside, deadline_ns=ms(20_000)).end.failure
    assert failure is not None and failure.kind == ErrorKind.DEADLINE
    assert failure.message == (
        "the cell was not done by its deadline of 20.0 s (exchanges: 0 of 1); background traffic from client to "
        "server is 20 Mbit/s, and the link carries 10 Mbit/s: its queue is always full, and hardly anything else gets "
        "through"
    )
    assert failure.hint == "less of it (background_rate), or a workload with a duration or a short timeout"
