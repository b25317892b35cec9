"""How often a family of statements has a wrong verdict, by the judge itself, where the truth is just at an end.

The other cell of each case has the distribution of the first one, times the end of the case's range. So its mean and
what most of its repetitions do are both just there, and neither "yes" nor "no" is right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from coverage.worlds import MIX, SHARED, WORLDS, Size, World, scores_of_cell
from crosswind.decisions.families import CONDITIONS, DOCUMENT, FAMILIES, QUESTIONS, THRESHOLDS, Family
from crosswind.decisions.judge import Number, OfEffect, OfInterval, Ruling, judge
from crosswind.decisions.statement import Range, range_of
from crosswind.stats.arrays import Array
from crosswind.stats.differences import Side, ratio
from crosswind.stats.effect import claim_estimate, of_one
from crosswind.stats.estimate import Interval
from crosswind.stats.linearised import mean_of
from crosswind.stats.repetitions import Repetitions

UNITS = (3, 6, 10, 20)
DEPENDENCE = ((1, 0.0), (50, 0.2))
"""Messages in a repetition, and the correlation that they have in common."""
RUNS = 500
MARGIN = 0.25
_TO_KNOW = 20_000
"""Repetitions from which the median of one is known."""

_AT_AN_END: tuple[tuple[Range, float], ...] = (
    (range_of("less", None, is_ratio=True), 1.0),
    (range_of("more", MARGIN, is_ratio=True), 1 + MARGIN),
    (range_of("same", MARGIN, is_ratio=True), 1 + MARGIN),
    (range_of("different", MARGIN, is_ratio=True), 1 / (1 + MARGIN)),
) * 2
"""Ranges, and how many times as much as the first cell another one is that lies at an end."""
_CLEAR = ((range_of("less", None, is_ratio=True), 0.02), (range_of("more", None, is_ratio=True), 0.02))
"""A yes and a no that a few repetitions show, after which Holm's method has fewer to correct for."""
_OF_RUNS = (Range(None, 1 + MARGIN), Range(1 / (1 + MARGIN), None)) * 4
"""What two runs are asked for: larger by no more, smaller by no more."""


@dataclass
class Wrong:
    """Families, and how many of them had a wrong yes, and a wrong no."""

    runs: int = 0
    yes: int = 0
    no: int = 0


def wrong_verdicts(family: Family, world: World, size: Size, *, runs: int, seed: int) -> Wrong:
    """Families of eight cases with the truth at an end. Args: family: one of FAMILIES, or with another correction."""
    names = [known.what for known in FAMILIES]
    rng = np.random.default_rng([seed, names.index(family.what), size.units, size.messages])
    drawn = _Drawn(rng, world, size)
    found = Wrong()
    for _ in range(runs):
        yes, no = _ACTS[family.what](drawn, family)
        found.runs += 1
        found.yes += yes
        found.no += no
    return found


@dataclass(frozen=True)
class _Drawn:
    """Where cells come from that have the same seeds."""

    rng: np.random.Generator
    world: World
    size: Size

    def cells(self, number: int) -> list[Array]:
        """Values of cells with the same distribution, each (units, messages)."""
        common = scores_of_cell(self.rng, 1, self.size)[0]
        own = (scores_of_cell(self.rng, 1, self.size)[0] for _ in range(number))
        return [self.world.of_score(sqrt(SHARED) * common + sqrt(1 - SHARED) * scores) for scores in own]

    def side(self, values: Array) -> Side:
        """A cell of such values."""
        numbers = np.repeat(np.arange(self.size.units), self.size.messages)
        return Side(Repetitions.of(values.ravel(), numbers), self.world.design)

    def ratios(self, asked: Sequence[tuple[Range, float]]) -> list[OfEffect]:
        """A number for each range: another cell that is so many times the first one."""
        reference, *others = self.cells(len(asked) + 1)
        first = self.side(reference)
        return [
            OfEffect(ratio(first, self.side(factor * other)), wanted, log)
            for other, (wanted, factor) in zip(others, asked, strict=True)
        ]

    def bounded(self, number: int) -> list[OfInterval]:
        """As many cells, each with seeds of its own, with what decides on them just at a bound."""
        bound = Range(None, self.world.mean)
        return [self._at(self.side(values), bound) for _ in range(number) for values in self.cells(1)]

    def _at(self, side: Side, wanted: Range) -> OfInterval:
        effect = of_one(mean_of(side.units), side.design, side.chance("mean"))

        def make(level: float) -> Interval:
            return claim_estimate(effect, level=level)

        return OfInterval(make, wanted)


