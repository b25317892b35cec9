"""The examples of docs/programs.md for `crosswind exec`, each as it stands there: a change of either is found."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import ROOT, requires
from e2e_cli import Cli, Ended

_TEXT = (
    (ROOT / "docs" / "programs.md").read_text(encoding="utf-8").partition("### Ready-made\n")[2].partition("\n## ")[0]
)
EXAMPLES = [shlex.split(line) for line in _TEXT.splitlines() if line.startswith("    crosswind exec ")]


def programs_of(words: Sequence[str]) -> list[str]:
    """The programs of an example: the client's and the server's."""
    found = [words[words.index("--") + 1]]
    if "--server" in words:
        found.append(shlex.split(words[words.index("--server") + 1])[0])
    return found


def check(program: str, ended: Ended) -> None:
    """Whether the output is what the program prints when all went well."""
    expected = {
        "ping": r"5 packets transmitted, \d received",
        "iperf3": r"\breceiver\n",
        "curl": r"\A[\d.]+ [\d.]+\n\Z",
        "wrk": r"Requests/sec: +[1-9]",
        "h2load": r"requests: 100 total, 100 started, 100 done, 100 succeeded",
        "chromium": r"page-of-the-test\.html</a>",
    }
    assert re.search(expected[program], ended.out), ended.out + ended.err


def test_there_is_an_example_for_each_program() -> None:
    found = [programs_of(words)[0] for words in EXAMPLES]
    assert found == ["ping", "iperf3", "curl", "wrk", "h2load", "chromium"]


@pytest.mark.parametrize("words", EXAMPLES, ids=lambda words: programs_of(words)[0])
def test_an_example_of_the_documentation(crosswind: Cli, words: list[str]) -> None:
    for program in programs_of(words):
        requires(program)
    Path(crosswind.cwd / "page-of-the-test.html").write_text("", encoding="utf-8")
    ended = crosswind(*words[1:])
    assert ended.status == 0, ended.err
    check(programs_of(words)[0], ended)
    assert "crosswind: exit status 0 after " in ended.err
