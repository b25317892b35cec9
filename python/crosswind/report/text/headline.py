"""What a run says, in a few sentences: all computed from the result, none chosen by hand."""

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from crosswind.analysis.result import EquivalenceClaim, Result
from crosswind.report.text.answers import answered, not_asked
from crosswind.report.text.claims import VERDICTS
from crosswind.report.text.exploration import exploration
from crosswind.report.text.format import count, count_of, factor_name, levels, outcome_text, quantity
from crosswind.report.text.inferred import inferred_sentences
from crosswind.report.text.sentences import sentence


class Trust(Enum):
    """Whether to trust a run."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


_WITHOUT_RESULT = " failed: "
"""In the reason of a cell that is not valid: that one of its repetitions has no result."""


@dataclass(frozen=True)
class Verdict:
    """Whether to trust a run, and one sentence that says why."""

    trust: Trust
    sentence: str


def verdict(result: Result) -> Verdict:
    """Whether to trust the run."""
    if not result.cells:
        return Verdict(Trust.BAD, "No cell was executed.")
    invalid = [cell for cell in result.cells if not cell.valid]
    if invalid:
        if len(result.cells) == 1:
            return Verdict(Trust.BAD, f"This run is invalid: {invalid[0].reason}")
        first = f"{levels(invalid[0].levels)}: {invalid[0].reason}"
        counted = f"{len(invalid)} of {count_of(len(result.cells), 'cell')}"
        return Verdict(Trust.BAD, f"{counted} {'is' if len(invalid) == 1 else 'are'} invalid: {first}")
    if result.damaged:
        out = len({damage.key for damage in result.damaged})
        left = f"{out} of {count_of(result.executed, 'repetition')} left out, because files have changed"
        return Verdict(Trust.DOUBTFUL, f"Damaged: {left}; the others are valid.")
    if not result.complete:
        executed = f"{result.executed} of {result.planned} repetitions were executed"
        return Verdict(Trust.DOUBTFUL, f"Incomplete: {executed}; those are valid.")
    return _of_valid_cells(result)


def _of_valid_cells(result: Result) -> Verdict:
    """The verdict of a complete run whose cells are all valid."""
    warned = any(cell.warnings for cell in result.cells)
    trust = Trust.DOUBTFUL if warned else Trust.GOOD
    failures = _many_failures(result)
    if result.conditions is not None and result.conditions.network is not None:
        network = "The network is real: nothing is emulated, and packets are not counted."
        return Verdict(trust, f"{failures}Every cell is valid{', with warnings' if warned else ''}. {network}")
    if warned:
        return Verdict(trust, f"{failures}Every packet is accounted for, and emulation kept its budget, with warnings.")
    return Verdict(trust, "Every packet is accounted for, and emulation kept its budget in every cell.")


def _many_failures(result: Result) -> str:
    """A sentence where more than half of what a cell tried failed, with a space after it; empty otherwise."""
    many = [cell for cell in result.cells if 2 * cell.lost > cell.n]
    if not many:
        return ""
    if len(result.cells) == 1:
        return f"{count(many[0].lost)} of {count_of(many[0].n, 'exchange')} failed. "
    return f"More than half of all exchanges failed in {count(len(many))} of {count_of(len(result.cells), 'cell')}. "


def sentences(result: Result) -> list[str]:
    """The run in sentences: its extent and its clock, what came of claims and equivalences.

    Of a run without a question before them what it shows by itself: estimates, and how what people choose compares.
    """
    found = [] if answered(result) else exploration(result)
    absent = not_asked(result)
    return [
        *found,
        *([absent] if absent else []),
        _extent(result),
        *_clock(result),
        *inferred_sentences(result),
        *_claims(result),
        *_equivalences(result),
    ]


def tally(claim: EquivalenceClaim) -> str:
    """How many pairs of a claim are equivalent, how many differ, and how many are inconclusive."""
    found = Counter(pair.verdict for pair in claim.pairs)
    equivalent, differing, open_ = (found[each] for each in ("equivalent", "differs", "cannot tell"))
    total = len(claim.pairs)
    of_levels = f"of levels of {factor_name(claim.factor)}"
    within = f"equivalent within {margin_text(claim)}"
    if claim.reason is not None:
        found_so = f"{count(equivalent)} of {count_of(total, 'pair')} {'is' if equivalent == 1 else 'are'} {within}"
        return f"cannot tell of all levels of {factor_name(claim.factor)}: {claim.reason}; of the others {found_so}"
    if equivalent == total:
        return (
            f"the pair {of_levels} is {within}" if total == 1 else f"all {count(total)} pairs {of_levels} are {within}"
        )
    share = f"{count(equivalent) if equivalent else 'none'} of {count_of(total, 'pair')} {of_levels}"
    others = [
        *([f"{count(differing)} {'differs' if differing == 1 else 'differ'} by more"] if differing else []),
        *([f"{count(open_)} {'is' if open_ == 1 else 'are'} inconclusive"] if open_ else []),
    ]
    return f"{share} {'is' if equivalent == 1 else 'are'} {within}; {', '.join(others)}"


def margin_text(claim: EquivalenceClaim) -> str:
    """What a claim allows: "±5 ms", "±4 percentage points", "0.8 to 1.25 times"."""
    if claim.scale == "ratio":
        return f"{claim.low:.3g} to {claim.high:.3g} times"
    points = f"{100 * claim.high:.3g} percentage points"
    return f"±{points if claim.unit == '1' else quantity(claim.high, claim.unit)}"


def _extent(result: Result) -> str:
    """How much was run, and how much of it failed, by cause."""
    causes: Counter[str] = Counter()
    for failures in (failures for cell in result.cells for failures in cell.failures):
        causes[failures.outcome] += failures.count
    named = ", ".join(outcome_text(outcome, number_of) for outcome, number_of in causes.most_common())
    failed = sum(cell.lost for cell in result.cells)
    without = any(_WITHOUT_RESULT in (cell.reason or "") for cell in result.cells)
    extent = f"{count_of(len(result.cells), 'cell')}, {count_of(result.executed, 'repetition')}"
    exchanges = sum(cell.n for cell in result.cells)
    if not exchanges:
        return f"{extent}, no exchange{': repetitions that failed entirely have none' if without else ''}."
    return (
        f"{extent}, {count_of(exchanges, 'exchange')}, "
        f"{count(failed) if failed else 'none'} of them failed{f': {named}' if named else ''}"
        f"{'; repetitions that failed entirely have none' if without else ''}."
    )


def _clock(result: Result) -> list[str]:
    """Which clock the cells had, and how many of them are exact."""
    cells = count_of(len(result.cells), "cell")
    virtual = [cell for cell in result.cells if cell.clock == "virtual"]
    if not result.cells:
        return []
    if not virtual:
        return ["Clock: real."]
    kernels = sorted({cell.kernel for cell in virtual if cell.kernel})
    some = f" in {count(len(virtual))} of {cells}" if len(virtual) < len(result.cells) else ""
    on = f", on Linux {' and '.join(kernels)}" if kernels else ""
    sentences = [f"Clock: virtual{some}{on}; processor time and waits for processors are not measured."]
    exact = sum(cell.exact for cell in result.cells)
    if exact:
        which = f"{count(exact)} of {cells}" if exact < len(result.cells) else cells
        sentences.append(f"Exact: {which}: without randomness, every repetition gives the same result.")
    return sentences


def _claims(result: Result) -> list[str]:
    """How many claims hold; each has a sentence of its own (crosswind.report.text.claims)."""
    if not result.claims:
        return []
    found: Counter[str] = Counter(claim.verdict for claim in result.claims)
    holding, failing, open_ = (found[verdict] for verdict in VERDICTS)
    total = len(result.claims)
    if max(found.values()) == total:
        return [_all_claims(total, holding=holding > 0, failing=failing > 0)]
    parts = [
        *([f"{count(holding)} {'holds' if holding == 1 else 'hold'}"] if holding else []),
        *([f"{count(failing)} {'does not hold' if failing == 1 else 'do not hold'}"] if failing else []),
        *([f"{count(open_)} {'is' if open_ == 1 else 'are'} inconclusive"] if open_ else []),
    ]
    return [f"Of {count(total)} claims, {', '.join(parts[:-1])} and {parts[-1]}."]


def _all_claims(total: int, *, holding: bool, failing: bool) -> str:
    """That all claims have one verdict."""
    if holding:
        return "The claim holds." if total == 1 else f"All {count(total)} claims hold."
    if failing:
        return "The claim does not hold." if total == 1 else f"None of the {count(total)} claims holds."
    if total == 1:
        return "The claim is inconclusive."
    return f"All {count(total)} claims are inconclusive."


def _equivalences(result: Result) -> list[str]:
    """What came of each claim of equivalence."""
    return [
        f"{claim.title} {sentence(tally(claim))}" if claim.title.endswith("?") else f"{claim.title}: {tally(claim)}."
        for claim in result.equivalences
    ]
