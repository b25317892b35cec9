"""Where kernels of virtual time are looked for, and which clock a cell gets where there is none."""

import fcntl
import hashlib
import importlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT, requires
from crosswind.cell import clocks
from crosswind.cell.clocks import clock_for
from crosswind.cell.kernels import find_kernel, installed_kernels
from crosswind.errors import EngineError

Build = Callable[[str, str], None]


def kernel(place: Path, series: str, digest: str) -> None:
    """A kernel that is there, and is never started."""
    place.mkdir(parents=True)
    facts = {"series": series, "release": f"{series}.90", "source": f"linux-source-{series}", "digest": digest}
    (place / "kernel.json").write_text(json.dumps(facts), encoding="utf-8")
    (place / "linux").write_text("#!/bin/false\n", encoding="utf-8")
    (place / "linux").chmod(0o755)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Puts a kernel where `make kernel` does."""
    monkeypatch.delenv("CROSSWIND_KERNELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own = tmp_path / "cache" / "crosswind" / "kernels"

    def make(series: str, digest: str) -> None:
        kernel(own / f"{series}-{digest}", series, digest)
        (own / series).unlink(missing_ok=True)
        (own / series).symlink_to(f"{series}-{digest}")

    return make


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Puts a kernel where the package crosswind-kernel has its own."""
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    package = tmp_path / "site-packages" / "crosswind_kernel"

    def make(series: str, digest: str) -> None:
        kernel(package / "kernels" / series, series, digest)
        (package / "__init__.py").touch()
        importlib.invalidate_caches()

    return make


def test_the_newest_build_of_a_series_is_found_and_the_newest_series_first(build: Build) -> None:
    for series, digest in (("6.1", "a"), ("6.12", "b"), ("6.12", "c"), ("6.9", "d")):
        build(series, digest)
    assert [found.name for found in installed_kernels()] == ["6.12-c", "6.9-d", "6.1-a"]
    assert find_kernel().name == "6.12-c"
    assert find_kernel("6.1").name == "6.1-a"


def test_a_kernel_needs_no_link_and_its_own_directory_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path))
    for digest, built_at in (("old", 1), ("new", 3), ("between", 2)):
        kernel(tmp_path / f"6.12-{digest}", "6.12", digest)
        os.utime(tmp_path / f"6.12-{digest}" / "kernel.json", (built_at, built_at))
    assert [found.name for found in installed_kernels()] == ["6.12-new"]
    (tmp_path / "6.12").symlink_to("6.12-old")
    assert [found.name for found in installed_kernels()] == ["6.12-old"]
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path / "6.12-between"))
    assert [found.name for found in installed_kernels()] == ["6.12-between"]


def test_a_kernel_says_which_congestion_controls_it_offers(build: Build, tmp_path: Path) -> None:
    build("6.12", "a")
    assert find_kernel().congestion_controls is None
    options = "".join(f"CONFIG_TCP_CONG_{name}=y\n" for name in ("ADVANCED", "CUBIC", "HSTCP"))
    options += "# CONFIG_TCP_CONG_BBR is not set\n"
    place = tmp_path / "cache" / "crosswind" / "kernels" / "6.12"
    (place / ".config").write_text(f'{options}CONFIG_DEFAULT_TCP_CONG="cubic"\n', encoding="utf-8")
    assert find_kernel().congestion_controls == {"reno", "cubic", "highspeed"}


def test_a_package_brings_kernels_and_those_built_here_come_first(build: Build, install: Build, tmp_path: Path) -> None:
    assert installed_kernels() == []
    install("6.12", "theirs")
    install("6.1", "theirs")
    assert [(found.name, found.origin) for found in installed_kernels()] == [
        ("6.12-theirs", "the package crosswind-kernel"),
        ("6.1-theirs", "the package crosswind-kernel"),
    ]
    build("6.12", "ours")
    assert [found.name for found in installed_kernels()] == ["6.12-ours", "6.1-theirs"]
    assert find_kernel().origin == str(tmp_path / "cache" / "crosswind" / "kernels")


def test_a_kernel_of_a_series_that_is_not_there_is_refused_with_those_that_are(build: Build, install: Build) -> None:
    build("6.12", "a")
    install("6.1", "b")
    with pytest.raises(
        EngineError, match=r"no kernel 5\.4 of virtual time in .*; there is 6\.12 in .*, 6\.1 in "
    ) as error:
        find_kernel("5.4")
    assert "`make kernel KERNEL=5.4`" in (error.value.hint or "")


OBSTACLE = EngineError("cannot make a user namespace: EPERM", hint="run with sudo")


