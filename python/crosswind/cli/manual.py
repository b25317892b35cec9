"""The man pages, made from the commands themselves like docs/cli.md.

    python -m crosswind.cli.manual SHARE

writes crosswind.1 and a page for each command into SHARE/man/man1, and shell completions beside them.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from crosswind import __version__
from crosswind.cli import cli
from crosswind.cli.completions import completions_for
from crosswind.cli.reference import command_names, command_of, every_option, option_row

_ESCAPED = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"})


_COMPLETIONS = {
    "bash": "bash-completion/completions/crosswind",
    "zsh": "zsh/site-functions/_crosswind",
    "fish": "fish/vendor_completions.d/crosswind.fish",
}


def write_share(share: Path) -> None:
    """Writes all files. Args: share: an installation's `share` directory."""
    files = {f"man/man1/{name}": page for name, page in pages().items()}
    files |= {path: completions_for(shell, cli) for shell, path in _COMPLETIONS.items()}
    for path, text in files.items():
        (share / path).parent.mkdir(parents=True, exist_ok=True)
        (share / path).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Every page by file name."""
    names = command_names()
    whole = _page("crosswind", cli, [f"crosswind\\-{name}" for name in names], dict(cli.summaries()))
    return {"crosswind.1": whole} | {
        f"crosswind-{name}.1": _page(f"crosswind-{name}", command_of(name), ["crosswind"]) for name in names
    }


def _page(name: str, command: click.Command, others: list[str], commands: dict[str, str] | None = None) -> str:
    words = name.replace("crosswind-", "crosswind ")
    arguments = [p.make_metavar(click.Context(command)) for p in command.params if isinstance(p, click.Argument)]
    usage = " ".join([words, "[OPTION]...", *arguments] if commands is None else [words, "COMMAND", "[ARGUMENT]..."])
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    lines = [
        f'.TH "{_plain(name.upper())}" "1" "" "crosswind {__version__}" "Crosswind"',
        *(".SH NAME", f"{_plain(name)} \\- {_plain(paragraphs[0].rstrip('.'))}"),
        *(".SH SYNOPSIS", f"\\fB{_plain(usage)}\\fR"),
        *(".SH DESCRIPTION", *_paragraphs(paragraphs)),
    ]
    if commands:
        lines += [".SH COMMANDS", *(line for pair in commands.items() for line in _item(*pair))]
    lines += [".SH OPTIONS", *(line for each in every_option(command) for line in _item(*option_row(each)))]
    if command.epilog:
        lines += [".SH EXAMPLES AND EXIT STATUS", *_epilog(command.epilog)]
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{other}\\fR(1)" for other in others)]
    return "\n".join(lines) + "\n"


def _item(name: str, text: str) -> Iterator[str]:
    yield from (".TP", f"\\fB{_plain(name.replace('`', ''))}\\fR", _plain(text))


def _paragraphs(paragraphs: list[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        yield from (".PP", _plain(paragraph))


def _epilog(text: str) -> Iterator[str]:
    """A paragraph marked for click as preformatted (`\\b`) keeps its lines."""
    for part in filter(None, (part.strip("\n") for part in text.split("\n\n"))):
        kept = part.lstrip().startswith("\b")
        lines = [_plain(line) for line in part.replace("\b\n", "").replace("\b", "").splitlines()]
        yield from ([".PP", ".nf", *lines, ".fi"] if kept else [".PP", *lines])


def _plain(text: str) -> str:
    """A text escaped for troff."""
    escaped = text.translate(_ESCAPED)
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq")) else escaped


if __name__ == "__main__":
    write_share(Path(sys.argv[1]))
