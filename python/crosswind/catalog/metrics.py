"""A result's vocabulary: one row for each unit, metric and statistic.

A row is all there is to a metric. Analysis, tables, charts, exports, the study format and the table in docs/result.md
read it, so adding a metric is adding its row. Importing this module imports nothing heavy: a formula is text.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from crosswind.catalog.spent import GROUPS, WHOLE
from crosswind.text.quantities import COUNT, RATE, RPM, SHARE, SIZE, TIME, Unit


class Per(Enum):
    """The subject for a metric's values and formula."""

    EXCHANGE = "exchange"
    """One for each successful exchange. The formula is over one row in the samples table."""
    REPETITION = "repetition"
    """One for each repetition. The formula sums up its samples table."""
    COUNTED = "counted"
    """One for each repetition. The formula is over the repetition's counters."""
    MESSAGE = "message"
    """One for each repetition, a mean over its messages. The formula is over the repetition's counters."""
    REPORTED = "reported"
    """One for each time in a list printed by a repetition's client program. The formula is over one of them."""


class MetricPlace(Enum):
    """Where reports show a metric."""

    MAIN = "main"
    """In charts and its own table."""
    DETAIL = "detail"
    """In its own table, folded away on the page. A terminal shows it only at a study's request."""
    WIRE = "wire"
    """In the table for bytes and packets."""
    PROCESSOR = "processor"
    """In the table for processor time."""
    SPENT = "spent"
    """In the time breakdown's chart and table."""
    PROGRAMS = "programs"
    """In the client programs' table."""


class MetricScale(Enum):
    """How charts draw a metric's values."""

    AUTOMATIC = "automatic"
    """Logarithmic where the values are all above 0 and far apart, else linear."""
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"


_OF_RECOVERY = ("extra_ns", "blocked")
"""Columns comparing messages with the usual ones in all repetitions, and with other streams' losses."""
_OF_PACKETS = (
    "wire_ns", "queueing_p50_forward_ns", "queueing_p50_reverse_ns", "queueing_p99_forward_ns",
    "queueing_p99_reverse_ns", "utilisation_forward", "utilisation_reverse",
)  # fmt: skip
"""Columns filled by an emulated path only."""

_NEAR_ZERO = 16
"""How many times a time the largest one is, where a linear axis has it almost at 0."""


