"""What a message cost, connections by phase, pages, profiles: values of each repetition, worked out by hand."""

from typing import Any

import pytest

from crosswind.findings.pipeline import analyse
from crosswind.report.export import estimates_frame
from crosswind.report.tables.costs import drop_tables, processor_tables, wire_tables
from crosswind.report.tables.metrics import metric_tables
from crosswind.report.tables.table import Shown
from crosswind.report.tables.trust import trust_tables
from crosswind.stats.share import clopper_pearson
from records import COSTS, MS, finished, processor_time, record, run, table, timed
from screens import render

WSS = {"workload": {"kind": "echo", "transport": "wss", "connection": "kept"}}


def ended(**changes: Any) -> dict[str, Any]:
    return finished() | changes


def traffic(forward: tuple[int, int], reverse: tuple[int, int]) -> dict[str, Any]:
    """What was carried after set-up, (packets, bytes) each way; the set-up itself must not count."""
    ways = {"forward": forward, "reverse": reverse}
    exchanges = {way: {"packets": packets, "bytes": size} for way, (packets, size) in ways.items()}
    setup = {way: {"packets": 10**6, "bytes": 10**9} for way in ways}
    return {"setup": setup, "exchanges": exchanges}


def echoed(count: int, *, size: int = 100, lost: int = 0) -> Any:
    """Echoes of some bytes; the last `lost` of them were sent and not answered."""
    kept = count - lost
    return table(
        count,
        connection=[0] * count,
        intended_ns=[0] * count,
        sent_ns=[0] * count,
        received_ns=[MS] * kept + [None] * lost,
        sent_bytes=[size] * count,
        received_bytes=[size] * kept + [0] * lost,
        outcome=["ok"] * kept + ["timeout"] * lost,
    )


def two_repetitions(**workload: Any) -> Any:
    parameters = {"workload": WSS["workload"] | workload}
    first = ended(traffic=traffic((20, 3000), (15, 2500)), cpu=processor_time(50_000, 30_000))
    second = ended(traffic=traffic((30, 5000), (25, 3500)), cpu=processor_time(70_000, 30_000))
    runs = [
        run(0, echoed(10), {"t": "wss"}, repetition=0, parameters=parameters, end=first),
        run(0, echoed(10, lost=2), {"t": "wss"}, repetition=1, parameters=parameters, end=second),
    ]
    return analyse(record(*runs))


def test_bytes_and_packets_are_counted_by_message_that_was_sent() -> None:
    (cell,) = two_repetitions().cells
    found = {name: (metric.smallest, metric.largest) for name, metric in cell.estimates.items()}
    assert found["wire_bytes_forward"] == (300, 500)
    assert found["wire_bytes_reverse"] == (250, 350)
    assert found["wire_packets_forward"] == (2, 3)
    assert found["wire_packets_reverse"] == (1.5, 2.5)
    # 3000 - 10 x 100, 5000 - 10 x 100; 2500 - 10 x 100, 3500 - 8 x 100, by 10
    assert found["overhead_forward"] == (200, 400)
    assert found["overhead_reverse"] == (150, 270)
    assert found["cpu_client"] == (5000, 7000)
    assert found["cpu_server"] == (3000, 3000)
    assert cell.estimates["cpu_client"].mean.value == 6000
    assert cell.estimates["cpu_client"].mean.n == 2
    assert cell.estimates["cpu_client"].mean.spread == (5000, 7000)


@pytest.mark.parametrize(("direction", "overhead"), [("upload", (300, 250)), ("download", (1300, -750))])
def test_the_payload_of_a_transfer_goes_one_way(direction: str, overhead: tuple[int, int]) -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 1000, "direction": direction}
    end = ended(traffic=traffic((20, 2 * 1300), (10, 2 * 250)))
    (cell,) = analyse(record(run(0, timed([MS, MS], size=1000), parameters={"workload": workload}, end=end))).cells
    found = (cell.estimates["overhead_forward"].smallest, cell.estimates["overhead_reverse"].smallest)
    assert found == overhead


def test_what_was_not_counted_is_absent() -> None:
    direct = ended(traffic=None)
    (cell,) = analyse(record(run(0, echoed(10), parameters=WSS, end=direct))).cells
    assert set(cell.estimates) == {"rtt", *COSTS}
    unsent = run(0, table(3, outcome=["refused"] * 3), parameters=WSS)
    assert analyse(record(unsent)).cells[0].estimates == {}


def test_one_repetition_is_not_enough() -> None:
    end = ended(traffic=traffic((20, 3000), (15, 2500)))
    (cell,) = analyse(record(run(0, echoed(10), parameters=WSS, end=end))).cells
    mean = cell.estimates["wire_bytes_forward"].mean
    assert (mean.value, mean.low, mean.high) == (300, None, None)
    assert mean.reason == "an interval of a mean needs 3 repetitions, there is 1: 2 more"


