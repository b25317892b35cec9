"""Under which conditions a session was: the terms above the charts."""

from collections.abc import Iterator

from crosswind.live.report.account import Account
from crosswind.report.text.format import count, count_of
from crosswind.units import format_duration


def condition_terms(account: Account) -> Iterator[tuple[str, str]]:
    """Terms and what each is."""
    subject, watch, origin = account.subject, account.watch, account.origin
    machine, versions = origin["machine"], origin["versions"]
    family = {"ipv4": "IPv4", "ipv6": "IPv6"}[subject.target.family_name]
    yield "Host", f"{subject.target}, {family}"
    yield "Probes", subject.description
    yield from account.facts
    yield "Sent", f"one every {format_duration(subject.interval_ns)}, {count(account.total.sent)} in all"
    yield "Lost", f"a probe without an answer within {format_duration(watch.probes.timeout_ns)}"
    if watch.can_be_refused:
        yield "Refused", "a connection that the host answers with RST, because no service listens"
    yield "Windows", _windows_text(account)
    yield "Time", f"from {origin['started']}, {account.time_ns / 1e9:.1f} s"
    yield "Clock", origin["clock"]
    named = filter(None, (machine["cpu_model"], machine["virtualisation"] and "in a virtual machine"))
    processors = count_of(machine["cpus"] or 0, "processor")
    yield (
        "Machine",
        f"{machine['system']} {machine['kernel']}, {machine['architecture']}; {processors}, {', '.join(named)}",
    )
    yield "Program", f"Crosswind {versions['crosswind']}, Python {versions['python']}"


def _windows_text(account: Account) -> str:
    """How many windows, and how long they are: a key changes that, and the end cuts the last one off."""
    windows = [report.window for report in account.history.windows]
    lengths = {window.end_ns - window.start_ns for window in windows[:-1]}
    lengths = lengths or {account.watch.windows.length_ns}
    if len(lengths) > 1:
        return f"{count_of(len(windows), 'window')} of several lengths"
    return f"{count_of(len(windows), 'window')} of {format_duration(lengths.pop())}; the last may be shorter"
