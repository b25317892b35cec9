"""What a version brings, from CHANGELOG.md.

packaging/release_notes.py 1.2.0      prints its section
packaging/release_notes.py            the version of pyproject.toml; a tag at HEAD has to be that one, v1.2.0
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def notes_of(version: str, changelog: str) -> str | None:
    """The section of a version, of one that is not released the first; None where there is none."""
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if heading.split()[0].strip("[]").removeprefix("v") == version:
            return text.strip() + "\n"
    return None


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    version = arguments[0] if arguments else _version()
    notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    crates = _table("Cargo.toml")["workspace"]["package"]["version"]
    if not arguments and crates != version:
        print(f"error: Cargo.toml has {crates}, and pyproject.toml {version}\nhint: set both", file=sys.stderr)
        return 1
    tags = subprocess.run(
        ["git", "tag", "--points-at", "HEAD", "v*"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    if not arguments and tags and f"v{version}" not in tags:
        print(f"error: the tag is {tags[0]}, and pyproject.toml has {version}", file=sys.stderr)
        print("hint: set version in pyproject.toml and Cargo.toml, or move the tag", file=sys.stderr)
        return 1
    if notes is None:
        print(f"error: CHANGELOG.md has no section {version}", file=sys.stderr)
        print(f'hint: write "## {version} - DATE" above what it brings', file=sys.stderr)
        return 1
    print(notes, end="")
    return 0


def _version() -> str:
    return str(_table("pyproject.toml")["project"]["version"])


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
