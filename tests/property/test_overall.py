"""A comparison's sentence beside the raw times of both cells: 500 pairs with the shapes of real runs.

Websocket and WebTransport over a ladder of networks, in virtual time: most repetitions near 42 ms, one of ten stalled
for 15 to 20 s; UDP beside TCP at 2 % loss: 4 % missing, TCP's tail a timer; cells without a success; invalid cells.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared
from crosswind.analysis.estimates import estimates_of
from crosswind.analysis.result import CellResult
from crosswind.catalog.metrics import METRICS
from crosswind.report.text import overall
from crosswind.report.text.overall import Measured, overall_sentence
from crosswind.stats.estimate import Interval
from crosswind.stats.repetitions import Repetitions
from records import MS, echoes, runs

RTT = METRICS["rtt"]
MESSAGES = 40
TIMEOUT_MS = 30_000.0
PAIRS = 500

Times = np.ndarray
"""Shape (repetitions, messages), in ms; a timeout is infinite."""


@dataclass(frozen=True)
class Cell:
    """Raw times of a cell, and whether one of its repetitions was invalid."""

    times: Times
    is_valid: bool = True
    is_lossy: bool = True

    @property
    def ok(self) -> np.ndarray:
        return self.times[np.isfinite(self.times)]

    @property
    def failed(self) -> int:
        return int(np.isinf(self.times).sum())


def steady(draw: np.random.Generator, repetitions: int, scale: float) -> Times:
    return 42 * scale * np.exp(draw.normal(0, draw.choice([0.0, 0.002, 0.05, 0.3]), (repetitions, MESSAGES)))


def stalled(draw: np.random.Generator, repetitions: int, scale: float) -> Times:
    times = steady(draw, repetitions, scale)
    times[draw.integers(repetitions), : draw.integers(1, MESSAGES)] = draw.uniform(14_000, 17_000)
    return times


def timers(draw: np.random.Generator, repetitions: int, scale: float) -> Times:
    times = steady(draw, repetitions, scale)
    return times + draw.choice([0.0, 208.0], p=[0.9, 0.1], size=times.shape)


def lossy(draw: np.random.Generator, repetitions: int, scale: float) -> Times:
    times = steady(draw, repetitions, scale)
    times[draw.random(times.shape) < draw.choice([0.01, 0.04, 0.2, 0.7])] = np.inf
    return times


def fruitless(draw: np.random.Generator, repetitions: int, scale: float) -> Times:
    del draw, scale
    return np.full((repetitions, MESSAGES), np.inf)


SHAPES = (steady, stalled, timers, lossy, fruitless)


def pairs() -> Iterator[tuple[Cell, Cell]]:
    """Pairs with equally many repetitions, 1 to 20; a tenth are equal, and a tenth have an invalid cell."""
    draw = np.random.default_rng(51)
    for _ in range(PAIRS):
        repetitions = int(draw.choice([1, 2, 5, 10, 20]))
        scale = draw.choice([0.2, 0.9, 0.98, 1.0, 1.02, 1.5])
        shapes = draw.choice(len(SHAPES), size=2, p=[0.4, 0.2, 0.2, 0.15, 0.05])
        times = [SHAPES[shape](draw, repetitions, by) for shape, by in zip(shapes, (1.0, scale), strict=True)]
        if draw.random() < 0.1:
            times[1] = times[0].copy()
        invalid, is_lossy = draw.random(2) < 0.05, bool(draw.random() < 0.5)
        yield Cell(times[0], not invalid[0], is_lossy), Cell(times[1], not invalid[1], is_lossy)


TEMPLATES = [
    runs(0, [echoes([42 * MS])] * 20, {}, parameters={
        "workload": {"kind": "echo", "transport": "tcp", "timeout_ns": int(TIMEOUT_MS) * MS},
        "path": {way: {"loss": loss} for way in ("forward", "reverse")},
        "host": {"clock": "virtual"},
    })
    for loss in (0.0, 0.01)
]  # fmt: skip
"""Repetitions without loss, of whose means Student's t is known, and with it."""


