"""Losses that come together in time: how often intervals of shares, quantiles and means hold, and claims are wrong.

A path is good and bad in turn, each for an exponentially distributed time (Gilbert). Messages leave every 100 ms. A
datagram of a bad period is lost; a segment waits for the end of the period and a timer, so that delays come together
too. Where a bad period loses a tenth alone, a segment waits for its timer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from cell_events import finished
from coverage.resampled import Number, Outcomes, Pool, judged
from crosswind.analysis.cells import collect
from crosswind.catalog.path_effect import DirectionEffect, PathEffect
from crosswind.stats.arrays import Array
from records import MS, echoes, record, run

SPACING_S = 0.1
BASE_NS, NOISE_NS = 40.0 * MS, 0.5 * MS
TIMER_NS = 200.0 * MS
REPETITIONS = 2000
"""Of a pool."""


@dataclass(frozen=True)
class World:
    """Mean times of both states, and the loss in the bad one. transport: "udp" loses, "tcp" delays."""

    transport: str
    bad_s: float
    good_s: float
    loss_in_bad: float = 1.0

    @property
    def bad(self) -> float:
        """The share of time in the bad state."""
        return self.bad_s / (self.bad_s + self.good_s)

    @property
    def effect(self) -> DirectionEffect:
        """What its direction does, as crosswind-cell says it."""
        memory_s = self.bad_s * self.good_s / (self.bad_s + self.good_s)
        return DirectionEffect(
            delay_ns=20 * MS,
            loss=self.bad * self.loss_in_bad,
            loss_after_loss=self.loss_in_bad,
            loss_memory_ns=round(1e9 * memory_s),
        )

    def bursts(self, duration_s: float) -> float:
        """Expected bad periods of a repetition."""
        return duration_s / (self.bad_s + self.good_s)


@cache
def pool_of(world: World, duration_s: float, *, seed: int = 1, repetitions: int = REPETITIONS) -> Pool:
    """Repetitions of a world."""
    rng = np.random.default_rng([seed, round(1000 * world.bad_s), round(1000 * world.good_s), round(duration_s)])
    workload = {"kind": "echo", "transport": world.transport, "mode": "open", "rate_per_s": 1 / SPACING_S}
    both = PathEffect(world.effect, DirectionEffect(delay_ns=20 * MS))
    runs = []
    for at in range(repetitions):
        lost, remaining_s = _losses(world, duration_s, rng)
        rtt = BASE_NS + NOISE_NS * rng.standard_normal(lost.size)
        late = rtt + lost * (TIMER_NS * rng.uniform(1, 1.1, lost.size) + 1e9 * remaining_s * (world.loss_in_bad == 1))
        values = late if world.transport == "tcp" else np.where(lost, np.nan, rtt)
        end = finished(elapsed_ns=round(1e9 * duration_s)).model_dump(by_alias=True)
        end["ledger"]["forward"] |= {"in": lost.size, "dropped": {"loss": int(lost.sum())}}
        samples = echoes([None if np.isnan(value) else int(value) for value in values])
        runs.append(run(0, samples, repetition=at, parameters={"workload": workload}, end=end))
    made = record(*(type(one)(**{**vars(one), "effect": both}) for one in runs))
    return Pool(collect(made)[0])


def _losses(world: World, duration_s: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Of each message whether it is lost, and the time until the end of its bad period."""
    at = np.arange(0.0, duration_s, SPACING_S)
    is_bad = rng.random() < world.bad
    changes = [0.0]
    while changes[-1] <= duration_s:
        mean = world.bad_s if is_bad == (len(changes) % 2 == 1) else world.good_s
        changes.append(changes[-1] + rng.exponential(mean))
    period = np.searchsorted(changes, at, side="right")
    bad = (period % 2 == 1) == is_bad
    lost = bad & (rng.random(at.size) < world.loss_in_bad)
    return lost, np.where(bad, np.array(changes)[period] - at, 0.0)


UNITS = (3, 5, 10, 20, 30, 100)
DURATIONS_S = (5.0, 20.0, 60.0)
DRAWS = 500

SHARE: Number = ("lost", "mean")
P95: Number = ("rtt", "p95")
MEAN: Number = ("rtt", "mean")
CASES: tuple[tuple[Number, World], ...] = (
    *((SHARE, World("udp", *times)) for times in ((2.0, 98.0), (0.5, 9.5), (0.2, 20.0))),
    *((P95, World("tcp", *times)) for times in ((0.5, 9.5), (2.0, 38.0))),
    *((number, World("tcp", 5.0, 5.0, 0.1)) for number in (P95, MEAN)),
)
"""Shares lost, and times of which about 5 % are delayed: means have a variance where few retransmissions are lost."""

Case = tuple[Number, World, float]
Found = dict[tuple[int, bool], Outcomes]
"""By repetitions, and whether a minimum holds."""


def all_cases() -> list[Case]:
    """Every statistic with every path and duration."""
    return [(number, world, duration) for (number, world), duration in product(CASES, DURATIONS_S)]


def tried(case: Case) -> tuple[Case, Found]:
    """What became of a statistic, without and with the minimum."""
    number, world, duration = case
    pool = pool_of(world, duration)
    found = {}
    for units, has_bursts in product(UNITS, (False, True)):
        if has_bursts and units < pool.data.least_of_bursts:
            found[units, has_bursts] = Outcomes(DRAWS)
        else:
            of_rule = Pool(pool.data, has_bursts)
            made = judged(of_rule, [number], units, draws=DRAWS, seed=1)
            found[units, has_bursts] = made[number]
    pool_of.cache_clear()
    return case, found


def bursts_text(found: Mapping[Case, Found]) -> str:
    """The table, in Markdown."""
    lines = [
        f"{DRAWS} draws a number, of {REPETITIONS} repetitions. Coverage, a pass at the bound and at two thirds of it, "
        "in % of draws; without the minimum → with it. – : no interval; in brackets, the draws with one.\n",
        f"| statistic, bad / good, repetition | {' | '.join(map(str, UNITS))} |",
        "| --- " * (len(UNITS) + 1) + "|",
    ]
    for case, outcomes in found.items():
        (name, statistic), world, duration = case
        what = f"share({name})" if name == "lost" else f"{statistic}({name})"
        loss = "" if world.loss_in_bad == 1 else f", loss {world.loss_in_bad:.0%}"
        cells = [" → ".join(_shown(outcomes[units, rule]) for rule in (False, True)) for units in UNITS]
        times = f"{world.bad_s:g} / {world.good_s:g} s{loss}"
        lines.append(f"| {what}, {times}, {duration:g} s | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shown(of: Outcomes) -> str:
    if of.coverage is None:
        return "–"
    numbers = [of.coverage, of.above / of.draws, of.farther / of.draws]
    given = "" if of.given == of.draws else f" ({100 * of.given / of.draws:.0f})"
    return " ".join(f"{100 * number:.1f}" for number in numbers) + given
