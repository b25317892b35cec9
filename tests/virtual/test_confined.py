"""What a guest takes of its host: no privilege, but ptrace, /proc and memory; and what is said where one is missing."""

import json
from pathlib import Path

import pytest

from virtual.everyone import NOBODY, Everyone

CELLS = """
import crosswind, os, sys
for transport in ("tcp", "quic"):
    workload = {"kind": "echo", "transport": transport, "messages": 30}
    cell = crosswind.virtual({"delay": "10ms", "loss": "5%"}, workload=workload)
    assert cell.result.valid and len(cell.packets) > 60, cell.result
    print(transport, cell.result.elapsed_ns, cell.samples.hash_rows().sum(), cell.packets.hash_rows().sum())
script = "id -u; touch /crosswind-was-here && echo touched; unshare -n true && echo unshared"
cell = crosswind.virtual({}, ["sh", "-c", script])
print(cell.output["client"], cell.errors["client"])
"""

WITHOUT_PROC = ["unshare", "--mount", "sh", "-c", 'umount --lazy /proc && exec "$@"', "sh"]
SMALL = "mount -t tmpfs -o size=1M none /dev/shm && mount -t tmpfs -o size=1M,mode=1777 none $TMPDIR"
WITHOUT_MEMORY = ["unshare", "--mount", "sh", "-c", f'{SMALL} && exec "$@"', "sh"]
ECHO = ["echo", "--repetitions", "1", "--messages", "3", "--delay", "10ms"]
PROGRAM = ["exec", "--clock", "virtual", "--delay", "10ms", "--", "true"]


def test_nobody_in_a_container_gets_the_same_as_root(everyone: Everyone) -> None:
    # No user, no capability, none to be gained; nothing that namespaces or devices would take.
    container = [*NOBODY, *everyone.under("container")]
    outputs = []
    for confined in ([], NOBODY, everyone.under("container"), container):
        ran = everyone.run(confined, "-c", CELLS)
        assert ran.returncode == 0, ran.stderr
        outputs.append(ran.stdout)
    assert len(set(outputs)) == 1
    # In the guest alone.
    assert "touched" in outputs[0]
    assert not Path("/crosswind-was-here").exists()
    # The filter is the host's. What a program may do in a guest is up to the guest's kernel.
    assert "unshared" in outputs[0]
    # Nothing is left: no process, no file in memory, no directory.
    assert not list(everyone.home.iterdir())


MISSING = {
    "ptrace": ("virtual time takes ptrace, which does not work here", "allow ptrace: in a container"),
    "/proc": ("virtual time takes /proc, and there is none here", "mount -t proc proc /proc"),
    "memory": ("there is no place for the memory of the kernel of virtual time: /dev/shm has 1 MB free, ", "make room"),
}


def without(what: str, everyone: Everyone) -> list[str]:
    """A command that takes something away, and every privilege."""
    taken = {
        "ptrace": everyone.under("no-ptrace"),
        "/proc": WITHOUT_PROC,
        "memory": WITHOUT_MEMORY,
    }
    return [*taken[what], *NOBODY, *everyone.under("container")]


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_named_with_what_to_do(everyone: Everyone, what: str) -> None:
    problem, remedy = MISSING[what]
    confined = without(what, everyone)
    ran = everyone.run(confined, "-m", "crosswind", *PROGRAM)
    assert ran.returncode == 125, ran.stderr
    error, hint = (
        next(line for line in ran.stderr.splitlines() if line.startswith(f"{kind}: ")) for kind in ("error", "hint")
    )
    assert problem in error
    assert remedy in hint
    assert "Traceback" not in ran.stderr
    diagnosed = everyone.run(confined, "-m", "crosswind", "doctor", "--json")
    assert diagnosed.returncode == 1, diagnosed.stderr
    (check,) = [check for check in json.loads(diagnosed.stdout)["checks"] if check["name"] == "virtual time"]
    assert problem in check["detail"]
    assert remedy in check["hint"]


def test_in_a_container_auto_is_virtual_time_and_doctor_says_that_cells_can_run(everyone: Everyone) -> None:
    # Root may do no more than nobody there.
    container = everyone.under("container")
    ran = everyone.run(container, "-m", "crosswind", "run", *ECHO, "--output", "as-root")
    assert ran.returncode == 0, ran.stderr
    assert "Clock: virtual" in ran.stdout
    container = [*NOBODY, *container]
    diagnosed = everyone.run(container, "-m", "crosswind", "doctor")
    assert diagnosed.returncode == 0, diagnosed.stderr
    assert "Cells can run here in virtual time, and not on the machine's clock" in diagnosed.stdout
    ran = everyone.run(container, "-m", "crosswind", "run", *ECHO, "--output", "run")
    assert ran.returncode == 0, ran.stderr
    assert "Clock: virtual" in ran.stdout
