"""What comes with an installation: completions, man pages, a kernel from its wheel, what a version brings."""

import re
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from conftest import ROOT
from crosswind.cell.kernels import find_kernel
from crosswind.cli import cli
from crosswind.cli.manual import pages
from crosswind.cli.reference import command_names, command_of, every_option
from fixture_types import Crosswind
from scripts import script_module


def test_a_shell_completes_commands_and_options(crosswind: Crosswind) -> None:
    status, source, _ = crosswind("completions", "fish")
    assert (status, "_CROSSWIND_COMPLETE=fish_complete" in source) == (0, True)
    offered = ShellComplete(cli, {}, "crosswind", "_CROSSWIND_COMPLETE").get_completions
    assert [item.value for item in offered([], "ex")] == ["exec", "export", "explain"]
    assert [item.value for item in offered(["run"], "--netw")] == ["--network"]


def test_every_command_has_a_man_page_with_its_options() -> None:
    made = pages()
    assert set(made) == {"crosswind.1", *(f"crosswind-{name}.1" for name in command_names())}
    for name in command_names():
        page = made[f"crosswind-{name}.1"].replace("\\-", "-")
        assert all(word in page for option in every_option(command_of(name)) for word in option.opts), name
        # A line that begins with a dot is a request of troff.
        assert set(re.findall(r"^\.(\w+)", page, re.MULTILINE)) <= {"TH", "SH", "PP", "TP", "nf", "fi"}


def kernel_wheel(place: Path) -> Path:
    wheel = script_module("packaging/kernel/wheel.py")
    facts = b'{"series": "6.12", "release": "6.12.1", "source": "made up", "digest": "0123456789ab"}'
    folder = f"{wheel.NAME}/kernels/6.12"
    files = [(f"{folder}/linux", b"#!/bin/sh\n", 0o755), (f"{folder}/kernel.json", facts, 0o644)]
    path = place / f"{wheel.NAME}-0.1.0-{wheel.TAG}.whl"
    wheel.write(path, files, record=f"{wheel.info('0.1.0')}/RECORD")
    return path


def test_a_kernel_is_installed_from_its_wheel(
    crosswind: Crosswind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path / "kernels"))
    kernel_wheel(tmp_path)
    for source in (str(tmp_path), str(next(tmp_path.glob("*.whl")))):
        assert crosswind("kernel", "install", source)[0] == 0
    assert find_kernel().name == "6.12-0123456789ab"
    assert {path.name for path in (tmp_path / "kernels").iterdir()} == {"6.12", "6.12-0123456789ab"}


@pytest.mark.parametrize("damaged", ["linux", "kernel.json"])
def test_a_kernel_that_has_changed_is_installed_anew(
    crosswind: Crosswind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: str
) -> None:
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path / "kernels"))
    wheel = str(kernel_wheel(tmp_path))
    assert crosswind("kernel", "install", wheel)[0] == 0
    place = tmp_path / "kernels" / "6.12-0123456789ab"
    before = (place / damaged).read_bytes()
    (place / damaged).write_bytes(b"?")
    status, _, err = crosswind("kernel", "install", wheel)
    assert (status, (place / damaged).read_bytes()) == (0, before)
    assert f"note: {place}: it is not what was installed; it is made anew" in err
    assert find_kernel().name == "6.12-0123456789ab"


def test_no_other_file_is_taken_for_a_kernel(
    crosswind: Crosswind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path / "kernels"))
    monkeypatch.delenv("CROSSWIND_WHEELS", raising=False)
    half = tmp_path / "crosswind_kernel-half.whl"
    half.write_bytes(kernel_wheel(tmp_path).read_bytes()[:100])
    for source, said in {
        (): "where the kernel is from is not said",
        (str(tmp_path / "absent"),): "there is no file",
        (str(half),): "is damaged",
        ("https://example.org/kernel.zip",): "is not the address of a crosswind_kernel-",
    }.items():
        status, _, err = crosswind("kernel", "install", *source)
        assert (status, said in err, "hint: " in err) == (2, True, True), err
    assert not (tmp_path / "kernels").exists()


def test_release_notes_are_the_section_of_a_version() -> None:
    notes_of = script_module("packaging/release_notes.py").notes_of
    changelog = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-12-01\n### Added\n- It.\n\n## 1.1.0\n"
    assert notes_of("1.2.0", changelog) == "### Added\n- It.\n"
    assert notes_of("1.3.0", changelog) is None
    assert notes_of("0.1.0", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
