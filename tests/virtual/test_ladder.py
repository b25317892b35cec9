"""A study on the ladder of networks, from the command line to the rung on which it breaks."""

import itertools
from pathlib import Path

import pytest

from crosswind.api.ladder import NOTE, RUNGS
from e2e_cli import Cli
from virtual.conftest import requires_kernel


def test_a_run_on_the_ladder_says_where_it_breaks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    words = ("run", "echo", "--transport", "udp", "--messages", "10", "--repetitions", "8", "--ladder", "--json")
    ran = crosswind(*words, "--fail-if", "median(rtt) > 250ms")
    # A threshold fails.
    assert (ran.status, NOTE in ran.err) == (3, True), ran.err
    result = ran.json
    assert {cell["clock"] for cell in result["cells"]} == {"virtual"}
    (ladder,) = result["ladders"]
    assert ladder["rungs"] == list(RUNGS)
    (climb,) = ladder["climbs"]
    medians = [cell["estimates"]["rtt"]["median"]["value"] for cell in result["cells"]]
    assert all(before < after for before, after in itertools.pairwise(medians))
    # Round trips without jitter: 200 ms on rung 3, 300 ms on rung 4.
    (missed,) = [each for each in climb["breaks"] if each["kind"] == "threshold"]
    assert (missed["rung"], missed["before"]) == ("ladder-4", "ladder-3")
    failing = [rung["rung"] for rung in climb["rungs"] if rung["lost"]]
    assert [each["rung"] for each in climb["breaks"] if each["kind"] == "failed"] == failing[:1]