def test_processor_time_has_a_mean_where_times_have_none() -> None:
    lossy = {"path": {"forward": {"loss": 0.3}, "reverse": {"loss": 0.3}}, **WSS}
    runs = [
        run(0, echoed(30), repetition=index, parameters=lossy, end=ended(cpu=processor_time(30, 60)))
        for index in range(2)
    ]
    found = analyse(record(*runs)).cells[0].estimates
    assert "without a finite variance" in found["rtt"].mean.reason
    assert (found["cpu_client"].mean.value, found["cpu_server"].mean.value) == (1, 2)


def test_costs_are_two_tables_and_rows_of_the_csv() -> None:
    result = two_repetitions()
    assert list(metric_tables(result)) == ["rtt"]
    (wire,) = wire_tables(result)
    assert wire.title == "Overhead per message"
    assert wire.headings == [
        "t", "n", "bytes to server", "to client", "overhead to server", "to client", "packets to server", "to client",
    ]  # fmt: skip
    assert [cell.split(" ")[0] for cell in wire.rows[0]] == [
        "wss",
        "2",
        "400.0",
        "300.0",
        "300.0",
        "210.0",
        "2.500",
        "2.000",
    ]
    (cpu,) = processor_tables(result)
    assert cpu.title == "CPU per message, µs"
    assert [cell.split(" ")[0] for cell in cpu.rows[0]] == ["wss", "2", "6.000", "3.000"]
    text = render(result, everything=True)
    assert "Overhead per message" in text
    assert "CPU per message, µs" in text
    rows = estimates_frame(result).filter(metric="cpu_client", statistic="mean")
    assert (rows["value"].to_list(), rows["unit"].to_list()) == ([6000], ["ns"])


def test_packets_dropped_are_counted_by_direction() -> None:
    def cell(index: int, forward: tuple[int, int], reverse: tuple[int, int]) -> Any:
        ways = {way: finished(packets=packets, lost=lost)["ledger"][way]
                for way, (packets, lost) in {"forward": forward, "reverse": reverse}.items()}  # fmt: skip
        return run(index, echoed(10), {"t": str(index)}, parameters=WSS, end=ended(ledger={**ways, "closed": True}))

    (table,) = drop_tables(analyse(record(cell(0, (40, 5), (20, 0)), cell(1, (1200, 0), (0, 0)))))
    assert table.headings == ["t", "to server", "share", "to client", "share"]
    assert table.rows == [
        ["0", "5 of 40", "12.5 % (no interval)", "0 of 20", "0 % (no interval)"],
        ["1", "0 of 1\u202f200", "0 % (no interval)", "0 of 0", "–"],
    ]
    rows = [["t 0", "12.5 % (no interval)", "0 % (no interval)"], ["t 1", "0 % (no interval)", "–"]]
    assert table.narrow.rows == rows
    copied = finished(packets=40)["ledger"]
    copied = copied | {"forward": copied["forward"] | {"duplicated": 2, "delivered": 42, "corrupted": 1}}
    result = analyse(record(run(0, echoed(10), parameters=WSS, end=ended(ledger=copied))))
    (table,) = drop_tables(result)
    assert table.title == "Packets dropped, duplicated and corrupted"
    assert table.headings[-2:] == ["duplicated", "corrupted"]
    assert table.rows[0][-2:] == ["2 / 0", "1 / 0"]
    (trust,) = trust_tables(result)
    assert "40 + 2 = 42 + 0 + 0 + 0 + 0" in trust.rows[0]
    assert trust.footnotes[0].startswith("Each direction: packets in + copies that the path made of them = delivered")
    repeated = [ended(ledger=finished(packets=40, lost=lost)["ledger"]) for lost in (3, 5, 4)]
    runs = [run(0, echoed(10), repetition=at, parameters=WSS, end=end) for at, end in enumerate(repeated)]
    loss = analyse(record(*runs)).cells[0].packet_loss["forward"]
    # Three repetitions that differ less than chance are worth 120 (1.96 / 4.3027)^2 packets.
    worth = 120 * (1.959964 / 4.302653) ** 2
    assert (loss.value, loss.n) == (0.1, 120)
    assert (loss.low, loss.high) == pytest.approx(clopper_pearson(0.1 * worth, worth), rel=1e-5)
    assert drop_tables(analyse(record(cell(0, (40, 0), (20, 0))))) == []
    assert drop_tables(analyse(record(run(0, None)))) == []


def test_marked_packets_have_a_table_where_there_are_any() -> None:
    ways = {way: {**finished(packets=40)["ledger"][way], "marked": marked}
            for way, marked in {"forward": 3, "reverse": 0}.items()}  # fmt: skip
    cells = [run(0, echoed(10), {"t": "0"}, parameters=WSS, end=ended(ledger={**ways, "closed": True})),
             run(1, echoed(10), {"t": "1"}, parameters=WSS)]  # fmt: skip
    (table,) = drop_tables(analyse(record(*cells)))
    assert table.title == "Packets marked"
    assert table.headings == ["t", "to server", "to client"]
    assert table.rows == [["0", "3 of 40", "0 of 40"], ["1", "0 of 10", "0 of 10"]]
    assert table.narrow.rows == [["t 0", "3 of 40", "0 of 40"], ["t 1", "0 of 10", "0 of 10"]]


