"""A comparison's own question: how its factor's levels differ in the main metric.

`crosswind init` writes it into a study, and a run from options asks it.
"""

import math
from collections.abc import Sequence
from typing import Any

from crosswind.catalog.metrics import METRICS
from crosswind.study.declared import MOST_CHARACTERS
from crosswind.study.design import Study
from crosswind.study.edits import Edit, Replaced
from crosswind.study.keys import SETTINGS
from crosswind.study.precision import common_metric
from crosswind.text.quantities import TIME

USUAL_REPETITIONS = 10
"""For a run from options. Ten times a hundred messages support a mean's interval (`crosswind.stats.design`)."""
_MOST_REPETITIONS = 20
_MARGIN, _BY_MARGIN = "1%", "by 1 % or more"
"""The least difference to count. In virtual time, transports differ by nanoseconds: no user cares."""
_CHOSEN = (
    "workload.transport", "workload.client", "workload.server", "host.congestion_control", "workload.connection",
    "path.network", "host.clock",
)  # fmt: skip
"""Factors chosen by people, before a network's own: choices are compared."""


def question_about(metric: str, key: str, levels: Sequence[str]) -> dict[str, Any]:
    """A `[[question]]` about a factor's levels against the first one.

    Chosen levels may be better; given ones may differ.
    """
    is_chosen, asked = not key.startswith(("path.", "workload.size", "flow.")), METRICS[metric]
    of, factor = f"mean {asked.title.lower()}", _in_words(key)
    first, *others = (f"{factor}{level}" for level in levels)
    others_in_words = " or ".join(filter(None, (", ".join(others[:-1]), others[-1])))
    more = "higher" if asked.more_is_better else "shorter" if asked.unit is TIME else "lower"
    asks = (
        f"Is the {of} {more} with {others_in_words} than with {first}, {_BY_MARGIN}?"
        if is_chosen
        else f"Does the {of} differ between {first} and {others_in_words}, {_BY_MARGIN}?"
    )
    if len(asks) > MOST_CHARACTERS:
        asks = f"Does the {of} differ from that with {first}, {_BY_MARGIN}?"
    table: dict[str, Any] = {
        "asks": asks, "metric": metric, "factor": key, "compare": raw_levels(key, levels), "margin": _MARGIN,
    }  # fmt: skip
    return table if is_chosen else {**table, "yes": "different"}


def with_own_question(study: Study) -> Study:
    """A study from options with its own question, and the repetitions for an answer.

    Its own settings stay. A study with one cell asks nothing. Raises: StudyError.
    """
    edits: list[Edit] = []
    if not study.precisions and "repetitions" not in study.document.get("study", {}):
        edits.append(Replaced(("study", "repetitions"), _repetitions(study)))
    factor = next((key for key in _CHOSEN if key in study.factors), next(iter(study.factors), None))
    metric = common_metric(cell.workload for cell in study.cells())
    if factor is not None and len(study.factors[factor]) > 1 and metric is not None:
        edits.append(Replaced(("question",), [question_about(metric, factor, study.factors[factor])]))
    return study.edited(*edits) if edits else study


def _repetitions(study: Study) -> int:
    """Enough for a sign test among all cases: 2 * 0.5^n is below 5 % divided by their number."""
    return min(_MOST_REPETITIONS, max(USUAL_REPETITIONS, math.ceil(math.log2(40 * max(len(study) - 1, 1)))))


def _in_words(key: str) -> str:
    """The word before an unclear level: "loss 2%", but "http3" alone."""
    word = key.rsplit(".", maxsplit=1)[-1]
    if key.startswith("flow."):
        return " ".join(key.split(".")[1:]).replace("_", " ") + " "
    return "" if word in {"transport", "network", "congestion_control"} else f"{word.replace('_', ' ')} "


def raw_levels(key: str, levels: Sequence[str]) -> list[object]:
    """Levels of a key as a question names them: numbers without quotes, but for series, where one is a text too."""
    return list(levels) if key in SETTINGS and SETTINGS[key].type.is_series else _numbers(levels)


def series(levels: Sequence[str]) -> list[object]:
    """Levels for a series key as in a study: lists, except for files."""
    return [level if level.startswith("@") else _numbers(level.split()) for level in levels]


def _numbers(words: Sequence[str]) -> list[object]:
    return [int(word) if word.isdigit() else word for word in words]
