"""What is compared: cells of studies and networks, what is said of runs, and how mistakes are answered.

Each subject is a name and a function from a side to its outputs by name.
"""

import json
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import polars as pl

from golden.runs import DERIVED, RUNS
from golden.sides import ROOT, Side

Outputs = Mapping[str, str]
HERE = Path(__file__).parent
KEYS = 100
"""Settings that are given what they refuse."""


@dataclass(frozen=True)
class Subject:
    """Something to compare. Attributes: make: its outputs by name, of a side."""

    name: str
    make: Callable[[Side], Outputs]


def subjects(base: Side, runs: Path) -> Iterator[Subject]:
    """All of them. Args: base: whose studies, networks and settings they are. runs: the runs that both sides read."""
    yield from _cells(base)
    yield from _mistakes(base)
    yield from (Subject(f"run {name}", partial(_of_run, runs, name)) for name in (*RUNS, *DERIVED))
    yield Subject("compare", partial(_compared, runs))
    yield from (Subject(f"made {name}", partial(_made, name)) for name in ("quickstart", "program", "before"))


# Cells

_RECORDER = """#!/bin/sh
case " $* " in
*" --check "*) tee -a "{record}" | "{cell}" "$@" ;;
*) exec "{cell}" "$@" ;;
esac
"""
"""A crosswind-cell that keeps what it is asked to check."""


def _cells(base: Side) -> Iterator[Subject]:
    for study in sorted(path.stem for path in (base.root / "python" / "crosswind" / "studies").glob("*.toml")):
        for quick in ((), ("--quick",)):
            yield Subject(" ".join(("cells", study, *quick)), partial(_planned, ("plan", study, *quick)))
    listed = json.loads(base.crosswind(["networks", "--json"], base.home).stdout)
    for name in sorted(network["name"] for network in listed["networks"]):
        yield Subject(f"cells of network {name}", partial(_planned, ("plan", "echo", "--network", name)))


def _planned(words: tuple[str, ...], side: Side) -> Outputs:
    at = side.home / "cells" / "-".join(words).replace("/", "-")
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    record, recorder = at / "record", at / "crosswind-cell"
    recorder.write_text(_RECORDER.format(record=record, cell=side.cell), encoding="utf-8")
    recorder.chmod(0o755)
    # No durations: what the runs of a side took would change its forecasts.
    environment = {"CROSSWIND_CELL": str(recorder), "CROSSWIND_DURATIONS": str(at / "durations.json")}
    ended = side.crosswind([*words, "--order", "--json"], at, **environment)
    cells = record.read_text(encoding="utf-8") if record.exists() else ""
    return {"cells": _anywhere(cells.replace(str(recorder), "{cell}"), side), **_said(ended, side)}


# Mistakes


