"""A study to begin with, commented and complete, from the template starter.toml. `crosswind init` writes it."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import sqrt
from pathlib import Path
from string import Template

from crosswind.catalog import catalog
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.files import STANDARD_INPUT
from crosswind.study.keys import VALUE_TYPES
from crosswind.study.network_columns import values_of
from crosswind.study.network_files import assignments
from crosswind.study.networks import Network
from crosswind.study.own_networks import names_file
from crosswind.study.own_question import levels_to_set, question_about
from crosswind.study.precision import main_metric
from crosswind.study.resolve import network_named
from crosswind.study.starter_answers import STARTERS, Answers, Factor
from crosswind.study.toml_text import write_value
from crosswind.units import format_size

_PLACE = re.compile(r"^[^\n]*?:[0-9]+: ")
_USUAL_FILE = "study.toml"
_PATIENCE_S = 15
"""An exchange that takes longer than this gets a longer timeout; the usual one is a minute."""
_LEAST_TRANSFER = 10_000
_SEGMENT = 1460


def starter(answers: Answers, *, file: str = _USUAL_FILE) -> str:
    """The study as a text.

    Args: file: what it will be called; `-` says nothing of that. Raises: StudyError when answers do not fit together.
    """
    template = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    text = "\n\n".join(_filled(template, _values(answers, file))) + "\n"
    with in_words_of_answers():
        Study.from_toml(text, name="study", file=file)
    return text


@contextmanager
def in_words_of_answers() -> Iterator[None]:
    """Lets errors name the key alone: whoever answered has not seen the file and its lines yet."""
    try:
        yield
    except StudyError as error:
        raise StudyError(_PLACE.sub("", error.message), hint=error.hint) from None


def sureness_of(text: str, what: str) -> tuple[str, int]:
    """A precision's target and 0, or an empty text and a number of repetitions. Raises: StudyError.

    Args: what: is measured, which decides the unit of a target.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        if not 1 <= int(text[:7]) <= 100_000:
            raise StudyError(f"{text} is not a number of repetitions", hint="from 1 to 100000")
        return "", int(text)
    try:
        starter(Answers(what, ("lan",), Factor(), target=text))
    except StudyError as error:
        message = error.message.partition("precision[1].target: ")[2] or error.message
        raise StudyError(message, hint=f"{error.hint}; or a number of repetitions, as 20") from None
    return text, 0


def _values(answers: Answers, file: str) -> dict[str, str | None]:
    """What stands in the template, as TOML; None leaves a line out."""
    kind, compare, networks = STARTERS[answers.what], answers.compare, _networks(answers)
    title = f"{kind.title} over {' and '.join(_network(name).name for name in networks)}"
    commented: dict[str, str | None] = {"path": None, "workload": None, "host": None}
    # Networks that are compared have a line already.
    if compare.levels and compare.key != "path.network":
        title += f": {' or '.join(compare.levels)}"
        section, _, key = compare.key.partition(".")
        commented[section] = f"{key} = {write_value(levels_to_set(compare.key, compare.levels))}"
    levels, metric = networks if compare.key == "path.network" else compare.levels, main_metric({"kind": answers.what})
    asked = {} if metric is None or len(levels) < 2 else question_about(metric, compare.key, levels)
    usual = kind.compare.split(",", maxsplit=1)[0]
    size = _size(answers)
    seconds = max(_seconds(size, _network(name)) for name in networks)
    values: dict[str, object] = {
        "title": title,
        "network": _one_or_all([_beside(file, name) for name in networks]),
        "loss": _one_or_all(levels_to_set("path.loss", answers.loss)) if answers.loss else None,
        "kind": answers.what,
        "transport": usual if compare.key != "workload.transport" else None,
        "size": format_size(size) if "size" in _settings_of(answers.what) and compare.key != "workload.size" else None,
        "count": (10 if seconds < 1 else 3 if seconds < 10 else 1) if answers.what in {"transfer", "page"} else None,
        "timeout": "30m" if seconds > _PATIENCE_S else None,
        "repetitions": answers.repetitions or None,
        "repetitions_max": None if answers.repetitions else 100,
        **{name: asked.get(name) for name in ("asks", "metric", "factor", "compare", "yes", "margin")},
        "target": answers.target or None,
    }
    words = {
        "file": shlex.quote(_USUAL_FILE if file == STANDARD_INPUT else file),
        "help": catalog().workloads[answers.what].help,
        "what": answers.what,
        "of": " of itself" if answers.target.endswith("%") else "",
    }
    return {
        **words,
        **commented,
        **{name: None if value is None else write_value(value) for name, value in values.items()},
    }


def _filled(template: str, values: Mapping[str, str | None]) -> Iterator[str]:
    """The paragraphs of a template. A line without its value goes with the comment above it, and so does a table of an
    array that has no key left.
    """
    for paragraph in template.strip().split("\n\n"):
        lines: list[str] = []
        comments: list[str] = []
        for line in paragraph.splitlines():
            comments.append(line)
            if not line.startswith("#"):
                is_known = all(values[name] is not None for name in re.findall(r"\$(\w+)", line))
                lines += comments if is_known else []
                comments = []
        if "\n[[" not in paragraph or any(" = " in line for line in lines if not line.startswith("#")):
            yield Template("\n".join([*lines, *comments])).substitute(values)


def _one_or_all(levels: Sequence[object]) -> object:
    return list(levels) if len(levels) > 1 else levels[0]


def _network(text: str) -> Network:
    return network_named(VALUE_TYPES["path.network"].level(text).value)


def _beside(file: str, network: str) -> str:
    """A network as a study in a file names it: the path of a file is relative to the study's folder."""
    if not names_file(network):
        return network
    words = assignments(network)
    folder = Path() if file == STANDARD_INPUT else Path(file).parent
    words["file"] = words["file"] if Path(words["file"]).is_absolute() else os.path.relpath(words["file"], folder)
    return " ".join(f"{key}={shlex.quote(value)}" for key, value in words.items())


def _networks(answers: Answers) -> tuple[str, ...]:
    more = answers.compare.levels if answers.compare.key == "path.network" else ()
    return tuple(dict.fromkeys([*answers.networks, *more]))


def _size(answers: Answers) -> int:
    """What one exchange carries, in bytes: less where that would take very long."""
    size = STARTERS[answers.what].bytes
    while (
        answers.what == "transfer"
        and size > _LEAST_TRANSFER
        and any(_seconds(size, _network(name)) > _PATIENCE_S for name in _networks(answers))
    ):
        size //= 10
    return size


def _seconds(size: int, network: Network) -> float:
    """Roughly how long so many bytes take in the slower direction, with some round trips.

    Source: for losses, Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, CCR 1997.
    """
    round_trip_s = sum(values_of(network, "round trip")) / 1e9
    rate = min(values_of(network, "rate"), default=1e9)
    loss = max(values_of(network, "loss"), default=0.0)
    if loss and round_trip_s:
        rate = min(rate, 8 * _SEGMENT * sqrt(1.5 / loss) / round_trip_s)
    return 8 * size / rate + 5 * round_trip_s


def _settings_of(kind: str) -> set[str]:
    return {key.study for key in catalog().workloads[kind].keys}
