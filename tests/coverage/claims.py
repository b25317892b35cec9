"""How often a claim about two cells is wrong whose means are equal: what is printed, and what a paired t would print.

The claim that is printed is about most repetitions in a design that supports none about the mean. Which of the two
cells is larger in most repetitions is found from many of them; a claim of the other side is wrong. Of a claim about
the mean either side is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from coverage.worlds import LN1, LN2, MIX, NORMAL, Size, World, scores_of_cell
from crosswind.stats.arrays import Array
from crosswind.stats.design import LIGHT
from crosswind.stats.differences import Side, difference
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.significance import significance

UNITS = (3, 5, 10, 20)
DEPENDENCE = ((1, 0.0), (100, 0.0), (100, 0.2), (240, 0.0), (240, 0.2))
"""Messages in a repetition, and the correlation that they have in common."""
LEVEL = 0.025
"""Of a claim, on its side."""
RUNS = 1000
_TO_KNOW = 4000
"""Repetitions from which it is known on which side most are."""


def _hurdle(score: Array) -> Array:
    beyond_it = np.maximum(special.ndtr(-score), 1e-300)
    return np.asarray(np.where(beyond_it < 0.02, 30.0 - 10.0 * np.log(np.minimum(beyond_it / 0.02, 1.0)), 1.0))


HURDLE = World("hurdle", _hurdle, 0.98 + 0.02 * 40.0, MIX.design)
"""One unit, of which two in a hundred are forty times as much: a lognormal or an exponential is not so rare."""

REFERENCES = (NORMAL, MIX, LN1, LN2, HURDLE)
STEADY, EQUAL = "steady", "equal"


@dataclass
class Wrong:
    """Runs, and how many of them claimed what is not so: that the reference is the larger one, or the smaller one."""

    runs: int = 0
    larger: int = 0
    smaller: int = 0
    t_larger: int = 0
    t_smaller: int = 0


def wrong_claims(world: World, beside: str, size: Size, *, runs: int, seed: int) -> Wrong:
    """Args: beside: STEADY, a normal cell with the same mean, or EQUAL, one with the same distribution."""
    rng = np.random.default_rng([seed, size.units, size.messages, round(100 * size.icc)])
    over = _means(world, beside, rng, 1, Size(_TO_KNOW, size.messages, size.icc))
    above = 0.5 if beside == EQUAL else float((over[1] > over[0]).mean())
    found = Wrong()
    for _ in range(runs):
        reference, other = (_values(which, rng, size) for which in (world, _other(world, beside)))
        numbers = np.repeat(np.arange(size.units), size.messages)
        sides = [
            Side(Repetitions.of(values.ravel(), numbers), design)
            for values, design in ((reference, world.design), (other, world.design if beside == EQUAL else LIGHT))
        ]
        effect = difference(*sides)
        found.runs += 1
        if effect.error > 0:
            found.t_larger += float(special.stdtr(size.units - 1, effect.value / effect.error)) < LEVEL
            found.t_smaller += float(special.stdtr(size.units - 1, -effect.value / effect.error)) < LEVEL
        made = significance(effect, 0.0)
        if made is None:
            continue
        found.smaller += made.above < LEVEL and not (made.of_most and above > 0.5)
        found.larger += made.below < LEVEL and not (made.of_most and above < 0.5)
    return found


def _other(world: World, beside: str) -> World:
    spread = 0.05 * world.mean
    steady = World("steady", lambda score: np.asarray(world.mean + spread * score), world.mean, LIGHT)
    return world if beside == EQUAL else steady


def _values(world: World, rng: np.random.Generator, size: Size) -> Array:
    return np.asarray(world.of_score(scores_of_cell(rng, 1, size))[0])


def _means(world: World, beside: str, rng: np.random.Generator, runs: int, size: Size) -> list[Array]:
    return [_values(which, rng, size).mean(axis=1) for which in (world, _other(world, beside))]


Case = tuple[str, str, Size]


def all_cases() -> list[Case]:
    """Every distribution beside a steady cell and beside itself, with every size."""
    sizes = [Size(units, messages, icc) for units in UNITS for messages, icc in DEPENDENCE]
    return [(world.name, beside, size) for world in REFERENCES for beside in (STEADY, EQUAL) for size in sizes]


def tried(case: Case, runs: int = RUNS) -> tuple[Case, Wrong]:
    """What came of one case."""
    name, beside, size = case
    world = next(world for world in REFERENCES if world.name == name)
    return case, wrong_claims(world, beside, size, runs=runs, seed=1)


def claims_text(found: Mapping[Case, Wrong]) -> str:
    """The table, in Markdown."""
    runs = next(iter(found.values())).runs
    sizes = [
        f"{messages} message{'' if messages == 1 else 's'}{'' if messages == 1 else f', ICC {icc:g}'}"
        for messages, icc in DEPENDENCE
    ]
    rows = [
        f"{runs} runs a number, in % of them. 2.5 is meant, and chance allows {100 * _most(runs):.1f} in most cases. "
        "Before the arrow: that Student's t of the pairs calls the other cell the larger one, and the smaller one, "
        "though both means are equal. After it: that what is printed is wrong. A claim about most repetitions is wrong "
        "where it names the side on which fewer of them are; where both cells are the same, each side is wrong.\n\n",
        f"| cells, repetitions | {' | '.join(sizes)} |\n|{' --- |' * (len(sizes) + 1)}\n",
    ]
    for world in REFERENCES:
        for beside in (STEADY, EQUAL):
            for units in UNITS:
                cells = [found[world.name, beside, Size(units, *of)] for of in DEPENDENCE]
                beside_what = "and a steady one" if beside == STEADY else "twice"
                rows.append(f"| {world.name} {beside_what}, {units} | {' | '.join(map(_shown, cells))} |\n")
    return "".join(rows)


def _shown(wrong: Wrong) -> str:
    before, after = ((wrong.t_smaller, wrong.t_larger), (wrong.smaller, wrong.larger))
    texts = [" / ".join(f"{100 * number / wrong.runs:.1f}" for number in pair) for pair in (before, after)]
    return " → ".join(texts)


def _most(runs: int) -> float:
    return LEVEL + 1.96 * float(np.sqrt(LEVEL * (1 - LEVEL) / runs))