def are_far_apart(values: Iterable[float], times: float, unit: Unit) -> bool:
    """Whether a linear axis would hide most values: the largest is more than `times` the smallest.

    For times, most must be small: on a path without delay a few are almost 0, and belong there.
    """
    known = sorted(values)
    if not known or known[0] <= 0 or known[-1] <= times * known[0]:
        return False
    return unit is not TIME or known[-1] > _NEAR_ZERO * known[len(known) // 2]


@dataclass(frozen=True)
class Metric:
    """A cell's metric.

    Attributes:
        name: key in results and exports. title: its heading. unit: its values'. help: its scope, in one sentence.
        formula: a value as an SQL expression over columns (Per), or null. Columns of the samples table are those in
            docs/cell-protocol.md and those added by `crosswind.analysis.samples`; a repetition's counters are in
            `crosswind.analysis.counters`.
        per: the values' subject. workloads: the kinds of workload with it, each with its required settings (None: not
            set; a tuple: one of them); None for all kinds. compared_in: kinds of workload with comparisons by it.
        within: factors without comparisons by it: it begins or ends elsewhere at their other levels.
        is_share: whether each value is 0 or 1: the mean is then a share, and quantiles mean nothing.
        is_whole: whether it lasts until an exchange's end: a timed-out one's is then longer than the timeout.
        is_difference: whether it is a difference, possibly below 0.
        of_failed: whether only failed exchanges have it.
        more_is_better: whether larger values are better.
        part_of: the metric with this phase. place: in reports. column: its heading in a shared table. axis: in charts.
        absence: why a cell with successful exchanges has no value.
    """

    name: str
    title: str
    unit: Unit
    help: str
    formula: str
    per: Per = Per.EXCHANGE
    workloads: Mapping[str, Mapping[str, object]] | None = None
    compared_in: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    is_share: bool = False
    is_whole: bool = False
    is_difference: bool = False
    of_failed: bool = False
    more_is_better: bool = False
    part_of: str | None = None
    place: MetricPlace = MetricPlace.MAIN
    column: str = ""
    axis: MetricScale = MetricScale.AUTOMATIC
    absence: str = "it has no value"

    @property
    def title_in_sentence(self) -> str:
        """Its title without a capital, unless it begins with an abbreviation."""
        return self.title if self.title[1:2].isupper() else self.title[:1].lower() + self.title[1:]

    @property
    def is_positive(self) -> bool:
        """Whether its values are above 0 by nature: no share, no difference between times, and no part."""
        return self.unit is not SHARE and not self.is_difference and not self.is_part

    @property
    def is_part(self) -> bool:
        """Whether it is a part of exchanges' time, possibly absent from most."""
        return self.place is MetricPlace.SPENT and self.name != WHOLE

    @property
    def has_quantiles(self) -> bool:
        """Whether a repetition has its own quantiles: it has many values, and not only 0 and 1.

        In a time breakdown only means add up.
        """
        return self.per in (Per.EXCHANGE, Per.REPORTED) and not self.is_share and self.place is not MetricPlace.SPENT

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of its statistics in each repetition: for a single value there only the mean."""
        if self.is_share:
            return (SHARE_STATISTIC,)
        return tuple(STATISTICS) if self.has_quantiles else ("mean",)

    @property
    def needs_undisturbed(self) -> bool:
        """Whether it compares exchanges with an undelayed one."""
        return "undisturbed_ns" in self.formula

    @property
    def needs_others(self) -> bool:
        """Whether a value depends on other repetitions or cells."""
        return self.needs_undisturbed or self._is_about(_OF_RECOVERY)

    @property
    def needs_packets(self) -> bool:
        """Whether it needs an emulated path's packet counts or records."""
        in_tables = self.place in (MetricPlace.WIRE, MetricPlace.SPENT)
        return in_tables or self._is_about((*_OF_RECOVERY, *_OF_PACKETS))

    def _is_about(self, columns: Iterable[str]) -> bool:
        return not set(columns).isdisjoint(re.findall(r"\w+", self.formula))

    @property
    def is_wait(self) -> bool:
        """Whether it is a time including waits for retransmissions."""
        return self.unit is TIME and self.per not in (Per.MESSAGE, Per.COUNTED)

    @property
    def is_counted_of_packets(self) -> bool:
        """Whether it is one number from a repetition's packets, not exchanges or processors."""
        is_of_flows = self.per is Per.COUNTED and self.unit is not RATE and self.place is not MetricPlace.PROCESSOR
        return is_of_flows or self.place is MetricPlace.WIRE

    @property
    def is_of_transfers(self) -> bool:
        """Whether transfers alone have it."""
        return self.workloads is not None and set(self.workloads) == {"transfer"}

    @property
    def is_of_connecting(self) -> bool:
        """Whether it ends with the handshakes, before an exchange's data."""
        return "connect" in (self.name, self.part_of)

    @property
    def of_workloads(self) -> str:
        """Its workload kinds, in words, each with its required settings."""
        if self.workloads is None:
            return "all with samples"
        return ", ".join(f"{kind}{_in_brackets(needed)}" for kind, needed in self.workloads.items())

    def applies(self, workload: Mapping[str, object]) -> bool:
        """Whether a workload, given by its settings, has this metric."""
        if self.workloads is None:
            return True
        needed = self.workloads.get(str(workload.get("kind")))
        return needed is not None and all(_is_one_of(workload.get(key), wanted) for key, wanted in needed.items())


def _in_brackets(needed: Mapping[str, object]) -> str:
    texts = [f"no {key}" if wanted is None else f"{key} {_one_of(wanted)}" for key, wanted in needed.items()]
    return f" ({', '.join(texts)})" if texts else ""


def _one_of(wanted: object) -> str:
    return " or ".join(value for value in wanted if value) if isinstance(wanted, tuple) else str(wanted)


def _is_one_of(value: object, wanted: object) -> bool:
    return value in wanted if isinstance(wanted, tuple) else value == wanted


_NEW_CONNECTIONS: Mapping[str, Mapping[str, object]] = {"echo": {"connection": "new"}}
_ECHO_OR_MULTIPLEX: Mapping[str, Mapping[str, object]] = {"echo": {}, "multiplex": {}}
_COMES_BACK: Mapping[str, Mapping[str, object]] = {"echo": {"direction": ("echo", None)}, "multiplex": {}}
_OF_A_SIZE = {"duration_ns": None, "duration": None}
"""A study's cell says `duration`, a run's `duration_ns`."""
_TRANSFER_BY_OWN_ENDS: Mapping[str, Mapping[str, object]] = {"transfer": {**_OF_A_SIZE, "client": None}}
"""Peers need not say how long connecting took; iperf3 does not."""
_ROUND_TRIP = "received_ns - sent_ns"

# A retransmitted message takes a whole round trip more at least; QUIC's pacing took up to 0.75 of one. Punctual cells
# stay below 2 ms: the default budget lets a packet leave the path 1 ms late, and a round trip has two packets.
_DELAYED = f"{_ROUND_TRIP} > 1.9 * undisturbed_ns AND {_ROUND_TRIP} > undisturbed_ns + 2e6"

_ALL_METRICS = (
    Metric("total", "Time with connection set-up", TIME,
           "From asking for a connection to having the reply to the first message on it, or a transfer's last byte. "
           "Over UDP, which sets none up, the round trip alone.",
           f"setup_ns + ({_ROUND_TRIP})", workloads={"echo": {"connection": "new"}, **_TRANSFER_BY_OWN_ENDS},
           is_whole=True, compared_in=("echo", "transfer")),
    Metric("rtt", "Round-trip time", TIME, "From sending a message to having its whole reply.",
           _ROUND_TRIP, workloads=_COMES_BACK, is_whole=True, compared_in=("echo", "multiplex")),
    Metric("exchange_time", "Exchange time", TIME,
           "From beginning to send an upload, or the request for a download, to having its whole answer.",
           _ROUND_TRIP, workloads={"echo": {"direction": ("upload", "download")}}, is_whole=True,
           compared_in=("echo",)),
    Metric("response", "Response time", TIME,
           "From the moment a message was due to having its whole reply: waiting behind slower messages counts.",
           "received_ns - intended_ns", workloads={"echo": {"mode": "open"}, "multiplex": {}},
           is_whole=True, compared_in=("echo", "multiplex")),
    Metric("delayed_share", "Share of exchanges delayed", SHARE,
           "Of the exchanges that were answered, those that took longer than an undisturbed one by nine tenths of it "
           "and by 2 ms. That is the shortest of all cells that differ in loss alone, if one has none; else what the "
           "path takes, in virtual time; else the shortest, of messages of one packet.",
           _DELAYED, workloads={"echo": {"mode": "closed"}}, is_share=True, place=MetricPlace.DETAIL),
    Metric("completion", "Completion time", TIME,
           "From sending the first message to having the last reply, in repetitions that lost none.",
           "CASE WHEN MIN(outcome) = 'ok' AND MAX(outcome) = 'ok' THEN MAX(received_ns) - MIN(sent_ns) END",
           per=Per.REPETITION, workloads={"multiplex": {}}, compared_in=("multiplex",)),
    Metric("head_of_line", "Head-of-line blocking", TIME,
           "Round trip beyond the usual one, of messages that lost no packet while another stream of their connection "
           "recovered from a loss.",
           "extra_ns", workloads={"multiplex": {}}, is_difference=True, compared_in=("multiplex",),
           axis=MetricScale.LINEAR),
    Metric("blocked_share", "Share of messages blocked", SHARE,
           "Of the messages that lost no packet, those that were in flight while another stream recovered from a loss, "
           "and slower than messages at other times usually are (Tukey's fence).",
           "AVG(blocked)", per=Per.REPETITION, workloads={"multiplex": {}}),
    Metric("page_load", "Page load time", TIME, "From asking for the first connection to having the last object.",
           _ROUND_TRIP, workloads={"page": {}}, is_whole=True, compared_in=("page",)),
    Metric("connect", "Connection set-up", TIME, "From asking for a connection to having it.",
           "connect_ns", compared_in=("connect",), place=MetricPlace.DETAIL),
    Metric("handshake_transport", "TCP handshake", TIME, "From the first SYN to an open TCP connection.",
           "transport_ns", part_of="connect", place=MetricPlace.DETAIL),
    Metric("handshake_security", "TLS or QUIC handshake", TIME, "From its first byte to agreed keys.",
           "security_ns", part_of="connect", place=MetricPlace.DETAIL),
    Metric("handshake_upgrade", "Upgrade", TIME,
           "From an open connection to WebSocket, WebTransport or Socket.IO on it, with the polling before it.",
           "upgrade_ns", part_of="connect", place=MetricPlace.DETAIL),
    Metric("request", "Request, one way", TIME, "From the client to the server, by one clock.",
           "request_ns", workloads=_ECHO_OR_MULTIPLEX, place=MetricPlace.DETAIL),
    Metric("reply", "Reply, one way", TIME, "From the server to the client, by one clock.",
           "reply_ns", workloads=_ECHO_OR_MULTIPLEX, place=MetricPlace.DETAIL),
    Metric("goodput", "Goodput", RATE, "Bits that the application received over the time it took.",
           f"8e9 * received_bytes / ({_ROUND_TRIP})", workloads={"transfer": {}}, compared_in=("transfer",),
           more_is_better=True),
    Metric("transfer_time", "Transfer time on the wire", TIME, "From the first to the last packet with payload.",
           "wire_ns", workloads={"transfer": _OF_A_SIZE}, is_whole=True, compared_in=("transfer",),
           within=("workload.transport",)),
    Metric("failure_time", "Time until a failure is known", TIME,
           "From sending to being told that it failed, of exchanges that failed once they were sent.",
           "failed_ns - sent_ns", of_failed=True, place=MetricPlace.DETAIL),
    Metric("queueing_forward", "Median queueing delay to the server", TIME,
           "Median time that packets to the server waited in the queues of the path.",
           "queueing_p50_forward_ns", per=Per.COUNTED, place=MetricPlace.DETAIL),
    Metric("queueing_reverse", "Median queueing delay to the client", TIME,
           "Median time that packets to the client waited in the queues of the path.",
           "queueing_p50_reverse_ns", per=Per.COUNTED, place=MetricPlace.DETAIL),
    Metric("queueing_p99_forward", "99th percentile of queueing delay to the server", TIME,
           "99th percentile of the time that packets to the server waited in the queues of the path.",
           "queueing_p99_forward_ns", per=Per.COUNTED, place=MetricPlace.DETAIL),
    Metric("queueing_p99_reverse", "99th percentile of queueing delay to the client", TIME,
           "99th percentile of the time that packets to the client waited in the queues of the path.",
           "queueing_p99_reverse_ns", per=Per.COUNTED, place=MetricPlace.DETAIL),
    Metric("rate", "Rate of the workload", RATE,
           "IP bits that the path delivered of the workload, while all flows ran.",
           "8e9 * flow_bytes / flows_ns", per=Per.COUNTED, place=MetricPlace.DETAIL, more_is_better=True),
    Metric("rate_beside", "Rate of the flows beside it", RATE,
           "IP bits that the path delivered of the flows beside the workload, all together and each in the direction "
           "in which it sends more, while all flows ran.",
           "8e9 * beside_bytes / flows_ns", per=Per.COUNTED, place=MetricPlace.DETAIL, more_is_better=True),
    Metric("share_of_path", "Share of the workload", SHARE,
           "Of the bytes that the path delivered of all transfers that go its way, those of the workload, while all "
           "flows ran.",
           "flow_bytes / bulk_bytes", per=Per.COUNTED, workloads={"transfer": {}}, compared_in=("transfer",),
           more_is_better=True),
    Metric("fairness", "Fairness", SHARE,
           "Jain's index of the rates of all transfers that go one way, while all flows ran: 1 where they are equal, "
           "1/n where one of n has all.",
           "fairness", per=Per.COUNTED, place=MetricPlace.DETAIL, more_is_better=True),
    Metric("fair_after", "Time to a fair share", TIME,
           "From the last beginning of a flow until Jain's index of the rates over a second is 0.9; of repetitions in "
           "which it is so at some time.",
           "fair_after_ns", per=Per.COUNTED, place=MetricPlace.DETAIL),
    Metric("responsiveness", "Responsiveness", RPM,
           "Round trips a minute under load (draft-ietf-ippm-responsiveness-09): the mean of its two halves, "
           "`responsiveness_foreign` and `responsiveness_loaded`. Where only one was measured there is none.",
           "responsiveness", per=Per.COUNTED, workloads=_NEW_CONNECTIONS, compared_in=("echo",),
           place=MetricPlace.DETAIL, more_is_better=True),
    Metric("responsiveness_foreign", "Responsiveness on new connections", RPM,
           "Half of the draft's responsiveness. Round trips a minute beside other flows, of exchanges that each have a "
           "connection of their own: a minute over the mean of TCP handshake, TLS handshake and message, of each the "
           "mean without the longest 5 %.",
           "responsiveness_foreign", per=Per.COUNTED, workloads=_NEW_CONNECTIONS, compared_in=("echo",),
           place=MetricPlace.DETAIL, more_is_better=True),
    Metric("responsiveness_loaded", "Responsiveness on the connections that carry the load", RPM,
           "Half of the draft's responsiveness. A minute over the mean time of requests for one byte that transfers "
           "beside the workload send on their own connections (`probe_rate`), without the longest 5 %.",
           "responsiveness_loaded", per=Per.COUNTED, place=MetricPlace.DETAIL, more_is_better=True),
    Metric("utilisation_forward", "Utilisation of the link to the server", SHARE,
           "Share of the capacity of the link to the server that packets of the hosts used while all flows ran; "
           "background traffic is not among them.",
           "utilisation_forward", per=Per.COUNTED, place=MetricPlace.DETAIL, more_is_better=True),
    Metric("utilisation_reverse", "Utilisation of the link to the client", SHARE,
           "Share of the capacity of the link to the client that packets of the hosts used while all flows ran; "
           "background traffic is not among them.",
           "utilisation_reverse", per=Per.COUNTED, place=MetricPlace.DETAIL, more_is_better=True),
    Metric("wire_bytes_forward", "On the wire to the server, a message", SIZE,
           "IP bytes that the client sent for each message.",
           "bytes_forward / messages", per=Per.MESSAGE, place=MetricPlace.WIRE, column="bytes to server"),
    Metric("wire_bytes_reverse", "On the wire to the client, a message", SIZE,
           "IP bytes that the server sent for each message.",
           "bytes_reverse / messages", per=Per.MESSAGE, place=MetricPlace.WIRE, column="to client"),
    Metric("overhead_forward", "Overhead to the server, a message", SIZE,
           "IP bytes that the client sent for each message beyond its payload.",
           "(bytes_forward - payload_forward) / messages", per=Per.MESSAGE, place=MetricPlace.WIRE,
           column="overhead to server"),
    Metric("overhead_reverse", "Overhead to the client, a message", SIZE,
           "IP bytes that the server sent for each message beyond its payload.",
           "(bytes_reverse - payload_reverse) / messages", per=Per.MESSAGE, place=MetricPlace.WIRE, column="to client"),
    Metric("wire_packets_forward", "Packets to the server, a message", COUNT,
           "Packets that the client sent for each message.",
           "packets_forward / messages", per=Per.MESSAGE, place=MetricPlace.WIRE, column="packets to server"),
    Metric("wire_packets_reverse", "Packets to the client, a message", COUNT,
           "Packets that the server sent for each message.",
           "packets_reverse / messages", per=Per.MESSAGE, place=MetricPlace.WIRE, column="to client"),
    Metric("cpu_client", "Client's processor time, a message", TIME,
           "Time that the client's threads ran for each message.",
           "cpu_client_ns / messages", per=Per.MESSAGE, place=MetricPlace.PROCESSOR, column="client"),
    Metric("cpu_server", "Server's processor time, a message", TIME,
           "Time that the server's threads ran for each message.",
           "cpu_server_ns / messages", per=Per.MESSAGE, place=MetricPlace.PROCESSOR, column="server"),
    Metric("program_time", "Time of the client program", TIME,
           "From starting the client program to its end, where it ended with exit status 0.",
           _ROUND_TRIP, workloads={"program": {}}, is_whole=True, compared_in=("program",)),
    Metric("client_time", "Client's own exchange time", TIME,
           "Each of the times that the client program printed.",
           "1e9 * time_s", per=Per.REPORTED, workloads={"program": {}}, compared_in=("program",)),
    Metric("loss_cost", "Time that 0.1 % of loss adds", TIME,
           "What losing each packet with a probability of 0.1 % adds to an exchange and the connection that it opens, "
           "to first order: a thousandth of what the packets cost, each lost alone. Runs with --each-loss have it.",
           "0.001 * loss_slope_ns", per=Per.COUNTED, place=MetricPlace.DETAIL,
           compared_in=("echo", "transfer", "connect", "multiplex", "page", "program"),
           absence="an exchange fails without one of the packets, or not all of them were lost in turn"),
    Metric("send_time", "Sending time of a message", TIME,
           "How long the client program says that sending a message took.",
           "program_ns / program_messages", per=Per.MESSAGE, workloads={"program": {}}, place=MetricPlace.PROGRAMS,
           compared_in=("program",)),
)  # fmt: skip

_SPENT = (
    Metric(WHOLE, "Whole time", TIME,
           "From asking for the connection that an exchange opens, or else from sending, to its end: the sum of what "
           "it was spent on.",
           "whole_ns", place=MetricPlace.SPENT),
    *(
        Metric(group.metric, f"Spent on {group.noun}", TIME, group.help,
               " + ".join(f"{part}_ns" for part in group.parts), place=MetricPlace.SPENT)
        for group in GROUPS
    ),
)  # fmt: skip

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*_ALL_METRICS, *_SPENT)}
"""Every metric by name, in report order."""

