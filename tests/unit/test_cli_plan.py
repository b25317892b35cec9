"""`crosswind plan` in this process: what a run would take and be refused for, and what runs teach it."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from command_lines import ECHO, REFUSED
from conftest import requires_binary
from crosswind.errors import EngineError
from crosswind.store.directory import Store
from fixture_types import Crosswind, UseCell


def test_a_plan_says_what_a_run_would_take_and_makes_nothing(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_CELL", "/nowhere")
    status, out, err = crosswind("plan", "quickstart")
    assert (status, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0].startswith("Quick start")
    assert "plan     6 cells, 8 repetitions each: 48 in all" in lines
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


def test_a_plan_as_json_is_the_plan_that_is_run(crosswind: Crosswind, use_cell: UseCell) -> None:
    use_cell("finish()")
    arguments = (*ECHO[1:-2], "--repetitions", "2", "--seed", "5")
    planned = json.loads(crosswind("plan", *arguments, "--order", "--json")[1])
    assert (planned["schema"], planned["runs"], planned["repetitions"]) == ("crosswind.plan/1", 4, 2)
    assert planned["checked"] == "each cell, by crosswind-cell"
    crosswind("run", *arguments, "--output", "here", "--no-report")
    store = Store.read(Path("here"))
    assert planned["study_digest"] == store.manifest.study_digest
    assert planned["order"] == [
        {key: value for key, value in cell.as_json().items() if key not in ("parameters", "effect")}
        for cell in store.plan
    ]
    assert planned["total"]["serial_ns"] == sum(cell.expected_ns for cell in store.plan)
    assert planned["total"]["packets"] == sum(cell.expected_packets for cell in store.plan)
    assert [cell["runs"] for cell in planned["cells"]] == [2, 2]
    assert "order" not in json.loads(crosswind("plan", *arguments, "--json")[1])


def test_a_plan_counts_the_space_of_records_and_captures(crosswind: Crosswind, use_cell: UseCell) -> None:
    use_cell("finish()")

    def disk_bytes(*options: str) -> int:
        size_bytes = json.loads(
            crosswind("plan", "echo", "--transport", "udp", "--repetitions", "1", "--json", *options)[1]
        )
        return int(size_bytes["total"]["disk_bytes"])

    # 100 messages of one byte: 200 packets of 53 bytes; each host keeps what it sent and received.
    assert disk_bytes() == 6000 + 100 * 50
    assert disk_bytes("--packets") == disk_bytes() + 200 * 40
    assert disk_bytes("--capture") == disk_bytes() + 2 * 200 * (53 + 32)


def test_a_plan_refuses_what_a_run_refuses(
    crosswind: Crosswind, use_cell: UseCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    crosswind: Crosswind, use_cell: UseCell, tmp_path: Path
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
    crosswind: Crosswind, use_cell: UseCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cell("finish()")
    obstacle = EngineError("there is no /dev/net/tun", hint="load its module")
    monkeypatch.setattr("crosswind.cli.plan.real_time_obstacle", lambda: obstacle)
    status, out, _ = crosswind("plan", "echo", "--clock", "real")
    assert status == 0
    assert "this machine does not run them: there is no /dev/net/tun (load its module)" in " ".join(out.split())


@pytest.mark.parametrize("width", [80, 40])
def test_a_plan_fits_a_narrow_terminal(
    crosswind: Crosswind, use_cell: UseCell, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    use_cell("finish()")
    console = Console(width=width, highlight=False, markup=False)
    monkeypatch.setattr("crosswind.cli.plan.plain_console", lambda: console)
    status, out, _ = crosswind("plan", "latency-by-link", "--order")
    assert status == 0
    assert max(map(len, out.splitlines())) <= width
    assert "one by one" in out


def test_a_run_teaches_the_next_plan(crosswind: Crosswind, use_cell: UseCell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_DURATIONS", "learned/durations.json")
    use_cell("finish()")
    plan = ("plan", *ECHO[1:])
    assert "computed: none of these cells ran on this machine" in crosswind(*plan)[1]
    assert crosswind(*ECHO)[0] == 0
    other = " ".join(crosswind(*plan[:-2], "--repetitions", "2")[1].split())
    assert "forecast learned from 1 run on this machine; 4 of 4 runs are of cells that were measured" in other
    stored = json.loads(Path("learned/durations.json").read_text(encoding="utf-8"))
    assert [stored[name] for name in ("schema", "runs")] == ["crosswind.durations/5", 1]
    assert len(stored["cells"]) == 2
    # A number of cells at a time that was set by hand says nothing of others, nor does a run that ended with an error.
    assert crosswind(*ECHO, "--jobs", "1")[0] == 0
    again = json.loads(Path("learned/durations.json").read_text(encoding="utf-8"))
    assert again == stored
    full = "say(event='error', kind='disk', message='no space', hint='do'); sys.exit(1)"
    use_cell(f"if '/c001' in cell['output']['directory']: {full}\nfinish()")
    assert "no space" in crosswind(*ECHO)[2]
    last = json.loads(Path("learned/durations.json").read_text(encoding="utf-8"))
    assert (last["runs"], last["cells"]) == (again["runs"], again["cells"])
