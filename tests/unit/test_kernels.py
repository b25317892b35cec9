"""Where the kernel of virtual time is looked for, and which clock a cell gets where there is none."""

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
from crosswind.cell.kernels import find_kernel, installed_kernel
from crosswind.errors import EngineError

Build = Callable[[str], None]


def kernel(place: Path, digest: str) -> None:
    """A kernel that is there, and is never started."""
    place.mkdir(parents=True)
    facts = {"series": "6.12", "release": "6.12.90", "source": "linux-source-6.12", "digest": digest}
    (place / "kernel.json").write_text(json.dumps(facts), encoding="utf-8")
    (place / "linux").write_text("#!/bin/false\n", encoding="utf-8")
    (place / "linux").chmod(0o755)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Puts a kernel where `make kernel` does."""
    monkeypatch.delenv("CROSSWIND_KERNELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own = tmp_path / "cache" / "crosswind" / "kernels"

    def make(digest: str) -> None:
        kernel(own / f"6.12-{digest}", digest)
        (own / "6.12").unlink(missing_ok=True)
        (own / "6.12").symlink_to(f"6.12-{digest}")

    return make


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Puts a kernel where the package crosswind-kernel has its own."""
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    package = tmp_path / "site-packages" / "crosswind_kernel"

    def make(digest: str) -> None:
        kernel(package / "kernels" / "6.12", digest)
        (package / "__init__.py").touch()
        importlib.invalidate_caches()

    return make


def found() -> str | None:
    """The name of the kernel that is found."""
    kernel = installed_kernel()
    return None if kernel is None else kernel.name


def test_the_newest_build_is_found(build: Build) -> None:
    for digest in ("b", "a", "c"):
        build(digest)
    assert found() == "6.12-c"


def test_a_kernel_needs_no_link_and_its_own_directory_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path))
    for digest, built_at in (("old", 1), ("new", 3), ("between", 2)):
        kernel(tmp_path / f"6.12-{digest}", digest)
        os.utime(tmp_path / f"6.12-{digest}" / "kernel.json", (built_at, built_at))
    assert found() == "6.12-new"
    (tmp_path / "6.12").symlink_to("6.12-old")
    assert found() == "6.12-old"
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path / "6.12-between"))
    assert found() == "6.12-between"


def test_a_kernel_says_which_congestion_controls_it_offers(build: Build, tmp_path: Path) -> None:
    build("a")
    assert find_kernel().congestion_controls is None
    options = "".join(f"CONFIG_TCP_CONG_{name}=y\n" for name in ("ADVANCED", "CUBIC", "HSTCP"))
    options += "# CONFIG_TCP_CONG_BBR is not set\n"
    place = tmp_path / "cache" / "crosswind" / "kernels" / "6.12"
    (place / ".config").write_text(f'{options}CONFIG_DEFAULT_TCP_CONG="cubic"\n', encoding="utf-8")
    assert find_kernel().congestion_controls == {"reno", "cubic", "highspeed"}


def test_a_package_brings_a_kernel_and_the_one_built_here_comes_first(
    build: Build, install: Build, tmp_path: Path
) -> None:
    assert found() is None
    install("theirs")
    assert (found(), find_kernel().origin) == ("6.12-theirs", "the package crosswind-kernel")
    build("ours")
    assert (found(), find_kernel().origin) == ("6.12-ours", str(tmp_path / "cache" / "crosswind" / "kernels"))


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
    build("a")
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
    build("a")
    build("b")
    place = tmp_path / "cache" / "crosswind" / "kernels" / "6.12-b"
    (place / "kernel.json").write_text(text)
    assert found() == "6.12-a"
    said = f"note: {place}: what describes the kernel is damaged; "
    assert [line.startswith(said) for line in capfd.readouterr().err.splitlines()] == [True]


def test_a_kernel_that_is_not_what_was_built_is_none_and_that_is_said(
    build: Build, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    build("b")
    place = tmp_path / "cache" / "crosswind" / "kernels" / "6.12-b"
    facts = json.loads((place / "kernel.json").read_text())
    built = hashlib.sha256((place / "linux").read_bytes()).hexdigest()
    (place / "kernel.json").write_text(json.dumps({**facts, "sha256": built}))
    assert find_kernel().name == "6.12-b"
    (place / "linux").write_bytes((place / "linux").read_bytes() + b"\n")
    with pytest.raises(EngineError, match="there is no kernel of virtual time"):
        find_kernel()
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
