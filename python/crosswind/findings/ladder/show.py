"""Ladders: the study's breaking rung, and every rung's numbers."""

from collections.abc import Iterator

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.findings.ladder.result import Ladder
from crosswind.findings.ladder.sentence import failed_on, rung_value
from crosswind.report.page import Section, Sentence, Tone
from crosswind.report.showing import Showing
from crosswind.report.tables.table import Shown, Table, names, numbers
from crosswind.report.text.format import factor_name, named_levels

_MOST_SENTENCES = 6
_HOW_TO_READ = (
    "A combination of levels breaks on a rung where one of its exchanges fails there, or where a threshold fails as "
    "the table of thresholds has it; a question turns where its decided answer is another one than on the rungs before."
)


def ladder_table(ladder: Ladder) -> Table:
    """A row for each rung, for each combination of the other levels."""
    has_levels = any(climb.levels for climb in ladder.climbs)
    rows = []
    for climb in ladder.climbs:
        breaking = {failure.rung: failure.kind for failure in reversed(climb.breaks)}
        title = "" if climb.metric is None else f"{METRICS[climb.metric].title}, {climb.statistic}"
        for rung in climb.rungs:
            row = [
                rung.rung,
                failed_on(rung),
                rung_value(climb, rung),
                title,
                _WORDS.get(breaking.get(rung.rung, ""), ""),
            ]
            rows.append([*([named_levels(climb.levels)] if has_levels else []), *row])
    columns = [
        *names(*(["at"] if has_levels else []), factor_name(ladder.factor)),
        *numbers("failed", "measured [95 %]"),
        *names("of", "breaks"),
    ]
    return Table("Rungs", columns, rows, footnotes=[_HOW_TO_READ], shown=Shown.FOLDED)


_WORDS = {"failed": "exchanges fail", "threshold": "threshold fails", "unusable": "none succeeds"}


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    del has_charts
    for ladder in result.of(Ladder):
        sentences = [Sentence(climb.sentence, _tone(bool(climb.breaks))) for climb in ladder.climbs]
        sentences += [Sentence(turn.sentence, Tone.DOUBTFUL) for turn in ladder.turns]
        title = f"Where it breaks: {ladder.rungs[0]} to {ladder.rungs[-1]}"
        yield Section(title, sentences=sentences, tables=[ladder_table(ladder)], note=ladder.note or "")


def _banners(result: Result) -> Iterator[Sentence]:
    """A sentence for each combination of levels and each turning answer; among many, the earliest breaks."""
    for ladder in result.of(Ladder):
        order = {rung: number for number, rung in enumerate(ladder.rungs)}
        worst_first = sorted(
            ladder.climbs, key=lambda climb: min((order[failure.rung] for failure in climb.breaks), default=len(order))
        )
        shown = ladder.climbs if len(ladder.climbs) <= _MOST_SENTENCES else worst_first[:_MOST_SENTENCES]
        for climb in shown:
            yield Sentence(climb.sentence, _tone(bool(climb.breaks)))
        if len(shown) < len(ladder.climbs):
            left_out = worst_first[_MOST_SENTENCES:]
            breaking = sum(bool(climb.breaks) for climb in left_out)
            yield Sentence(f"Of {len(left_out)} further combinations of levels, {breaking} break on some rung.")
        for turn in ladder.turns:
            yield Sentence(turn.sentence, Tone.DOUBTFUL)


def _tone(breaks: bool) -> Tone:
    return Tone.BAD if breaks else Tone.GOOD


SHOWING = Showing(_sections, _banners)
