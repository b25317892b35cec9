"""The command line in this process, with a made-up crosswind-cell: what is printed where, and the exit status."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from conftest import ROOT
from crosswind import __version__
from crosswind.cli import main
from crosswind.cli.settings import options, parse_set
from crosswind.errors import UsageError
from crosswind.study_format import KINDS
from runs import FINISHED, echo_samples

Crosswind = Callable[..., tuple[int, str, str]]


@pytest.fixture
def crosswind(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Crosswind:
    """Runs a command line in an empty directory: (exit status, standard output, standard error)."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        out, err = capfd.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, out, err

    return run


@pytest.fixture
def use_cell(
    fake_cell: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], None]:
    """Puts a made-up cell in place. Its body may call finish(**changes), which leaves samples behind."""
    echo_samples().write_ipc(tmp_path / "samples.arrow")

    def use(body: str) -> None:
        head = f"""
import shutil
def finish(**changes):
    shutil.copy({str(tmp_path / "samples.arrow")!r}, cell['output']['directory'])
    say(**{{**{FINISHED!r}, 'id': cell['id'], **changes}})
start()
"""
        monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell(head + body)))

    return use


ECHO = ("run", "echo", "--transport", "tcp", "--loss", "0%,5%", "--messages", "60")


def test_a_run_prints_a_table_and_says_where_everything_is(
    crosswind: Crosswind, use_cell: Callable[[str], None]
) -> None:
    use_cell("finish()")
    status, out, err = crosswind(*ECHO)
    assert status == 0
    assert "median" in out
    (run,) = Path("crosswind-runs").iterdir()
    assert f"run:    {run}" in err
    assert f"report: {run / 'report.html'}" in err
    assert "[2/2]" in err
    assert "<html" in (run / "report.html").read_text(encoding="utf-8")


def test_json_is_one_object_of_the_published_schema_and_nothing_else(
    crosswind: Crosswind, use_cell: Callable[[str], None]
) -> None:
    use_cell("finish()")
    status, out, _ = crosswind(*ECHO, "--json")
    assert status == 0
    result = json.loads(out)
    schema = json.loads((ROOT / "docs" / "result.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(result, schema)
    assert [cell["levels"] for cell in result["cells"]] == [{"path.loss": "0%"}, {"path.loss": "5%"}]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("finish(valid=False, reasons=['the ledger does not close'])", "the ledger does not close"),
        ("os.kill(os.getpid(), 9)", "SIGKILL"),
        ("print('thread panicked')", "protocol"),
    ],
)
def test_a_failed_or_invalid_cell_is_reported_and_exits_1(
    crosswind: Crosswind, use_cell: Callable[[str], None], body: str, reason: str
) -> None:
    use_cell(f"if '/c001' in cell['output']['directory']:\n    {body}\n    sys.exit(0)\nfinish()")
    status, out, err = crosswind(*ECHO)
    assert status == 1
    assert reason in err
    assert "median" in out


def test_an_interrupted_run_keeps_what_was_finished_and_resumes(
    crosswind: Crosswind, use_cell: Callable[[str], None]
) -> None:
    stop = f"if '/c001' in cell['output']['directory']: os.kill(os.getppid(), {int(signal.SIGINT)}); signal.pause()"
    use_cell(f"signal.signal(2, lambda *_: sys.exit(130))\n{stop}\nfinish()")
    status, out, err = crosswind(*ECHO, "--output", "here", "--seed", "3")
    assert status == 130
    assert out == ""
    done = {path.name for path in Path("here/cells").iterdir()}
    assert f"interrupted: {len(done)} of 2 cells are kept in here" in err
    assert "crosswind run --resume here" in err
    use_cell("finish()")
    status, _, err = crosswind("run", "--resume", "here")
    assert status == 0
    assert f"{2 - len(done)} of 2 cells to run" in err
    assert {path.name for path in Path("here/cells").iterdir()} == {"c000-r00", "c001-r00"}
    assert len(json.loads(Path("here/manifest.json").read_text(encoding="utf-8"))["sessions"]) == 2


def test_resume_refuses_another_study_and_a_finished_run_runs_nothing(
    crosswind: Crosswind, use_cell: Callable[[str], None]
) -> None:
    use_cell("finish()")
    crosswind(*ECHO)
    status, _, err = crosswind("run", "echo", "--loss", "1%", "--resume")
    assert status == 2
    assert "holds another study" in err
    status, _, err = crosswind(*ECHO, "--resume")
    assert status == 0
    assert "0 of 2 cells to run" in err


