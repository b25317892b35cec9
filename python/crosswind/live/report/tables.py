"""The tables of a page: every number with its interval, its n and how the interval was made."""

from collections.abc import Callable, Iterator

from crosswind.findings.threshold.sentence import WORDS, threshold_value_text
from crosswind.live.expectations import common_assumption
from crosswind.live.lines import estimate_text, goodput_text
from crosswind.live.report.account import Account
from crosswind.live.summary import Summary
from crosswind.report.tables.table import Shown, Table, grouped, names, numbers, sentences, words
from crosswind.report.text.deciding import rounded
from crosswind.report.text.format import NOTHING, count, interval, number, quantity, scale_of
from crosswind.stats.estimate import Interval

EXPECTED = "Expected TCP throughput"
"""Title of the models' table."""
_MOST_EVENTS = 1000
_BLOCKS = (
    "Neighbouring probes are not independent. 40 or more are divided into 10 consecutive blocks, 400 or more into 20, "
    "and intervals are computed from the differences between blocks, which methods call repetitions."
)


def numbers_table(account: Account) -> Table:
    """The whole time: each number with its interval, n and method."""
    rows = list(_numbers(account.total))
    reasons = [
        (f"No interval: {estimate.reason}", name) for name, estimate, _ in _estimates(account.total) if estimate.reason
    ]
    notes = [f"{text} ({', '.join(of)})." for text, of in grouped(reasons).items()]
    columns = [*names("whole session"), *numbers("value [95 %]", "n"), *sentences("method of the interval")]
    return Table("In numbers", columns, rows, footnotes=notes, help=_BLOCKS)


def windows_table(account: Account) -> Table:
    """A row for each window, or for several together."""
    total = account.total
    divisor, unit = scale_of([total.median.value if total.median else None], "ns")
    of_window: dict[str, Callable[[Summary], str]] = {
        "sent": lambda each: count(each.sent),
        "lost": lambda each: count(each.lost),
        "loss [95 %], %": lambda each: _text(each.loss, 0.01),
        "refused [95 %], %": lambda each: _text(each.refusal, 0.01),
        f"median [95 %], {unit}": lambda each: _text(each.median, divisor),
        f"p95 [95 %], {unit}": lambda each: _text(each.p95, divisor),
        f"minimum, {unit}": lambda each: number(each.smallest_ns, divisor),
        f"maximum, {unit}": lambda each: number(each.largest_ns, divisor),
        f"jitter, {unit}": lambda each: number(each.jitter_ns, divisor),
        f"delay variation p95 [95 %], {unit}": lambda each: _text(each.variation_p95, divisor),
        "reordered [95 %], %": lambda each: _text(each.reordering, 0.01),
        "duplicates": lambda each: NOTHING if each.duplicates is None else count(each.duplicates),
        "late": lambda each: count(each.late),
    }
    if total.refused is None:
        del of_window["refused [95 %], %"]
    rows = [
        [f"{end / 1e9:.1f}" for end in (period.start_ns, period.end_ns)]
        + [text(period.summary) for text in of_window.values()]
        for period in account.periods
    ]
    title = f"The {count(len(rows))} {'periods' if account.windows_together > 1 else 'windows'}"
    return Table(title, [*names("from, s", "to, s"), *numbers(*of_window)], rows, shown=Shown.FOLDED)


def events_table(account: Account) -> Table | None:
    """The events; None without any."""
    events, start_ns = account.history.events, account.watch.start_ns
    rows = [[f"{(event.at_ns - start_ns) / 1e9:.1f}", event.text] for event in events[:_MOST_EVENTS]]
    left = len(events) - len(rows)
    notes = [f"{count(left)} later events are not listed."] if left else []
    columns = [*names("at, s"), *sentences("what happened")]
    return Table("Events", columns, rows, footnotes=notes) if rows else None


def expectation_tables(account: Account) -> list[Table]:
    """Each model's expectation for one long TCP flow, and its assumptions."""
    expectations = account.expectations
    if not expectations:
        return []
    rows = [
        [expected.title, goodput_text(expected.goodput, expected.unit) if expected.says_something else NOTHING,
         count(expected.goodput.n), expected.note or NOTHING]
        for expected in expectations
    ]  # fmt: skip
    columns = [*names("model"), *numbers("expected [95 %]", "n"), *sentences("note")]
    method = (
        "Interval: the model's numbers at the limits of loss and median round-trip time, each at 97.5 %, so that both "
        "hold together at 95 % (Bonferroni)."
    )
    tables = [Table(EXPECTED, columns, rows, footnotes=[method, f"All assume that {common_assumption(expectations)}."])]
    models = {expected.model.name: expected.model for expected in expectations}.values()
    assumed = [[model.title, model.assumptions, model.valid_range, model.source] for model in models]
    says = [*names("model"), *sentences("assumes", "valid for", "source")]
    return [*tables, Table("What the models assume", says, assumed)]


