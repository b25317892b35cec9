"""The table of coverage in docs/statistics-reference.md.

    python -m coverage.table docs/statistics-reference.md [--trials 2000]

tries every procedure on every distribution, size and dependence, and writes the shares between the markers
`<!-- table: coverage -->` and `<!-- end -->`, those of other intervals between `<!-- table: further -->` and the next
end, how often claims are wrong between `<!-- table: claims -->` and the next, those of absence after
`<!-- table: absences -->`, how often families of statements have a wrong verdict after `<!-- table: verdicts -->`, what
loss bursts do after `<!-- table: bursts -->`, and real repetitions in virtual time after `<!-- table: elements -->`.
Every number is seeded: the same program gives the same table. `--only further` leaves the others as they are. That of
the machine's clock, after `<!-- table: machine -->`, is made by `--only machine` alone, on an idle machine.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeVar

from coverage.absences import all_cases as all_absences
from coverage.absences import passed
from coverage.absences import text_of as absences_text
from coverage.bursts import all_cases as all_bursts
from coverage.bursts import bursts_text
from coverage.bursts import tried as tried_bursts
from coverage.claims import all_cases, claims_text, tried
from coverage.elements import elements, elements_text
from coverage.elements import tried as tried_element
from coverage.further_table import all_tasks, further_found, further_text
from coverage.procedures import FACTOR, LEVEL, MARGIN, PERMUTED, tallies
from coverage.tally import Tally, shown
from coverage.verdicts import all_cases as all_families
from coverage.verdicts import tried as tried_family
from coverage.verdicts import verdicts_text
from coverage.worlds import SHARED, WORLDS, Size
from crosswind.text.sections import fill_sections

UNITS = (3, 5, 10, 20, 30, 100)
DEPENDENCE = ((1, 0.0), (100, 0.0), (100, 0.2))
"""Messages in a repetition, and the correlation that they have in common."""

ESTIMATES = ("mean", "trimmed", "median", "p95", "p99", "share 10 %", "share 1 %")
COMPARISONS = (
    "difference", "ratio", "unpaired", "median, paired", "p95, paired", "shift", "shift, unpaired", "Cliff",
)  # fmt: skip
TESTS = ("false alarm", "false alarm, unpaired", "TOST error", "power", "power, unpaired")

TABLES = ("coverage", "further", "claims", "absences", "verdicts", "bursts", "elements", "machine")

Cell = tuple[str, Size]
Key = TypeVar("Key")
Found = TypeVar("Found")


def all_cells() -> list[Cell]:
    """Every distribution with every size."""
    sizes = [Size(units, messages, icc) for (messages, icc), units in product(DEPENDENCE, UNITS)]
    return [(world.name, size) for size, world in product(sizes, WORLDS)]


def measured(cell: Cell, trials: int) -> tuple[Cell, dict[str, Tally]]:
    """What came of every procedure in one cell."""
    world = next(world for world in WORLDS if world.name == cell[0])
    return cell, tallies(world, cell[1], trials=trials, seed=1)


def text_of(found: Mapping[Cell, Mapping[str, Tally]], trials: int) -> str:
    """The tables, in Markdown."""
    tested = f"{trials // PERMUTED} for permutation tests"
    parts = [
        f"{trials} runs a number ({tested}), so that one of .950 comes out between "
        f"{LEVEL - 1.96 * (LEVEL * (1 - LEVEL) / trials) ** 0.5:.3f} and "
        f"{LEVEL + 1.96 * (LEVEL * (1 - LEVEL) / trials) ** 0.5:.3f} in 19 of 20 cases. – : no interval, by design; "
        "≥ : a lower limit alone, by design; * : more than 1 % of the intervals have one end. The other cell is "
        f"{FACTOR} times the first one for differences, ratios, power and the error of equivalence (the share of runs "
        f"that are called equivalent within {MARGIN:.0%}, where it is exactly that); it has the same distribution for "
        f"all else. Scores of cells with the same seeds correlate by {SHARED}.\n"
    ]
    for messages, icc in DEPENDENCE:
        size = "One message" if messages == 1 else f"{messages} messages"
        alike = "" if messages == 1 else f", ICC {icc:g}"
        for names in (ESTIMATES, COMPARISONS, TESTS):
            what = "tests" if names is TESTS else "intervals"
            parts.append(f"\n{size} a repetition{alike}: {what}\n\n{''.join(_rows(found, messages, icc, names))}")
    return "".join(parts)


def _rows(
    found: Mapping[Cell, Mapping[str, Tally]], messages: int, icc: float, names: tuple[str, ...]
) -> Iterator[str]:
    yield f"| repetitions | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}\n"
    for world, units in product(WORLDS, UNITS):
        tally = found[world.name, Size(units, messages, icc)]
        numbers = [shown(tally[name], is_test=names is TESTS) for name in names]
        yield f"| {world.name}, {units} | {' | '.join(numbers)} |\n"


def main() -> None:
    """Write the tables into a page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=Path)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument("--runs", type=Path, default=Path("crosswind-runs/coverage"), help="where real runs are kept")
    asked = parser.parse_args()
    texts: dict[str, str] = {}
    with ProcessPoolExecutor() as pool:
        if asked.only in (None, "coverage"):
            cells = all_cells()
            made = pool.map(measured, cells, [asked.trials] * len(cells))
            texts["coverage"] = text_of(_told(made, len(cells)), asked.trials)
        if asked.only in (None, "further"):
            found = _told(further_found(pool, asked.trials), len(all_tasks()))
            texts["further"] = further_text(found, asked.trials)
        if asked.only in (None, "claims"):
            texts["claims"] = claims_text(_told(pool.map(tried, all_cases()), len(all_cases())))
        if asked.only in (None, "absences"):
            cases = list(all_absences())
            texts["absences"] = absences_text(_told(pool.map(passed, cases), len(cases)))
        if asked.only in (None, "verdicts"):
            families = all_families()
            texts["verdicts"] = verdicts_text(_told(pool.map(tried_family, families), len(families)))
        if asked.only in (None, "bursts"):
            bursts = all_bursts()
            texts["bursts"] = bursts_text(_told(pool.map(tried_bursts, bursts), len(bursts)))
        for name in ("elements", "machine"):
            if asked.only == name or (asked.only is None and name != "machine"):
                cells_of_table = elements(name)
                for element in cells_of_table:
                    element.run(asked.runs)
                judged = pool.map(tried_element, cells_of_table, [asked.runs] * len(cells_of_table))
                texts[name] = elements_text(_told(judged, len(cells_of_table)))
    page = asked.page.read_text(encoding="utf-8")
    kept = {name: partial(_section, page, name) for name in TABLES}
    filled = {name: (lambda text=texts[name]: text) if name in texts else kept[name] for name in kept}
    asked.page.write_text(fill_sections(page, "table", filled), encoding="utf-8")


def _told(found: Iterable[tuple[Key, Found]], count: int) -> dict[Key, Found]:
    """What came of everything; says how far it is."""
    known = {}
    for done, (name, tally) in enumerate(found, start=1):
        known[name] = tally
        print(f"{done} of {count}: {name}", flush=True)
    return known


def _section(page: str, name: str) -> str:
    """What a section of the page has now."""
    return page.split(f"<!-- table: {name} -->\n", 1)[1].split("<!-- end -->", 1)[0]


if __name__ == "__main__":
    main()
