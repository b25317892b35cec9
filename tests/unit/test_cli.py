"""The command line in this process, with a made-up crosswind-cell: what is printed where, and the exit status."""

import json
import signal
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from cell_events import FINISHED
from conftest import ROOT, requires_binary
from crosswind import __version__
from crosswind.cli import main
from crosswind.cli.runs import print_runs
from crosswind.cli.settings import options, parse_set
from crosswind.cli.text import size_text
from crosswind.errors import EngineError, UsageError
from crosswind.store.directory import Store
from crosswind.store.listing import list_runs
from crosswind.store.manifest import Session, Status
from crosswind.study.keys import KINDS
from runs import echo_samples, new_run

Crosswind = Callable[..., tuple[int, str, str]]


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


def test_a_run_in_which_every_exchange_failed_says_so_and_why(
    crosswind: Crosswind, use_cell: Callable[[str], None]
) -> None:
    error = "cannot connect: the certificate has expired"
    outcomes = [{"outcome": "certificate", "count": 60, "first_error": error}]
    samples = {"rows": 60, "ok": 0, "lost": 60, "outcomes": outcomes}
    use_cell(f"finish(samples={samples!r})")
    status, _, err = crosswind("run", "echo", "--transport", "tcp", "--messages", "60", "--output", "here")
    assert status == 1
    lines = err.splitlines()
    assert f"[1/1] #1: 0 of 60 ok, 60 x certificate ({error}), " in lines[1]
    assert lines[2] == "failed: #1: no exchange succeeded"
    listed = [line.rstrip() for line in crosswind("runs", "here", "--details")[1].splitlines()]
    assert listed[0].split()[-4:] == ["clock", "invalid", "failed", "size"]
    assert listed[1].split()[6:9] == ["real", "0", "1"]
    assert listed[2] == f"here: 60 x certificate ({error})"
    (run,) = json.loads(crosswind("runs", "here", "--details", "--json")[1])["runs"]
    assert (run["invalid"], run["failed"], run["outcomes"]) == (0, 1, outcomes)


def test_an_interrupted_run_keeps_what_was_finished_and_resumes(
    crosswind: Crosswind, use_cell: Callable[[str], None]
) -> None:
    stop = f"if '/c001' in cell['output']['directory']: os.kill(os.getppid(), {int(signal.SIGINT)}); signal.pause()"
    use_cell(f"signal.signal(2, lambda *_: sys.exit(130))\n{stop}\nfinish()")
    status, out, err = crosswind(*ECHO, "--output", "here", "--seed", "3")
    assert status == 130
    assert out == ""
    done = {path.name for path in Path("here/cells").iterdir()}
    assert f"interrupted: {len(done)} of 2 repetitions are kept in here" in err
    assert "crosswind run --resume here" in err
    use_cell("finish()")
    status, _, err = crosswind("run", "--resume", "here")
    assert status == 0
    assert f"{2 - len(done)} of 2 repetitions to run" in err
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
    assert "0 of 2 repetitions to run" in err


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
    (("run", "--resume", "taken", "--loss", "5%"), "--resume continues a run as it was planned", "without --resume"),
    (("run", "echo", "--loss", "101%"), "--loss 101%", "0% to 100%"),
    (("run", "echo", "--delay", "-1ms"), "--delay -1ms", "duration"),
    (("run", "echo", "--rate", "0mbit"), "--rate 0mbit", "rate"),
    (("run", "echo", "--size", "99TB"), "--size 99TB", ""),
    (("run", "echo", "--transport", "tpc"), "--transport tpc", "tcp"),
    (("run", "echo", "--quick"), "no quick variant", "--quick"),
    (("run", "echo", "--bogus", "1"), "--bogus", "--help"),
    (("run", "echo", "--repetitions", "0"), "--repetitions", "--help"),
    (("run", "echo", "--precision", "5%", "--repetitions-max", "3"), "error: --repetitions-max 3: ", "at least 5"),
    (("plan", "echo", "--seed", "9" * 20), f"error: --seed {'9' * 20}: ", "less than"),
    (("plan", "echo", "--set", "study.seed=x"), "error: --set study.seed=x: ", "whole number"),
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
    (("plan",), "STUDY|FILE|KIND", "--help"),
    (("plan", "nowhere"), '"nowhere"', "quickstart"),
    (("plan", "echo", "--loss", "101%"), "--loss 101%", "0% to 100%"),
    (("plan", "echo", "--quick"), "no quick variant", "--quick"),
    (("runs", "nowhere"), "cannot read nowhere: No such file or directory", "crosswind-runs/"),
    (("clean", "nowhere"), "there is no nowhere", "crosswind runs"),
    (("clean", "taken", "--yes"), "taken is not a run", "crosswind-runs/"),
    (("clean", "--older-than", "30"), "--older-than '30' is not an age", "30d"),
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