LOST = Metric(
    "lost", "Exchanges that did not succeed", SHARE, "Of all exchanges, those that timed out or failed.", "",
    is_share=True,
)  # fmt: skip
"""For every workload with exchanges: without it, a run losing its slow exchanges looks fast."""


def metric_named(name: str) -> Metric | None:
    """A metric by name, LOST too; None where there is none."""
    return LOST if name == LOST.name else METRICS.get(name)


@dataclass(frozen=True)
class Statistic:
    """A statistic, estimated for every metric.

    Attributes:
        name: key in results and exports. help: its meaning. quantile: None for a mean. method: its interval's usual
            one; every estimate names its own. is_trimmed: whether it is the trimmed mean. least: fewest values: fewer
            have none beyond it, and their largest is no estimate.
    """

    name: str
    help: str
    quantile: float | None
    method: str
    is_trimmed: bool = False
    least: int = 1

    @property
    def heading(self) -> str:
        """Its column's heading."""
        return self.name.replace("_", " ")

    def shortage(self, n: int) -> str:
        """Why so many values are too few; empty for enough."""
        return "" if n >= self.least else f"{self.heading} needs {self.least} values"

    @property
    def is_mean(self) -> bool:
        """Whether it is the arithmetic mean; for a share, the share."""
        return self.quantile is None and not self.is_trimmed