def test_report_shows_and_exports_a_run(crosswind: Crosswind, use_cell: Callable[[str], None]) -> None:
    use_cell("finish()")
    _, ran, _ = crosswind(*ECHO)
    status, out, _ = crosswind("report")
    assert status == 0
    assert out == ran
    names = [f"--{kind}={kind}.out" for kind in ("csv", "parquet", "samples", "html")]
    status, out, err = crosswind("report", *names)
    assert (status, out) == (0, "")
    assert err.count("wrote ") == 4
    assert json.loads(crosswind("report", "--json")[1])["schema"] == "crosswind.result/1"


MISTAKES = [
    (("run",), "nothing to run", "crosswind studies"),
    (("run", "nowhere"), '"nowhere"', "quickstart"),
    (("run", "nowhere.toml"), "no such file", "crosswind studies"),
    (("run", "--loss", "5%"), "settings without a study", "echo"),
    (("run", "echo", "--loss", "101%"), "--loss 101%", "0% to 100%"),
    (("run", "echo", "--delay", "-1ms"), "--delay -1ms", "duration"),
    (("run", "echo", "--rate", "0mbit"), "--rate 0mbit", "rate"),
    (("run", "echo", "--size", "99TB"), "--size 99TB", ""),
    (("run", "echo", "--transport", "tpc"), "--transport tpc", "tcp"),
    (("run", "echo", "--quick"), "no quick variant", "--quick"),
    (("run", "echo", "--bogus", "1"), "--bogus", "--help"),
    (("run", "echo", "--repetitions", "0"), "--repetitions", "--help"),
    (("run", "echo", "--set", "path.loss"), "not key=value", "--set"),
    (("run", "quickstart", "--set", "path.los=1%"), "path.los", "path.loss"),
    (("run", "quickstart", "--loss", "1%", "--set", "path.loss=2%"), "--set", "leave one"),
    (("run", "echo", "--output", "taken"), "not empty and not a run", "--output"),
    (("run", "echo", "--output", "taken/file"), "not a directory", "--output"),
    (("run", "--resume", "taken"), "is not a run", "crosswind-runs/"),
    (("run", "--resume"), "there is no run in crosswind-runs/", "quickstart"),
    (("run", "--resume", "a", "--output", "b"), "two directories", "--output"),
    (("run", "echo", "--resume", "--packets"), "--packets", "started with"),
    (("report",), "there is no run", "quickstart"),
    (("report", "taken"), "is not a run", "crosswind-runs/"),
    (("show", "nowhere"), "nowhere", "quickstart"),
    (("schema", "else"), "else", "--help"),
    (("bogus",), "bogus", "--help"),
]


@pytest.mark.parametrize(("arguments", "message", "hint"), MISTAKES, ids=lambda value: " ".join(value)[:40])
def test_a_mistake_gets_one_message_a_hint_and_status_2(
    crosswind: Crosswind, use_cell: Callable[[str], None], arguments: tuple[str, ...], message: str, hint: str
) -> None:
    use_cell("finish()")
    Path("taken").mkdir()
    Path("taken/file").touch()
    status, out, err = crosswind(*arguments)
    assert status == 2
    assert out == ""
    error, *rest = err.splitlines()
    assert error.startswith("error: ")
    assert message in error
    assert [line[:6] for line in rest] == ["hint: "]
    assert hint in rest[0]
    assert not Path("crosswind-runs").exists()


def test_without_a_cell_binary_the_run_says_how_to_get_one(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_CELL", "/nowhere")
    status, _, err = crosswind("run", "quickstart")
    assert status == 1
    assert "/nowhere" in err
    assert not Path("crosswind-runs").exists()


def test_a_model_that_does_not_exist_is_refused_before_anything_runs(crosswind: Crosswind, tmp_path: Path) -> None:
    study = tmp_path / "s.toml"
    study.write_text('[workload]\nkind = "echo"\n[report]\nmodels = ["mathis", "madison"]\n', encoding="utf-8")
    status, _, err = crosswind("run", str(study))
    assert status == 2
    assert err.startswith('error: report.models: "madison" is no model\nhint: known: ')
    assert not Path("crosswind-runs").exists()


def test_a_cell_that_the_binary_refuses_is_a_usage_error(
    crosswind: Crosswind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "strict"
    event = '{"event": "error", "kind": "bad_cell", "message": "mtu_bytes: too small", "hint": "576 or more"}'
    program.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{event}'\nexit 2\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CROSSWIND_CELL", str(program))
    status, _, err = crosswind("run", "echo")
    assert (status, err) == (2, "error: mtu_bytes: too small\nhint: 576 or more\n")


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
    assert set(names) == set(KINDS) - {"workload.kind"}
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
