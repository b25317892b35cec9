"""Converts a study between form and TOML, and forecasts its run."""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosswind.api.first_look import as_run_here
from crosswind.cell.binary import find_binary
from crosswind.cell.check import check_study, preflight_sentences
from crosswind.cli.planned import PlannedRuns, as_dict
from crosswind.cli.text import seconds_text, size_text
from crosswind.errors import CrosswindError
from crosswind.execution.planning import plan_costs, refuse_unknown_models, refuse_unmeasured
from crosswind.study.design import Study
from crosswind.study.files import builtin_names, builtin_studies
from crosswind.study.networks import NETWORKS
from crosswind.study.plan import Plan
from crosswind.study.starter import NO_COMPARISON, STARTERS, starter

_BUILTIN = Path(__file__).parents[1] / "studies"
FILE = "study.toml"
"""The TOML's name in messages."""


@functools.cache
def choices() -> dict[str, Any]:
    """The form's choices, and networks and studies to look at, with sources."""
    return {
        "what": {name: {"asked": kind.asked, "compare": kind.compare} for name, kind in STARTERS.items()},
        "networks": [
            {
                "name": network.name,
                "what": network.what,
                "keys": {name: dict(keys) for name, keys in network.keys.items()},
                "sources": [f"{source.of}: {source.text}" for source in network.sources],
            }
            for network in NETWORKS.values()
        ],
        "studies": [{"name": name, "title": title} for name, title in builtin_studies()],
    }


def builtin_text(name: str) -> str | None:
    """A built-in study's TOML; None where there is none of the name."""
    known = builtin_names()
    return (_BUILTIN / f"{name}.toml").read_text(encoding="utf-8") if name in known else None


def text_of(form: Mapping[str, Any]) -> str:
    """A form's TOML: the study `crosswind init` writes. Raises: StudyError."""
    return starter({key: str(form.get(key, "")) for key in ("what", "network", "compare", "sure", "loss")}, file=FILE)[
        1
    ]


def form_of(text: str) -> dict[str, str] | None:
    """The form of a TOML; None where the TOML says more than a form can."""
    try:
        document = tomllib.loads(text)
        form = _form_of(document)
        return form if tomllib.loads(text_of(form)) == document else None
    except (ValueError, CrosswindError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _form_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The answers behind a study from `text_of`."""
    path, precision = document["path"], document.get("precision")
    questions = document.get("question", ())
    key, levels = (questions[0]["factor"], questions[0]["compare"]) if questions else ("", ())
    if not key:
        key, levels = next(_varied(document), ("", ()))
    return {
        "what": document["workload"]["kind"],
        "network": _words(path["network"]),
        "compare": f"{key}={_words(levels)}" if key else NO_COMPARISON,
        "sure": str(precision[0]["target"] if precision else document["study"]["repetitions"]),
        "loss": _words(path["loss"]) if "loss" in path and key != "path.loss" else "",
    }


def _varied(document: Mapping[str, Any]) -> Any:
    """Factors beside networks and loss, with their own places in the form."""
    for table in ("workload", "host", "path"):
        for key, value in document.get(table, {}).items():
            if isinstance(value, list) and (table, key) not in {("path", "network"), ("path", "loss")}:
                yield f"{table}.{key}", value


def _words(levels: object) -> str:
    return ",".join(map(str, levels)) if isinstance(levels, list | tuple) else str(levels)


def checked(text: str, *, quick: bool) -> dict[str, Any]:
    """The output of `crosswind plan` for a study, as data with a few sentences. Raises: CrosswindError, as it does."""
    study = Study.from_toml(text, name="study", file=FILE)
    study, notes = as_run_here(study, quick=quick)
    refuse_unknown_models(study)
    plan = Plan.of(study)
    cells = check_study(study, binary=find_binary())
    refuse_unmeasured(study, cells, profile=False)
    costs = plan_costs(plan, cells)
    document = as_dict(PlannedRuns.of(plan, cells), costs, checked="each cell", order=False)
    document["forecast"] = {
        "cells": len(document["cells"]),
        "repetitions": document["runs"],
        "time": seconds_text(costs.wall_ns / 1e9),
        "packets": f"{costs.packets:,}",
        "disk": size_text(costs.disk_bytes),
    }
    document["warnings"] = [*notes, *preflight_sentences(cells)]
    return document
