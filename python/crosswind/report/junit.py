"""A result as a JUnit XML file, which continuous integration shows: a test case for each cell of each threshold.

The elements are those of the schema that Jenkins and its likes read (testsuites, testsuite, testcase, failure, error,
skipped). A cell that is not valid is an error; what cannot be told is skipped, or a failure where an answer is
required.
"""

import re
from pathlib import Path
from xml.etree import ElementTree as Xml

from crosswind.analysis.result import CellResult, Result, ThresholdCell, ThresholdResult
from crosswind.report.files import write_text
from crosswind.report.text.format import named_levels
from crosswind.report.text.thresholds import cell_sentence, threshold_sentence

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(result: Result, path: Path, *, require_answer: bool) -> None:
    """Write the file whole or not at all. Args: require_answer: whether no answer is a failure. Raises: DiskError."""
    write_text(path, junit_text(result, require_answer=require_answer))


def junit_text(result: Result, *, require_answer: bool) -> str:
    """The file. Args: as of `write_junit`."""
    suite = Xml.Element("testsuite", name=_text(f"crosswind {result.study}"))
    for cell in result.cells:
        _cell(suite, result, cell)
    for threshold in result.thresholds:
        for judged in threshold.cells:
            _judged(suite, result, threshold, judged, require_answer=require_answer)
        if not threshold.cells:
            case = _case(suite, result, f"fail if {threshold.fail_if}")
            Xml.SubElement(case, "error", message=_text(threshold_sentence(threshold)))
    counts = {
        "tests": len(suite),
        **{f"{kind}{plural}": len(suite.findall(f"*/{kind}")) for kind, plural in _KINDS.items()},
    }
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


_KINDS = {"failure": "s", "error": "s", "skipped": ""}


def _cell(suite: Xml.Element, result: Result, cell: CellResult) -> None:
    """Whether the measurement of a cell can be trusted."""
    case = _case(suite, result, f"is measured{_at(cell.levels)}")
    if not cell.valid:
        Xml.SubElement(case, "error", message=_text(cell.reason or "the cell is not valid"))


def _judged(
    suite: Xml.Element, result: Result, threshold: ThresholdResult, cell: ThresholdCell, *, require_answer: bool
) -> None:
    case = _case(suite, result, f"not {threshold.fail_if}{_at(cell.levels)}")
    said = _text(cell_sentence(threshold, cell))
    if cell.verdict == "fail" or (cell.verdict == "cannot tell" and require_answer):
        Xml.SubElement(case, "failure", message=said)
    elif cell.verdict == "cannot tell":
        Xml.SubElement(case, "skipped", message=said)
    else:
        Xml.SubElement(case, "system-out").text = said


def _case(suite: Xml.Element, result: Result, name: str) -> Xml.Element:
    return Xml.SubElement(suite, "testcase", classname=_text(f"crosswind.{result.study}"), name=_text(name))


def _at(of_cell: dict[str, str]) -> str:
    return f" ({named_levels(of_cell)})" if of_cell else ""


def _text(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return _NOT_XML.sub("\ufffd", text)
