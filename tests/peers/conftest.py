"""What the tests against other implementations share."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from conftest import missing
from peers.certificates import Certificates
from peers.certificates import certificates as make_certificates
from peers.implementations import Ours, Peers
from peers.programs import Programs


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Good and bad certificates, and the authority that clients trust."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def kept() -> Iterator[ExitStack]:
    """Holds what the session has built."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def directories() -> dict[str, Path]:
    """Where peers that had to be built are."""
    return {}


@pytest.fixture
def programs() -> Iterator[Programs]:
    """Ends what the test has started."""
    programs = Programs()
    yield programs
    programs.stop()


@pytest.fixture
def peers(certificates: Certificates, kept: ExitStack, directories: dict[str, Path], programs: Programs) -> Peers:
    """Implementations that nobody here wrote."""
    return Peers(certificates, kept.enter_context, programs, directories)


@pytest.fixture(scope="session")
def endpoints() -> Path:
    """A crosswind-cell that can serve and call. Needs neither root nor namespaces."""
    binary = Path(os.environ["CROSSWIND_CELL"])
    if not binary.exists():
        missing("crosswind-cell is not built: cargo build --release")
    usage = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
    if "--serve" not in usage or "--call" not in usage:
        missing("this crosswind-cell can neither serve nor call: cargo build --release")
    return binary


@pytest.fixture
def ours(endpoints: Path, tmp_path: Path, programs: Programs) -> Ours:
    """Crosswind's own endpoints."""
    return Ours(endpoints, tmp_path, programs)
