"""What `make browser` and `crosswind browser install` do, with an npm and an apt-get that only pretend."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cell import doctor
from crosswind.cli import main
from crosswind.errors import DiskError, EngineError
from crosswind.peers import find_program, install
from crosswind.peers.chromium.browser import find_chromium
from crosswind.peers.node.install import (
    deno_program,
    install_packages,
    installed_packages,
    node_program,
    package_versions,
    packages_directory,
    socketio_bundle,
)
from crosswind.peers.registry import PEERS, Obstacle

NPM = """#!/bin/sh
echo "$*" >> "$LOG"
for name in socket.io socket.io-client ws; do
    mkdir -p node_modules/$name
    echo '{"version": "1.2.3"}' > node_modules/$name/package.json
done
"""
APT = """#!/bin/sh
echo "$*" >> "$LOG"
[ "$1" = install ] || exit 0
for name in chromium node npm; do printf '#!/bin/sh\\n' > "$BIN/$name"; chmod +x "$BIN/$name"; done
"""
FAILING = "#!/bin/sh\necho 'npm error code E404' >&2\nexit 1\n"


class Machine:
    """Programs on PATH, and what was called."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bin, self.log = home / "bin", home / "log"
        self.bin.mkdir()
        self.log.touch()
        for name in ("sh", "mkdir", "chmod"):
            (self.bin / name).symlink_to(f"/bin/{name}")
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.setenv("LOG", str(self.log))
        monkeypatch.setenv("BIN", str(self.bin))
        monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        monkeypatch.delenv("CROSSWIND_CHROMIUM", raising=False)
        monkeypatch.setattr(find_program, "_CHROMIUM_PLACES", ())

    def put(self, name: str, text: str = "#!/bin/sh\n") -> None:
        path = self.bin / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    @property
    def called(self) -> list[str]:
        return self.log.read_text("utf-8").splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_packages_are_installed_once(machine: Machine) -> None:
    machine.put("npm", NPM)
    directory = install_packages()
    assert directory == packages_directory() == installed_packages() == install_packages()
    assert machine.called == ["ci --ignore-scripts --no-audit --no-fund --loglevel=error"]
    assert package_versions() == {"socket.io": "1.2.3", "socket.io-client": "1.2.3", "ws": "1.2.3"}
    assert socketio_bundle().is_relative_to(directory)
    with pytest.raises(EngineError, match="Deno is not installed"):
        deno_program()


def test_every_package_is_locked_with_its_digest() -> None:
    directory = Path(install.__file__).parent / "node"
    locked = json.loads((directory / "package-lock.json").read_text("utf-8"))["packages"]
    wanted = json.loads((directory / "package.json").read_text("utf-8"))
    for name, version in {**wanted["dependencies"], **wanted["optionalDependencies"]}.items():
        assert locked[f"node_modules/{name}"]["version"] == version
    assert all(entry["integrity"].startswith("sha512-") for name, entry in locked.items() if name)


def test_an_installation_that_fails_leaves_nothing_that_seems_installed(machine: Machine) -> None:
    machine.put("npm", FAILING)
    with pytest.raises(EngineError, match="npm ci failed: npm error code E404"):
        install_packages()
    with pytest.raises(EngineError, match="the npm packages of the peers node and deno are not installed"):
        installed_packages()
    machine.put("npm", NPM)
    assert install_packages() == installed_packages()


def test_a_cache_that_cannot_be_written(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.log))
    with pytest.raises(DiskError, match=r"cannot install npm packages into .*: Not a directory"):
        install_packages()


def test_without_npm_or_node(machine: Machine) -> None:
    with pytest.raises(EngineError) as caught:
        install_packages()
    assert (caught.value.message, caught.value.hint) == ("npm is not installed", "apt install nodejs npm")
    with pytest.raises(EngineError, match="Node is not installed"):
        node_program()


