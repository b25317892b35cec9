"""`crosswind live`: loss, round-trip time and what TCP can get, of a host that is really there."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crosswind.cli.quantities import read_by
from crosswind.cli.thresholds import require_answer_option, status_of
from crosswind.errors import CrosswindError, UsageError
from crosswind.units import format_duration, parse_duration, parse_rate

if TYPE_CHECKING:
    from crosswind.live.probe import Probe
    from crosswind.live.session import Session
    from crosswind.live.targets import Target
    from crosswind.live.thresholds import Judged
    from crosswind.live.views import Subject, View
    from crosswind.live.watch import Watch

_MILLISECOND_NS = 10**6
_SHORTEST_INTERVAL_NS = 10 * _MILLISECOND_NS
_SHORTEST_INTERVAL_OF_ROOT_NS = 1 * _MILLISECOND_NS
_LONGEST_NS = 24 * 3600 * 10**9
_ICMP_TIMEOUT_NS = 2 * 10**9
_TCP_TIMEOUT_NS = 990 * _MILLISECOND_NS
"""After 1 s the kernel sends its SYN again (crosswind.live.tcp_connect)."""

_EPILOG = """\b
  crosswind live example.org
  crosswind live example.org --tcp 443 --duration 1m --fail-if "loss > 1%" --fail-if "p95(rtt) > 200ms"

\b
On a terminal the keys are p pause, w window, + and - zoom, q quit. Ctrl-C ends it too, with its summary.

\b
Exit status:
  0  done, also by Ctrl-C
  1  the host never answered, or probes cannot be sent
  2  the command line is wrong, or there is no such host
  3  a threshold is not kept
  4  with --require-answer: nobody can tell whether one is kept
