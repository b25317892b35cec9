"""A run's conditions, in a few lines of words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from crosswind.analysis.result import (
    ChangeConditions,
    Conditions,
    FlowConditions,
    NetworkConditions,
    PathConditions,
    ServerClock,
    SettingValues,
)
from crosswind.report.text.format import count_of, quantity, without_middle

MOST_VALUES = 8
"""Maximum values of a setting named one by one; beyond, the first, the last, and the count."""
LONGEST_VALUE = 61
"""Maximum characters of a value shown whole."""


@dataclass(frozen=True)
class Line:
    """One line: its subject and its text."""

    about: str
    text: str


def condition_lines(conditions: Conditions) -> list[Line]:
    """Path, workload, hosts, clock, and extent, a line each; for the path one for each different direction.

    A real network has several lines in place of the path.
    """
    network = [] if conditions.network is None else network_lines(conditions.network)
    return [
        *network,
        *(Line(_about(way), _way_text(way)) for way in conditions.path),
        *(Line(f"Change, {change.name}", scheduled_change_text(change)) for change in conditions.changes),
        Line("Workload", _workload_text(conditions.workload)),
        *(Line(f"Beside, {flow.name}", _flow_text(flow)) for flow in conditions.flows),
        *([Line("Ends", settings_text(conditions.ends))] if conditions.ends else []),
        Line("Hosts", f"{settings_text(conditions.hosts)}; else the kernel's defaults"),
        Line("Clock", clock_text(conditions)),
        Line("Extent", extent_text(conditions)),
    ]


def _about(way: PathConditions) -> str:
    return ", ".join(filter(None, ["Path", way.hop, "" if way.direction == "each way" else way.direction]))


def _way_text(way: PathConditions) -> str:
    return f"{path_text(way.settings)}, each way" if way.direction == "each way" else path_text(way.settings)


def scheduled_change_text(change: ChangeConditions) -> str:
    """A change's effect and time: "start 100ms, for 50ms: loss 100%, each way"."""
    when = settings_text(change.when) or "from the start"
    return f"{when}: {settings_text(change.settings)}, {change.direction}" if change.settings else when


def network_lines(network: NetworkConditions) -> list[Line]:
    """A real network: its ends, their versions, their clocks, and the unknowns."""
    there = f"crosswind-cell {_listed(network.server_versions)} on Linux {_listed(network.server_kernels)}"
    return [
        Line("Network", f"the real network between this machine and {network.server}; nothing is emulated"),
        Line("Round trip", f"{round_trip_text(network)}, the shortest of each repetition"),
        Line("Server", f"{there}; the client is crosswind-cell {_listed(network.client_versions)}"),
        Line("Clocks", clocks_text(network.clock)),
        Line("Drops", "inferred from TCP's retransmissions; unknown for UDP and QUIC"),
        *([Line("Captures", "client.pcapng and server.pcapng of each repetition")] if network.captured else []),
    ]


def round_trip_text(network: NetworkConditions) -> str:
    """The least and the most of the repetitions' shortest round trips: "20 ms to 21 ms"."""
    least, most = (quantity(trip, "ns") for trip in network.round_trip_ns)
    return least if least == most else f"{least} to {most}"


def clocks_text(clock: ServerClock) -> str:
    """Whether delays of one direction are shown, and how the server's clock stands to the client's."""
    if clock.method == "same kernel":
        apart = "both ends share a clock"
    else:
        ahead = "ahead" if clock.offset_ns >= 0 else "behind"
        known = f"± {quantity(clock.uncertainty_ns, 'ns')}"
        apart = f"the server's is {quantity(abs(clock.offset_ns), 'ns')} {ahead} {known}"
    if clock.one_way == clock.repetitions:
        return f"one-way delays are shown: {apart}"
    if clock.one_way:
        return f"one-way delays are shown of {clock.one_way} of {clock.repetitions} repetitions: {apart}"
    return f"one-way delays are not shown: {apart}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) or "?"


def _workload_text(settings: Sequence[SettingValues]) -> str:
    kind, *others = settings
    return ", ".join(filter(None, (values_text(kind), settings_text(others))))


def _flow_text(flow: FlowConditions) -> str:
    return ", ".join(filter(None, (_workload_text(flow.workload), settings_text(flow.settings))))


def path_text(settings: Sequence[SettingValues]) -> str:
    """One direction in words."""
    return settings_text(settings) if settings else "no loss, no delay, unlimited rate"


def settings_text(settings: Sequence[SettingValues]) -> str:
    """Settings with their values: "delay 10ms, loss 0%, 5% or 15%"."""
    return ", ".join(f"{setting.name} {values_text(setting)}" for setting in settings)


def values_text(setting: SettingValues) -> str:
    """One setting's values; of many, the first and the last."""
    values = [without_middle(value, LONGEST_VALUE) for value in setting.values]
    if len(values) > MOST_VALUES:
        return f"{values[0]} … {values[-1]} ({len(values)} values)"
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


def clock_text(conditions: Conditions) -> str:
    """The clocks, and the hosts' kernels."""
    names = {"real": "the machine's clock", "virtual": "virtual time"}
    kernels = f"Linux {' and '.join(conditions.kernels)}" if conditions.kernels else ""
    return ", ".join(filter(None, (" and ".join(names[clock] for clock in conditions.clocks), kernels)))


def extent_text(conditions: Conditions) -> str:
    """Each cell's repetitions, the time, and the machine."""
    fewest, most = conditions.repetitions
    times = count_of(most, "repetition") if fewest == most else f"{fewest} to {most} repetitions"
    return ", ".join(filter(None, (f"{times} of each cell", _date(conditions.started), conditions.machine)))


def _date(started: str | None) -> str | None:
    """When a run started, to the minute, in UTC."""
    if started is None:
        return None
    try:
        return datetime.fromisoformat(started).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return started
