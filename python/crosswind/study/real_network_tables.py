"""Which tables of a study still say something over the network that is there.

A question, a figure or a statement that names what is left out goes; so does what compares with numbers that somebody
measured on another network, or that a model predicts from an emulated path, and what takes packets that an emulator
has counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.catalog.metrics import metric_named
from crosswind.study.declared import declarations, subject_of
from crosswind.study.design import Study
from crosswind.study.titles import keys_named_in

NETWORK_MODELS = ("mathis", "mathis-c1", "pftk", "pftk-goodput", "pftk-approximate", "cubic")
"""Models of a loss and a round-trip time, both of which the kernel's TCP knows of a real network."""

_SHOWN = {kind: declared.words for kind, declared in declarations().items()} | {
    "precision": ("precision", "precisions"),
    "repetitions": ("limit of repetitions", "limits of repetitions"),
    "exclude": ("exclusion", "exclusions"),
}
"""Every table that is about some cells, and what one and several of them are called."""


@dataclass(frozen=True)
class Gone:
    """What is left out of a study. keys: dotted, as written. study: the one that has them all."""

    study: Study
    keys: tuple[str, ...]

    def has(self, key: str) -> bool:
        """Whether a dotted key sets nothing any more."""
        return key.startswith(("path.", "budget.")) or key in self.keys

    def has_level(self, key: str, value: object) -> bool:
        """Whether no cell has this value of a key any more."""
        return self.has(key) or (key in ("workload.client", "workload.server") and value != "native")


def fitting_tables(document: Mapping[str, Any], gone: Gone) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The document with the tables that fit, and what to say of the others."""
    kept = {key: value for key, value in document.items() if key not in _SHOWN}
    left: list[str] = []
    for name, words in _SHOWN.items():
        fitting = [fitted for table in document.get(name, ()) if (fitted := _fitted(name, table, gone)) is not None]
        kept |= {name: fitting} if fitting else {}
        all_of_them = len(gone.study.document.get(name, ()))
        if all_of_them > len(fitting):
            left.append(_some(all_of_them - len(fitting), all_of_them, words))
    kept["report"], about_report = _report(document.get("report", {}))
    sentences = []
    if left:
        reason = "as they name what is left out, or are about numbers of other networks"
        sentences.append(f"Left out, {reason}: {', '.join(left)}.")
    return _without_descriptions(kept), (*sentences, *about_report)


def title_over(server: str, gone: Gone) -> str:
    """The title of the study over a network; its name, where the title may be about an emulated path."""
    study = gone.study
    is_about_path = any(key.startswith("path.") for key in gone.keys)
    return f"{study.name if is_about_path or not study.table.title else study.table.title} over the network to {server}"


def _fitted(name: str, table: Mapping[str, Any], gone: Gone) -> Mapping[str, Any] | None:
    """A table as it is over a network that is there; None where it says nothing there."""
    finding = declarations().get(name)
    if finding is not None and any(gone.has(str(table[axis])) for axis in finding.axes if axis in table):
        return None
    where, metric = subject_of(table) if finding is None else finding.subject(table)
    if any(gone.has_level(key, value) for key, value in where.items()):
        return None
    if _needs_packets(metric) or _names_gone(table.get("title", ""), gone):
        return None
    return table if finding is None else finding.over_network(table)


def _needs_packets(name: str | None) -> bool:
    metric = None if name is None else metric_named(name)
    return metric is not None and metric.needs_packets


def _report(report: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The models that a real network can be set beside, and what is said of the rest."""
    wanted = list(report.get("models", ()))
    models = [name for name in wanted if name.replace("_", "-") in NETWORK_MODELS]
    others = [name for name in wanted if name not in models]
    sentences = []
    if others:
        sentences.append(f"Left out, as they predict from the settings of an emulated path: {', '.join(others)}.")
    if report.get("notes"):
        sentences.append("The study's own remarks are left out, as they are about its emulated path.")
    kept = {key: value for key, value in report.items() if key not in ("notes", "models")}
    return {**kept, **({"models": models} if models else {})}, tuple(sentences)


def _without_descriptions(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document whose parts do not describe a path that is not there."""
    parts = [{key: value for key, value in part.items() if key != "description"} for part in document.get("part", ())]
    return {**document, **({"part": parts} if parts else {})}


def _names_gone(title: str, gone: Gone) -> bool:
    return any(gone.has(key) for key in keys_named_in(title))


def _some(number: int, of: int, words: tuple[str, str]) -> str:
    one, several = words
    if of == 1:
        return f"the {one}"
    return f"all {of} {several}" if number == of else f"{number} of {of} {several}"
