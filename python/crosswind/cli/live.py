"""`crosswind live`: a real host's loss, round-trip time and possible TCP throughput."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crosswind.cli.live_checks import check_times, check_transport, check_writable, checked_timeout, read_amount
from crosswind.cli.quantities import read_by
from crosswind.cli.standard_output import is_read
from crosswind.cli.thresholds import require_answer_option, status_of
from crosswind.cli.to import token_file_option
from crosswind.errors import CrosswindError, UsageError
from crosswind.text.units import parse_duration, parse_rate

if TYPE_CHECKING:
    from crosswind.live.goodput import Goodput, TransferAmount
    from crosswind.live.probe import Probe
    from crosswind.live.session import LiveSession
    from crosswind.live.targets import Target
    from crosswind.live.thresholds import JudgedThreshold
    from crosswind.live.views import Subject, View
    from crosswind.live.watch import Watch

_EPILOG = """\b
  crosswind live example.org
  crosswind live example.org --tcp 443 --duration 1m --fail-if "loss > 1%" --fail-if "p95(rtt) > 200ms"
  crosswind live example.org --transport udp --probe --token-file token --html example.html

\b
Keys on a terminal: p pause, w window, + and - zoom, q quit. Ctrl-C quits too. A summary follows.

\b
Exit status:
  0  done, or ended by Ctrl-C
  1  the host never answered, or refused every probe, or probes cannot be sent
  2  the command line is wrong, or the host does not exist
  3  a threshold fails
  4  with --require-answer: a threshold is inconclusive
