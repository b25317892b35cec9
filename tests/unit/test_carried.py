"""A plan warns of rates that this machine was seen not to carry."""

from pathlib import Path

import pytest

from cell_events import finished
from cells import adhoc, checked
from crosswind.cell.process import CellEnd
from crosswind.execution.carried import ForwardingLimit, learn_carried, read_carried, too_fast
from runs import planned_cell

SECOND = 10**9
BULK = {"transport": "tcp", "size": "100MB", "path__delay": "10ms", "host__clock": "real"}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "kept" / "durations.json"))
    return tmp_path / "kept" / "carried-durations.json"


def ended(packets: int, held_ns: int) -> CellEnd:
    cell = finished()
    assert cell.fidelity is not None
    times = cell.fidelity.delay_error_ns.model_copy(update={"n": packets})
    fidelity = cell.fidelity.model_copy(update={"delay_error_ns": times, "held_ns": held_ns})
    return CellEnd(cell.model_copy(update={"fidelity": fidelity, "elapsed_ns": 2 * SECOND}), None, 2 * SECOND)


def most(*ends: CellEnd) -> ForwardingLimit:
    seen = ForwardingLimit()
    for end in ends:
        seen.cell_ended(planned_cell(0), end)
    return seen


def test_only_cells_that_were_held_show_what_the_machine_carries(place: Path) -> None:
    assert most(ended(400_000, 0), ended(400_000, SECOND // 100)).packets_per_s == 0
    seen = most(ended(100_000, SECOND), ended(120_000, SECOND), ended(90_000, SECOND))
    assert seen.packets_per_s == 60_000
    learn_carried(seen)
    learn_carried(most(ended(80_000, SECOND)))
    known = read_carried()
    assert known is not None and known.packets_per_s == 60_000
    place.write_text('{"schema": "crosswind.carried/1", "version": "0.0.1", "packets_per_s": 1, "day": ""}')
    assert read_carried() is None, "another version may be faster or slower"


def test_a_rate_beyond_it_is_named_with_both_numbers(place: Path) -> None:
    cells = [checked(adhoc("transfer", **BULK, path__rate=rate))[0] for rate in ("100mbit", "10gbit")]
    assert list(too_fast(cells, read_carried())) == []
    learn_carried(most(ended(120_000, SECOND)))
    (warning,) = too_fast(cells, read_carried())
    assert warning.startswith(
        "10gbit is 1,250,000 packets/s with their acknowledgements; this machine carried 60,000 packets/s at most (seen"
    )
    idle = checked(adhoc("echo", path__rate="10gbit", path__delay="10ms", host__clock="real"))
    virtual = checked(adhoc("transfer", **{**BULK, "host__clock": "virtual"}, path__rate="10gbit"))
    assert list(too_fast([*idle, *virtual], read_carried())) == []