def _sure() -> OfEffect:
    """A yes that is exact."""
    one = Side(Repetitions.of([1.0]), exact=True)
    return OfEffect(ratio(one, one), Range(0.5, 2.0), log)


def _of_questions(drawn: _Drawn, family: Family) -> tuple[bool, bool]:
    """Questions of four cases, each at an end, and one that is clear either way."""
    numbers = drawn.ratios([*_AT_AN_END, *_CLEAR])
    first, second, clear = judge([numbers[:4], numbers[4:8], numbers[8:]], family)
    verdicts = {case.verdict for case in (*first.cases, *second.cases)}
    yes, no = (case.verdict for case in clear.cases)
    return "yes" in verdicts or no == "yes", "no" in verdicts or yes == "no"


def _of_document(drawn: _Drawn, family: Family) -> tuple[bool, bool]:
    """For a yes: statements that all other cases bear out. For a no: statements of four cases, each at an end."""
    numbers = drawn.ratios(_AT_AN_END)
    alone = judge([[number, _sure()] for number in numbers], family)
    return _has(alone, "yes"), _has(judge([numbers[:4], numbers[4:]], family), "no")


def _of_bounds(numbers: Sequence[Number], family: Family) -> tuple[bool, bool]:
    """A run passes though one of its cells is at the bound; a run fails of which all are."""
    passes = judge([[numbers[0], _sure()], [_sure()]], family)
    half = len(numbers) // 2
    fails = judge([numbers[:half], numbers[half:]], family)
    return all(ruling.verdict == "yes" for ruling in passes), _has(fails, "no")


def _has(rulings: Sequence[Ruling], verdict: str) -> bool:
    return any(ruling.verdict == verdict for ruling in rulings)


_ACTS = {
    QUESTIONS.what: _of_questions,
    DOCUMENT.what: _of_document,
    THRESHOLDS.what: lambda drawn, family: _of_bounds(drawn.bounded(8), family),
    CONDITIONS.what: lambda drawn, family: _of_bounds(
        drawn.ratios([(wanted, wanted.ends[0]) for wanted in _OF_RUNS]), family
    ),
}

Case = tuple[str, str, Size]


def all_cases() -> list[Case]:
    """Every family with every distribution and size."""
    sizes = [Size(units, messages, icc) for units in UNITS for messages, icc in DEPENDENCE]
    return [
        (family.what, world.name, size)
        for family in FAMILIES
        for world in WORLDS
        for size in sizes
        # Nine in ten single messages of mix are just 40: most repetitions are at an end then, which is in the range.
        if not (world is MIX and size.messages == 1)
    ]


def tried(case: Case, runs: int = RUNS) -> tuple[Case, Wrong]:
    """What came of one case."""
    what, name, size = case
    family = next(family for family in FAMILIES if family.what == what)
    world = next(world for world in WORLDS if world.name == name)
    return case, wrong_verdicts(family, world, size, runs=runs, seed=1)


def verdicts_text(found: Mapping[Case, Wrong]) -> str:
    """The table, in Markdown."""
    runs = next(iter(found.values())).runs
    columns = [(units, *of) for of in DEPENDENCE for units in UNITS]
    heads = [f"{units}{'' if messages == 1 else f' × {messages}, ICC {icc:g}'}" for units, messages, icc in columns]
    rows = [
        f"{runs} families a number, in % of them: any wrong yes / any wrong no; of bounds, that the run passes and "
        f"that any of them fails. –: nine in ten single messages of mix are the same, so that most repetitions are not "
        f"beyond an end. At most 5 is meant, of which {100 * (0.05 + 1.96 * sqrt(0.05 * 0.95 / runs)):.1f} is within "
        "what chance allows in 97.5 % of cases. Columns: repetitions, of one message or of several.\n\n",
        f"| family, distribution | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 1)}\n",
    ]
    for family in FAMILIES:
        for world in WORLDS:
            cells = [found.get((family.what, world.name, Size(*column))) for column in columns]
            rows.append(f"| {family.what}, {world.name} | {' | '.join(map(_shown, cells))} |\n")
    return "".join(rows)


def _shown(wrong: Wrong | None) -> str:
    return "–" if wrong is None else f"{100 * wrong.yes / wrong.runs:.1f} / {100 * wrong.no / wrong.runs:.1f}"
