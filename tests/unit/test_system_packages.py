"""What `make test` does about system packages that are missing (packaging/system-packages), with a made-up apt-get."""

import subprocess
from pathlib import Path

import pytest

from conftest import ROOT

BASIC = ("bash", "chmod", "rm", "sort")


class Machine:
    """A machine that has a few commands, and every command that tests need but `there`."""

    def __init__(self, home: Path) -> None:
        self.bin, self.log = home / "bin", home / "log"
        self.bin.mkdir()
        self.log.touch()
        for name in BASIC:
            (self.bin / name).symlink_to(f"/bin/{name}")

    def put(self, name: str, text: str = "#!/bin/bash\n") -> None:
        # Never through a link: it would be written to the system's own program.
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(text, encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        script = (ROOT / "packaging/system-packages").read_text("utf-8").replace(":/usr/sbin:/sbin", "")
        # Where the packages would be: no service is started there either.
        script = script.replace("/usr/sbin/policy-rc.d", str(self.bin / "policy-rc.d"))
        environment = {"PATH": str(self.bin), "LOG": str(self.log), **variables}
        ended = subprocess.run(
            ["/bin/bash", "-c", script, "system-packages", *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
        )  # fmt: skip
        return ended.returncode, ended.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    for name in (
        "cc", "dig", "chromium", "curl", "go", "h2load", "ip", "iperf3", "make", "mosquitto", "mount", "nghttpd",
        "nginx", "ping", "prometheus", "setpriv", "tshark",
    ):  # fmt: skip
        made.put(name)
    return made


NAMED = "some tests need system packages that are missing: apt-get install nodejs npm wrk\n"


def test_others_are_told_one_command_and_ci_fails(machine: Machine) -> None:
    machine.put("id", "#!/bin/bash\necho 1000\n")
    assert machine.run() == machine.run("--missing") == machine.run(PACKAGES="no") == (0, NAMED)
    assert machine.run(CI="true") == machine.run("--missing", CI="true") == (1, NAMED)
    assert machine.log.read_text("utf-8") == ""


def test_root_installs_them_and_no_server_is_started(machine: Machine) -> None:
    machine.put("id", "#!/bin/bash\necho 0\n")
    machine.put("apt-get", '#!/bin/bash\necho "$*" "$(bash -c policy-rc.d; echo $?)" >> "$LOG"\n')
    status, said = machine.run()
    assert (status, said) == (
        0, "installing system packages that tests need (PACKAGES=no leaves them): nodejs npm wrk\n"
    )  # fmt: skip
    assert machine.log.read_text("utf-8") == (
        "update -qq 101\ninstall -y -qq --no-install-recommends nodejs npm wrk 101\n"
    )
    assert not (machine.bin / "policy-rc.d").exists()
    machine.put("apt-get", "#!/bin/bash\nexit 100\n")
    assert machine.run()[1].splitlines()[-2:] == ["error: apt-get cannot install all of them", NAMED.strip()]
    assert machine.run(CI="true")[0] == 1


def test_where_nothing_is_missing_nothing_is_said(machine: Machine) -> None:
    for name in ("node", "npm", "wrk"):
        machine.put(name)
    assert machine.run() == machine.run("--missing") == (0, "")