"""


def _duration(name: str, default: str | None, text: str) -> Callable[[Any], Any]:
    shown = default is not None
    return click.option(
        name, metavar="TIME", callback=read_by(parse_duration), default=default, show_default=shown, help=text
    )


@click.command(epilog=_EPILOG)
@click.argument("host")
@click.option("--tcp", type=click.IntRange(1, 65535), metavar="PORT", help="Probe by opening TCP connections to PORT.")
@click.option("--family", type=click.Choice(["ipv4", "ipv6"]), help="Of the host's addresses.")
@_duration("--interval", "200ms", "Between two probes, at least 10ms (1ms as root).")
@_duration("--duration", None, "End after this time; without it Ctrl-C ends it.")
@_duration("--window", "10s", "Length of the windows that are reported one by one.")
@_duration("--timeout", None, "When a probe counts as lost: 2s unless given, with --tcp at most 990ms.")
@click.option(
    "--outage", type=click.IntRange(2), default=3, show_default=True, help="So many losses in a row are an outage."
)
@click.option("--rate", metavar="RATE", callback=read_by(parse_rate), help="Of the slowest link, for what TCP can get.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: windows, events, and the end.")
@click.option("--probes", "with_probes", is_flag=True, help="With --json, print a line for each probe too.")
@click.option("--metrics", metavar="[HOST]:PORT", help="Serve Prometheus metrics there, as :9469.")
@click.option("--fail-if", "fail_if", multiple=True, metavar="THRESHOLD", help='As "loss > 1%"; repeatable.')
@require_answer_option
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="At the end, write a report there."
)
def command(
    *,
    host: str,
    tcp: int | None,
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
    """Watch a host: loss, round-trip time, jitter, reordering, outages, and what TCP can get there.

    Nothing of ours runs on the host: probes are ICMP echo requests, or TCP connections. In each interval there is one
    probe, and no more.
    """
    if with_probes and not as_json:
        raise UsageError("--probes is an option of --json", hint="give both, or neither")
    _check_times(interval, duration, window)
    timeout_ns = _timeout(timeout, is_tcp=tcp is not None)
    # What watches takes a while to import, for which neither --help nor a mistake should wait.
    from crosswind.live.session import Session
    from crosswind.live.targets import find_target
    from crosswind.live.thresholds import judge, parse_threshold
    from crosswind.live.views import JsonLines, Subject, View
    from crosswind.live.watch import Watch

    thresholds = [parse_threshold(text) for text in fail_if]
    if html is not None:
        _check_writable(html)
    target = find_target(host, family=family)
    with ExitStack() as opened:
        probe = _probe(target, tcp)
        opened.callback(probe.close)
        start_ns = time.monotonic_ns()
        watch = Watch(
            interval_ns=interval, timeout_ns=timeout_ns, window_ns=window, start_ns=start_ns, outage=outage,
            keeps_order=probe.keeps_order,
        )  # fmt: skip
        end_ns = None if duration is None else start_ns + duration
        session = Session(watch, probe, clock=time.monotonic_ns, end_ns=end_ns)
        subject = Subject(target, probe.name, probe.description, interval, rate)
        report = None if html is None else _Report(html, watch, subject, session)
        view: View = JsonLines(watch, subject, with_probes=with_probes) if as_json else _view(watch, subject)
        if metrics is not None:
            opened.enter_context(_served(session, subject, metrics))
        ended_ns = view.run(session)
    judged = judge(thresholds, watch.probes.between(0, watch.probes.sent))
    view.end(ended_ns, judged)
    if report is not None:
        report.write(judged, ended_ns)
    verdicts = [each.verdict for each in judged]
    status = status_of(verdicts, require_answer=require_answer, valid=watch.has_answered)
    if status == 1:
        raise _no_answer(target, probe)
    return status


def _check_times(interval_ns: int, duration_ns: int | None, window_ns: int) -> None:
    """Raises: UsageError for times that are too short or too long."""
    least_ns = _SHORTEST_INTERVAL_OF_ROOT_NS if os.geteuid() == 0 else _SHORTEST_INTERVAL_NS
    if not least_ns <= interval_ns <= _LONGEST_NS:
        hint = f"at least {format_duration(least_ns)}, so that probes load no network"
        raise UsageError(f"--interval {format_duration(interval_ns)} is too short or too long", hint=hint)
    if duration_ns is not None and duration_ns < interval_ns:
        raise UsageError(
            f"--duration {format_duration(duration_ns)} is shorter than --interval",
            hint=f"a probe is sent every {format_duration(interval_ns)}",
        )
    if window_ns < interval_ns:
        raise UsageError(
            f"--window {format_duration(window_ns)} is shorter than --interval",
            hint=f"a probe is sent every {format_duration(interval_ns)}",
        )


def _timeout(given_ns: int | None, *, is_tcp: bool) -> int:
    """When a probe counts as lost, ns. Raises: UsageError."""
    most_ns = _TCP_TIMEOUT_NS if is_tcp else _LONGEST_NS
    if given_ns is None:
        return _TCP_TIMEOUT_NS if is_tcp else _ICMP_TIMEOUT_NS
    if not 0 < given_ns <= most_ns:
        why = "after 1s the kernel sends its SYN again" if is_tcp else "at most 24h"
        raise UsageError(f"--timeout {format_duration(given_ns)} cannot be", hint=f"more than 0; {why}")
    return given_ns


def _probe(target: "Target", port: int | None) -> "Probe":
    """Opens the probes. Raises: CrosswindError."""
    if port is None:
        from crosswind.live.icmp import IcmpProbe

        return IcmpProbe(target, time.monotonic_ns, time.time_ns)
    from crosswind.live.tcp_connect import TcpProbe

    return TcpProbe(target, port, time.monotonic_ns)


def _view(watch: "Watch", subject: "Subject") -> "View":
    """The display on a terminal, plain lines elsewhere."""
    from rich.console import Console

    from crosswind.live.views import Lines

    console = Console()
    if not console.is_terminal or console.is_dumb_terminal:
        return Lines(watch, subject)
    from crosswind.live.screen import Screen

    return Screen(watch, subject, console)


def _served(session: "Session", subject: "Subject", address: str) -> AbstractContextManager[None]:
    """Serves metrics of a session. Raises: CrosswindError."""
    from crosswind.live.metrics import Metrics, parse_address

    served_at = parse_address(address)
    metrics = Metrics(subject.target.name, subject.probe)
    session.inform(metrics.handle_news)
    return metrics.served(served_at)


class _Report:
    """The page at the end of a session."""

    def __init__(self, path: Path, watch: "Watch", subject: "Subject", session: "Session") -> None:
        from crosswind.live.report.history import History
        from crosswind.live.report.surroundings import origin_now

        self._path, self._watch, self._subject = path, watch, subject
        self._origin, self._history = origin_now(), History()
        session.inform(self._history.handle_news)

    def write(self, judged: "list[Judged]", ended_ns: int) -> None:
        """Raises: DiskError."""
        # Drawing takes more than a second to import.
        from crosswind.live.report.account import Account
        from crosswind.live.report.page import write_page

        time_ns = ended_ns - self._watch.start_ns
        write_page(Account(self._watch, self._subject, self._history, judged, time_ns, self._origin), self._path)
        click.echo(f"wrote {self._path}", err=True)


def _check_writable(path: Path) -> None:
    """Raises: UsageError before anything is sent: hours of probes should not end with a file that cannot be written."""
    if path == Path("-"):
        raise UsageError("--html -: standard output has the lines", hint="give the name of a file")
    place = next(each for each in (path, *path.resolve().parents) if each.exists())
    if not os.access(place, os.W_OK) or (place != path and not place.is_dir()):
        raise UsageError(f"--html {path}: cannot be written", hint="name a file in a directory that you may write")


def _no_answer(target: "Target", probe: "Probe") -> CrosswindError:
    said = f": {probe.refusal}" if probe.refusal else ""
    other = "--tcp PORT" if probe.name == "icmp" else "another port, or no --tcp"
    hint = f"it may be down, or something on the way drops probes; {other} may get through"
    return CrosswindError(f"{target} never answered{said}", hint=hint)
