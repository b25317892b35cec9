"""The second table of docs/statistics-reference.md: intervals that are printed beside those of every comparison."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from itertools import product

from coverage.curves import TRUE, fitted
from coverage.formulas import COEFFICIENTS, formulas
from coverage.further import COMPARED, SHARES, compared, shares
from coverage.looks import LOOKS, STATISTICS, looked_at
from coverage.tally import Tally, shown
from coverage.worlds import WORLDS, Size

UNITS = (5, 10, 30, 100)
FEW = 3
"""Repetitions that a curve takes at least."""
DEPENDENCE = ((1, 0.0), (100, 0.0), (100, 0.2))
SIZES = tuple(Size(units, messages, icc) for (messages, icc), units in product(DEPENDENCE, UNITS))
FORMULAS = tuple((world, Size(units, 1, 0.0)) for world, units in product(WORLDS, (5, 20, 150)))
FEWER = {"curves": 2}
"""For one trial of these there are so many of the others, which take less time."""

_SEED = 1
_ACTS = {"compared": compared, "looks": looked_at, "curves": fitted, "formulas": formulas}

Task = tuple[str, str, Size]
"""What is tried, the distribution (none of shares), and the size."""
Found = Mapping[Task, Mapping[str, Tally]]


def all_tasks() -> list[Task]:
    """All that the table takes, what takes longest first."""
    curves = [*SIZES, *(Size(FEW, messages, icc) for messages, icc in DEPENDENCE)]
    return [
        *(("formulas", world.name, size) for world, size in FORMULAS),
        *(("curves", world.name, size) for world, size in product(WORLDS, curves)),
        *((name, world.name, size) for name, world, size in product(("compared", "looks"), WORLDS, SIZES)),
        *(("shares", "", size) for size in SIZES),
    ]


def measured(task: Task, trials: int) -> tuple[Task, dict[str, Tally]]:
    """What came of a task."""
    name, world, size = task
    if name == "shares":
        return task, shares(size, trials=trials, seed=_SEED)
    drawn = next(one for one in WORLDS if one.name == world)
    return task, _ACTS[name](drawn, size, trials=max(1, trials // FEWER.get(name, 1)), seed=_SEED)


def further_found(pool: Executor, trials: int) -> Iterator[tuple[Task, dict[str, Tally]]]:
    """What came of every task, as soon as it is known."""
    tasks = all_tasks()
    yield from pool.map(measured, tasks, [trials] * len(tasks))


def further_text(found: Found, trials: int) -> str:
    """The tables, in Markdown."""
    looks = f"{', '.join(map(str, LOOKS[:4]))}, ..., {LOOKS[-1]}"
    parts = [
        f"{trials} runs a number, {trials // FEWER['curves']} of curves; distributions and signs are those of "
        f"the table above. Repeated looks: the interval with which a run ends that looks at {looks} repetitions, and "
        "wants the width that a fixed design reaches with as many as the row says; of medians and p95 that of the mean "
        "of the repetitions' own. Curves: a, b and c of a + b·e^(c·p) through six losses.\n"
    ]
    for messages, icc in DEPENDENCE:
        size = "One message" if messages == 1 else f"{messages} messages"
        alike = "" if messages == 1 else f", ICC {icc:g}"
        parts.append(f"\n{size} a repetition{alike}: by other statistics\n\n")
        parts += _rows(found, {"compared": COMPARED}, messages, icc, UNITS)
        parts.append(f"\n{size} a repetition{alike}: repeated looks, and curves\n\n")
        parts += _rows(found, {"looks": STATISTICS, "curves": tuple(TRUE)}, messages, icc, (FEW, *UNITS))
    parts.append("\nDifferences of two shares of exchanges\n\n")
    parts += _share_rows(found)
    parts.append(f"\nCoefficients of `crosswind fit`, {FORMULAS_TEXT}\n\n")
    parts += _formula_rows(found)
    return "".join(parts)


FORMULAS_TEXT = (
    "36 cells with one transfer a repetition, which lie 5 % about the formula; – where the design refuses it"
)


def _rows(
    found: Found, parts: Mapping[str, tuple[str, ...]], messages: int, icc: float, units: tuple[int, ...]
) -> Iterator[str]:
    columns = [(part, name) for part, names in parts.items() for name in names]
    yield _head("repetitions", [f"{name}, {part}" if len(parts) > 1 else name for part, name in columns])
    for world, number in product(WORLDS, units):
        size = Size(number, messages, icc)
        tried = [found.get((part, world.name, size), {}).get(name, Tally()) for part, name in columns]
        yield _row(f"{world.name}, {number}", tried)


def _share_rows(found: Found) -> Iterator[str]:
    columns = [f"{name}{how}" for name in SHARES for how in ("", ", unpaired")]
    yield _head("repetitions", columns)
    for size in SIZES:
        messages = "one exchange" if size.messages == 1 else f"{size.messages} exchanges, ICC {size.icc:g}"
        yield _row(f"{messages}, {size.units}", [found["shares", "", size][name] for name in columns])


def _formula_rows(found: Found) -> Iterator[str]:
    yield _head("coefficient", [f"{world.name}, {size.units}" for world, size in FORMULAS])
    for name in COEFFICIENTS:
        yield _row(name, [found["formulas", world.name, size][name] for world, size in FORMULAS])


def _head(first: str, names: list[str]) -> str:
    return f"| {first} | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}\n"


def _row(first: str, tried: list[Tally]) -> str:
    return f"| {first} | {' | '.join('–' if not tally.trials else shown(tally) for tally in tried)} |\n"
