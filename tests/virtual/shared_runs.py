"""Runs that several tests look at: the first makes one, in whichever worker of pytest, and each gets a copy."""

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
    """Made runs. Attributes: home: a directory of all workers."""

    home: Path

    def __call__(self, crosswind: Cli, *words: str, output: str) -> Ended:
        """Has the run in `output` of a command line's directory, as if that had made it, at 100 columns."""
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
    """A directory that the workers of one pytest have in common, or its only process has."""
    own = factory.getbasetemp()
    return (own.parent if own.name.startswith("popen-") else own) / "shared-runs"
