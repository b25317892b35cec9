"""What became of documents' statements, each over the choices that its document leaves open."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from crosswind.findings.question.result import Answer
from crosswind.findings.question.statement import decisive_case, needed, number_text
from crosswind.report.text.format import count
from crosswind.text.lists import begun, listed

_VERBS = {
    "yes": ("holds", "hold"),
    "no": ("does not hold", "do not hold"),
    "depends": ("depends on choices left open", "depend on choices left open"),
    "cannot tell": ("is inconclusive", "are inconclusive"),
}
"""Verdicts on one statement and on several, in order."""


@dataclass(frozen=True)
class Judged:
    """A document's statement. Attributes: answers: one for each choice; one alone without any."""

    answers: Sequence[Answer]

    @property
    def verdict(self) -> str:
        """Whether it holds with every choice, with none, or depends on them."""
        given = {answer.verdict for answer in self.answers}
        if len(given) == 1:
            return next(iter(given))
        return "depends" if {"yes", "no"} <= given else "cannot tell"

    @property
    def agrees_so_far(self) -> bool:
        """Whether only missing levels keep it from holding."""
        return all(answer.agrees_so_far or answer.verdict == "yes" for answer in self.answers) and self.verdict != "yes"

    @property
    def line(self) -> str:
        """The verdict, the statement, and what was measured."""
        first = self.answers[0]
        asks = first.asks.rstrip(".")
        if not first.choice:
            return f"Does not hold: {asks}. Measured: {_measured(first)}; needed: {needed(first)}."
        said = "; ".join(filter(None, (self._given(verdict) for verdict in _SAID)))
        ran = sum(bool(answer.cases or answer.instant) for answer in self.answers)
        word = _WORDS[self.verdict]
        needs = f"needed: {needed(first)} ({ran} of {len(self.answers)} choices run)"
        return f"{word}: {asks}. {begun(said)}; {needs}."

    def _given(self, verdict: str) -> str:
        named = [f"{answer.choice} ({_measured(answer)})" for answer in self.answers if answer.verdict == verdict]
        return f"{_SAID[verdict]} {listed(named)}" if named else ""


DEPENDS = "Depends"
_WORDS = {"yes": "Holds", "no": "Does not hold", "depends": DEPENDS, "cannot tell": "Inconclusive"}
"""Verdicts over all choices."""
_SAID = {"yes": "holds with", "no": "not with", "cannot tell": "inconclusive with"}
"""Verdicts before choices."""


def statements_of(answers: Iterable[Answer]) -> list[Judged]:
    """Documents' statements, in order."""
    groups: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        if answer.source:
            groups.setdefault(_key(answer), []).append(answer)
    return [Judged(group) for group in groups.values()]


def with_joint(answers: Sequence[Answer]) -> list[Answer]:
    """The answers; each choice's has the verdict over its whole statement."""
    lines_of = {_key(each.answers[0]): each.line for each in statements_of(answers) if len(each.answers) > 1}
    return [answer.model_copy(update={"joint": lines_of.get(_key(answer), "")}) for answer in answers]


def _key(answer: Answer) -> tuple[str, str]:
    """A statement's document and text, common to its choices."""
    return answer.source, answer.asks


def lines(statements: Sequence[Judged]) -> Iterator[str]:
    """Those that do not hold with some choice, or at all."""
    yield from (each.line for each in statements if any(answer.verdict == "no" for answer in each.answers))


def tally_of(statements: Sequence[Judged]) -> str:
    """How many of a run's statements hold."""
    counts: Counter[str] = Counter(statement.verdict for statement in statements)
    total, agreeing = len(statements), sum(statement.agrees_so_far for statement in statements)
    made = [(counts[verdict], *verbs) for verdict, verbs in _VERBS.items() if counts[verdict]]
    if len(made) == 1:
        ((_, one, several),) = made
        if total == 1:
            so_far = ": it holds in all cells of this run; others are missing" if agreeing else ""
            return f"The document's statement {one}{so_far}."
        if counts["no"]:
            return f"None of the {count(total)} statements of documents holds."
        return f"All {count(total)} statements of documents {several}{_so_far(agreeing)}."
    parts = [f"{count(number)} {one if number == 1 else several}" for number, one, several in made]
    return f"Of {count(total)} statements of documents, {listed(parts)}{_so_far(agreeing)}."


def _so_far(agreeing: int) -> str:
    """How many lack levels alone; empty without one."""
    if not agreeing:
        return ""
    return f" ({count(agreeing)} {'holds' if agreeing == 1 else 'hold'} in all cells of this run; others are missing)"


def _measured(answer: Answer) -> str:
    case = decisive_case(answer)
    if case is None:
        return "no ratio below 1 µs" if answer.instant else "not run"
    return number_text(answer, case)