def test_hops_of_a_path_with_several_have_a_table_of_what_they_dropped_and_marked() -> None:
    def hop(dropped: dict[str, int], marked: int = 0) -> dict[str, Any]:
        return {"dropped": {"loss": 0, "queue": 0, **dropped}, "marked": marked}

    hops = {"forward": [hop({}), hop({"queue": 2, "aqm": 1}, 3)], "reverse": [hop({"loss": 1}), hop({})]}
    ways = {way: {**finished(packets=40)["ledger"][way], "hops": hops[way]} for way in hops}
    ledger = {**ways, "closed": True}
    parameters = {**WSS, "path": {"hops": [{"name": "wifi"}, {"name": "dsl"}]}}
    runs = [run(0, echoed(10), {"t": "0"}, parameters=parameters, end=ended(ledger=ledger)),
            run(0, echoed(10), {"t": "0"}, repetition=1, parameters=parameters, end=ended(ledger=ledger))]  # fmt: skip
    (table,) = (table for table in drop_tables(analyse(record(*runs))) if table.title.endswith("by hop"))
    assert table.headings[-3:] == ["hop", "to server", "to client"]
    assert [row[-3:] for row in table.rows] == [["wifi", "–", "2 loss"], ["dsl", "4 queue, 2 aqm, 6 marked", "–"]]


CONNECT = {"workload": {"kind": "connect", "transport": "wss"}}


def connected(count: int = 30, *, security: int | None = 20) -> Any:
    return table(
        count,
        connection=list(range(count)),
        intended_ns=list(range(count)),
        sent_ns=[0] * count,
        received_ns=[60 * MS] * count,
        connect_ns=[(40 + (security or 0)) * MS + index for index in range(count)],
        transport_ns=[20 * MS] * count,
        security_ns=[None if security is None else security * MS] * count,
        upgrade_ns=[20 * MS] * count,
        outcome=["ok"] * count,
    )


def test_a_connection_by_its_phases() -> None:
    (cell,) = analyse(record(run(0, connected(), parameters=CONNECT))).cells
    assert set(cell.estimates) - COSTS == {"connect", "handshake_transport", "handshake_security", "handshake_upgrade"}
    assert cell.estimates["handshake_security"].median.value == 20 * MS
    (plain,) = analyse(record(run(0, connected(security=None), parameters=CONNECT))).cells
    assert "handshake_security" not in plain.estimates


def test_what_a_run_is_about_is_shown_though_processors_were_counted_too() -> None:
    end = ended(cpu=processor_time(30, 60))
    result = analyse(record(run(0, connected(), parameters=CONNECT, end=end)))
    assert "TLS or QUIC handshake, ms" in render(result, everything=True)
    assert metric_tables(result)["handshake_security"].shown is Shown.EVERYWHERE
    echoed_once = run(0, connected(), parameters={"workload": {"kind": "echo", "transport": "wss"}}, end=end)
    assert metric_tables(analyse(record(echoed_once)))["handshake_security"].shown is Shown.FOLDED


def test_pages_of_one_repetition_have_a_mean_and_no_interval() -> None:
    samples = table(
        3, connection=[0] * 3, intended_ns=[0, 1, 2], sent_ns=[0] * 3, received_ns=[800 * MS, 900 * MS, 1000 * MS],
        outcome=["ok"] * 3,
    )  # fmt: skip
    parameters = {"workload": {"kind": "page", "transport": "http3"}}
    (cell,) = analyse(record(run(0, samples, parameters=parameters))).cells
    load = cell.estimates["page_load"]
    assert (load.mean.value, load.mean.method) == (900 * MS, "none")


def test_profiles_are_added_up() -> None:
    client = {"samples": 5, "cpu_ns": 50, "parts": {"masking": 3, "system calls": 2}}
    server = {"samples": 2, "cpu_ns": 20, "parts": {"masking": 2, "system calls": 0}}
    ends = [ended(profile={"interval_ns": 10, "client": client, "server": server}) for _ in range(2)]
    runs = [run(0, echoed(10), repetition=index, parameters=WSS, end=end) for index, end in enumerate(ends)]
    (cell,) = analyse(record(*runs)).cells
    assert (cell.profile.client.samples, cell.profile.client.cpu_ns) == (10, 100)
    assert cell.profile.client.parts == {"masking": 6, "system calls": 4}
    assert cell.profile.server.parts == {"masking": 4, "system calls": 0}
    (plain,) = analyse(record(run(0, echoed(10), parameters=WSS, end=ended(profile=None)))).cells
    assert plain.profile is None
