"""`crosswind run` and `crosswind report` in this process, with a made-up crosswind-cell."""

import json
import signal
from pathlib import Path

import jsonschema
import pytest

from command_lines import ECHO
from crosswind.findings.result import schema_text
from fixture_types import Crosswind, UseCell


def test_a_run_prints_a_table_and_says_where_everything_is(crosswind: Crosswind, use_cell: UseCell) -> None:
    use_cell("finish()")
    status, out, err = crosswind(*ECHO)
    assert status == 0
    assert "median" in out
    (run,) = Path("crosswind-runs").iterdir()
    assert f"run:    {run}" in err
    assert "kept:   samples alone" in err
    assert f"report: {run / 'report.html'}" in err
    assert "[2/2]" in err
    assert "<html" in (run / "report.html").read_text(encoding="utf-8")


def test_json_is_one_object_of_the_published_schema_and_nothing_else(crosswind: Crosswind, use_cell: UseCell) -> None:
    use_cell("finish()")
    status, out, _ = crosswind(*ECHO, "--json")
    assert status == 0
    result = json.loads(out)
    schema = json.loads(schema_text())
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
    crosswind: Crosswind, use_cell: UseCell, body: str, reason: str
) -> None:
    use_cell(f"if '/c001' in cell['output']['directory']:\n    {body}\n    sys.exit(0)\nfinish()")
    status, out, err = crosswind(*ECHO)
    assert status == 1
    assert reason in err
    assert "median" in out


def test_a_run_in_which_every_exchange_failed_says_so_and_why(crosswind: Crosswind, use_cell: UseCell) -> None:
    error = "cannot connect: the certificate has expired"
    outcomes = [{"outcome": "certificate", "count": 60, "first_error": error}]
    samples = {"rows": 60, "ok": 0, "lost": 60, "outcomes": outcomes}
    use_cell(f"finish(samples={samples!r})")
    status, _, err = crosswind(
        "run", "echo", "--transport", "tcp", "--messages", "60", "--repetitions", "1", "--output", "here"
    )
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


def test_an_interrupted_run_keeps_what_was_finished_and_resumes(crosswind: Crosswind, use_cell: UseCell) -> None:
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


def test_resume_refuses_another_study_and_a_finished_run_runs_nothing(crosswind: Crosswind, use_cell: UseCell) -> None:
    use_cell("finish()")
    crosswind(*ECHO)
    status, _, err = crosswind("run", "echo", "--loss", "1%", "--resume")
    assert status == 2
    assert "holds another study" in err
    status, _, err = crosswind(*ECHO, "--resume")
    assert status == 0
    assert "0 of 2 repetitions to run" in err


def test_report_shows_and_exports_a_run(crosswind: Crosswind, use_cell: UseCell) -> None:
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
