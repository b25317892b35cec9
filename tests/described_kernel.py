"""Planning a cell in virtual time takes a kernel's description, not the kernel: here is one that does nothing."""

import json
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def described_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A directory of kernels with one that does nothing."""
    kernels = tmp_path_factory.mktemp("kernels")
    place = kernels / "6.12-0"
    place.mkdir()
    facts = {"series": "6.12", "release": "6.12.0", "source": "none", "digest": "0"}
    (place / "kernel.json").write_text(json.dumps(facts))
    (place / "linux").write_text("#!/bin/false\n")
    (place / "linux").chmod(0o755)
    (kernels / "6.12").symlink_to(place.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSWIND_KERNELS", str(kernels))
        yield
