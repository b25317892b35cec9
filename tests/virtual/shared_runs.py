"""Runs for several tests: the first test makes one, in any pytest worker, and each test gets a copy."""

import fcntl
import json
import shutil
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from e2e_cli import Cli, Ended

LOSSES_OF_UPLOADS = (
    *("run", "transfer", "--transport", "tcp,https1,http3", "--size", "10kB", "--direction", "upload"),
    *("--delay", "25ms", "--each-loss"),
)
"""The run of docs/how-to/which-packet.md, whose costs `test_each_packet` knows."""


@dataclass(frozen=True)
class SharedRuns:
    """Runs already made. Attributes: home: their directory, the same for all pytest workers."""

    home: Path

    def __call__(self, crosswind: Cli, *words: str, output: str) -> Ended:
        """Copies the run to `output` in a command line's directory; makes it if no test has. Prints at 100 columns."""
        place = self.home / sha256("\0".join((*words, output)).encode()).hexdigest()[:16]
        place.mkdir(parents=True, exist_ok=True)
        said = place / "ended.json"
        with (place / "lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not said.exists():
                patch.setenv("COLUMNS", "100")
                ended = Cli(place, crosswind.capture)(*words, "--output", output)
                said.write_text(json.dumps(asdict(ended)), encoding="utf-8")
        shutil.copytree(place / output, crosswind.cwd / output)
        return Ended(**json.loads(said.read_text("utf-8")))


def home_of_all_workers(factory: pytest.TempPathFactory) -> Path:
    """The directory for runs: the same for all workers of one pytest."""
    own = factory.getbasetemp()
    return (own.parent if own.name.startswith("popen-") else own) / "shared-runs"
