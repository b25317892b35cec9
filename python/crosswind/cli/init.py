"""`crosswind init`: writes a study to begin with, from four answers."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from crosswind.cell.binary import find_binary
from crosswind.cell.check import check_study
from crosswind.errors import EngineError, StudyError, UsageError
from crosswind.report.text.format import count_of
from crosswind.study.files import STANDARD_INPUT
from crosswind.study.starter import NO_COMPARISON, STARTERS, starter, usual_answers
from crosswind.text.visible import no_utf8_in, visible

_QUESTIONS = {
    "what": "What is measured?\n" + "".join(f"  {kind:<10} {one.asked}\n" for kind, one in STARTERS.items()),
    "network": "Over which network, or networks? (`crosswind networks` lists them)",
    "compare": f"What is compared? (transports, networks, loss as 0%,2%, sizes, KEY=LEVELS, or {NO_COMPARISON})",
    "sure": "How sure? (5% of the mean to either side, an amount as 2ms, or a number of repetitions)",
}

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
    given = {"what": what, "network": network, "compare": compare, "sure": sure}
    missing = [name for name, answer in given.items() if answer is None]
    if missing and not sys.stdin.isatty():
        options, usual = [f"--{name}" for name in missing], usual_answers(what)
        raise UsageError(
            f"{', '.join(options)}: missing, and there is no terminal to ask on",
            hint=f"add {' '.join(f'{option} {usual[name]}' for option, name in zip(options, missing, strict=True))}",
        )
    answers: dict[str, str] = {}
    for name, answer in given.items():
        answers[name] = _prompted(name, answers) if answer is None else answer
        starter(answers)
    study, text = starter({**answers, "loss": loss or ""}, file=file)
    # Where no cell can run a study can still be written.
    with suppress(EngineError):
        check_study(study, binary=find_binary())
    if file == STANDARD_INPUT:
        click.echo(text, nl=False)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}", hint="name another file") from error
    click.echo(f"wrote {file}: {count_of(len(study), 'cell')}", err=True)
    click.echo(f"hint: crosswind plan {file} says what it takes, crosswind run {file} runs it", err=True)


def _prompted(name: str, answers: Mapping[str, str]) -> str:
    """An answer from the terminal; asks again until it makes a valid study."""

    def checked(text: str) -> str:
        try:
            starter({**answers, name: text})
        except StudyError as error:
            raise click.UsageError(f"{error.message} ({error.hint})" if error.hint else error.message) from None
        return text

    usual = usual_answers(answers.get("what"))[name]
    return str(click.prompt(_QUESTIONS[name], default=usual, value_proc=checked, err=True))


def _refuse_place(file: str, *, force: bool) -> None:
    path = Path(file)
    if file == STANDARD_INPUT:
        return
    if no_utf8_in(file):
        raise UsageError(f"{visible(file)} is not UTF-8", hint="name another file, as study.toml")
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "not a regular file"
        raise UsageError(f"{file} is {what}", hint="name another file, or - for standard output")
    if path.exists() and not force:
        raise UsageError(f"{file} is there already", hint="name another file, or replace it with --force")
    if not path.parent.is_dir():
        raise UsageError(f"there is no directory {path.parent}", hint="make it first")