"""


def _duration(name: str, default: str | None, text: str) -> Callable[[Any], Any]:
    shown = default is not None
    return click.option(
        name, metavar="TIME", callback=read_by(parse_duration), default=default, show_default=shown, help=text
    )


@click.command(epilog=_EPILOG)
@click.argument("host", metavar="HOST[:PORT]")
@click.option("--tcp", type=click.IntRange(1, 65535), metavar="PORT", help="Probe with TCP connections to PORT.")
@click.option(
    "--transport", metavar="NAME", help="Probe with messages over udp, tcp, quic, ... to the host's `crosswind serve`."
)
@click.option(
    "--probe",
    metavar="[TIME|SIZE]",
    is_flag=False,
    flag_value="5s",
    callback=read_amount,
    help="First measure TCP throughput to the host's `crosswind serve`, for a time or a size each way; 5s if neither.",
)
@token_file_option
@click.option("--family", type=click.Choice(["ipv4", "ipv6"]), help="Address family of the host.")
@_duration("--interval", "200ms", "Time between two probes, at least 10ms (1ms as root).")
@_duration("--duration", None, "Stop after this time. Default: at Ctrl-C.")
@_duration("--window", "10s", "Length of a reported window.")
@_duration(
    "--timeout", None, "A probe without an answer within this time is lost. Default: 2s; at most 990ms with --tcp."
)
@click.option(
    "--outage",
    type=click.IntRange(2),
    default=3,
    show_default=True,
    help="Consecutive losses that count as an outage.",
)
@click.option(
    "--rate", metavar="RATE", callback=read_by(parse_rate), help="Rate of the slowest link, for the TCP models."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: windows, events, and the end.")
@click.option("--probes", "with_probes", is_flag=True, help="With --json, print a line for each probe too.")
@click.option("--metrics", metavar="[HOST]:PORT", help="Serve Prometheus metrics at this address, as :9469.")
@click.option(
    "--fail-if",
    "fail_if",
    multiple=True,
    metavar="THRESHOLD",
    help='Fail if this is shown: "loss > 1%"; with --tcp also "refused > 1%"; repeatable.',
)
@require_answer_option
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write an HTML report at the end."
)
def command(
    *,
    host: str,
    tcp: int | None,
    transport: str | None,
    probe: "TransferAmount | None",
    token_file: Path | None,
    family: str | None,
    interval: int,
    duration: int | None,
    window: int,
    timeout: int | None,
    outage: int,
    rate: int | None,
    as_json: bool,
    with_probes: bool,
    metrics: str | None,
    fail_if: tuple[str, ...],
    require_answer: bool,
    html: Path | None,
) -> int:
    """Watch a host: loss, round-trip time, jitter, reordering, outages, and the expected TCP throughput.

    Probes are ICMP echo requests or TCP connections, one per interval; the host needs no software. If the host runs
    `crosswind serve`, probes can be messages over any transport, which tells forward loss from reverse loss, and
    --probe measures TCP throughput.
    """
    if with_probes and not as_json:
        raise UsageError("--probes is an option of --json", hint="give both, or neither")
    if tcp is not None and transport is not None:
        raise UsageError("--tcp and --transport are two kinds of probes", hint="give one of them")
    check_times(interval, duration, window)
    timeout_ns = checked_timeout(timeout, is_tcp=tcp is not None)
    if transport is not None:
        check_transport(transport)
    if html is not None:
        check_writable(html)
    # The watcher takes a while to import: neither --help nor a mistake should wait.
    from crosswind.live.session import LiveSession
    from crosswind.live.thresholds import judge_thresholds, read_thresholds
    from crosswind.live.views import JsonLines, Subject, View
    from crosswind.live.watch import Watch

    thresholds = read_thresholds(fail_if, can_be_refused=tcp is not None)
    ends = _Ends.of(host, family, needs_server=transport is not None or probe is not None, token_file=token_file)
    measured = _measured(ends, probe)
    with ExitStack() as opened:
        sending = _probe(ends, tcp, transport)
        opened.callback(sending.close)
        start_ns = time.monotonic_ns()
        watch = Watch(
            interval_ns=interval, timeout_ns=timeout_ns, window_ns=window, start_ns=start_ns, outage=outage,
            keeps_order=sending.keeps_order, tells_ways=sending.tells_ways, can_be_refused=sending.can_be_refused,
        )  # fmt: skip
        end_ns = None if duration is None else start_ns + duration
        session = LiveSession(watch, sending, clock=time.monotonic_ns, end_ns=end_ns)
        if end_ns is None:
            session.inform(lambda _news: None if is_read(sys.stdout) else session.stop())
        subject = Subject(ends.target, sending.name, sending.description, interval, rate, measured)
        report = None if html is None else _Report(html, watch, subject, session)
        view: View = JsonLines(watch, subject, with_probes=with_probes) if as_json else _view(watch, subject)
        if metrics is not None:
            opened.enter_context(_served(session, subject, metrics))
        ended_ns = view.run(session)
    judged = judge_thresholds(thresholds, watch.probes.between(0, watch.probes.sent))
    view.end(ended_ns, judged)
    if report is not None:
        report.write(judged, ended_ns, sending)
    verdicts = [threshold.verdict for threshold in judged]
    status = status_of(verdicts, require_answer=require_answer, valid=watch.has_answered)
    if status == 1:
        raise _no_answer(ends.target, sending, watch)
    return status


@dataclass(frozen=True)
class _Ends:
    """The host, and where its `crosswind serve` is reached: None where it is not needed."""

    target: "Target"
    server: str | None

    @classmethod
    def of(cls, host: str, family: str | None, *, needs_server: bool, token_file: Path | None) -> "_Ends":
        """Raises: UsageError."""
        from crosswind.live.targets import find_target

        if not needs_server:
            if token_file is not None:
                raise UsageError("--token-file without a server", hint="add --transport NAME or --probe")
            return cls(find_target(host, family=family), None)
        from crosswind.cell.token import use_token
        from crosswind.cli.to import server_at
        from crosswind.study.server_address import host_of

        server = server_at(host, "HOST[:PORT]")
        target = find_target(host_of(server), family=family)
        use_token(token_file)
        return cls(target, server)


def _measured(ends: _Ends, amount: "TransferAmount | None") -> "tuple[Goodput, ...]":
    """TCP throughput, on request. Raises: CrosswindError."""
    if amount is None:
        return ()
    from crosswind.cell.binary import find_binary
    from crosswind.live.throughput import TRANSFER_DIRECTIONS, measure_throughput

    assert ends.server is not None
    binary, goodputs = find_binary(), []
    for direction in TRANSFER_DIRECTIONS:
        click.echo(f"measuring TCP throughput to {ends.server}: {direction}", err=True)
        goodputs.append(measure_throughput(ends.server, ends.target.family_name, direction, amount, binary=binary))
    return tuple(goodputs)


def _probe(ends: _Ends, port: int | None, transport: str | None) -> "Probe":
    if transport is not None:
        from crosswind.catalog import catalog
        from crosswind.cell.binary import find_binary
        from crosswind.live.messages import MessageProbe

        assert ends.server is not None
        return MessageProbe(
            ends.server,
            transport,
            family=ends.target.family_name,
            keeps_order=catalog().transports[transport].datagram,
            binary=find_binary(),
            clock=time.monotonic_ns,
        )
    if port is not None:
        from crosswind.live.tcp_connect import TcpProbe

        return TcpProbe(ends.target, port, time.monotonic_ns)
    from crosswind.live.icmp import IcmpProbe

    return IcmpProbe(ends.target, time.monotonic_ns, time.time_ns)


def _view(watch: "Watch", subject: "Subject") -> "View":
    """The display on a terminal, plain lines elsewhere."""
    from crosswind.live.views import Lines
    from crosswind.text.console import Console

    console = Console()
    if not console.is_terminal or console.is_dumb_terminal:
        return Lines(watch, subject)
    from crosswind.live.screen import Screen

    return Screen(watch, subject, console)


def _served(session: "LiveSession", subject: "Subject", address: str) -> AbstractContextManager[None]:
    from crosswind.live.metrics import Metrics, parse_address

    served_at = parse_address(address)
    metrics = Metrics(subject.target.name, subject.probe, tells_ways=session.watch.tells_ways)
    session.inform(metrics.handle_news)
    return metrics.served(served_at)


class _Report:
    """A session's page, written at the end."""

    def __init__(self, path: Path, watch: "Watch", subject: "Subject", session: "LiveSession") -> None:
        from crosswind.live.report.history import History
        from crosswind.live.report.page import origin_now

        self._path, self._watch, self._subject = path, watch, subject
        self._origin, self._history = origin_now(), History()
        session.inform(self._history.handle_news)

    def write(self, judged: "list[JudgedThreshold]", ended_ns: int, probe: "Probe") -> None:
        """Args: probe: closed. Raises: DiskError."""
        # Drawing takes more than a second to import.
        from crosswind.live.report.account import Account
        from crosswind.live.report.page import page_of
        from crosswind.report.html import write_html

        time_ns = ended_ns - self._watch.start_ns
        facts = tuple(probe.facts())
        account = Account(self._watch, self._subject, self._history, judged, time_ns, self._origin, facts)
        write_html(page_of(account), self._path)
        click.echo(f"wrote {self._path}", err=True)


def _no_answer(target: "Target", probe: "Probe", watch: "Watch") -> CrosswindError:
    from crosswind.live.lines import refused_text

    total = watch.total()
    if total.refused:
        text = f"{target} {refused_text(total)}"
        return CrosswindError(text, hint="no service listens on that port: start the service, or give another port")
    said = f": {probe.obstacle}" if probe.obstacle else ""
    if probe.tells_ways:
        hint = "something on the way may drop them: `crosswind reach` tries every transport"
    else:
        other = "--tcp PORT" if probe.name == "icmp" else "another port, or no --tcp"
        hint = f"it may be down, or something on the way drops probes; {other} may get through"
    return CrosswindError(f"{target} never answered{said}", hint=hint)
