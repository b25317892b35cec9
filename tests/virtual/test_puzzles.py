"""Delays that people asked about in public, not knowing why: the table of docs/explain.md.

Each line's command is run, and has to be explained as it says. The times follow from round trips and the kernel's
constants: a sentence has three digits of each, the last column all of them where it is in ms.
"""

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from conftest import ROOT, requires
from crosswind.catalog.explained import Explained, Piece
from crosswind.cli.run import command
from crosswind.cli.settings import chosen
from crosswind.execution.virtual import virtual
from crosswind.report.text.explained import exchange_sentence
from e2e_cli import Cli
from linux.lab import Object
from virtual.conftest import requires_kernel
from virtual.lab import ADDED_NS

MS = 1_000_000


@dataclass(frozen=True)
class Puzzle:
    """A line of the table. lost: the packets to the server that are lost, as the file has them."""

    words: list[str]
    lost: str
    says: str
    takes: str


def puzzles() -> dict[str, Puzzle]:
    """Every line of the table, by what is asked."""
    _, _, text = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8").partition("\n## Puzzles\n")
    found = {}
    for line in text.partition("\n## ")[0].splitlines():
        if not line.startswith("| ") or "`crosswind " not in line:
            continue
        asked, shown, says, takes = (cell.strip() for cell in line.strip("|").split(" | "))
        lost = re.search("`echo (.*?) > lost`", shown)
        words = re.findall("`crosswind (.*?)`", shown)[0]
        found[asked] = Puzzle(shlex.split(words), lost[1] if lost else "", says, takes)
    return found


PUZZLES = puzzles()


def test_the_table_is_read() -> None:
    assert len(PUZZLES) == 16


@pytest.mark.parametrize("asked", PUZZLES)
def test_a_puzzle_is_explained(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    requires_kernel()
    puzzle = PUZZLES[asked]
    monkeypatch.chdir(tmp_path)
    Path("lost").write_text(puzzle.lost, encoding="ascii")
    if puzzle.words[0] == "run":
        explained = last_exchange(*puzzle.words[1:])
        sentence, whole_ns = exchange_sentence(explained), explained.whole_ns
    else:
        connection = longest_connection(Cli(tmp_path, capfd), puzzle.words)
        sentence, whole_ns = connection["sentence"], connection["whole_ns"]
    assert sentence == puzzle.says
    number, unit = puzzle.takes.rsplit(" ", 1)
    if unit == "ms":
        # Of twenty round trips at most, each with a wait or two.
        assert abs(whole_ns - float(number.replace(" ", "")) * MS) <= 2 * ADDED_NS
    else:
        assert (f"{whole_ns / 1e9:.3g}", unit) == (number, "s")


def last_exchange(*words: str) -> Explained:
    """The last exchange of what `crosswind run` means, in a cell of its own."""
    given = command.make_context("run", list(words)).params
    tables: dict[str, Any] = {"path": {}, "host": {}, "workload": {"kind": given["study"]}}
    for key, value in chosen(given).items():
        *places, name = key.split(".")
        table: Object = tables
        for place in places:
            table = table.setdefault(place, {})
        table[name] = value
    cell = virtual(tables["path"], workload=tables["workload"], host={"congestion_control": "cubic", **tables["host"]})
    row = cell.spent.row(-1, named=True)
    exchange, whole_ns = row.pop("exchange"), row.pop("whole_ns")
    pieces = cell.pieces.filter(exchange=exchange).drop("exchange")
    return Explained(
        key="", cell=0, repetition=0, levels={}, exchange=exchange, whole_ns=whole_ns,
        usual_ns=median(cell.spent["whole_ns"].to_list()),
        parts={name.removesuffix("_ns"): ns for name, ns in row.items() if ns},
        pieces=[Piece(**piece) for piece in pieces.iter_rows(named=True)],
    )  # fmt: skip


def longest_connection(crosswind: Cli, words: list[str]) -> dict[str, Any]:
    """The longest connection of `crosswind exec`."""
    if "dig" in words:
        requires("dig")
    local = [word.replace("python3", sys.executable).replace("docs/", f"{ROOT}/docs/") for word in words[1:]]
    crosswind("exec", "--output", "ran", *local)
    (longest,) = crosswind("explain", "ran", "--slowest", "1", "--json").json["connections"]
    return dict(longest)