def _mistakes(base: Side) -> Iterator[Subject]:
    known = tomllib.loads((HERE / "mistakes.toml").read_text(encoding="utf-8"))
    for line in known["commands"]:
        yield Subject(f"mistake {line}", partial(_mistaken, line, None))
    for number, study in enumerate(known["studies"]):
        yield Subject(f"mistake in study {number}", partial(_mistaken, "plan study.toml", study, number=number))
    catalogue = json.loads((base.root / "python" / "crosswind" / "catalog.json").read_text(encoding="utf-8"))
    refused = list(_refused_settings(catalogue))
    for line in refused[:: max(1, len(refused) // KEYS)][:KEYS]:
        yield Subject(f"mistake {line}", partial(_mistaken, line, None))


def _refused_settings(catalogue: Mapping[str, Any]) -> Iterator[str]:
    groups = [("path", catalogue["path"]), *(("path", element) for element in catalogue["elements"])]
    groups += [("host", catalogue["host"]), ("budget", catalogue["budget"])]
    for section, group in groups:
        yield from (_refused("echo", section, key) for key in group["keys"])
    for workload in catalogue["workloads"]:
        yield from (_refused(workload["kind"], "workload", key) for key in workload["keys"])


def _refused(kind: str, section: str, key: Mapping[str, Any]) -> str:
    least = key["minimum"]
    wrong = "nothing" if least is None else "-1" if least > 0 else "9e30"
    return f"plan {kind} --set {section}.{key['study']}={wrong}"


def _mistaken(line: str, study: str | None, side: Side, *, number: int = 0) -> Outputs:
    at = side.home / "mistakes"
    at.mkdir(parents=True, exist_ok=True)
    if study is not None:
        at = at / f"study-{number}"
        at.mkdir(exist_ok=True)
        (at / "study.toml").write_text(study, encoding="utf-8")
    return _said(side.crosswind(shlex.split(line), at), side)


# Runs


def _of_run(runs: Path, name: str, side: Side) -> Outputs:
    at = side.home / "reports" / name
    shutil.rmtree(at, ignore_errors=True)
    shutil.copytree(runs / name, at / name, symlinks=True)
    found: dict[str, str] = {}

    def say(what: str, *words: str) -> None:
        found.update({f"{what}: {stream}": text for stream, text in _said(side.crosswind(words, at), side).items()})

    say("terminal", "report", name)
    say("all tables", "report", name, "--all")
    say("cell 0", "report", name, "--cell", "0")
    say("JSON", "report", name, "--json")
    say("runs", "runs", ".", "--json", "--details")
    say("explain", "explain", name)
    files = ("page.json", "estimates.csv", "estimates.parquet", "report.html", "junit.xml")
    page, csv, parquet, html, junit = files
    conditions = ("--fail-if", "p95(rtt) > 50ms", "--fail-if", "mean(rtt) > 45ms")
    say("page", "report", name, "--page", page)
    say("CSV", "report", name, "--csv", csv)
    say("Parquet", "report", name, "--parquet", parquet)
    say("HTML", "report", name, "--html", html)
    say("JUnit", "report", name, "--junit", junit, *conditions)
    say("samples", "report", name, "--samples", "samples.parquet")
    say("fit", "fit", name)
    for file in (*files, "samples.parquet"):
        if (at / file).exists():
            found[f"file {file}"] = _text_of(at / file)
    say("verify", "verify", name, "--files")
    return found


def _compared(runs: Path, side: Side) -> Outputs:
    at = side.home / "reports" / "compare"
    shutil.rmtree(at, ignore_errors=True)
    for name in ("before", "after"):
        shutil.copytree(runs / name, at / name)
    found: dict[str, str] = {}
    conditions = ("--fail-if", "mean(rtt) worse by 10%", "--fail-if", "share(lost) worse by 1%", "--junit", "junit.xml")
    views = {
        "terminal": (),
        "JSON": ("--json",),
        "why": ("--why",),
        "conditions": conditions,
        "HTML": ("--html", "c.html"),
    }
    for what, options in views.items():
        ended = side.crosswind(["compare", "before", "after", *options], at)
        found.update({f"{what}: {stream}": text for stream, text in _said(ended, side).items()})
    return found | {f"file {file}": _text_of(at / file) for file in ("junit.xml", "c.html") if (at / file).exists()}


def _made(name: str, side: Side) -> Outputs:
    """What a side's own run of the same measures: its samples and estimates, which have no time of day."""
    at = side.home / "made" / name
    shutil.rmtree(at, ignore_errors=True)
    side.crosswind(RUNS[name].words(name), at)
    side.crosswind(["report", name, "--csv", "estimates.csv", "--samples", "samples.parquet"], at)
    return {file: _text_of(at / file) for file in ("estimates.csv", "samples.parquet")}


def _said(ended: CompletedProcess[str], side: Side) -> Outputs:
    out, errors = _anywhere(ended.stdout, side), _anywhere(ended.stderr, side)
    return {"status": f"{ended.returncode}\n", "output": out, "errors": errors}


def _anywhere(text: str, side: Side) -> str:
    """A text without the places of a side, and of the runs that both read."""
    return text.replace(str(side.home), "{home}").replace(str(side.root), "{root}").replace(str(ROOT), "{root}")


def _text_of(file: Path) -> str:
    if file.suffix == ".parquet":
        return f"{(table := pl.read_parquet(file)).schema}\n{table.write_csv()}"
    return file.read_text(encoding="utf-8")
