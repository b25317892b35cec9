"""Compares what this tree and an earlier commit say: exits with 1 where they differ without a reason.

    make golden BASE=COMMIT [ONLY=TEXT]

Reasons are in reasons.toml: `[[reason]]` with `subject` and `output`, regular expressions that match the whole name,
optionally `removed` and `added`, that match every line that differs, and `why`. Everything is kept in target/golden. A
side whose kernel is not in the user's cache has it in its target/kernels.
"""

import argparse
import difflib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from golden.runs import make_runs
from golden.sides import ROOT, Side, earlier_tree, this_tree
from golden.subjects import HERE, Subject, subjects

SHOWN_LINES = 12
"""Of the difference of an output."""


@dataclass(frozen=True)
class Difference:
    """An output that differs. Attributes: lines: of the difference, with - or + first."""

    subject: str
    output: str
    lines: Sequence[str]

    def is_explained_by(self, reason: Mapping[str, str]) -> bool:
        """Whether a reason is about all of it."""
        if not (re.fullmatch(reason["subject"], self.subject) and re.fullmatch(reason["output"], self.output)):
            return False
        known = {"-": reason.get("removed", ".*"), "+": reason.get("added", ".*")}
        return all(re.fullmatch(known[line[0]], line[1:]) for line in self.lines)


def compared(subject: Subject, sides: Sequence[Side]) -> tuple[int, list[Difference]]:
    """How many outputs a subject has, and those that differ."""
    base, now = (subject.make(side) for side in sides)
    names = list(dict.fromkeys([*base, *now]))
    changed = [name for name in names if base.get(name) != now.get(name)]
    return len(names), [
        Difference(subject.name, name, list(_lines(base.get(name, ""), now.get(name, "")))) for name in changed
    ]


def _lines(base: str, now: str) -> Iterator[str]:
    for line in difflib.unified_diff(base.splitlines(), now.splitlines(), n=0, lineterm=""):
        if line[0] in "-+" and not line.startswith(("---", "+++")):
            yield line


def main() -> int:
    """Compares, and prints each difference with its reason, or what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("base", help="the commit")
    parser.add_argument("--only", default="", help="a part of subjects' names")
    parser.add_argument("--home", type=Path, default=ROOT / "target" / "golden")
    parser.add_argument("--built", action="store_true", help="crosswind-cell of this tree is current")
    asked = parser.parse_args()
    reasons = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8")).get("reason", [])
    sides = earlier_tree(asked.base, asked.home), this_tree(asked.home, is_built=asked.built)
    for side in sides:
        side.home.mkdir(parents=True, exist_ok=True)
    runs = asked.home / "runs" / sides[0].root.name
    make_runs(sides[0], runs)
    chosen = [subject for subject in subjects(sides[0], runs) if asked.only in subject.name]
    with ThreadPoolExecutor(2) as pool:
        made = []
        for subject, found in zip(chosen, pool.map(lambda subject: compared(subject, sides), chosen), strict=True):
            made.append(found)
            if found[1]:
                print(f"{subject.name}: {len(found[1])} of {found[0]} outputs differ", file=sys.stderr, flush=True)
    outputs, differences = sum(count for count, _ in made), [difference for _, found in made for difference in found]
    open_ = 0
    for difference in differences:
        reason = next((reason for reason in reasons if difference.is_explained_by(reason)), None)
        open_ += reason is None
        print(f"{difference.subject}, {difference.output}: {len(difference.lines)} lines differ", end="")
        print(
            f": {reason['why']}" if reason else "\n" + "\n".join(line[:300] for line in difference.lines[:SHOWN_LINES])
        )
    print(f"{len(chosen)} subjects, {outputs} outputs: {len(differences)} differ, {open_} without a reason")
    return 1 if open_ else 0


if __name__ == "__main__":
    raise SystemExit(main())
