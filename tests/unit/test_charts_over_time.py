"""The chart of exchanges over time: what it draws of a path that changes, and that others have none."""

from typing import Any

from crosswind.analysis.cells import collect
from crosswind.cell.record import RunRecord
from crosswind.report.charts.over_time import ChangePeriod, change_periods, exchanges_of, thinned
from records import MS, echoes, path, record, runs

S = 1000 * MS
OUTAGE = {"name": "outage", "start_ns": 2 * S, "for_ns": S, "forward": {"loss": 1.0}, "reverse": {"loss": 1.0}}


def changing(*changes: dict[str, Any], rtts_ns: list[int | None]) -> RunRecord:
    """Two transports and two repetitions each, one exchange a second, the first 30 ms after the first packet."""
    made = []
    for index, transport in enumerate(("tcp", "quic")):
        parameters = {"path": path() | {"changes": list(changes)}, "workload": {"kind": "echo", "transport": transport}}
        samples = [echoes(rtts_ns, connect_ns=30 * MS)] * 2
        made += runs(index, samples, {"workload.transport": transport}, parameters=parameters)
    return record(*made)


def test_periods_are_certain_or_possible_and_end_with_the_chart() -> None:
    assert change_periods([OUTAGE], 10 * S) == [ChangePeriod("outage", 2 * S, 3 * S, certain=True)]
    assert change_periods([OUTAGE], 2 * S) == []
    assert change_periods([{"start_ns": 2 * S}], 5 * S) == [ChangePeriod("1", 2 * S, 5 * S, certain=True)]
    assert change_periods([OUTAGE | {"every_ns": 4 * S}], 10.5 * S) == [
        ChangePeriod("outage", 2 * S, 3 * S, certain=True),
        ChangePeriod("outage", 6 * S, 7 * S, certain=True),
        ChangePeriod("outage", 10 * S, 10.5 * S, certain=True),
    ]
    # It begins from 2 to 2.4 s, and so holds from 2.4 to 3 s in every repetition.
    assert change_periods([OUTAGE | {"spread_ns": 0.4 * S}], 10 * S) == [
        ChangePeriod("outage", 2 * S, 3.4 * S, certain=False),
        ChangePeriod("outage", 2.4 * S, 3 * S, certain=True),
    ]


def test_of_many_exchanges_the_slowest_and_the_lost_are_drawn() -> None:
    cell, _ = collect(changing(OUTAGE, rtts_ns=[*(MS + at for at in range(5000)), None, 9 * S]))
    exchanges = exchanges_of(cell, "tcp")
    kept = thinned(exchanges, 100)
    assert (len(exchanges), len(kept)) == (2 * 5002, 100 + 2)
    times = sorted(each.time for each in exchanges if each.time is not None)
    assert max(each.time for each in kept if each.time is not None) == times[-1]
    assert sum(each.time is None for each in kept) == 2
    slow = times[int(0.9 * len(times))]
    assert sum(each.time is not None and each.time >= slow for each in kept) >= 50
