"""How often a change is wrongly said to be no larger than a margin that it just has; and how often equal cells are.

A share of repetitions has an event, as a lost packet whose timer is waited for. Of the reference none has, of the other
cell so many that its mean lies just at the margin, or half of it beyond. Equal cells have the events of the same losses
(paired), or of others.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from crosswind.decisions.judge import OfEffect
from crosswind.decisions.statement import Range
from crosswind.stats.arrays import Array
from crosswind.stats.chance import Chance
from crosswind.stats.design import Design, Tail
from crosswind.stats.differences import Side, ratio
from crosswind.stats.repetitions import Repetitions

UNITS = (3, 5, 6, 10, 20, 30, 100)
SHARES = (0.003, 0.01, 0.03, 0.1, 0.3)
TAILS = ("equal", "doubled", "exponential")
"""Distribution of the event cost: constant, a timer doubled in 10 % of cases, exponential."""
BASE, SPREAD, COST = 100.0, 0.5, 200.0
"""Mean and standard deviation of a repetition without an event; mean cost of an event."""
POWER_MARGIN = 0.1
POWER_COSTS = (25.0, 50.0, 200.0)
RUNS = 500
BEYOND = (1.0, 1.5)
"""The true change, in margins."""


@dataclass(frozen=True)
class Case:
    """What is tried. Attributes: kind: a claim that is wrong ("at", with `beyond`), or of equal cells."""

    kind: str
    tail: str
    share: float
    units: int
    beyond: float = 1.0
    cost: float = COST


def all_cases() -> Iterator[Case]:
    """Every distribution with every size."""
    for tail, share, units, beyond in product(TAILS, SHARES, UNITS, BEYOND):
        yield Case("at", tail, share, units, beyond)
    for kind, cost, share, units in product(("paired", "unpaired"), POWER_COSTS, SHARES, UNITS):
        yield Case(kind, "equal", share, units, cost=cost)


def passes(case: Case, *, runs: int = RUNS, seed: int = 1) -> float:
    """The share of runs judged as no larger."""
    rng = np.random.default_rng([seed, case.units, round(1000 * case.share), len(case.tail)])
    margin = POWER_MARGIN
    if case.kind == "at":
        margin = case.share * _mean_cost(case) / BASE / case.beyond
    found = 0
    for _ in range(runs):
        had = [rng.random(case.units) < case.share for _ in range(2)]
        reference, other = (events * _costs(case, rng) for events in had)
        if case.kind == "at":
            reference = np.zeros(case.units)
        elif case.kind == "paired":
            other = reference
        sides = [
            _side(costs, case, rng, apart=case.kind == "unpaired", number=at)
            for at, costs in enumerate((reference, other))
        ]
        number = OfEffect(ratio(*sides), Range(None, 1 + margin), math.log)
        found += number.shows(yes=True, alpha=0.05)
    return found / runs


def passed(case: Case) -> tuple[Case, float]:
    """A case with its share of passes."""
    return case, passes(case)


def text_of(found: Mapping[Case, float]) -> str:
    """The tables, in Markdown."""
    farther = max(found[case] for case in found if case.kind == "at" and case.beyond > 1)
    wrong = [(f"{tail} | {share:.1%}", Case("at", tail, share, UNITS[0])) for tail, share in product(TAILS, SHARES)]
    equal = [
        (f"{kind}, {cost / BASE:.0%} of the mean | {share:.1%}", Case(kind, "equal", share, UNITS[0], cost=cost))
        for kind, cost, share in product(("paired", "unpaired"), POWER_COSTS, SHARES)
    ]
    return (
        f"{RUNS} runs a number, in % of them. Said to be no larger, where the truth is just the margin; 2.5 is meant, "
        f"of which 3.9 is within what chance allows. At 1.5 margins it is {100 * farther:.1f} % at most.\n\n"
        f"{_table('what an event costs | of repetitions', wrong, found, '.1f')}\n"
        "Equal cells that are said to be within 10 %:\n\n"
        f"{_table('cells, cost of an event | of repetitions', equal, found, '.0f')}"
    )


def _table(heading: str, rows: Sequence[tuple[str, Case]], found: Mapping[Case, float], form: str) -> str:
    lines = [f"| {heading} | {' | '.join(map(str, UNITS))} |", "| --- " * (len(UNITS) + 2) + "|"]
    for name, first in rows:
        cells = (format(100 * found[replace(first, units=units)], form) for units in UNITS)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _costs(case: Case, rng: np.random.Generator) -> Array:
    if case.tail == "equal":
        return np.full(case.units, case.cost)
    if case.tail == "exponential":
        return rng.exponential(case.cost, case.units)
    return case.cost * (2.0 ** np.minimum(rng.geometric(0.9, case.units), 4) - 1)


def _mean_cost(case: Case) -> float:
    """The mean cost of at most four timers, each doubled in 10 % of cases."""
    if case.tail != "doubled":
        return case.cost
    chances = [0.9 * 0.1**k for k in range(3)] + [0.1**3]
    return case.cost * sum(chance * (2.0 ** (k + 1) - 1) for k, chance in enumerate(chances))


def _side(costs: Array, case: Case, rng: np.random.Generator, *, apart: bool, number: int) -> Side:
    values = BASE + SPREAD * rng.standard_normal(case.units) + costs
    chance = Chance(touched=int((costs > 0).sum()), more=_mean_cost(case), less=0.0)
    design = Design(Tail.SKEWED, 0.01, seen=chance.seen_from(case.units))
    keys = [(at, 1000 * number * apart + at) for at in range(case.units)]
    return Side(Repetitions.of(values, keys=keys), design, event=lambda *_: chance)