_STUDENT = "Student's t over repetitions"
_WOODRUFF = "Woodruff's, by Student's t over repetitions"

_ALL_STATISTICS = (
    Statistic("median", "half of the values are below it", 0.5, _WOODRUFF),
    Statistic("mean", "the arithmetic mean, of a share the share", None, _STUDENT),
    Statistic("trimmed_mean", "the mean of the middle 60 % of the values", None, _STUDENT, is_trimmed=True),
    Statistic("p95", "95 % of the values are below it", 0.95, _WOODRUFF),
    Statistic("p99", "99 % of the values are below it", 0.99, _WOODRUFF),
    Statistic("p99.9", "99.9 % of the values are below it", 0.999, _WOODRUFF, least=1000),
)

SHARE_STATISTIC = "share"
"""The mean's other name for a metric with values 0 or 1."""

STATISTICS: dict[str, Statistic] = {statistic.name: statistic for statistic in _ALL_STATISTICS}
"""Every statistic by name, in report order."""


def metrics_at(place: MetricPlace) -> list[Metric]:
    """The metrics shown at a place in reports, in order."""
    return [metric for metric in METRICS.values() if metric.place is place]


def phases_of(name: str) -> list[Metric]:
    """A metric's phases, in order."""
    return [metric for metric in METRICS.values() if metric.part_of == name]
