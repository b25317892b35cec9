"""A study to begin with, commented and complete, from a few answers: `crosswind init` asks for them, and a form."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.catalog import catalog
from crosswind.catalog.metrics import METRICS
from crosswind.errors import StudyError, did_you_mean
from crosswind.study.design import Study
from crosswind.study.edits import Replaced
from crosswind.study.errors import Origin
from crosswind.study.files import STANDARD_INPUT
from crosswind.study.keys import SETTINGS
from crosswind.study.levels import NetworkFiles
from crosswind.study.network_files import assignments
from crosswind.study.networks import NETWORKS
from crosswind.study.own_networks import names_file
from crosswind.study.own_question import question_about, series
from crosswind.study.precision import main_metric
from crosswind.study.toml_text import Location, write_value
from crosswind.text.units import shown
from crosswind.text.visible import hidden_in

NO_COMPARISON = "nothing"
_USUAL_FILE = "study.toml"


@dataclass(frozen=True)
class Starter:
    """A workload to begin with.

    Attributes: asked: the measurement, for choosing. compare: default levels to compare, transports, the usual one
        first. settings: the workload's, finishing even on the slowest named network.
    """

    asked: str
    compare: str
    settings: Mapping[str, object]


STARTERS: Mapping[str, Starter] = {
    "echo": Starter("messages that are answered, as of a game or an API", "tcp,quic", {"size": "1kB"}),
    "transfer": Starter("files that are sent, each on a connection of its own", "tcp,quic",
                        {"size": "250kB", "count": 3, "timeout": "10m"}),
    "page": Starter("web pages with scripts and images", "http2,http3", {"count": 3, "timeout": "10m"}),
    "connect": Starter("connections that are set up", "https1,http3", {}),
    "multiplex": Starter("messages on streams side by side", "http2,http3", {"size": "200B"}),
}  # fmt: skip
"""Workloads without a user's program, by kind."""


def usual_answers(what: str | None) -> dict[str, str]:
    """Default answers. Args: what: the measurement; the first of STARTERS if unknown."""
    kind = what if what is not None and what in STARTERS else next(iter(STARTERS))
    return {"what": kind, "network": "4g", "compare": STARTERS[kind].compare, "sure": "5%", "loss": ""}


def starter(given: Mapping[str, str], *, file: str = _USUAL_FILE) -> tuple[Study, str]:
    """The study for some answers, and its text.

    Args:   given: what, network, compare, sure and loss, as their options have them; missing ones are usual.
            file: its future name; `-` for none.
    Raises: StudyError, naming the option.
    """
    answers = usual_answers(given.get("what")) | dict(given)
    for option, text in answers.items():
        if hidden := hidden_in(text):
            raise StudyError(f"--{option}: has the hidden character {hidden}", hint="remove it: readers cannot see it")
    what, network, compare, sure, loss = (answers[name].strip() for name in usual_answers(None))
    if what not in STARTERS:
        raise StudyError(f"--what {what}: no kind of workload to begin with", hint=did_you_mean(what, STARTERS))
    kind, (factor, levels) = STARTERS[what], _compared(compare)
    metric = str(main_metric({"kind": what}))  # Each of these kinds has one.
    edits: dict[str, object] = {"path.loss": loss} if loss else {}
    if factor in edits:
        raise StudyError(f"--loss {loss}: loss is compared already", hint="leave --loss away")
    # Compared networks join the study's others.
    among_networks = f",{levels}" if factor == "path.network" else ""
    networks = list(dict.fromkeys(map(str.strip, f"{network}{among_networks}".split(","))))
    if factor and not among_networks:
        edits[factor] = series(levels.split(",")) if SETTINGS[factor].type.is_series else levels
    document: dict[str, Any] = {
        "title": f"{METRICS[metric].title} over {{path.network}}" + (f": {{{factor}}}" if factor in edits else ""),
        "path": {"network": networks if len(networks) > 1 else networks[0]},
        "workload": {"kind": what, "transport": kind.compare.partition(",")[0], **kind.settings},
        "host": {},
        "study": {"seed": 1},
    }
    if sure.isdigit():
        edits["study.repetitions"] = sure
    else:
        document |= {"study": {"repetitions_max": 100, "seed": 1}, "precision": [{"target": sure}]}
    named_by = f"--network {network} --compare {compare}" if among_networks else f"--network {network}"
    places: dict[Location, str] = {("path", "network"): named_by, ("precision",): f"--sure {sure}"}
    study = Study.from_document(document, name="study", origin=Origin(_USUAL_FILE, options=places))
    flags = {"path.loss": "--loss", "study.repetitions": "--sure", factor: "--compare"}
    study = study.with_overrides(edits, flags=flags)
    compared = networks if among_networks else study.factors.get(factor, ())
    if factor:
        if len(compared) < 2:
            raise StudyError(f"--compare {compare}: one level compares nothing", hint="name two or more")
        study = study.edited(Replaced(("question",), [question_about(metric, factor, compared)]))
    return study, _commented(study.document, networks, file)


