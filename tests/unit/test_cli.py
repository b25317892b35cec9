"""The command line in this process: mistakes and their hints, options, and what prints something known."""

import json
import re
import runpy
from pathlib import Path

import jsonschema
import pytest

from command_lines import REFUSED
from conftest import ROOT
from crosswind import __version__
from crosswind.cli import main
from crosswind.cli.settings import options, parse_set
from crosswind.errors import UsageError
from crosswind.study.keys import SETTINGS
from fixture_types import Crosswind


def test_without_a_cell_binary_the_run_says_how_to_get_one(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_CELL", "/nowhere")
    status, _, err = crosswind("run", "quickstart")
    assert status == 1
    assert "/nowhere" in err
    assert not Path("crosswind-runs").exists()


def test_a_cell_that_the_binary_refuses_is_a_usage_error(
    crosswind: Crosswind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "strict"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{REFUSED}'\nexit 2\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CROSSWIND_CELL", str(program))
    status, _, err = crosswind("run", "echo", "--mtu", "600")
    assert (status, err) == (2, "error: --mtu 600: path.mtu 600 is too small\nhint: 700 or more\n")


def test_what_nobody_expected_is_one_line_and_a_file(crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("crosswind.cli.studies.builtin_studies", broken)
    status, _, err = crosswind("studies")
    error, hint = err.splitlines()
    assert (status, error) == (1, "error: unexpected RuntimeError: the sky fell")
    saved = Path(hint.rpartition(" ")[2])
    assert "Traceback" in saved.read_text(encoding="utf-8")
    saved.unlink()
    monkeypatch.setenv("CROSSWIND_DEBUG", "1")
    with pytest.raises(RuntimeError, match="the sky fell"):
        main(["studies"])


def test_every_setting_of_the_format_is_an_option_of_its_own() -> None:
    names = options()
    assert set(names) == set(SETTINGS) - {"workload.kind", "path.server"}
    assert len(set(names.values())) == len(names)
    assert names["path.loss"] == "--loss"
    assert names["path.forward.loss"] == "--forward-loss"


def test_set_options_are_keys_and_values() -> None:
    assert parse_set(("path.loss=0%,5%", "host.profile = linux")) == {"path.loss": "0%,5%", "host.profile": "linux"}
    for wrong in (("=1",), ("a=1", "a=2")):
        with pytest.raises(UsageError):
            parse_set(wrong)


def test_what_reads_studies(crosswind: Crosswind) -> None:
    assert "quickstart" in crosswind("studies")[1]
    assert "quickstart" in json.loads(crosswind("studies", "--json")[1])
    shown = crosswind("show", "quickstart")[1]
    assert "factor       path.loss = 0%, 5%" in shown
    assert "[workload]" in shown or "[part.workload]" in shown
    source = crosswind("show", "quickstart", "--toml")[1]
    Path("copy.toml").write_text(source, encoding="utf-8")
    assert crosswind("show", "copy.toml")[0] == 0
    for what in ("study", "result"):
        jsonschema.Draft202012Validator.check_schema(json.loads(crosswind("schema", what)[1]))
    assert crosswind("--version")[1] == f"crosswind {__version__}\n"


def test_help_names_the_exit_statuses(crosswind: Crosswind) -> None:
    for arguments in ((), ("run",)):
        _, out, _ = crosswind(*arguments, "--help")
        assert "130" in out
        assert "interrupted" in out


@pytest.mark.parametrize("options", [(), ("--quick",)])
def test_show_and_plan_say_the_same_time(crosswind: Crosswind, options: tuple[str, ...]) -> None:
    """Rounded otherwise: "14 s" and "14.1 s"."""
    shown, planned = (crosswind(command, "mathis", *options)[1] for command in ("show", "plan"))
    found = [re.search(r"in all +about ([\d.]+)", text) for text in (re.sub(r"^quick.*$", "", shown), planned)]
    of_show, of_plan = (float(match[1]) for match in found if match)
    assert of_show == pytest.approx(of_plan, abs=0.51)


def test_a_process_that_imports_the_command_does_not_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["crosswind", "--version"])
    script = ROOT / "packaging" / "wheel-data" / "scripts" / "crosswind"
    runpy.run_path(str(script), run_name="__mp_main__")
    with pytest.raises(SystemExit):
        runpy.run_path(str(script), run_name="__main__")