@pytest.mark.parametrize(
    ("wanted", "obstacle", "clock"),
    [
        ("real", None, "real"),
        ("real", OBSTACLE, "real"),
        ("auto", None, "real"),
        ("auto", OBSTACLE, "virtual"),
        ("virtual", None, "virtual"),
    ],
)
def test_auto_is_the_machines_clock_where_it_can_be(
    build: Build, monkeypatch: pytest.MonkeyPatch, wanted: str, obstacle: EngineError | None, clock: str
) -> None:
    build("6.12", "a")
    monkeypatch.setattr(clocks, "real_time_obstacle", lambda: obstacle)
    assert clock_for(wanted) == clock


def test_without_any_clock_both_reasons_and_both_remedies_are_named(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "real_time_obstacle", lambda: OBSTACLE)
    with pytest.raises(EngineError) as error:
        clock_for("auto")
    assert "neither on the machine's clock (cannot make a user namespace: EPERM)" in error.value.message
    assert "nor in virtual time (there is no kernel of virtual time in " in error.value.message
    assert "run with sudo" in (error.value.hint or "")
    assert "For virtual time: `crosswind kernel install crosswind_kernel-" in (error.value.hint or "")
    assert "`make kernel`" in (error.value.hint or "")


def test_who_asks_for_virtual_time_hears_only_of_virtual_time(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "real_time_obstacle", lambda: OBSTACLE)
    with pytest.raises(EngineError, match=r"^there is no kernel of virtual time"):
        clock_for("virtual")


def test_a_machine_that_lets_cells_make_no_network_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not Path("/dev/net/tun").exists():
        pytest.skip("needs /dev/net/tun")
    ok = {"ok": True, "detail": "", "hint": None}
    refused = {"ok": False, "detail": "cannot make a user namespace: EPERM", "hint": "run with sudo"}
    program = tmp_path / "cell"
    answer = json.dumps({"privilege": refused, "namespaces": refused | {"detail": "later"}, "tun": ok})
    program.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CROSSWIND_CELL", str(program))
    monkeypatch.setattr(clocks, "_is_privileged", lambda: False)
    request.addfinalizer(clocks.real_time_obstacle.cache_clear)
    clocks.real_time_obstacle.cache_clear()
    obstacle = clocks.real_time_obstacle()
    assert obstacle is not None
    assert (obstacle.message, obstacle.hint) == ("cannot make a user namespace: EPERM", "run with sudo")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "5",
        '{"series": "6.12"}',
        '{"series": 5, "release": "a", "source": "b", "digest": "c"}',
        "[" * 50_000,
    ],
    ids=range(7),
)
def test_a_kernel_whose_description_is_damaged_is_none_and_that_is_said(
    build: Build, tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    build("6.1", "a")
    build("6.12", "b")
    place = tmp_path / "cache" / "crosswind" / "kernels" / "6.12-b"
    (place / "kernel.json").write_text(text)
    assert [found.name for found in installed_kernels()] == ["6.1-a"]
    said = f"note: {place}: what describes the kernel is damaged; "
    assert [line.startswith(said) for line in capfd.readouterr().err.splitlines()] == [True]


def test_a_kernel_that_is_not_what_was_built_is_none_and_that_is_said(
    build: Build, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    build("6.12", "b")
    place = tmp_path / "cache" / "crosswind" / "kernels" / "6.12-b"
    facts = json.loads((place / "kernel.json").read_text())
    built = hashlib.sha256((place / "linux").read_bytes()).hexdigest()
    (place / "kernel.json").write_text(json.dumps({**facts, "sha256": built}))
    assert find_kernel("6.12").name == "6.12-b"
    (place / "linux").write_bytes((place / "linux").read_bytes() + b"\n")
    with pytest.raises(EngineError, match=r"there is no kernel 6\.12 of virtual time"):
        find_kernel("6.12")
    said = f"note: {place}: the kernel has changed since it was built; "
    assert [line.startswith(said) for line in capfd.readouterr().err.splitlines()] == [True]


def test_two_builds_at_once_wait_for_each_other(tmp_path: Path) -> None:
    """The second goes on where the first lets go: to what it needs, of which there is nothing here."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "realpath", "uname", "mkdir", "flock", "id"):
        (programs / name).symlink_to(requires(name))
    environment = {"PATH": str(programs), "CROSSWIND_KERNELS": str(tmp_path)}
    with (tmp_path / "lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [shutil.which("bash") or "bash", ROOT / "kernel" / "build"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert second.stdout is not None
        assert second.stdout.readline() == "waiting for another build of a kernel\n"
        assert second.poll() is None
    out, err = second.communicate(timeout=60)
    assert (second.returncode, out, err.splitlines()[0]) == (
        1,
        "",
        "error: building the kernel needs more than there is",
    )
