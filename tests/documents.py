"""Writes docs/documents.md: what became of the five documents' statements in runs, and what shows each of their errors.

    PYTHONPATH=python:tests python -m documents RUN...

Runs are of quick variants in virtual time. A study without a run keeps its section; its errors are of its text.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from conftest import ROOT
from crosswind.execution.planning import presentation
from crosswind.findings.published.statement import PublishedStatement
from crosswind.study.design import Study
from crosswind.study.files import load_study

PAGE = ROOT / "docs" / "documents.md"
SOURCE = ROOT / "docs" / "documents.toml"
OWN, RUN, NOTE = "own numbers", "run", "note"
HEAD = """# Five documents, measured again

Crosswind exists because five documents each built a test bench by hand, once. Each is one or more studies now. A rule
in the study judges each statement of a document; the verdicts and numbers below are those of quick variants in virtual
time (`crosswind run STUDY --quick`), which repeat to the nanosecond. An error of a document is shown by its own numbers
(arithmetic over what it prints) or by a run; a note of the study tells the others. `make documents` writes this page.
"""


@dataclass(frozen=True)
class Error:
    """An error of a document. Attributes: by: OWN, RUN or NOTE. says: the beginning of the study's text on it."""

    error: str
    by: str
    study: str
    says: str


@dataclass(frozen=True)
class Document:
    """A document, in the words of docs/documents.toml."""

    title: str
    about: str
    studies: Sequence[str]
    errors: Sequence[Error]

    @classmethod
    def all(cls) -> list[Self]:
        """The five, in order."""
        tables = tomllib.loads(SOURCE.read_text("utf-8"))["document"]
        return [cls(**{**table, "errors": [Error(**error) for error in table["errors"]]}) for table in tables]


def own_sentences(study: Study) -> list[str]:
    """What a document's own numbers come to, sentence by sentence."""
    stored = presentation(study)["asked"]["published"]
    made = [PublishedStatement.model_validate(each) for each in stored]
    return [statement.sentence for statement in made if statement.asks]


def section(document: Document, name: str, answers: Sequence[Mapping[str, Any]]) -> str:
    """A study's part of the page. Args: answers: of its run, as in the JSON report."""
    study = load_study(name)
    lines = [f"### {name}", ""]
    statements = [answer for answer in answers if answer["source"]]
    if statements:
        lines += ["| it says | verdict | measured |", "| --- | --- | --- |"]
        lines += [
            _row(answer["asks"], answer["sentence"].partition(": ")[0], _evidence(answer)) for answer in statements
        ]
        lines.append("")
    errors = [error for error in document.errors if error.study == name]
    if errors:
        lines += ["| error | shown by | |", "| --- | --- | --- |"]
        lines += [_row(error.error, error.by, shown(error, study, answers)) for error in errors]
        lines.append("")
    return "\n".join(lines)


def says_something(study: Study) -> bool:
    """Whether a run of a study judges a document's statements."""
    return any(getattr(question.table, "source", None) for question in study.findings["question"])


def page(sections: Mapping[str, str]) -> str:
    """The whole page. Args: sections: by study."""
    parts = [HEAD]
    for document in Document.all():
        parts += [f"## {document.title}", "", document.about, "", *(sections[name] for name in document.studies)]
    return "\n".join(parts)


def kept_section(name: str) -> str:
    """The section that the page has."""
    found = re.search(rf"^### {name}\n.*?(?=^##|\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return found[0] if found else f"### {name}\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\u202f", " ").rstrip(".") for cell in cells) + " |"


def _evidence(answer: Mapping[str, Any]) -> str:
    """The sentence behind the verdict and the statement, with the repetitions."""
    said = str(answer["sentence"]).partition(f": {answer['asks'].rstrip('.')}. ")[2]
    units = sorted({case["pairs"] or case["effect"]["units"] for case in answer["cases"]})
    return f"{said.rstrip('.')} ({units[0]} to {units[-1]} repetitions)" if len(units) > 1 else said


def shown(error: Error, study: Study, answers: Sequence[Mapping[str, Any]]) -> str:
    """What shows an error: its numbers' or its run's sentence, or a note's."""
    if error.by == OWN:
        (sentence,) = [said for said in own_sentences(study) if error.says in said]
        return sentence.partition(". ")[2]
    if error.by == NOTE:
        (note,) = [note for note in study.notes if error.says in note]
        return next(sentence for sentence in re.split(r"(?<=[.)]) (?=[A-Z])", note) if error.says in sentence)
    answer, *_ = [answer for answer in answers if error.says in answer["asks"]]
    if answer["joint"]:
        return str(answer["joint"]).partition(f"{answer['asks'].rstrip('.')}. ")[2]
    return _evidence(answer) if answer["source"] else str(answer["sentence"])


def answers_of(run: Path) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """A run's study, and its answers as in the JSON report."""
    report = [sys.executable, "-m", "crosswind", "report", str(run), "--json"]
    made = json.loads(subprocess.run(report, check=True, capture_output=True, text=True).stdout)
    return made["study"], made["answers"]


def main() -> None:
    """Rewrites the sections of the runs' studies."""
    made = dict(answers_of(Path(run)) for run in sys.argv[1:])
    sections = {
        name: section(document, name, made.get(name, ()))
        if name in made or not says_something(load_study(name))
        else kept_section(name)
        for document in Document.all()
        for name in document.studies
    }
    PAGE.write_text(page(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