def _compared(text: str) -> tuple[str, str]:
    """The compared key and its levels; empty without a comparison. Raises: StudyError."""
    if text in {"", NO_COMPARISON}:
        return "", ""
    word, equals, levels = map(str.strip, text.partition("="))
    if equals:
        short = {key: key.partition(".")[2] for key in SETTINGS}
        keys = [key for key in short if word in (key, short[key])]
        if len(keys) == 1 or word in SETTINGS:
            return (keys or [word])[0], levels
        message = f"{shown(word)} may be {' or '.join(keys)}" if keys else f"there is no key {shown(word)}"
        hint = "name it in full" if keys else did_you_mean(word, [*short.values(), *short])
        raise StudyError(f"--compare {text}: {message}", hint=hint)
    told_by = {
        "workload.transport": "|".join(catalog().transports),
        "path.network": "|".join(map(re.escape, NETWORKS)),
        "host.congestion_control": "reno|cubic|bbr",
        "path.loss": r"[\d.]+ ?%",
        "path.delay": r"[\d.]+ ?[mnuµ]?s",
        "workload.size": r"[\d.]+ ?\w*B",
    }
    for key, pattern in told_by.items():
        if all(re.fullmatch(pattern, level.strip()) for level in text.split(",")):
            return key, text
    raise StudyError(
        f"--compare {text}: it is not clear what that is",
        hint="name transports, networks, congestion controls, loss as 0%,2%, delays or sizes; or KEY=LEVELS, as "
        "path.rate=5mbit,20mbit",
    )


def _commented(study: Mapping[str, Any], networks: Sequence[str], file: str) -> str:
    """The template with a study's keys, each below its comment, without unset ones.

    Args: networks: as named. file: the study's future name.
    """
    named = [_beside(network, file) for network in networks]
    study = {**study, "path": {**study["path"], "network": named if len(named) > 1 else named[0]}}
    called = shlex.quote(_USUAL_FILE if file == STANDARD_INPUT else file)
    template = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8").replace(_USUAL_FILE, called)
    paragraphs = []
    for paragraph in template.strip().split("\n\n"):
        header = re.search(r"^\[+(\w+)", paragraph, re.MULTILINE)
        tables = study.get(header[1], []) if header else study
        for table in map(dict, tables if isinstance(tables, list) else [tables]):
            lines: list[str] = []
            comments: list[str] = []
            for line in paragraph.splitlines():
                key = line.partition(" = ")[0]
                if line.startswith("#"):
                    comments.append(line)
                    continue
                if line.startswith("["):
                    lines += [*comments, line]
                elif key in table:
                    lines += [*comments, f"{key} = {write_value(table.pop(key))}"]
                comments = []
            if header and table:
                lines += ["# What is compared.", *(f"{key} = {write_value(value)}" for key, value in table.items())]
            paragraphs.append("\n".join([*lines, *comments]))
    return "\n\n".join(paragraphs) + "\n"


def _beside(network: str, file: str) -> str:
    """A network as a study in a file names it: the path of a file is relative to the study's folder."""
    if not names_file(network):
        return network
    words = assignments(network)
    if not Path(words["file"]).is_absolute():
        words["file"] = os.path.relpath(words["file"], Path(file).parent)
    return NetworkFiles(tuple(words.items())).text