def data_of(number: int, cell: Cell) -> CellData:
    members = np.repeat(np.arange(len(cell.times)), np.isfinite(cell.times).sum(axis=1))
    units = Repetitions.of(
        1e6 * cell.ok,
        members,
        keys=[(at, at) for at in range(len(cell.times))],
        censored=[int(np.isinf(own).sum()) for own in cell.times],
        limit=TIMEOUT_MS * MS,
    )
    samples = {"rtt": units} if cell.ok.size else {}
    return CellData(number, {"workload.transport": "ab"[number]}, TEMPLATES[cell.is_lossy][: len(cell.times)], samples)


def measured(name: str, data: CellData, cell: Cell) -> Measured:
    result = CellResult.model_construct(
        estimates=estimates_of(data, level=0.95),
        n=cell.times.size,
        lost=cell.failed,
        repetitions=len(cell.times),
        valid=cell.is_valid,
    )
    return Measured.of(name, result, RTT)


def effect(reference: CellData, other: CellData) -> Interval:
    if "rtt" not in reference.samples or "rtt" not in other.samples:
        return Interval(None, None, None, 0, 0.95, "none")
    return compared(reference.side("rtt"), other.side("rtt"), "mean", is_ratio=True, level=0.95).estimate


def sentences(pair: tuple[Cell, Cell]) -> tuple[str, str]:
    """The sentence, and the one with the levels swapped."""
    data = [data_of(number, cell) for number, cell in enumerate(pair)]
    sides = [measured(name, *of) for name, *of in zip("ab", data, pair, strict=True)]
    straight = overall_sentence((sides[0], sides[1]), RTT, "mean", effect(data[0], data[1]))
    return straight, overall_sentence((sides[1], sides[0]), RTT, "mean", effect(data[1], data[0]))


FASTER = re.compile(
    r"\b([ab]) is (?:exactly )?([\d.\u202f]+)?.*?times.*? as fast as ([ab])(?: in ([a-z0-9 ]+?))?(?=[;,]|$)"
)
ALSO = re.compile(r"; ([ab]) is faster in ([^;]+?)(?=; |, but|$)")


def in_most(cell: Cell, other: Cell) -> bool:
    """Whether its mean is not above the other's in the median repetition."""
    with np.errstate(invalid="ignore"):
        means = [np.nanmean(np.where(np.isfinite(of.times), of.times, np.nan), axis=1) for of in (cell, other)]
    return bool(np.nanmedian(means[0] / means[1]) <= 1.01)


BY: dict[str, Callable[[Cell], float]] = {
    "mean": lambda cell: float(cell.ok.mean()),
    "the slowest exchange": lambda cell: float(cell.ok.max()),
}


def quantile(cell: Cell, q: float) -> float:
    return float(np.quantile(cell.times, q, method="nearest"))


QUANTILES = {"median": 0.5, "p95": 0.95}


def is_better(name: str, respect: str, cells: dict[str, Cell]) -> bool:
    """Whether a level is better in a respect, by the raw times."""
    own, other = cells[name], cells["ab".replace(name, "")]
    if respect.endswith(" repetition") or respect.endswith(" repetitions"):
        return in_most(own, other)
    if respect in QUANTILES:
        # Definitions of a quantile differ by a value.
        q = QUANTILES[respect]
        return quantile(own, q - 0.01) <= quantile(other, q + 0.01)
    return BY[respect](own) <= BY[respect](other) * (1 + 1e-6)


