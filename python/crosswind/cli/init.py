"""`crosswind init`: writes a study to begin with, from four answers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from crosswind.cell.binary import find_binary
from crosswind.cell.check import check_study
from crosswind.errors import EngineError, StudyError, UsageError
from crosswind.study.design import Study
from crosswind.study.files import STANDARD_INPUT
from crosswind.study.starter import in_words_of_answers, starter, sureness_of
from crosswind.study.starter_answers import (
    NO_COMPARISON,
    STARTERS,
    Answers,
    read_factor,
    read_losses,
    read_networks,
    read_workload,
)
from crosswind.visible import no_utf8_in, visible

Given = TypeVar("Given")

_USUAL_NETWORK = "4g"
_USUAL_SURENESS = "5%"

_EPILOG = """\b
Without options it asks on the terminal. As one line:
  crosswind init my-study.toml --what page --network 4g,wifi --compare http2,http3 --sure 5%
  crosswind init my-study.toml --what echo --network 4g --compare tcp,quic --loss 0%,2% --sure 5%
  crosswind init - --what echo --network lan --compare 0%,2% --sure 10 | crosswind plan -
"""


@click.command(epilog=_EPILOG)
@click.argument("file", default="study.toml", metavar="[FILE]")
@click.option("--what", metavar="KIND", help=f"What to measure: {', '.join(STARTERS)}.")
@click.option(
    "--network", metavar="NAMES", help="One or more networks (`crosswind networks` lists them), or file=FILE."
)
@click.option(
    "--compare",
    metavar="LEVELS",
    help=f"What to compare: transports, networks, loss as 0%,2%, KEY=LEVELS, or {NO_COMPARISON}.",
)
@click.option("--sure", "--precision", metavar="TARGET", help="Precision: 5% of the mean, 2ms, or 20 repetitions.")
@click.option("--loss", metavar="LEVELS", help="Loss in each direction, besides the comparison, as 0%,2%.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(
    file: str,
    *,
    what: str | None,
    network: str | None,
    compare: str | None,
    sure: str | None,
    loss: str | None,
    force: bool,
) -> None:
    """Write a commented study to FILE (study.toml) from four answers: what to measure, over which network, what to
    compare, and how precisely.

    The study can be planned, run and edited at once. With `-` it goes to standard output.
    """
    _refuse_place(file, force=force)
    given = {"--what": what, "--network": network, "--compare": compare, "--sure": sure}
    if None in given.values() and not sys.stdin.isatty():
        raise _missing(given)
    kind = _answer(
        what,
        f"What is measured?\n{_choices()}\n",
        usual=next(iter(STARTERS)),
        read=read_workload,
    )
    networks = _answer(
        network,
        "Over which network, or networks? (`crosswind networks` lists them)",
        usual=_USUAL_NETWORK,
        read=read_networks,
    )
    factor = _answer(
        compare,
        f"What is compared? (transports, networks, loss as 0%,2%, sizes, KEY=LEVELS, or {NO_COMPARISON})",
        usual=STARTERS[kind].compare,
        read=read_factor,
    )
    target, repetitions = _answer(
        sure,
        "How sure? (5% of the mean to either side, an amount as 2ms, or a number of repetitions)",
        usual=_USUAL_SURENESS,
        read=lambda text: sureness_of(text, kind),
    )
    losses = () if loss is None else read_losses(loss, factor)
    text = starter(Answers(kind, networks, factor, target, repetitions, losses), file=file)
    study = _checked(text, file)
    if file == STANDARD_INPUT:
        click.echo(text, nl=False)
        return
    _write(Path(file), text)
    cells = "1 cell" if len(study) == 1 else f"{len(study)} cells"
    click.echo(f"wrote {file}: {cells}", err=True)
    click.echo(f"hint: crosswind plan {file} says what it takes, crosswind run {file} runs it", err=True)


def _choices() -> str:
    return "\n".join(f"  {kind:<10} {one.asked}" for kind, one in STARTERS.items())


def _refuse_place(file: str, *, force: bool) -> None:
    path = Path(file)
    if file == STANDARD_INPUT:
        return
    if no_utf8_in(file):
        raise UsageError(f"{visible(file)} is not UTF-8", hint="name another file, as study.toml")
    if path.is_dir():
        raise UsageError(f"{file} is a directory", hint="name a file, as study.toml")
    if path.exists() and not path.is_file():
        raise UsageError(f"{file} is not a regular file", hint="name another file, or - for standard output")
    if path.exists() and not force:
        raise UsageError(f"{file} is there already", hint="name another file, or replace it with --force")
    if not path.parent.is_dir():
        raise UsageError(f"there is no directory {path.parent}", hint="make it first")


def _missing(given: dict[str, str | None]) -> UsageError:
    """What to say where nobody can be asked: which options are missing, and the command line with usual answers."""
    missing = [option for option, answer in given.items() if answer is None]
    kind = given["--what"] if given["--what"] in STARTERS else next(iter(STARTERS))
    usual = {
        "--what": kind,
        "--network": _USUAL_NETWORK,
        "--compare": STARTERS[str(kind)].compare,
        "--sure": _USUAL_SURENESS,
    }
    line = " ".join(f"{option} {usual[option]}" for option in missing)
    return UsageError(f"{', '.join(missing)}: missing, and there is no terminal to ask on", hint=f"add {line}")


def _answer(given: str | None, question: str, *, usual: str, read: Callable[[str], Given]) -> Given:
    """What was given by an option, else what is answered on the terminal; asked again until it can be read."""
    if given is not None:
        return read(given)

    def read_or_say(text: str) -> Given:
        try:
            return read(text)
        except StudyError as error:
            raise click.UsageError(f"{error.message} ({error.hint})" if error.hint else error.message) from None

    answer: Given = click.prompt(question, default=usual, value_proc=read_or_say, err=True)
    return answer


def _checked(text: str, file: str) -> Study:
    """The study that was made. Raises: StudyError when crosswind-cell refuses it."""
    study = Study.from_toml(text, name="study", file=file)
    try:
        with in_words_of_answers():
            check_study(study, binary=find_binary())
    except EngineError:
        # Where no cell can run a study can still be written.
        return study
    return study


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="name another file") from error
