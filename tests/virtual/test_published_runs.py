"""A run as an RO-Crate: what it says of itself is what it holds, and what it holds is the run."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import crosswind
from crosswind.cli.export import command
from crosswind.errors import UsageError
from crosswind.study.design import Study
from crosswind.study.files import load_study
from virtual.conftest import requires_kernel


@pytest.fixture
def run(tmp_path: Path) -> crosswind.Run:
    requires_kernel()
    settings = {"host.clock": "virtual", "study.repetitions": "2", "workload.messages": "20", "path.loss": "0%,5%"}
    return crosswind.run(Study.adhoc("echo", {**settings, "workload.transport": "tcp"}), output=tmp_path / "run")


def test_an_archive_holds_the_run_and_describes_itself(run: crosswind.Run, tmp_path: Path) -> None:
    crate = tmp_path / "run.zip"
    options = ["--author", "Ada Example (0000-0002-1825-0097)", "--author", "B. Example", "--licence", "CC-BY-4.0"]
    done = CliRunner().invoke(command, [str(run.directory), "--ro-crate", str(crate), "--zenodo", *options])
    assert done.exception is None
    with zipfile.ZipFile(crate) as archive:
        archive.extractall(tmp_path / "there")
    there = tmp_path / "there"
    # A run is read from it, and its study is run again from it.
    assert sorted(crosswind.load(there).results()) == sorted(run.results())
    assert load_study(str(there / "study.toml")).factors == {"path.loss": ("0%", "5%")}
    entities = {
        each["@id"]: each for each in json.loads((there / "ro-crate-metadata.json").read_text("utf-8"))["@graph"]
    }
    root = entities["./"]
    assert root["license"] == "CC-BY-4.0"
    for part in root["hasPart"]:
        assert (there / part["@id"]).exists()
    # Everything that is named is described.
    assert {reference for entity in entities.values() for reference in references(entity)} - set(entities) == {
        "https://w3id.org/ro/crate/1.1"
    }
    people = [entities[author["@id"]]["name"] for author in root["author"]]
    assert (people, root["author"][0]["@id"]) == (
        ["Ada Example", "B. Example"],
        "https://orcid.org/0000-0002-1825-0097",
    )
    assert entities["#factor-path.loss"]["value"] == ["0%", "5%"]
    (kernel,) = entities["#crosswind"]["softwareRequirements"]
    assert entities[kernel["@id"]]["version"] == run.manifest.provenance["kernels"][0]
    zenodo = json.loads((there / ".zenodo.json").read_text("utf-8"))
    assert zenodo["creators"] == [{"name": "Ada Example", "orcid": "0000-0002-1825-0097"}, {"name": "B. Example"}]


@pytest.mark.parametrize(
    ("options", "said"), [([], "nothing to export"), (["--ro-crate", "r.zip", "--zenodo"], "--zenodo needs an author")]
)
def test_what_lacks_something_is_a_mistake(options: list[str], said: str) -> None:
    done = CliRunner().invoke(command, options)
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == said


def references(value: Any) -> set[str]:
    """The identifiers that an entity names."""
    if isinstance(value, list):
        return {each for part in value for each in references(part)}
    if isinstance(value, dict):
        own = {value["@id"]} if set(value) == {"@id"} else set()
        return own | {each for key, part in value.items() if key != "@id" for each in references(part)}
    return set()