def test_root_installs_what_is_missing_with_apt(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(install, "install_packages", lambda: Path("/where"))
    machine.put("apt-get", APT)
    said: list[str] = []
    install.install(said.append)
    assert machine.called == ["update -qq", "install -y -qq --no-install-recommends chromium nodejs npm"]
    assert said == ["installing chromium, node, npm with apt-get", "npm packages: /where"]


def test_others_are_told_what_to_install(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    machine.put("node")
    machine.put("npm", NPM)
    machine.put("apt-get", APT)
    with pytest.raises(SystemExit) as caught:
        main(["browser", "install"])
    out, err = capsys.readouterr()
    assert caught.value.code == 1
    # The npm packages need no root.
    assert out == f"npm packages: {packages_directory()}\n"
    assert err == "error: chromium cannot be installed from here\nhint: as root: apt install chromium\n"


def checks() -> dict[str, doctor.MachineCheck]:
    return {check.name: check for check in doctor.examine_machine().checks}


def test_the_doctor_says_what_peers_lack(machine: Machine) -> None:
    lines = {name: check for name, check in checks().items() if name in {"npm packages", "deno"}}
    assert {name: (check.ok, check.required, check.detail) for name, check in lines.items()} == {
        "npm packages": (False, False, "not found"),
        "deno": (False, False, "not found"),
    }
    assert all("crosswind browser install" in (check.hint or "") for check in lines.values())
    machine.put("npm", NPM)
    install_packages()
    found = checks()["npm packages"]
    assert (found.ok, found.detail) == (True, "socket.io 1.2.3, socket.io-client 1.2.3, ws 1.2.3")


def test_a_peer_lacks_a_program_a_version_or_a_package(machine: Machine) -> None:
    chromium, node = PEERS["chromium"], PEERS["node"]
    assert [getattr(peer.missing("websocket"), "problem", None) for peer in (chromium, node)] == [
        "Chromium is not installed",
        "Node is not installed",
    ]
    machine.put("chromium", "#!/bin/sh\necho Chromium 98.0.4758.102\n")
    machine.put("node", "#!/bin/sh\necho v16.20.2\n")
    too_old = "install version 132 or later, or set CROSSWIND_CHROMIUM to one"
    assert chromium.missing("websocket") == Obstacle("Chromium 98.0.4758.102 is too old", too_old)
    assert node.missing("websocket") == Obstacle("Node 16.20.2 is too old", "the peers need Node 18 or later")
    machine.put("chromium", "#!/bin/sh\necho Chromium 156.0.1.2\n")
    machine.put("node", "#!/bin/sh\necho v20.1.0\n")
    assert chromium.missing("websocket") is None
    # What only Socket.IO needs, a page over another transport does not.
    lacks = Obstacle(
        "the npm packages of the peers node and deno are not installed", "`crosswind browser install` installs it"
    )
    assert chromium.missing("socketio-websocket") == node.missing("websocket") == lacks
    machine.put("npm", NPM)
    install_packages()
    assert chromium.missing("socketio-websocket") is node.missing("websocket") is None


def chromium_check() -> tuple[bool, str, str | None]:
    (check,) = [doctor._program(*row) for row in doctor._PROGRAMS if row[0] == "chromium"]
    return check.ok, check.detail, check.hint


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"])
def test_chromium_has_many_names(machine: Machine, name: str) -> None:
    assert (install.missing_programs(), chromium_check()[:2]) == (["chromium", "node", "npm"], (False, "not found"))
    machine.put(name, "#!/bin/sh\necho Chromium 156.0.1.2\n")
    assert find_chromium() == str(machine.bin / name)
    assert (install.missing_programs(), chromium_check()) == (["node", "npm"], (True, "156.0.1.2", None))


def test_the_environment_names_chromium(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = tmp_path / "my-browser"
    mine.write_text("#!/bin/sh\necho Chromium 157.0.1.2\n", encoding="utf-8")
    mine.chmod(0o755)
    monkeypatch.setenv("CROSSWIND_CHROMIUM", str(mine))
    machine.put("chromium", "#!/bin/sh\necho Chromium 156.0.1.2\n")
    assert find_chromium() == str(mine)
    assert (install.missing_programs(), chromium_check()) == (["node", "npm"], (True, "157.0.1.2", None))
    mine.unlink()
    wrong, hint = f"CROSSWIND_CHROMIUM names {mine}, which is not a program", "unset it, or correct it"
    assert chromium_check() == (False, wrong, hint)
    for ask in (find_chromium, install.missing_programs):
        with pytest.raises(EngineError) as caught:
            ask()
        assert (caught.value.message, caught.value.hint) == (wrong, hint)


def changed(packages: Path) -> None:
    (packages / "node_modules/ws/package.json").write_text('{"version": "1.2.4"}')


def shortened(packages: Path) -> None:
    (packages / "node_modules/ws/package.json").write_text("{")


def gone(packages: Path) -> None:
    (packages / "node_modules/ws/package.json").unlink()


def foreign(packages: Path) -> None:
    (packages / ".installed").write_text("{}")


def a_file(packages: Path) -> None:
    shutil.rmtree(packages)
    packages.write_text("")


@pytest.mark.parametrize("damage", [changed, shortened, gone, foreign, a_file])
def test_damaged_packages_are_installed_anew(
    machine: Machine, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    machine.put("npm", NPM)
    damage(install_packages())
    if damage is not changed:  # A file of the same size is read when packages are installed.
        with pytest.raises(EngineError, match=r"are (damaged|not installed)") as caught:
            package_versions()
        assert caught.value.hint is not None and "`crosswind browser install`" in caught.value.hint
        assert not checks()["npm packages"].ok
    assert install_packages() == installed_packages()
    assert len(machine.called) == 2
    assert package_versions()["ws"] == "1.2.3"
    assert f"note: {packages_directory()}: " in capfd.readouterr().err
