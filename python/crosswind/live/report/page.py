"""The page: verdict, observations, conditions, and the charts and tables in order."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from crosswind.live.expectations import Expectation
from crosswind.live.lines import (
    goodput_line,
    goodput_text,
    loss_text,
    refusal_text,
    refused_text,
    rtt_text,
    variation_texts,
)
from crosswind.live.report.account import Account
from crosswind.live.report.charts import (
    distribution_charts,
    goodput_chart,
    loss_over_time,
    reordering_over_time,
    rtt_over_time,
    variation_over_time,
)
from crosswind.live.report.tables import (
    EXPECTED,
    events_table,
    expectation_tables,
    measured_table,
    numbers_table,
    thresholds_table,
    windows_table,
)
from crosswind.report.page import VERDICT_TONES, Page, Panels, Section, Sentence, Term, Tone
from crosswind.report.text.format import count, count_of
from crosswind.store.provenance import command_line, surroundings
from crosswind.text.units import format_duration

_JITTER = (
    "Delay variation is the difference between the round trips of a probe and the one before (RFC 3393), jitter a "
    "moving mean of its size at the end of the window (RFC 3550), which has no interval."
)


def page_of(account: Account) -> Page:
    """A session's page."""
    subject = account.subject
    return Page(
        title=f"{subject.target.name}: loss and round-trip time",
        about=f"Crosswind live, {subject.probe}, {account.time_ns / 1e9:.1f} s",
        verdict=_verdict(account),
        banners=[Sentence(judged.sentence, VERDICT_TONES[judged.verdict]) for judged in account.judged],
        lines=[*map(Sentence, _lines(account))],
        terms=[Term(name, text) for name, text in condition_terms(account)],
        sections=list(_sections(account)),
        provenance=account.origin,
    )


def _verdict(account: Account) -> Sentence:
    """The session's verdict, worst first."""
    verdicts = {judged.verdict for judged in account.judged}
    total = account.total
    if not total.answered:
        said = refused_text(total) if total.refused else f"never answered {count_of(total.sent, 'probe')}"
        return Sentence(f"{account.subject.target} {said}.", Tone.BAD)
    if "fail" in verdicts:
        return Sentence("A threshold fails.", Tone.BAD)
    if account.outages or total.refused:
        counts = {"outage": len(account.outages), "refused connection": total.refused or 0}
        noun, number_of = next((noun, number_of) for noun, number_of in counts.items() if number_of)
        return Sentence(f"There {_were(number_of, noun)}.", Tone.DOUBTFUL)
    if total.loss is None or total.loss.low is None:
        return Sentence(f"{count_of(total.sent, 'probe')} are too few for intervals.", Tone.DOUBTFUL)
    if "inconclusive" in verdicts:
        return Sentence("A threshold is inconclusive.", Tone.DOUBTFUL)
    passed = "Every threshold passes, and there" if verdicts else "There"
    return Sentence(f"{passed} was no outage.", Tone.GOOD)


def _were(number_of: int, noun: str) -> str:
    return f"{'was' if number_of == 1 else 'were'} {count_of(number_of, noun)}"


def _lines(account: Account) -> Iterator[str]:
    """The observations, in sentences."""
    total = account.total
    counted = "; ".join(filter(None, (loss_text(total), refusal_text(total))))
    yield f"{count_of(total.sent, 'probe')}; {counted} (95 % interval)."
    for text in (rtt_text(total), *variation_texts(total)):
        yield f"{text[0].upper()}{text[1:]}."
    for measured in account.subject.measured:
        yield f"{goodput_line(measured)}."
    for direction in dict.fromkeys(expected.direction for expected in account.expectations):
        told = [
            expected for expected in account.expectations if expected.direction == direction and expected.says_something
        ]
        if told:
            yield f"Expected throughput of one long TCP {direction or 'flow'}: {'; '.join(map(_expected, told))}."


def _expected(each: Expectation) -> str:
    """A model's expectation, in a few words."""
    of = " of the link's rate" if each.unit == "1" else ""
    return f"{goodput_text(each.goodput, each.unit)}{of} by {each.model.title.partition(',')[0]}"


def _sections(account: Account) -> Iterator[Section]:
    yield Section(
        "Loss" if account.total.refused is None else "Loss and refused connections",
        charts=[Panels([loss_over_time(account)], 1)],
    )
    rtt = rtt_over_time(account)
    if rtt is not None:
        charts = distribution_charts(account)
        yield Section("Round-trip time", charts=[Panels([rtt], 1), Panels(charts, len(charts))])
    variation = variation_over_time(account)
    if variation is not None:
        yield Section("Delay variation and jitter", charts=[Panels([variation], 1)], caption=_JITTER)
    if account.total.reordering is not None:
        yield Section("Reordering", charts=[Panels([reordering_over_time(account)], 1)], caption=_reordered(account))
    for table in filter(None, (events_table(account), thresholds_table(account))):
        yield Section(table.title, tables=[table])
    chart = goodput_chart(account)
    for table in filter(None, (measured_table(account), *expectation_tables(account))):
        panels = [Panels([chart], 1)] if chart is not None and table.title == EXPECTED else []
        yield Section(table.title, charts=panels, tables=[table])
    table = numbers_table(account)
    yield Section(table.title, tables=[table, windows_table(account)])


def _reordered(account: Account) -> str:
    total = account.total
    counted = f"{count(total.reordered or 0)} of {count(total.answered)}"
    return f"A reply is out of order if it arrives after the reply to a later probe (RFC 4737): {counted}."


def condition_terms(account: Account) -> Iterator[tuple[str, str]]:
    """Terms and their values."""
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
    """The windows' number and length: a key changes it, and the end cuts the last one off."""
    windows = [report.window for report in account.history.windows]
    lengths = {window.end_ns - window.start_ns for window in windows[:-1]}
    lengths = lengths or {account.watch.windows.length_ns}
    if len(lengths) > 1:
        return f"{count_of(len(windows), 'window')} of several lengths"
    return f"{count_of(len(windows), 'window')} of {format_duration(lengths.pop())}; the last may be shorter"


def origin_now() -> dict[str, Any]:
    """A new session's provenance: {"command", "started", "clock", "versions", "machine", "sysctls"}."""
    known = surroundings(command=command_line(), started=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"))
    resolution_ns = round(time.get_clock_info("monotonic").resolution * 1e9)
    source = known["machine"]["clock_source"] or "unknown"
    return {**known, "clock": f"CLOCK_MONOTONIC, resolution {resolution_ns} ns, clock source {source}"}
