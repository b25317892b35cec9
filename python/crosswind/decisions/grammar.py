"""The grammar of thresholds, wherever one is written: in a study, every command's `--fail-if`, the pytest plugin.

p95(rtt) > 200ms where path.loss = 2%, transport = tcp      a limit (or, with <, a minimum)
loss > 1%                                                   short for share(lost) > 1%
median(rtt) worse by 10%                                    a limit on the second run's change from the first
"""

import re
from dataclasses import dataclass

from crosswind.text.units import NUMBER

EXAMPLE = 'as "p95(rtt) > 200ms" or "share(lost) > 1% where loss = 2%"'
EXAMPLE_OF_CHANGE = 'as "p95(rtt) worse by 10%"'
SIGNS = ("<", "<=", ">", ">=")
COMPARATIVES = ("worse", "better", "differs")

_TEXT = re.compile(
    r"(?:(?P<statistic>[\w.]+) ?\( ?(?P<metric>\w+) ?\)|(?P<share>loss|lost|refused|answered))"
    r"(?: *(?P<sign>[<>]=?) *| +(?P<direction>\w+) +by +)"
    rf"(?P<number>-?{NUMBER}) ?(?P<unit>[^\s,]*)( +where +(?P<where>.+))?"
)
_PAIR = re.compile(r",| and ")


class GrammarError(ValueError):
    """A malformed threshold. hint: a correct one."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Written:
    """A threshold as written.

    Attributes: relation: one of SIGNS, or of DIRECTIONS for a change. number: as text. where: keys and levels.
    """

    text: str
    statistic: str
    metric: str
    relation: str
    number: str
    unit: str
    where: tuple[tuple[str, str], ...] = ()

    @property
    def is_change(self) -> bool:
        """Whether it is about two runs."""
        return self.relation in COMPARATIVES


def read(text: str) -> Written:
    """A threshold. Raises: GrammarError."""
    plain = " ".join(text.split())
    match = _TEXT.fullmatch(plain)
    if match is None:
        raise GrammarError("is not a threshold", f"{EXAMPLE}; of two runs {EXAMPLE_OF_CHANGE}")
    relation = match["sign"] or match["direction"]
    if relation not in (*SIGNS, *COMPARATIVES):
        raise GrammarError(f"{relation} is not a direction", f"one of {', '.join(COMPARATIVES)}")
    pairs = tuple(map(_pair, _PAIR.split(match["where"]))) if match["where"] else ()
    # "loss > 1%" is short for "share(lost) > 1%".
    statistic, metric = match["statistic"] or "share", match["metric"] or match["share"].replace("loss", "lost")
    return Written(plain, statistic, metric, relation, match["number"], match["unit"], pairs)


def read_bound(text: str) -> Written:
    """A threshold on one run. Raises: GrammarError, also for a comparison of two runs."""
    written = read(text)
    if written.is_change:
        raise GrammarError("compares two runs, and this is one", f"{EXAMPLE}; `crosswind compare` takes changes")
    return written


def _pair(text: str) -> tuple[str, str]:
    key, equals, level = (piece.strip() for piece in text.partition("="))
    if not (key and equals and level):
        raise GrammarError(f'"{text.strip()}" is not key = level', EXAMPLE)
    return key, level