def measured_table(account: Account) -> Table | None:
    """TCP's measured throughput, if any."""
    rows = [
        [
            measured.direction,
            f"{quantity(measured.goodput.value, 'bit/s')} (no interval)",
            count(measured.goodput.n),
            f"{number(measured.received_bytes / 1e6)} MB",
            quantity(measured.time_ns, "ns"),
            measured.congestion_control or NOTHING,
            NOTHING if measured.segments is None else count(measured.segments),
            NOTHING if measured.retransmitted is None else count(measured.retransmitted),
        ]
        for measured in account.subject.measured
    ]
    columns = [
        *names("transfer"), *numbers("goodput", "n", "received", "time"), *words("congestion control"),
        *numbers("segments sent", "retransmitted"),
    ]  # fmt: skip
    how = (
        "One TCP flow each way, before the first probe. The rate counts the application's bytes from request to "
        "last byte, slow start included. A single transfer has no interval."
    )
    return Table("Measured TCP throughput", columns, rows, footnotes=[how]) if rows else None


def thresholds_table(account: Account) -> Table | None:
    """Each threshold's verdict; None without any."""
    rows = [
        [
            WORDS[judged.verdict],
            judged.threshold.text,
            threshold_value_text(judged.cell.value, judged.threshold.unit.name),
            count(judged.cell.value.n),
            judged.cell.value.method,
            NOTHING if judged.cell.needed is None else count(rounded(judged.cell.needed)),
        ]
        for judged in account.judged
    ]
    columns = [
        *names("verdict", "fail if"), *numbers("measured [95 %]", "n"), *sentences("method of the interval"),
        *numbers("more probes needed"),
    ]  # fmt: skip
    how = (
        "A threshold passes if the whole 95 % interval is within the bound, and fails if the whole interval, corrected "
        "by Holm's method over the thresholds, is beyond it."
    )
    return Table("Thresholds", columns, rows, footnotes=[how]) if rows else None


def _estimates(summary: Summary) -> Iterator[tuple[str, Interval, bool]]:
    """Name, estimate, and whether it is a share."""
    shares = {
        "loss": summary.loss, "refused connections": summary.refusal,
        "loss on the way there": summary.loss_there, "loss on the way back": summary.loss_back,
    }  # fmt: skip
    times = {
        "median round-trip time": summary.median,
        "p95 round-trip time": summary.p95,
        "p95 delay variation": summary.variation_p95,
    }
    for estimates in (shares, times, {"reordered replies": summary.reordering}):
        of_shares = estimates is not times
        yield from ((name, estimate, of_shares) for name, estimate in estimates.items() if estimate is not None)


def _numbers(summary: Summary) -> Iterator[list[str]]:
    for name, estimate, is_share in _estimates(summary):
        divisor, unit = (0.01, "%") if is_share else scale_of([estimate.value], "ns")
        shown = f"{interval(estimate, divisor)} {unit}"
        yield [name, shown, count(estimate.n), estimate.method]
    extremes = {"shortest round trip": summary.smallest_ns, "longest round trip": summary.largest_ns}
    for name, extreme in extremes.items():
        if extreme is not None:
            divisor, unit = scale_of([extreme], "ns")
            yield [name, f"{number(extreme, divisor)} {unit}", count(summary.answered), "none: an observed extreme"]
    if summary.jitter_ns is not None:
        divisor, unit = scale_of([summary.jitter_ns], "ns")
        text = "none: a moving mean of weight 1/16, as it was at the end (RFC 3550)"
        yield ["jitter", f"{number(summary.jitter_ns, divisor)} {unit}", count(summary.answered), text]
    counted = {"duplicates": summary.duplicates, "late replies": summary.late}
    for name, known in counted.items():
        if known is not None:
            yield [name, count(known), count(summary.sent), "none: counted"]


def _text(estimate: Interval | None, divisor: float) -> str:
    return NOTHING if estimate is None else estimate_text(estimate, divisor)
