"""Each repetition's counts: messages, bytes and packets on the wire, processor time, a program's report.

A message is one row in the samples table: a connection, a transfer or a page in their workloads. On the wire are all IP
packets from hosts to their path after an echo's kept connection, or a multiplex's, was open: also retransmissions,
acknowledgements and connections' ends. New or several connections' beginnings count as well.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl

from crosswind.analysis.client_reports import report_of
from crosswind.analysis.disturbed import disturbances, packets_of, slope_ns
from crosswind.analysis.flow_counts import flow_counts
from crosswind.analysis.result import CpuProfile
from crosswind.cell.record import CellRun
from crosswind.cell.result import Finished, HostCpuProfile

_COLUMNS = (
    "messages",
    "bytes_forward", "bytes_reverse",
    "packets_forward", "packets_reverse",
    "payload_forward", "payload_reverse",
    "cpu_client_ns", "cpu_server_ns",
    "program_ns", "program_messages",
    "queueing_p50_forward_ns", "queueing_p50_reverse_ns",
    "queueing_p99_forward_ns", "queueing_p99_reverse_ns",
    "flow_bytes", "beside_bytes", "bulk_bytes", "flows_ns", "fairness", "fair_after_ns",
    "responsiveness", "responsiveness_foreign", "responsiveness_loaded", "utilisation_forward", "utilisation_reverse",
    "loss_slope_ns",
)  # fmt: skip


def counters_of(runs: Sequence[CellRun], disturbed: Sequence[CellRun] = ()) -> pl.DataFrame:
    """A row for each repetition, in the order given; null is uncounted. Args: disturbed: others, by design.

    Columns: sent `messages` (null for none), `bytes_*` and `packets_*` on the wire and `payload_*` bytes in each
    direction, both hosts' processor time, a client program's time and messages, and packets' waits in queues. With
    flows beside the workload: bytes delivered while all ran for the workload, for all beside it and for bulk flows;
    that time; and further columns from `flow_counts`. `loss_slope_ns` is that of `slope_ns`.
    """
    rows = [_row(run) | (_slope(run, disturbed) if disturbed else {}) for run in runs]
    return pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.Float64))


def messages_of(run: CellRun) -> int:
    """A repetition's sent messages."""
    return run.samples.height - run.samples["sent_ns"].null_count()


def _slope(run: CellRun, disturbed: Sequence[CellRun]) -> dict[str, float | None]:
    """The slope, if every packet was lost in turn; a sample gives only an estimate."""
    costs = disturbances(run, disturbed)
    is_whole = len(costs) == sum(packets_of(run).values())
    return {"loss_slope_ns": slope_ns(run, costs) if is_whole else None}


def _row(run: CellRun) -> dict[str, float | None]:
    finished, report = run.finished, report_of(run)
    workload = run.parameters.get("workload") or {}
    row: dict[str, float | None] = {
        "messages": messages_of(run) or None,
        **_payload(run),
    }
    row |= flow_counts(run)
    # What flows have in common cannot be told apart here.
    if finished and finished.traffic and not finished.flows:
        carried = finished.traffic.exchanges
        for direction, counted in (("forward", carried.forward), ("reverse", carried.reverse)):
            row |= {f"bytes_{direction}": counted.bytes, f"packets_{direction}": counted.packets}
    if finished and finished.queueing_ns:
        waits, effect = finished.queueing_ns, run.effect
        ways = (("forward", waits.forward, effect.forward), ("reverse", waits.reverse, effect.reverse))
        for direction, waited, way in ways:
            # Where there is no queue, nothing waits in one.
            if way.rate_bps is None and not waited.max:
                continue
            row |= {f"queueing_p50_{direction}_ns": waited.p50, f"queueing_p99_{direction}_ns": waited.p99}
    # The threads of a cell that runs programs only wait for them.
    if finished and finished.cpu and not finished.flows and workload.get("kind") != "program":
        row |= {"cpu_client_ns": finished.cpu.client_ns, "cpu_server_ns": finished.cpu.server_ns}
    if report and report.seconds is not None:
        row |= {"program_ns": 1e9 * report.seconds, "program_messages": report.messages}
    return row


def _payload(run: CellRun) -> dict[str, float]:
    """Payload bytes in each direction. A transfer's go one way, and count as far as they arrived."""
    sent, received = float(run.samples["sent_bytes"].sum()), float(run.samples["received_bytes"].sum())
    workload = run.parameters.get("workload") or {}
    if workload.get("kind") == "transfer":
        sent, received = (0.0, received) if workload.get("direction") == "download" else (received, 0.0)
    return {"payload_forward": sent, "payload_reverse": received}


def profile_of(finished: Iterable[Finished]) -> CpuProfile | None:
    """The sum over some repetitions' profiles; None without one."""
    profiles = [end.profile for end in finished if end.profile]
    if not profiles:
        return None
    return CpuProfile(
        client=_summed([profile.client for profile in profiles]),
        server=_summed([profile.server for profile in profiles]),
    )


def _summed(hosts: Sequence[HostCpuProfile]) -> HostCpuProfile:
    parts: Counter[str] = Counter()
    for host in hosts:
        parts.update(host.parts)
    return HostCpuProfile(
        samples=sum(host.samples for host in hosts), cpu_ns=sum(host.cpu_ns for host in hosts), parts=dict(parts)
    )
