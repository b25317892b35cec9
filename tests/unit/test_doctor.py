"""The doctor: what a probe says is what people read, and cells run only where all that they need is there."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from crosswind.cell import doctor
from crosswind.cell.doctor import examine_machine
from crosswind.cell.kernels import Kernel
from crosswind.cli import main


def probing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, status: int = 0) -> None:
    program = tmp_path / "cell"
    (tmp_path / "answer").write_text(answer, encoding="utf-8")
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/answer\nexit {status}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CROSSWIND_CELL", str(program))


def probe(**changes: Any) -> str:
    keys = (
        "namespaces",
        "user_namespaces",
        "tun",
        "realtime",
        "memory_lock",
        "netem",
        "congestion_controls",
        "cpus",
        "kernel",
    )
    found = {key: {"ok": True, "detail": f"{key} is there", "hint": None} for key in keys}
    return json.dumps(found | changes)


def test_a_machine_that_has_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    probing(monkeypatch, tmp_path, probe())
    diagnosis = examine_machine()
    assert diagnosis.ok
    details = {check.name: check.detail for check in diagnosis.checks}
    assert details["TUN devices"] == "tun is there"


def test_what_only_widens_may_be_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    probing(monkeypatch, tmp_path, probe(netem={"ok": False, "detail": "no module", "hint": "another kernel"}))
    monkeypatch.setenv("PATH", "/nowhere:/bin:/usr/bin")
    diagnosis = examine_machine()
    assert diagnosis.ok
    (netem,) = [check for check in diagnosis.checks if check.name == "netem"]
    assert (netem.ok, netem.required, netem.hint) == (False, False, "another kernel")


def test_an_optional_package_may_be_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    probing(monkeypatch, tmp_path, probe())
    monkeypatch.setattr("crosswind.cell.doctor._PACKAGES", (("polars", "tables"), ("no-such-package", "nothing")))
    diagnosis = examine_machine()
    assert diagnosis.ok
    found, missing = diagnosis.checks[-2:]
    assert (found.name, found.ok, found.detail) == ("polars", True, metadata.version("polars"))
    assert (missing.ok, missing.required, missing.hint) == (False, False, "nothing")


def test_what_cells_need_may_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probing(monkeypatch, tmp_path, probe(tun={"ok": False, "detail": "no /dev/net/tun", "hint": "modprobe tun"}))
    with pytest.raises(SystemExit) as caught:
        main(["doctor"])
    out = capsys.readouterr().out
    assert caught.value.code == 1
    assert "modprobe tun" in out
    assert "Cells cannot run here" in out
    with pytest.raises(SystemExit):
        main(["doctor", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["ok"]) == ("crosswind.doctor/1", False)


@pytest.mark.parametrize(
    ("origin", "shown"),
    [("{home}/kernels", "~/kernels"), ("the package crosswind-kernel", "the package crosswind-kernel")],
)
def test_a_machine_that_has_only_virtual_time_can_run_cells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], origin: str, shown: str
) -> None:
    probing(monkeypatch, tmp_path, probe(namespaces={"ok": False, "detail": "EPERM", "hint": "run with sudo"}))
    kernel = Kernel(Path("linux"), "6.12", "6.12.90", "linux-source-6.12", "a", origin.format(home=Path.home()))
    monkeypatch.setattr(doctor, "installed_kernel", lambda: kernel)
    monkeypatch.setattr(doctor, "try_kernel", lambda _kernel, _binary: None)
    with pytest.raises(SystemExit) as caught:
        main(["doctor"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert f"Linux 6.12.90 from {shown}" in " ".join(out.split())
    assert "Cells can run here in virtual time, and not on the machine's clock" in out
    assert not examine_machine().on_the_machines_clock


def test_no_hint_names_doctor_itself_and_the_summary_says_what_either_clock_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user = "run with sudo, or allow user namespaces; `crosswind doctor` shows what this machine allows"
    tun = "run with sudo, or `crosswind doctor` to see what this machine allows"
    denied = {"ok": False, "detail": "EPERM"}
    probing(monkeypatch, tmp_path, probe(namespaces={**denied, "hint": user}, tun={**denied, "hint": tun}))
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path))
    hints = {check.name: check.hint for check in examine_machine().checks}
    assert not [hint for hint in hints.values() if hint and "crosswind doctor" in hint]
    assert hints["network namespaces"] == "run with sudo, or allow user namespaces"
    assert hints["TUN devices"] == "run with sudo"
    assert (hints["virtual time"] or "").startswith("`crosswind kernel install crosswind_kernel-")
    with pytest.raises(SystemExit):
        main(["doctor"])
    out = " ".join(capsys.readouterr().out.split())
    assert "they need network namespaces, TUN devices, in virtual time only a kernel" in out


@pytest.mark.parametrize(("answer", "status"), [("", 1), ("garbage", 0), ("[1]", 0)])
def test_a_probe_that_does_not_answer_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, status: int
) -> None:
    probing(monkeypatch, tmp_path, answer, status)
    diagnosis = examine_machine()
    assert not diagnosis.ok
    (cell,) = [check for check in diagnosis.checks if check.name == "crosswind-cell"]
    assert cell.hint
