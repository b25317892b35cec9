"""Disks that are full soon."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of so many bytes at a place, as `256k`, in memory."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small tmpfs")
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        # What a test that failed left running may still have it open.
        subprocess.run(["umount", "--lazy", place], check=True)
