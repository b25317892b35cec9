"""JUnit XML files for continuous integration: a test case for each cell of each threshold, or for each condition of a
comparison.

The elements follow the schema of Jenkins and its likes (testsuites, testsuite, testcase, failure, error, skipped). An
invalid cell is an error; an inconclusive one is skipped, or a failure where an answer is required.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

from crosswind.analysis.result import Result
from crosswind.analysis.two_runs.result import RunComparison
from crosswind.report.files import write_text
from crosswind.report.showing import JUnitCase, conclusion_of, showings
from crosswind.report.text.format import named_levels
from crosswind.report.text.two_runs import answer_text, overall_of_runs

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_CHILDREN = {"fail": "failure", "error": "error", "inconclusive": "skipped", "pass": "system-out"}
"""A test case's child element. One without any has passed."""
_KINDS = {"failure": "s", "error": "s", "skipped": ""}


def write_junit(judged: Result | RunComparison, path: Path, *, require_answer: bool) -> None:
    """Write the file whole or not at all. Args: require_answer: whether no answer is a failure. Raises: DiskError."""
    write_text(path, junit_text(judged, require_answer=require_answer))


def junit_text(judged: Result | RunComparison, *, require_answer: bool) -> str:
    """The file. Args: as for `write_junit`."""
    if isinstance(judged, Result):
        return _file(judged.study, _of_result(judged), conclusion_of(judged), require_answer=require_answer)
    sentences = overall_of_runs(judged)
    return _file(f"{judged.b.study} compared", _of_comparison(judged), sentences, require_answer=require_answer)


def _of_result(result: Result) -> Iterator[JUnitCase]:
    for cell in result.cells:
        reason = "" if cell.valid else cell.reason or "the cell is not valid"
        yield JUnitCase("is measured", "error" if reason else "pass", reason, cell.levels)
    for showing in showings():
        yield from showing.cases(result)


def _of_comparison(comparison: RunComparison) -> Iterator[JUnitCase]:
    for common in comparison.common:
        sides = {"A": common.invalid_a, "B": common.invalid_b}
        reasons = [f"not valid in {name}: {reason}" for name, reason in sides.items() if reason]
        yield JUnitCase("is measured", "error" if reasons else "pass", "; ".join(reasons), common.levels)
    for asked in comparison.conditions:
        for cell in asked.cells:
            yield JUnitCase(f"not {asked.condition}", cell.answer, answer_text(cell, asked), cell.levels)


def _file(suite_name: str, cases: Iterator[JUnitCase], conclusion: Sequence[str], *, require_answer: bool) -> str:
    """The file. Args: conclusion: the suite's output."""
    suite = Xml.Element("testsuite", name=_text(f"crosswind {suite_name}"))
    for case in cases:
        at = f" ({named_levels(case.levels)})" if case.levels else ""
        element = Xml.SubElement(
            suite, "testcase", classname=_text(f"crosswind.{suite_name}"), name=_text(f"{case.name}{at}")
        )
        is_required = require_answer and case.verdict == "inconclusive"
        kind = "failure" if is_required else _CHILDREN[case.verdict]
        if kind != "system-out":
            Xml.SubElement(element, kind, message=_text(case.said))
        elif case.said:
            Xml.SubElement(element, kind).text = _text(case.said)
    counts = {
        "tests": len(suite.findall("testcase")),
        **{f"{kind}{plural}": len(suite.findall(f"*/{kind}")) for kind, plural in _KINDS.items()},
    }
    if conclusion:
        Xml.SubElement(suite, "system-out").text = _text("\n".join(conclusion))
    whole = Xml.Element("testsuites")
    for name, count in counts.items():
        suite.set(name, str(count))
        if name != "skipped":
            whole.set(name, str(count))
    whole.append(suite)
    Xml.indent(whole)
    return Xml.tostring(whole, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n")
    )


def _text(text: str) -> str:
    """A text without characters forbidden in XML."""
    return _NOT_XML.sub("\ufffd", text)
