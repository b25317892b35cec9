"""What `--quick` runs: in virtual time, unless the machine is what the study is about."""

import pytest

from crosswind.api.first_look import NOTE, first_look
from crosswind.cell.kernels import Kernel
from crosswind.study.design import Study
from crosswind.study.files import load_study

ECHO = 'title = "t"\n[workload]\nkind = "echo"\ntransport = ["tcp", "udp"]\n[study]\nrepetitions = 3\n'


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has a kernel of virtual time."""
    monkeypatch.setattr("crosswind.api.first_look.installed_kernel", lambda: Kernel)


def clocks(study: Study) -> set[object]:
    levels = [cell.settings.get("host.clock") for cell in study.cells()]
    return {level and level.value for level in levels}


@pytest.mark.usefixtures("kernel")
def test_a_quick_variant_runs_in_virtual_time() -> None:
    quick, notes = first_look(Study.from_toml(ECHO, name="s"))
    assert (clocks(quick), notes) == ({"virtual"}, (NOTE,))


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    "more",
    [
        '[host]\nclock = "real"\n',
        '[host]\nclock = ["real", "virtual"]\n',
        '[[question]]\nasks = "??"\nmetric = "cpu_client"\nfactor = "workload.transport"\ncompare = ["tcp", "udp"]\n',
    ],
)
def test_a_study_of_the_machine_keeps_its_clock(more: str) -> None:
    study = Study.from_toml(ECHO + more, name="s")
    quick, notes = first_look(study)
    assert (clocks(quick), notes) == (clocks(study), ())


@pytest.mark.usefixtures("kernel")
def test_programs_keep_the_machine_s_clock() -> None:
    study = Study.from_toml('title = "t"\n[workload]\nkind = "program"\nclient = ["true"]\n', name="s")
    assert first_look(study)[1] == ()
    assert first_look(load_study("client-profile"))[1] == ()


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(("takes_s", "repetitions", "says"), [(59, 6, ""), (61, 2, "add --clock virtual.")])
def test_who_chooses_the_clock_keeps_it_and_the_machine_s_decides_within_a_minute(
    monkeypatch: pytest.MonkeyPatch, takes_s: float, repetitions: int, says: str
) -> None:
    monkeypatch.setattr("crosswind.api.first_look._takes_s", lambda _study: takes_s)
    study = Study.from_toml(ECHO.replace("= 3", "= 20") + '[quick]\n"study.repetitions" = 10\n', name="s")
    virtual, _ = first_look(study, clock="virtual")
    real, notes = first_look(study, clock="real")
    assert (clocks(virtual), virtual.repetitions) == ({None}, 10)
    assert (clocks(real), real.repetitions) == ({None}, repetitions)
    assert "".join(notes).endswith(says) and bool(notes) == bool(says)


def test_without_a_kernel_the_machine_s_clock_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.api.first_look.installed_kernel", lambda: None)
    quick, notes = first_look(Study.from_toml(ECHO, name="s"))
    assert (clocks(quick), notes) == ({None}, ())