REFUSED = json.dumps(
    {
        "event": "refused",
        "index": 0,
        "kind": "bad_cell",
        "key": "path.mtu_bytes",
        "message": "path.mtu_bytes 600 is too small",
        "hint": "700 or more",
    }
)


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
    assert set(names) == set(KINDS) - {"workload.kind", "path.server"}
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


# plan


def test_a_plan_says_what_a_run_would_take_and_makes_nothing(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_CELL", "/nowhere")
    status, out, err = crosswind("plan", "quickstart")
    assert (status, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0].startswith("Quick start")
    assert "plan     6 cells, 5 repetitions each: 30 in all" in lines
    assert "factor   path.loss = 0%, 5%" in lines
    assert (
        "checked  not by crosswind-cell: CROSSWIND_CELL is '/nowhere', which is not a program that can be run" in lines
    )
    assert not any("about" in line for line in lines)
    monkeypatch.setenv("CROSSWIND_CELL", str(requires_binary()))
    status, out, err = crosswind("plan", "quickstart")
    assert (status, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert "checked  each cell, by crosswind-cell" in lines
    assert next(line for line in lines if line.startswith("cell")).split()[-3:] == ["takes", "packets", "load"]
    assert any(line.split()[:4] == ["side", "by", "side", "about"] for line in lines)
    assert "--clock virtual  about " in crosswind("plan", "echo", "--delay", "200ms")[1]
    assert any("factor of two or three" in line for line in lines)
    assert list(Path().iterdir()) == []


def test_a_plan_as_json_is_the_plan_that_is_run(crosswind: Crosswind, use_cell: Callable[[str], None]) -> None:
    use_cell("finish()")
    arguments = (*ECHO[1:], "--repetitions", "2", "--seed", "5")
    planned = json.loads(crosswind("plan", *arguments, "--order", "--json")[1])
    assert (planned["schema"], planned["runs"], planned["repetitions"]) == ("crosswind.plan/1", 4, 2)
    assert planned["checked"] == "each cell, by crosswind-cell"
    crosswind("run", *arguments, "--output", "here", "--no-report")
    store = Store.read(Path("here"))
    assert planned["study_digest"] == store.manifest.study_digest
    assert planned["order"] == [
        {key: value for key, value in cell.as_json().items() if key != "parameters"} for cell in store.plan
    ]
    assert planned["total"]["serial_ns"] == sum(cell.expected_ns for cell in store.plan)
    assert planned["total"]["packets"] == sum(cell.expected_packets for cell in store.plan)
    assert [cell["runs"] for cell in planned["cells"]] == [2, 2]
    assert "order" not in json.loads(crosswind("plan", *arguments, "--json")[1])


def test_a_plan_counts_the_space_of_records_and_captures(crosswind: Crosswind, use_cell: Callable[[str], None]) -> None:
    use_cell("finish()")

    def disk_bytes(*options: str) -> int:
        size_bytes = json.loads(crosswind("plan", "echo", "--transport", "udp", "--json", *options)[1])
        return int(size_bytes["total"]["disk_bytes"])

    # 100 messages of one byte: 200 packets of 29 bytes; each host keeps what it sent and received.
    assert disk_bytes() == 6000 + 100 * 50
    assert disk_bytes("--packets") == disk_bytes() + 200 * 40
    assert disk_bytes("--capture") == disk_bytes() + 2 * 200 * (29 + 32)


def test_a_plan_refuses_what_a_run_refuses(
    crosswind: Crosswind, use_cell: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cell("finish()")
    Path("s.toml").write_text('[workload]\nkind = "echo"\n[report]\nmodels = ["madison"]\n', encoding="utf-8")
    assert crosswind("plan", "s.toml")[::2] == crosswind("run", "s.toml")[::2]
    program = tmp_path / "strict"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{REFUSED}'\nexit 2\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CROSSWIND_CELL", str(program))
    arguments = ("echo", "--mtu", "600")
    assert crosswind("plan", *arguments) == crosswind("run", *arguments)


def test_an_output_that_cannot_be_is_an_error_before_anything_runs_also_of_a_plan(
    crosswind: Crosswind, use_cell: Callable[[str], None], tmp_path: Path
) -> None:
    use_cell("raise SystemExit('it ran')")
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").touch()
    places = {
        "/dev/null/run": (1, "cannot write /dev/null/run: Not a directory"),
        "/proc/run": (1, "cannot write /proc/run: No such file or directory"),
        str(tmp_path / "file"): (2, f"{tmp_path / 'file'} is not a directory"),
        str(tmp_path / "full"): (2, f"{tmp_path / 'full'} is not empty and not a run"),
    }
    for place, (status, message) in places.items():
        planned, ran = (crosswind(command, "echo", "--output", place) for command in ("plan", "run"))
        assert planned == ran
        assert (ran[0], ran[2].splitlines()[0]) == (status, f"error: {message}")
        assert ran[2].splitlines()[1].startswith("hint: choose")
    made = tmp_path / "not" / "yet"
    assert crosswind("plan", "echo", "--output", str(made))[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir() and path.name == "not") == []


def test_a_plan_says_that_the_machine_does_not_run_it(
    crosswind: Crosswind, use_cell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cell("finish()")
    obstacle = EngineError("there is no /dev/net/tun", hint="load its module")
    monkeypatch.setattr("crosswind.cli.plan.real_time_obstacle", lambda: obstacle)
    status, out, _ = crosswind("plan", "echo", "--clock", "real")
    assert status == 0
    assert "this machine does not run them: there is no /dev/net/tun (load its module)" in " ".join(out.split())


@pytest.mark.parametrize("width", [80, 40])
def test_a_plan_fits_a_narrow_terminal(
    crosswind: Crosswind, use_cell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    use_cell("finish()")
    console = Console(width=width, highlight=False, markup=False)
    monkeypatch.setattr("crosswind.cli.plan.plain_console", lambda: console)
    status, out, _ = crosswind("plan", "latency-by-link", "--order")
    assert status == 0
    assert max(map(len, out.splitlines())) <= width
    assert "1 h 3 min" in out


# runs and clean


@pytest.fixture
def four_runs(crosswind: Crosswind) -> Path:
    """A finished, an interrupted and a died run, and one that is half removed."""
    root = Path("crosswind-runs")
    for day, (name, status) in enumerate([("done", "done"), ("cut", "interrupted"), ("dead", "running")], start=1):
        with new_run(root / name, started=f"2026-01-{day:02d}T12:00:00.000+00:00") as store:
            store.set_status(Status(status))
        (root / name / "cells" / "c000-r00").mkdir()
        (root / name / "cells" / "c000-r00.failed-1").mkdir()
    (root / "dead" / "cells" / "c001-r00.4711.part").mkdir()
    (root / ".old.removed").mkdir()
    return root


def names(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def test_runs_are_listed_for_people_and_programs(crosswind: Crosswind, four_runs: Path) -> None:
    (four_runs / "empty").mkdir()
    status, out, err = crosswind("runs")
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["run", "study", "started", "(UTC)", "status", "repetitions", "size"]
    assert [line[:6] for line in lines[1:4]] == [
        ["dead", "a-study", "2026-01-03", "12:00", "died", "1/2"],
        ["cut", "a-study", "2026-01-02", "12:00", "interrupted", "1/2"],
        ["done", "a-study", "2026-01-01", "12:00", "done", "1/2"],
    ]
    assert " ".join(lines[4]) == ".old.removed: its removal did not end"
    assert " ".join(lines[5]) == "empty: it has no manifest.json"
    listing = json.loads(crosswind("runs", "--json", "--details")[1])
    assert listing["schema"] == "crosswind.runs/1"
    assert [run["status"] for run in listing["runs"]] == ["died", "interrupted", "done", "removed", None]
    assert listing["runs"][0]["problem"] == "cells/c000-r00/result.json: it is missing"
    assert listing["runs"][0] | {"size_bytes": 0, "problem": None} == {
        "directory": "crosswind-runs/dead",
        "study": "a-study",
        "title": "A study",
        "status": "died",
        "started": "2026-01-03T12:00:00.000+00:00",
        "active": "2026-01-03T12:00:00.000+00:00",
        "done": 1,
        "planned": 2,
        "attempts": 1,
        "parts": 1,
        "valid": 0,
        "invalid": 0,
        "failed": 0,
        "clocks": [],
        "outcomes": [],
        "size_bytes": 0,
        "size_is_exact": True,
        "problem": None,
    }


def test_a_place_without_runs_is_no_mistake(crosswind: Crosswind) -> None:
    assert crosswind("runs") == (0, "there are no runs in crosswind-runs/\n", "")
    assert crosswind("clean") == (0, "there is nothing to remove in crosswind-runs/\n", "")
    assert crosswind("clean", "--unfinished", "--yes") == (0, "nothing to remove\n", "")


def test_clean_shows_what_could_go_and_removes_nothing(crosswind: Crosswind, four_runs: Path) -> None:
    before = sorted(four_runs.rglob("*"))
    status, out, _ = crosswind("clean")
    assert status == 0
    assert sorted(four_runs.rglob("*")) == before
    shown, offered = out.split("\n\n")
    assert [line.split()[0] for line in shown.splitlines()] == [
        "run",
        "crosswind-runs/dead",
        "crosswind-runs/cut",
        "crosswind-runs/.old.removed",
    ]
    assert [line.partition(",")[0] for line in offered.splitlines()] == [
        "crosswind clean --unfinished  3 runs",
        "crosswind clean --parts       1 run and 1 entry of runs",
        "crosswind clean --attempts    3 entries of runs",
        "finished runs                 1 run",
    ]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("--unfinished",), {"done"}),
        (("--older-than", "0h"), {".old.removed"}),
        (("--older-than", "99999d"), {"done", "cut", "dead", ".old.removed"}),
        (("--unfinished", "--older-than", "1w"), {"done", ".old.removed"}),
        (("crosswind-runs/done",), {"cut", "dead", ".old.removed"}),
        (("done", "cut"), {"dead", ".old.removed"}),
        (("done", "cut", "--unfinished"), {"done", "dead", ".old.removed"}),
        (("crosswind-runs/.old.removed",), {"done", "cut", "dead"}),
        (("--parts",), {"done", "cut", "dead"}),
        (("--attempts",), {"done", "cut", "dead", ".old.removed"}),
    ],
)
def test_clean_removes_what_is_asked_for(
    crosswind: Crosswind, four_runs: Path, arguments: tuple[str, ...], left: set[str]
) -> None:
    assert crosswind("clean", "--yes", *arguments)[0] == 0
    assert names(four_runs) == left
    cells = names(four_runs / "dead" / "cells") if "dead" in left else set()
    gone = {"--parts": {"c001-r00.4711.part"}, "--attempts": {"c000-r00.failed-1"}}.get(arguments[0], set())
    assert cells == ({"c000-r00", "c000-r00.failed-1", "c001-r00.4711.part"} - gone if cells else set())


def test_clean_asks_first_and_refuses_where_nobody_can_answer(
    crosswind: Crosswind, four_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    status, _, err = crosswind("clean", "--unfinished")
    assert (status, err.splitlines()[-1]) == (2, "hint: --yes removes it without asking")
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    status, out, err = crosswind("clean", "--unfinished")
    assert status == 0
    assert "crosswind-runs/cut" in out
    assert err.endswith("nothing was removed\n")
    assert len(names(four_runs)) == 4
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    status, _, err = crosswind("clean", "--unfinished")
    assert status == 0
    assert "removed 3 runs" in err
    assert names(four_runs) == {"done"}


def test_clean_leaves_a_run_in_use_alone(crosswind: Crosswind, four_runs: Path) -> None:
    with Store.resume(four_runs / "dead"):
        assert "crosswind-runs/dead is in use" in crosswind("clean")[1]
        status, _, err = crosswind("clean", "--older-than", "0h", "--yes")
        assert status == 0
        assert "crosswind-runs/dead is in use: left alone" in err
        status, _, err = crosswind("clean", "dead", "--yes")
        assert status == 2
        assert err.startswith("error: crosswind-runs/dead is in use by another crosswind\nhint: ")
        assert [line.split()[4] for line in crosswind("runs")[1].splitlines()[1:2]] == ["running"]
    assert names(four_runs) == {"dead", ".old.removed"}


def test_clean_leaves_a_run_alone_that_went_on_while_it_asked(
    crosswind: Crosswind, four_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object, **__: object) -> bool:
        with Store.resume(four_runs / "cut") as store:
            store.begin_session(Session(started="2026-03-01T12:00:00.000+00:00"))
            store.set_status(Status.DONE)
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", answer)
    status, _, err = crosswind("clean", "--unfinished")
    assert status == 0
    assert "crosswind-runs/cut has changed meanwhile: left alone" in err
    assert names(four_runs) == {"cut", "done"}


def test_clean_removes_a_damaged_run_only_by_name(crosswind: Crosswind, four_runs: Path) -> None:
    path = four_runs / "cut" / "manifest.json"
    path.write_text('{"schema": "crosswind.run/2"}', encoding="utf-8")
    crosswind("clean", "--unfinished", "--yes")
    assert names(four_runs) == {"cut", "done"}
    crosswind("clean", "cut", "--parts", "--yes")
    assert names(four_runs) == {"cut", "done"}
    crosswind("clean", "cut", "--yes")
    assert names(four_runs) == {"done"}


def test_a_listing_fits_a_narrow_terminal(tmp_path: Path) -> None:
    name = "transfer-time-held-out-20261120T221328Z"
    new_run(tmp_path / name, name="transfer-time-held-out").close()
    console = Console(width=70, file=StringIO(), highlight=False, markup=False)
    print_runs(console, tmp_path, list_runs(tmp_path))
    assert isinstance(console.file, StringIO)
    head, row = console.file.getvalue().splitlines()
    # What the run's name says already is left out.
    assert head.split() == ["run", "status", "repetitions", "size"]
    assert row.split()[:3] == [name, "died", "0/2"]
    assert len(row) <= 70


def test_sizes_are_written_with_three_digits() -> None:
    texts = [size_text(size) for size in (0, 999, 1000, 1234, 99_949, 999_499, 999_500, 12_345_678, 5e12)]
    assert texts == ["0 B", "999 B", "1.00 kB", "1.23 kB", "99.9 kB", "999 kB", "1.00 MB", "12.3 MB", "5.00 TB"]


def test_a_run_of_the_time_of_presets_can_still_be_reported(
    crosswind: Crosswind, use_cell: Callable[[str], None]
) -> None:
    use_cell("finish()")
    assert crosswind("run", "echo", "--network", "lan,wan", "--messages", "60", "--output", "old")[0] == 0
    for file in (Path("old/manifest.json"), Path("old/plan.jsonl"), *Path("old/cells").glob("*/result.json")):
        file.write_text(file.read_text(encoding="utf-8").replace("path.network", "path.preset"), encoding="utf-8")
    status, out, _ = crosswind("report", "old", "--json")
    assert status == 0
    assert [cell["levels"] for cell in json.loads(out)["cells"]] == [{"path.preset": "lan"}, {"path.preset": "wan"}]
    assert crosswind("report", "old", "--html", "old.html")[0] == 0
    assert crosswind("runs", "--details", ".")[0] == 0


def test_a_run_teaches_the_next_plan(
    crosswind: Crosswind, use_cell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_DURATIONS", "learned/durations.json")
    use_cell("finish()")
    plan = ("plan", *ECHO[1:])
    assert "computed: nothing was learned on this machine yet" in crosswind(*plan)[1]
    assert crosswind(*ECHO)[0] == 0
    said = " ".join(crosswind(*plan)[1].split())
    assert "forecast learned from 1 run on this machine; this plan was run there before" in said
    other = " ".join(crosswind(*plan, "--repetitions", "2")[1].split())
    assert "forecast learned from 1 run on this machine; 4 of 4 runs are of cells that were measured" in other
    stored = json.loads(Path("learned/durations.json").read_text(encoding="utf-8"))
    assert [stored[name] for name in ("schema", "runs")] == ["crosswind.durations/4", 1]
    assert (len(stored["cells"]), len(stored["plans"]), len(stored["around"])) == (2, 1, 1)
    # A number of cells at a time that was set by hand says nothing of others, nor does a run that ended with an error.
    assert crosswind(*ECHO, "--jobs", "1")[0] == 0
    again = json.loads(Path("learned/durations.json").read_text(encoding="utf-8"))
    assert {**again, "around": [], "around_plans": {}} == {**stored, "around": [], "around_plans": {}}
    full = "say(event='error', kind='disk', message='no space', hint='do'); sys.exit(1)"
    use_cell(f"if '/c001' in cell['output']['directory']: {full}\nfinish()")
    assert "no space" in crosswind(*ECHO)[2]
    last = json.loads(Path("learned/durations.json").read_text(encoding="utf-8"))
    assert (last["runs"], last["cells"]) == (again["runs"], again["cells"])