def lies(said: str, pair: tuple[Cell, Cell]) -> list[str]:
    """What a sentence says and raw times do not."""
    cells = dict(zip("ab", pair, strict=True))
    wrong = []
    if not all(cell.is_valid for cell in pair):
        return [] if said.endswith("no comparison") and "fast" not in said else ["it compares invalid cells"]
    if any(cell.failed == cell.times.size for cell in pair):
        return [] if said.startswith("no exchange succeeds with") and "as fast" not in said else ["nothing succeeded"]
    for name, cell in cells.items():
        counted = f"({cell.failed:,} of {cell.times.size:,})".replace(",", "\u202f")
        if cell.failed and counted not in said:
            wrong.append(f"{name} has failures")
        long = (cell.times >= max(1000, 10 * np.median(cell.ok))) & np.isfinite(cell.times)
        if long.any() and not re.search(rf"stalls? in .*\b{int(long.any(axis=1).sum())}\b", said):
            wrong.append(f"{name} stalls")
    plain = FASTER.search(said)
    if plain is not None and plain[2]:
        if plain[4] is None:
            named = ["mean", *(["p95"] if pair[0].times.size >= 200 else [])]
            if any(cell.failed for cell in pair) and "of the others" not in said:
                wrong.append("without restriction, though exchanges are missing")
        else:
            named = [plain[4]]
        wrong += [f"{plain[1]} is not better in {name}" for name in named if not is_better(plain[1], name, cells)]
    for name, other in ("ab", "ba") if plain is not None else ():
        better = quantile(cells[name], 0.95) < 0.5 * quantile(cells[other], 0.95)
        hidden = plain is not None and plain[1] == other and not re.search("p95|stall|fails|slowest", said)
        if better and hidden:
            wrong.append(f"{name} has the better tail")
    for name, listed in ALSO.findall(said):
        respects = re.split(r", | and ", re.sub(r" \([^)]*\)", "", listed))
        wrong += [f"{name} is not better in {by}" for by in respects if not is_better(name, by.strip(), cells)]
    return wrong


def facts(said: str) -> set[str]:
    """The statements of a sentence, whatever their order and the last digits of their numbers.

    Equal levels, and those of which one thing is true, may stand in either order.
    """
    parts = [re.sub(r"[\d.]+", "#", part).strip() for part in re.split(r"; |, but ", said)]
    alike = re.compile(r"is (almost |exactly )?as fast as|each fail|are invalid|succeeds with \w or")
    return {" ".join(sorted(part.split())) if alike.search(part) else part for part in parts}


def kind_of(said: str) -> str:
    words = ("invalid", "succeeds", "fail", "stall", "faster in", "not decided", "times as fast", "as fast")
    return next(word for word in words if word in said)


def test_the_sentence_says_what_raw_times_do_whatever_the_order_of_levels() -> None:
    kinds: Counter[str] = Counter()
    for pair in pairs():
        said, turned = sentences(pair)
        assert lies(said, pair) == [], said
        assert facts(said) == facts(turned), (said, turned)
        assert "fast" not in sentences((replace(pair[0], is_valid=False), pair[1]))[0]
        kinds[kind_of(said)] += 1
    # Every form is there, none by chance alone.
    assert len(kinds) == 8 and min(kinds.values()) >= 5, kinds


def test_without_limits_nothing_is_shown() -> None:
    """One repetition, or a quantile with a single limit, may be said to differ, and not that it is shown."""

    def side(name: str, p95: Interval) -> Measured:
        mean = Interval(10.0, 9.0, 11.0, 100, 0.95, "t")
        return Measured(name, {"mean": mean, "p95": p95}, None, 100, 0, 0, 10)

    ratio = Interval(0.9, 0.8, 0.95, 100, 0.95, "t")
    fast, slow = Interval(20.0, 18.0, None, 100, 0.95, "w"), Interval(90.0, 80.0, None, 100, 0.95, "w")
    said = overall_sentence((side("a", fast), side("b", slow)), RTT, "mean", ratio)
    assert said == "b is 1.11 [1.05, 1.25] times as fast as a in mean; p95 is not decided"
    known = replace(fast, high=22.0)
    said = overall_sentence((side("a", known), side("b", slow)), RTT, "mean", ratio)
    assert said == "b is 1.11 [1.05, 1.25] times as fast as a in mean; a is faster in p95 (4.50 times)"


def test_mutants_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        return sum(bool(lies(sentences(pair)[0], pair)) for pair in islice(pairs(), 250))

    whole = Measured.of.__func__
    with monkeypatch.context() as mutant:
        mutant.setattr(overall, "TAIL", "mean")
        mutant.setattr(overall, "_LOOKED_AT", ("mean",))
        mutant.setattr(overall, "_by_slowest", lambda *_: [])
        assert broken() > 3
    with monkeypatch.context() as mutant:
        mutant.setattr(Measured, "of", classmethod(lambda cls, name, *of: whole(cls, "ba"["ab".index(name)], *of)))
        assert broken() > 3
    with monkeypatch.context() as mutant:
        mutant.setattr(Measured, "of", classmethod(lambda cls, *of: replace(whole(cls, *of), is_valid=True)))
        assert broken() > 3
