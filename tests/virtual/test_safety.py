"""What a guest can reach of the host: its files to read, one directory to write, nothing else.

Programs inside are root there, and try what they can.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.cell.guests import Template
from virtual.lab import run, run_script


@pytest.fixture
def writable(tmp_path: Path) -> Path:
    place = tmp_path / "writable"
    place.mkdir()
    return place


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A directory of the host that no guest was given, and that whoever runs the tests can write."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "file").write_text("as it was")
    return place


def assert_untouched(place: Path) -> None:
    assert [path.name for path in place.iterdir()] == ["file"]
    assert (place / "file").read_text() == "as it was"


@pytest.mark.parametrize("place", ["/", "/etc", "/root", "/tmp", "/var/tmp", "/usr/bin", "/home"])
def test_the_hosts_directories_are_read_only(template: Template, writable: Path, place: str) -> None:
    ran = run_script(template, 'touch "$1/crosswind-was-here"', place, writable=writable)
    assert ran.status == 1
    assert "Read-only file system" in ran.errors
    assert not Path(place, "crosswind-was-here").exists()


def test_files_of_the_host_can_be_neither_changed_nor_removed(template: Template, elsewhere: Path) -> None:
    script = 'echo x > "$1/file"; echo x >> "$1/file"; rm "$1/file"; mv "$1/file" "$1/other"; chmod 777 "$1/file"'
    ran = run_script(template, script, str(elsewhere))
    assert ran.status != 0
    assert ran.errors.count("Read-only file system") == 5
    assert_untouched(elsewhere)
    assert (elsewhere / "file").stat().st_mode & 0o777 != 0o777


def test_the_writable_directory_is_the_hosts(template: Template, writable: Path) -> None:
    (writable / "given").write_text("by the host")
    ran = run_script(template, 'cat "$1/given"; echo "by the guest" > "$1/made"', str(writable), writable=writable)
    assert (ran.status, ran.output) == (0, "by the host")
    assert (writable / "made").read_text() == "by the guest\n"


def test_without_a_writable_directory_nothing_of_the_host_can_be_written(template: Template, elsewhere: Path) -> None:
    script = 'mkdir /run/m; mount -t hostfs -o "$1" none /run/m; touch /run/m/new'
    assert run_script(template, script, str(elsewhere)).status == 1
    assert_untouched(elsewhere)


REMOUNTS = {
    "the root, for writing": "mount -o remount,rw /",
    "the root, bound, for writing": "mount -o remount,rw,bind /",
    "a bind mount of the directory": 'mkdir /run/m; mount --bind "$1" /run/m; mount -o remount,rw,bind /run/m',
    "the directory, again": 'mkdir /run/m; mount -t hostfs -o "$1" none /run/m; mount -o remount,rw /run/m',
    "the root, again": "mkdir /run/m; mount -t hostfs none /run/m -o /; mount -o remount,rw /run/m",
    "from a mount namespace": 'mkdir /run/m; unshare -m mount -t hostfs -o "$1" none /run/m; mount -o remount,rw /',
    "the writable directory's parent": 'mkdir /run/m; mount -t hostfs -o "$2/.." none /run/m; touch /run/m/new',
    "a way through the writable directory": 'mkdir /run/m; mount -t hostfs -o "$2/../elsewhere" none /run/m',
}


@pytest.mark.parametrize("script", REMOUNTS.values(), ids=REMOUNTS)
def test_no_mount_makes_another_directory_writable(
    template: Template, writable: Path, elsewhere: Path, script: str
) -> None:
    attempt = f'{script}; touch "$1/new" /run/m/new; echo x > "$1/file"; echo x > /run/m/file; rm -f /run/m/file'
    ran = run_script(template, attempt, str(elsewhere), str(writable), writable=writable)
    assert "Read-only file system" in ran.errors
    assert_untouched(elsewhere)


def test_a_link_in_the_writable_directory_leads_nowhere_new(
    template: Template, writable: Path, elsewhere: Path
) -> None:
    (writable / "from-outside").symlink_to(elsewhere)
    script = """
        ln -s "$1" "$2/link"; touch "$2/link/new" "$2/from-outside/new"
        mkdir /run/m; mount -t hostfs -o "$2/link" none /run/m; touch /run/m/new; echo x > /run/m/file
        umount /run/m; mount -t hostfs -o "$2/from-outside" none /run/m; touch /run/m/new; echo x > /run/m/file
        ln "$1/file" "$2/hard" || ln -L "$2/link/file" "$2/hard"
    """
    ran = run_script(template, script, str(elsewhere), str(writable), writable=writable)
    assert ran.errors.count("Read-only file system") == 6
    assert ran.errors.count("cross-device link") == 2
    assert_untouched(elsewhere)


def test_a_directory_that_becomes_a_link_does_not_lead_out(template: Template, writable: Path, elsewhere: Path) -> None:
    script = """
        mkdir /run/m; mount -t hostfs -o "$2" none /run/m
        mkdir "$2/d"; cd "$2/d"
        rmdir /run/m/d; ln -s "$1" /run/m/d
        echo x > new
    """
    run_script(template, script, str(elsewhere), str(writable), writable=writable)
    assert_untouched(elsewhere)


def test_no_device_node_is_made_on_the_host(template: Template, writable: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to whom the host refuses nothing")
    run_script(template, 'mknod -m 666 "$1/disk" b 8 0', str(writable), writable=writable)
    assert not (writable / "disk").exists()


def test_there_is_no_network_but_the_guests_own(template: Template) -> None:
    ran = run_script(template, "ls /sys/class/net; ip route; ip -6 route")
    assert ran.output.split("\n")[0] == "lo"
    assert "default" not in ran.output


CONNECT = """
import socket, sys
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    print(socket.socket(family, socket.SOCK_STREAM).connect_ex((address, int(sys.argv[1]))))
for address in sys.argv[3:]:
    print(socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect_ex((address, int(sys.argv[1]))))
unix = socket.socket(socket.AF_UNIX)
print(unix.connect_ex(sys.argv[2]), unix.connect_ex("\\0" + sys.argv[2]))
"""
REFUSED, UNREACHABLE = 111, 101


def test_the_hosts_services_cannot_be_reached(template: Template, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0" + path)
    abstract.listen()
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(path)
    unix.listen()
    with socket.create_server(("0.0.0.0", 0)) as listening, abstract, unix:
        port = listening.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        own = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
        addresses = [*[address for address in own if ":" not in address], "1.1.1.1"]
        ran = run(template, sys.executable, "-IS", "-c", CONNECT, str(port), path, *addresses)
    first, second, *others, last = ran.output.splitlines()
    assert (first, second) == (str(REFUSED), str(REFUSED))
    assert set(others) == {str(UNREACHABLE)}
    assert last == f"{REFUSED} {REFUSED}"


def test_the_hosts_processes_and_devices_cannot_be_seen(template: Template) -> None:
    script = 'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n"; ls /dev; kill -0 "$1" || echo "no such process"'
    # Numbers inside are small, and this one's is not.
    with subprocess.Popen(["sleep", "1000"]) as sleeping:
        number = max(sleeping.pid, 5000)
        ran = run_script(template, script, str(number))
        sleeping.kill()
    assert "sleep" not in ran.output
    assert "pytest" not in ran.output
    assert "no such process" in ran.output
    assert not {"kvm", "mem", "sda", "vda", "nvme0n1", "loop0", "fuse"} & set(ran.output.splitlines())
