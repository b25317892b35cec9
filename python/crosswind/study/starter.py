"""A study to begin with, as a text: commented and complete. `crosswind init` writes it."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from crosswind.catalog import catalog
from crosswind.errors import StudyError
from crosswind.study.answers import STARTERS, Answers, Factor
from crosswind.study.design import Study
from crosswind.study.files import STANDARD_INPUT
from crosswind.study.networks import NETWORKS, Network
from crosswind.study.own_question import question_about, raw_levels
from crosswind.study.precision import main_metric
from crosswind.study.toml_text import write_value
from crosswind.units import format_size

_PLACE = re.compile(r"^[^\n]*?:[0-9]+: ")
_USUAL_FILE = "study.toml"
_PATIENCE_S = 15
"""An exchange that takes longer than this gets a longer timeout; the usual one is a minute."""
_LEAST_TRANSFER = 10_000


def starter(answers: Answers, *, file: str = _USUAL_FILE) -> str:
    """The study as a text.

    Args: file: what it will be called; `-` says nothing of that. Raises: StudyError when answers do not fit together.
    """
    text = "\n\n".join("\n".join(block) for block in _blocks(answers, file) if block) + "\n"
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
            raise StudyError(f"{text} repetitions cannot be", hint="from 1 to 100000")
        return "", int(text)
    try:
        starter(Answers(what, ("lan",), Factor(), target=text))
    except StudyError as error:
        message = error.message.partition("precision[1].target: ")[2] or error.message
        raise StudyError(message, hint=f"{error.hint}; or a number of repetitions, as 20") from None
    return text, 0


_HEAD = """\
# A study: what is measured, over which network, what is compared, and how sure the answer is to be.
#     crosswind plan {file}           what it will run, and how long that takes
#     crosswind run {file} --quick    a first look
#     crosswind run {file}            the run, and its report
# Every value may be changed. A list is a factor: each of its levels is measured, and they are compared."""


def _blocks(answers: Answers, file: str) -> Iterator[list[str]]:
    """The tables of the study, each a list of lines: those that are tables first, then arrays of tables."""
    yield [_HEAD.format(file=shlex.quote(_USUAL_FILE if file == STANDARD_INPUT else file))]
    yield [f"title = {write_value(_title(answers))}"]
    yield _path(answers)
    yield _workload(answers)
    yield _host(answers)
    yield _study(answers)
    yield _question(answers)
    yield _precision(answers)


def _title(answers: Answers) -> str:
    compared = f": {' or '.join(answers.compare.levels)}" if answers.compare.levels else ""
    if answers.compare.key == "path.network":
        return f"{STARTERS[answers.what].title} over {' and '.join(_networks(answers))}"
    return f"{STARTERS[answers.what].title} over {' and '.join(answers.networks)}{compared}"


def _networks(answers: Answers) -> tuple[str, ...]:
    more = answers.compare.levels if answers.compare.key == "path.network" else ()
    return tuple(dict.fromkeys([*answers.networks, *more]))


def _path(answers: Answers) -> list[str]:
    names = _networks(answers)
    lines = [
        "[path]",
        "# A network with a name; `crosswind networks` lists them, with their numbers. A key beside it overrides it:",
        '# loss = "1%" is that of each direction, delay = "20ms" is one way.',
        f"network = {write_value(list(names) if len(names) > 1 else names[0])}",
    ]
    if answers.loss:
        losses = raw_levels(answers.loss)
        lines += [
            "# Of each direction, in place of the network's own.",
            f"loss = {write_value(losses if len(losses) > 1 else losses[0])}",
        ]
    return lines + _own(answers, "path", but=("network",))


def _workload(answers: Answers) -> list[str]:
    lines = ["[workload]", f"# {catalog().workloads[answers.what].help}"]
    lines.append(f'kind = "{answers.what}"')
    if answers.compare.key != "workload.transport":
        usual = STARTERS[answers.what].compare.split(",", maxsplit=1)[0]
        lines += ["# How messages are carried; a list compares them.", f'transport = "{usual}"']
    return lines + _amount(answers) + _own(answers, "workload")


def _amount(answers: Answers) -> list[str]:
    """How much is measured in one repetition, so that it takes seconds over a slow network, too."""
    takes = _settings_of(answers.what)
    size = _size(answers)
    seconds = max(_seconds(size, NETWORKS[name]) for name in _networks(answers))
    lines = [f"# What one {answers.what} carries.", f'size = "{format_size(size)}"'] if "size" in takes else []
    if answers.compare.key == "workload.size":
        lines = []
    if answers.what in {"transfer", "page"}:
        lines += ["# How many in one repetition.", f"count = {10 if seconds < 1 else 3 if seconds < 10 else 1}"]
    if seconds > _PATIENCE_S:
        lines += ["# How long one may take; the network is slow.", 'timeout = "30m"']
    return lines


def _size(answers: Answers) -> int:
    """What one exchange carries, in bytes: less where that would take very long."""
    size = STARTERS[answers.what].bytes
    while (
        answers.what == "transfer"
        and size > _LEAST_TRANSFER
        and any(_seconds(size, NETWORKS[name]) > _PATIENCE_S for name in _networks(answers))
    ):
        size //= 10
    return size


def _seconds(size: int, network: Network) -> float:
    """Roughly how long so many bytes take in the slower direction, with some round trips."""
    rates = [way.rate_bps for way in (network.forward, network.reverse) if way.rate_bps is not None]
    round_trip_s = (network.forward.delay_ns + network.reverse.delay_ns) / 1e9
    return 8 * size / min(rates, default=10**9) + 5 * round_trip_s


def _settings_of(kind: str) -> set[str]:
    return {key.study for key in catalog().workloads[kind].keys}


def _host(answers: Answers) -> list[str]:
    own = _own(answers, "host")
    return [
        "[host]",
        *own,
        "# Virtual time takes no privileges and repeats exactly; processor time is measured on the real clock alone.",
        '# clock = "virtual"',
    ]


def _study(answers: Answers) -> list[str]:
    if answers.repetitions:
        return ["[study]", "# How often each cell is run.", f"repetitions = {answers.repetitions}", "seed = 1"]
    return [
        "[study]",
        "# Each cell is run until its interval is as narrow as asked below, but no more often than this.",
        "repetitions_max = 100",
        "seed = 1",
    ]


def _question(answers: Answers) -> list[str]:
    """What is compared as a question."""
    key, name = answers.compare.key, main_metric({"kind": answers.what})
    levels = _networks(answers) if key == "path.network" else answers.compare.levels
    if name is None or len(levels) < 2:
        return []
    return [
        "# What the run is for: its report opens with the answer. The first level is what others are compared with.",
        "[[question]]",
        *(f"{key} = {write_value(value)}" for key, value in question_about(name, key, levels).items()),
        '# margin = "5%" makes a smaller difference a no.',
    ]


def _precision(answers: Answers) -> list[str]:
    if not answers.target:
        return []
    of = " of itself" if answers.target.endswith("%") else ""
    return [
        f"# How sure: the 95 % interval of the mean reaches at most so much{of} to either side.",
        "[[precision]]",
        f"target = {write_value(answers.target)}",
    ]


def _own(answers: Answers, table: str, *, but: Sequence[str] = ()) -> list[str]:
    """The line of what is compared, where it stands in a table."""
    section, _, key = answers.compare.key.partition(".")
    if section != table or key in but:
        return []
    return ["# What is compared.", f"{key} = {write_value(raw_levels(answers.compare.levels))}"]
