"""`crosswind selftest`: whether comparisons of identical cells alarm more often on this machine than they say."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosswind.files.temporary import temporary_directory
from crosswind.text.console import plain_console

if TYPE_CHECKING:
    from crosswind.analysis.against_itself import SelfTest
    from crosswind.report.page import Page
    from crosswind.store.run import StoredRun

STUDY = "against-itself"
QUICK_REPETITIONS = 80
"""Twenty for each cell in one family without shared seeds."""


@click.command()
@click.option("--quick", is_flag=True, help="Run fewer repetitions: a few minutes.")
@click.option("--clock", type=click.Choice(["real", "virtual", "both"]), default="both", help="Which clocks to test.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Keep the runs in DIR.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object only.")
def command(*, quick: bool, clock: str, output: Path | None, as_json: bool) -> int:
    """Compare identical cells and count how often a difference is shown.

    Four identical cells run many times, without loss and with 5 % loss. Families of four are drawn from their
    repetitions and compared as in every report. Nothing differs, so at most 7 % of the families may show a difference.
    In virtual time the four cells must be the same to the last bit.

    Exit status: 0 when nothing was found, 1 when more differences are shown than chance explains, 130 interrupted.
    """
    from crosswind.report.text.terminal import print_summary

    clocks = ["real", "virtual"] if clock == "both" else [clock]
    tests: list[SelfTest] = []
    with ExitStack() as opened:
        place = output or opened.enter_context(temporary_directory())
        for name in clocks:
            run = _run(name, quick=quick, directory=place / name)
            if run.interrupted:
                click.echo(f"interrupted: {len(run.results())} of {run.planned} cells were run", err=True)
                return 130
            tests += _tests(run, name)
    if as_json:
        click.echo(json.dumps({"tests": [asdict(test) for test in tests]}, indent=2))
    else:
        print_summary(_page(tests), plain_console())
    return 1 if any(test.is_finding for test in tests) else 0


def _run(clock: str, *, quick: bool, directory: Path) -> "StoredRun":
    # The runner takes a while to import: --help should not wait.
    from crosswind.api import running
    from crosswind.cli.progress import progress_for
    from crosswind.study.files import load_study
    from crosswind.text.console import Console

    fewer = {"study.repetitions": QUICK_REPETITIONS} if quick else {}
    study = load_study(STUDY).with_overrides({"host.clock": clock, **fewer})
    return running.run(study, output=directory, progress=progress_for(Console(stderr=True, highlight=False)))


def _tests(run: "StoredRun", clock: str) -> "list[SelfTest]":
    from crosswind.analysis.against_itself import self_tests

    return self_tests(run.record(), clock)


def _page(tests: "Sequence[SelfTest]") -> "Page":
    from crosswind.report.page import Page, Section, Sentence, Tone
    from crosswind.report.tables.table import Table, names, sentences, words

    failed = [row for row, test in enumerate(tests) if test.is_finding]
    table = Table(
        "Tests",
        [*names("test"), *sentences("result"), *words("verdict")],
        [[test.title, test.text, "fail" if test.is_finding else "pass"] for test in tests],
        frozenset(failed),
    )
    verdict = f"Failed: {len(failed)} of {len(tests)} tests." if failed else f"Passed: {len(tests)} tests."
    return Page(
        "Identical cells compared",
        "crosswind selftest",
        Sentence(verdict, Tone.BAD if failed else Tone.GOOD),
        sections=[Section(table.title, tables=[table])],
    )
