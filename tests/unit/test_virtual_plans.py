"""Plans of cells in virtual time: what it cannot measure is refused, and what is exact runs once."""

import json
from pathlib import Path

import pytest

from cells import adhoc, checked
from conftest import requires_binary
from crosswind.cli import main
from crosswind.errors import StudyError
from crosswind.execution.planning import plan_costs, planned_cells, presentation, refuse_unmeasured, runs_of
from crosswind.store.manifest import Options
from crosswind.store.plan import PlannedCell
from crosswind.study.design import Study
from crosswind.study.files import load_study
from crosswind.study.plan import Plan

ECHO = '[workload]\nkind = "echo"\ntransport = "tcp"\n'
CLOCKS = ECHO + '[host]\nclock = ["real", "virtual"]\n'


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of virtual time that is there, and is never started."""
    place = tmp_path / "kernels" / "6.12-abc"
    place.mkdir(parents=True)
    facts = {"series": "6.12", "release": "6.12.90", "source": "linux-source-6.12", "digest": "abc"}
    (place / "kernel.json").write_text(json.dumps(facts), encoding="utf-8")
    (place / "linux").write_text("#!/bin/false\n", encoding="utf-8")
    (place / "linux").chmod(0o755)
    (place.parent / "6.12").symlink_to(place.name)
    monkeypatch.setenv("CROSSWIND_KERNELS", str(place.parent))


def study(text: str) -> Study:
    return Study.from_toml(text, name="my", file="my.toml")


def refused(text: str, *, profile: bool = False) -> str:
    wanted = study(text)
    with pytest.raises(StudyError) as caught:
        planned_cells(wanted, Options(profile=profile), binary=requires_binary())
    assert caught.value.hint is not None
    assert 'host.clock = "real"' in caught.value.hint
    return caught.value.message


def plan_of(wanted: Study) -> tuple[PlannedCell, ...]:
    return planned_cells(wanted, Options(), binary=requires_binary())


REASON = "is not measured in virtual time, where computing takes no time"


def test_a_profile_of_virtual_time_is_refused() -> None:
    assert (
        refused(CLOCKS + "[study]\nprofile = true\n") == f"my.toml:7: study.profile: a profile {REASON} (1 of 2 cells)"
    )
    assert refused(CLOCKS, profile=True) == f"--cpu-profile: a profile {REASON} (1 of 2 cells)"
    only = CLOCKS.replace('["real", "virtual"]', '"virtual"')
    assert refused(only, profile=True) == f"--cpu-profile: a profile {REASON}"


FIGURE = '[[figure]]\ntitle = "f"\nmetric = "cpu_client"\nx = "workload.size"\n'
PUBLISHED = '[[published]]\nsource = "s"\nmetric = "cpu_server"\nunit = "us"\nmean = 3.0\n[published.levels]\n'
STATEMENT = (
    '[[question]]\nsays = "e"\nmetric = "cpu_client"\nsource = "s"\nfactor = "workload.size"\nyes = "same"\n'
    'margin = "5 us"\n'
)


@pytest.mark.parametrize(
    ("table", "place"),
    [
        (FIGURE, "my.toml:8: figure[1].metric: cpu_client"),
        (PUBLISHED, "my.toml:8: published[1].metric: cpu_server"),
        (STATEMENT, "my.toml:8: question[1].metric: cpu_client"),
    ],
)
def test_processor_time_of_virtual_time_is_refused_where_it_is_asked_for(table: str, place: str) -> None:
    assert refused(CLOCKS + table) == f"{place} {REASON} (1 of 2 cells)"


def test_processor_time_of_the_cells_on_the_real_clock_alone_is_no_reason() -> None:
    own = study(CLOCKS + PUBLISHED + '"host.clock" = "real"\n')
    refuse_unmeasured(own, checked(own))
    real = study(ECHO + '[host]\nclock = "real"\n[study]\nprofile = true\n' + FIGURE)
    refuse_unmeasured(real, checked(real), profile=True)


def test_what_virtual_time_alone_would_show_of_processors_is_left_out_where_a_study_asks_for_more() -> None:
    wanted = load_study("websocket-or-http").quick().with_overrides({"host.clock": "virtual"})
    assert plan_of(wanted)
    shown, real = presentation(wanted), presentation(load_study("websocket-or-http").quick())
    assert [
        sum(table["metric"] == "cpu_client" for table in made["asked"][kind])
        for made in (real, shown)
        for kind in ("figure", "question")
    ] == [1, 1, 0, 0]
    assert [note for note in shown["notes"] if note not in real["notes"]] == [
        "Processor time is not measured in virtual time, where computing takes no time: 1 question and 1 figure about "
        "it are left out. --clock real measures it."
    ]


def test_a_threshold_on_processor_time_in_virtual_time_is_refused_whatever_else_is_asked() -> None:
    wanted = load_study("websocket-or-http").quick().with_overrides({"host.clock": "virtual"})
    with pytest.raises(StudyError, match=f"cpu_client {REASON}"):
        plan_of(wanted.with_thresholds(["mean(cpu_client) > 1s"]))


def test_an_exact_cell_runs_once_and_others_as_often_as_the_study_says() -> None:
    wanted = adhoc("echo", transport="tls,quic", path__loss="0%,1%", host__clock="virtual", study__repetitions="3")
    plan = plan_of(wanted)
    times = {(planned.levels["workload.transport"], planned.levels["path.loss"]): 0 for planned in plan}
    for planned in plan:
        times[planned.levels["workload.transport"], planned.levels["path.loss"]] += 1
        assert planned.exact is (planned.levels == {"workload.transport": "tls", "path.loss": "0%"})
        # What other seeds lose is known once the first has run.
        assert planned.repeats == (3 if planned.levels == {"workload.transport": "tls", "path.loss": "1%"} else None)
    assert times == {("tls", "0%"): 1, ("tls", "1%"): 1, ("quic", "0%"): 3, ("quic", "1%"): 3}
    assert [planned.order for planned in plan] == list(range(8))


def test_on_the_real_clock_no_cell_is_exact() -> None:
    wanted = adhoc("echo", transport="tcp", host__clock="real", study__repetitions="3")
    assert [planned.exact for planned in plan_of(wanted)] == [False] * 3


def test_costs_count_an_exact_cell_once() -> None:
    wanted = adhoc("echo", transport="tcp", host__clock="virtual", study__repetitions="3")
    cells = checked(wanted)
    costs = plan_costs(Plan.of(wanted), cells)
    assert costs.packets == cells[0].forecast.packets
    assert len(runs_of(Plan.of(wanted), ())) == 3


def test_a_plan_says_which_cells_run_once(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    arguments = ("plan", "echo", "--transport", "tcp", "--loss", "0%,5%", "--repetitions", "4", "--clock", "virtual")

    def output(*more: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main((*arguments, *more))
        assert ended.value.code == 0
        return capfd.readouterr().out

    lines = [line.rstrip() for line in output().splitlines()]
    assert "plan     2 cells, at most 4 repetitions each: 5 in all" in lines
    assert "clock    virtual" in lines
    assert "exact    1 of 2 cells: each runs once: nothing in it is left to chance" in lines
    planned = json.loads(output("--json", "--order"))
    cells = [(cell["levels"]["path.loss"], cell["runs"], cell["clock"], cell["exact"]) for cell in planned["cells"]]
    assert cells == [("0%", 1, "virtual", True), ("5%", 4, "virtual", False)]
    assert len(planned["order"]) == planned["runs"] == 5
