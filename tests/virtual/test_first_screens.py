"""What a user sees of six quick studies, at 80 columns, and what docs/documents.md says of them.

The screens are written by hand: what the first screen of a run has to say, in which words. `…` stands for any lines,
within a line for any text. The page is written by `make documents`, and is stale where a run says something else.
"""

import re
from pathlib import Path

import pytest

from conftest import ROOT
from documents import Document, kept_section, section
from e2e_cli import Cli
from virtual.conftest import requires_kernel
from virtual.test_site import pattern

# Other tests use the processors at the same time.
pytestmark = pytest.mark.timeout(900)

SCREENS = sorted((ROOT / "tests" / "first_screens").glob("*.txt"))


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.stem)
def test_a_quick_study_says_what_it_found(
    screen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    requires_kernel()
    monkeypatch.setenv("COLUMNS", "80")
    crosswind = Cli(tmp_path, capfd)
    ran = crosswind("run", screen.stem, "--quick", "--clock", "virtual", "--output", "run", "--json")
    assert ran.status == 0, ran.err
    shown = crosswind("report", "run").out.replace("\u202f", " ")
    assert re.fullmatch(pattern(screen.read_text("utf-8").splitlines()), shown), shown
    name = ran.json["study"]
    (document,) = [each for each in Document.all() if name in each.studies]
    assert kept_section(name).rstrip() == section(document, name, ran.json["answers"]).rstrip()
