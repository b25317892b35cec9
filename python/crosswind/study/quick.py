"""The quick variant of a study that has no `[quick]` table: each cell runs twice at most."""

from collections.abc import Mapping
from typing import Any

QUICK_REPETITIONS = 2
"""The fewest that show whether repetitions differ."""


def few_repetitions_text(repetitions: int, *, has_precision: bool) -> str:
    """What `--quick` does to such a study, in one sentence."""
    if repetitions <= QUICK_REPETITIONS and not has_precision:
        few = "one repetition" if repetitions == 1 else f"{repetitions} repetitions"
        return f"the study has no [quick] table and {few} of each cell, so --quick changes nothing"
    times = f"each cell runs {'once' if repetitions == 1 else 'twice'}"
    asked = ", whatever [[precision]] asks for" if has_precision else ""
    return f"the study has no [quick] table, so {times}{asked}"


def with_few_repetitions(document: Mapping[str, Any], repetitions: int, text: str) -> dict[str, Any]:
    """The document of such a study with few repetitions, and with a note that says so. Args: text: of the note."""
    given = {key: value for key, value in document.get("study", {}).items() if key != "repetitions_max"}
    report = document.get("report", {})
    return {key: value for key, value in document.items() if key != "precision"} | {
        "study": {**given, "repetitions": min(repetitions, QUICK_REPETITIONS)},
        "report": {**report, "notes": [*report.get("notes", ()), f"Quick variant: {text}."]},
    }
