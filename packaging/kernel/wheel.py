"""Makes the wheel crosswind-kernel: the kernel of virtual time, with what its source code is made from.

    python packaging/kernel/wheel.py DIRECTORY

Builds the kernel (kernel/build), unless it is built, and prints the path of the wheel. A wheel is an archive with three
files about itself (packaging.python.org, "Binary distribution format"). This one holds data alone, so that a build
backend would have nothing to do but to write these.
"""

import base64
import hashlib
import json
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SOURCE = ROOT / "kernel"
CRATES = ("units", "noop-derive", "settings", "path", "packet", "vt-forwarder")
"""Those that the kernel is linked with, of crates/."""
NOTICES = ROOT / "THIRD-PARTY-NOTICES.txt"

NAME = "crosswind_kernel"
TAG = "py3-none-linux_x86_64"
TIME = (2026, 1, 1, 0, 0, 0)
"""Of every file, so that the same kernel makes the same wheel."""

BUILT = ("linux", "kernel.json", ".config")
PROGRAM = 0o755
TEXT = 0o644

File = tuple[str, bytes, int]
"""Name in the wheel, content and mode."""


def main(directory: Path) -> int:
    """Makes the wheel. Returns the exit status."""
    try:
        place = built()
    except subprocess.CalledProcessError as error:
        return int(error.returncode)  # kernel/build has said why.
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{NAME}-{version}-{TAG}.whl"
    write(wheel, [*package(place), *about(version, place)], record=f"{info(version)}/RECORD")
    print(wheel)
    return 0


def built() -> Path:
    """The directory of the kernel that the sources of this repository give, built if it was not."""
    place = ""
    with subprocess.Popen([SOURCE / "build"], stdout=subprocess.PIPE, text=True) as build:
        for line in build.stdout or ():
            place = line.rstrip("\n")
            print(place, file=sys.stderr)
    if build.returncode:
        raise subprocess.CalledProcessError(build.returncode, build.args)
    return Path(place)


def package(place: Path) -> Iterator[File]:
    """The importable package: the kernel, and the sources with their licence."""
    yield f"{NAME}/__init__.py", b'"""The kernel of virtual time, which Crosswind finds here."""\n', TEXT
    for name in BUILT:
        file = place / name
        yield f"{NAME}/kernels/{facts(place)['series']}/{name}", file.read_bytes(), mode(file)
    for file in sorted(source()):
        yield f"{NAME}/source/{file.relative_to(ROOT)}", file.read_bytes(), mode(file)


def source() -> Iterator[Path]:
    """All that was added to the source packages. The workspace's manifest says what the crates inherit."""
    yield ROOT / "Cargo.toml"
    for folder in (SOURCE, *(ROOT / "crates" / name for name in CRATES)):
        yield from (path for path in folder.rglob("*") if path.is_file())


def about(version: str, place: Path) -> Iterator[File]:
    """What a wheel says of itself, but for the list of its files."""
    kernel = facts(place)
    metadata = [
        "Metadata-Version: 2.4",
        "Name: crosswind-kernel",
        f"Version: {version}",
        "Summary: The Linux kernel on which Crosswind runs cells in virtual time",
        "License-Expression: GPL-2.0-only AND MIT",
        "License-File: COPYING",
        f"License-File: {NOTICES.name}",
        "Requires-Python: >=3.11",
        "Description-Content-Type: text/markdown",
        "",
        (HERE / "README.md").read_text(encoding="utf-8"),
        f"Linux {kernel['release']} from Debian's {kernel['source']}",
        "",
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: crosswind", "Root-Is-Purelib: false", f"Tag: {TAG}", ""]
    yield f"{info(version)}/METADATA", "\n".join(metadata).encode(), TEXT
    yield f"{info(version)}/WHEEL", "\n".join(wheel).encode(), TEXT
    for file in (SOURCE / "COPYING", NOTICES):
        yield f"{info(version)}/licenses/{file.name}", file.read_bytes(), TEXT


def write(wheel: Path, files: Sequence[File], *, record: str) -> None:
    """The archive, with the list of its files at its end."""
    lines = [f"{name},sha256={digest(content)},{len(content)}" for name, content, _ in files]
    listed: File = (record, "\n".join([*lines, f"{record},,", ""]).encode(), TEXT)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, permissions in (*files, listed):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | permissions) << 16
            archive.writestr(entry, content)


def facts(place: Path) -> dict[str, str]:
    """What a kernel was built from."""
    return dict(json.loads((place / "kernel.json").read_text(encoding="utf-8")))


def info(version: str) -> str:
    """The directory of what a wheel says of itself."""
    return f"{NAME}-{version}.dist-info"


def digest(content: bytes) -> str:
    """SHA-256 as the list of files has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def mode(file: Path) -> int:
    """That of a program or of a text, whatever the rights of this checkout are."""
    return PROGRAM if file.stat().st_mode & 0o100 else TEXT


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
