"""The directory of reports: a directory for each run, and a page that lists each test, its verdict and its reports.

Whatever process runs a test (pytest-xdist has several), the one that pytest was started as hears how it ended. It notes
the verdict in the directories of the test's runs, and writes the page at the end: of what it has heard, and of what
earlier sessions have noted there.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

PAGE = "index.html"
REPORT = "report.html"
VERDICT = "test.json"

_RUNS = "crosswind_runs"
_BAD, _GOOD = ("error", "failed"), ("passed", "xfailed")
_LONGEST_REASON = 300


def directory_name(test: str, number: int) -> str:
    """A file name for a run of a test: readable, and no two tests have the same one. Args: number: from 1."""
    readable = re.sub(r"[^A-Za-z0-9._=]+", "-", test.rpartition("/")[2]).strip("-")[:100]
    digest = hashlib.sha256(test.encode()).hexdigest()[:6]
    return f"{readable}-{digest}" + (f"-{number}" if number > 1 else "")


def note_runs(report: pytest.TestReport, runs: list[Path]) -> None:
    """Has a test's report say which directories its runs have; it may go to another process."""
    setattr(report, _RUNS, [place.name for place in runs if place.exists()])


@dataclass(frozen=True)
class Listed:
    """A test with a network. Attributes: verdict: pytest's word for it. runs: names of their directories."""

    test: str
    verdict: str
    reason: str = ""
    runs: tuple[str, ...] = ()


class Reports:
    """A plugin of the process that pytest was started as. Args: directory: of the reports."""

    def __init__(self, directory: Path, config: pytest.Config) -> None:
        self._directory = directory
        self._config = config
        self._tests: dict[str, Listed] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes what is reported of a phase of a test: its setup, its call, its teardown."""
        runs = self._runs_of(report)
        if runs is None:
            return
        verdict = self._config.hook.pytest_report_teststatus(report=report, config=self._config)[0]
        if verdict:
            self._tests[report.nodeid] = Listed(report.nodeid, verdict, _reason(report), tuple(runs))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Notes the verdicts, and writes the page, unless there is nothing to list."""
        for tested in self._tests.values():
            for name in tested.runs:
                with suppress(OSError):
                    noted = {**asdict(tested), "runs": [name]}
                    (self._directory / name / VERDICT).write_text(json.dumps(noted), encoding="utf-8")
        tests = {**_noted(self._directory), **self._tests}
        if tests:
            self._directory.mkdir(parents=True, exist_ok=True)
            text = page(list(tests.values()), self._directory)
            (self._directory / PAGE).write_text(text, encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says where the page is."""
        if (self._directory / PAGE).exists():
            terminalreporter.write_line(f"network tests: {self._directory / PAGE}")

    def _runs_of(self, report: pytest.TestReport) -> list[str] | None:
        """The directories of a test's runs; None of a test without a network."""
        runs: list[str] | None = getattr(report, _RUNS, None)
        if runs is None and report.when not in ("setup", "call", "teardown"):
            # The process that ran it has crashed, and nobody else knows what it did.
            names = (directory_name(report.nodeid, number) for number in count(1))
            runs = list(_existing(self._directory, names)) or None
        return runs


def page(tests: list[Listed], directory: Path) -> str:
    """The page, those first that did not pass. Args: directory: where it will be."""
    # Crosswind's reports take a while to import, for which sessions without a report should not wait.
    from crosswind.report.html import render
    from crosswind.report.page import Page, Section, Sentence, Tone
    from crosswind.report.tables.table import Table, names, sentences, words

    listed = sorted(tests, key=lambda tested: (tested.verdict not in _BAD, tested.verdict in _GOOD, tested.test))
    verdicts = [tested.verdict for tested in listed]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    is_bad, is_good = any(word in _BAD for word in verdicts), all(word in _GOOD for word in verdicts)
    table = Table(
        "Tests",
        [*names("test"), *words("verdict"), *sentences("reason")],
        [[tested.test, tested.verdict, tested.reason] for tested in listed],
        frozenset(number for number, verdict in enumerate(verdicts) if verdict in _BAD),
        links={number: _links(tested, directory) for number, tested in enumerate(listed)},
    )
    return render(
        Page(
            "Network tests",
            "pytest-crosswind: tests on emulated paths",
            Sentence(f"{counts}.", Tone.BAD if is_bad else Tone.GOOD if is_good else Tone.DOUBTFUL),
            sections=[Section(table.title, tables=[table])],
        )
    )


def _links(tested: Listed, directory: Path) -> list[tuple[str, str]]:
    """The reports of a test's runs."""
    return [
        (f"run {number}", f"{quote(name)}/{REPORT}")
        for number, name in enumerate(tested.runs, start=1)
        if (directory / name / REPORT).exists()
    ]


def _reason(report: pytest.TestReport) -> str:
    """Why it did not pass, in a line or two."""
    reason = report.longrepr
    if isinstance(reason, tuple):
        text = str(reason[2])
    else:
        text = getattr(getattr(reason, "reprcrash", None), "message", "") or (str(reason) if reason else "")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def _noted(directory: Path) -> dict[str, Listed]:
    """The tests whose runs a directory has, as sessions have noted them."""
    listed: dict[str, Listed] = {}
    # The second run of a test has a longer name than the first, the tenth than the second.
    for file in sorted(directory.glob(f"*/{VERDICT}"), key=lambda file: (len(file.parent.name), file)):
        with suppress(OSError, ValueError, TypeError):
            tested = Listed(**json.loads(file.read_text(encoding="utf-8")))
            runs = (*(listed[tested.test].runs if tested.test in listed else ()), file.parent.name)
            listed[tested.test] = replace(tested, runs=runs)
    return listed


def _existing(directory: Path, names: Iterator[str]) -> Iterator[str]:
    for name in names:
        if not (directory / name).exists():
            return
        yield name
