"""The scheduler with cells that run one after another, well or badly; and what a session leaves in the store."""

import json
import os
from pathlib import Path

import pytest

from conftest import GOOD_END
from crosswind.errors import DiskError, EngineError
from crosswind.execution.processors import Processors
from crosswind.store.directory import Store
from crosswind.store.manifest import Status
from crosswind.store.record import record_of
from fixture_types import FakeCell
from runs import echo_samples, planned_cell
from sessions import AFFINITY, Log, missing, session


def test_a_cell_is_told_where_to_write(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GOOD_END + "open(cell['output']['directory'] + '/proof', 'w').write('x'); start(); finish()"
    session(tmp_path / "run", fake_cell(body), Log(), cells=1).run()
    assert (tmp_path / "run" / "cells" / "c000-r00" / "proof").exists()
    result = json.loads((tmp_path / "run" / "cells" / "c000-r00" / "result.json").read_text(encoding="utf-8"))
    assert result["parameters"] == planned_cell(0).parameters


def test_what_a_failed_cell_left_is_no_measurement(fake_cell: FakeCell, tmp_path: Path) -> None:
    echo_samples().write_ipc(tmp_path / "samples.arrow")
    body = f"import shutil; shutil.copy({str(tmp_path / 'samples.arrow')!r}, cell['output']['directory']); start()"
    session(tmp_path / "run", fake_cell(body), Log(), cells=1).run()
    (cell,) = record_of(Store.read(tmp_path / "run")).cells
    assert cell.failure is not None
    assert cell.samples.is_empty()


def test_a_table_that_is_none_fails_its_cell_only(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GOOD_END + "open(cell['output']['directory'] + '/samples.arrow', 'w').write('junk'); start(); finish()"
    assert session(tmp_path / "run", fake_cell(body), Log(), cells=1).run() is Status.DONE
    failure = Store.read(tmp_path / "run").results()["c000-r00"].failure
    assert failure is not None
    assert failure.kind == "protocol"
    assert "samples.arrow" in failure.message
    assert [p.name for p in (tmp_path / "run" / "cells" / "c000-r00").iterdir()] == ["result.json"]


@pytest.mark.parametrize(("kind", "error"), [("privilege", EngineError), ("disk", DiskError)])
def test_what_would_fail_every_cell_ends_the_run(
    fake_cell: FakeCell, tmp_path: Path, kind: str, error: type[Exception]
) -> None:
    body = f"start(); say(event='error', kind={kind!r}, message='no', hint='do'); sys.exit(1)"
    with pytest.raises(error, match="no") as caught:
        session(tmp_path / "run", fake_cell(body), Log()).run()
    assert getattr(caught.value, "hint", None) == "do"
    store = Store.read(tmp_path / "run")
    assert store.manifest.status is Status.STOPPED
    assert len(missing(store)) == 3
    assert store.results() == {}


def test_a_program_that_cannot_be_started_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot start"):
        session(tmp_path / "run", tmp_path / "nothing", Log()).run()
    assert list((tmp_path / "run" / "cells").iterdir()) == []
    assert Store.read(tmp_path / "run").manifest.status is Status.STOPPED


def test_while_cells_run_the_emulators_processors_are_theirs(fake_cell: FakeCell, tmp_path: Path) -> None:
    seen: list[set[int]] = []
    log = Log(lambda _event: seen.append(os.sched_getaffinity(0)))
    assert session(tmp_path / "run", fake_cell(GOOD_END + "start(); finish()"), log, cells=1).run() is Status.DONE
    assert seen == [set(Processors(sorted(AFFINITY)).hosts)] * 2
    assert os.sched_getaffinity(0) == AFFINITY
    with pytest.raises(EngineError):
        session(tmp_path / "other", tmp_path / "nothing", Log()).run()
    assert os.sched_getaffinity(0) == AFFINITY
