"""The report of a run over a network that is really there: what its ends know, and what is inferred."""

from typing import Any

from cell_events import FINISHED, network
from crosswind.analysis.designs import design_of
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.path_effect import NO_EFFECT
from crosswind.cell.record import RunRecord
from crosswind.findings.pipeline import analyse
from crosswind.report.run_page import render
from crosswind.stats.design import Tail
from records import MS, record, runs, transfers


def ended(found: dict[str, Any]) -> dict[str, Any]:
    """A `finished` event of a cell over it."""
    nothing = dict.fromkeys(("ledger", "fidelity", "traffic", "queueing_ns"))
    return {**FINISHED, **nothing, "network": found}


def parameters(workload: dict[str, Any]) -> dict[str, Any]:
    host = {"congestion_control": "reno", "clock": "real"}
    return {"path": {"backend": "network", "server": "192.0.2.7:9470"}, "host": host, "workload": workload}


UPLOAD = {"kind": "transfer", "transport": "tcp", "direction": "upload", "duration_ns": 8000 * MS, "count": 1}


def uploads(*, models: tuple[str, ...] = ("mathis", "pftk"), **changes: Any) -> RunRecord:
    """Five repetitions of an upload that gets 5.8 Mbit/s."""
    samples = [transfers([5.8e6])] * 5
    made = runs(0, samples, parameters=parameters(UPLOAD), end=ended(network(**changes)))
    return record(*made, models=list(models))


def test_what_a_real_network_delays_is_taken_to_be_skewed() -> None:
    cell = CellSettings.of(parameters(UPLOAD), NO_EFFECT)
    assert design_of(METRICS["goodput"], cell).tail is Tail.SKEWED
    assert design_of(METRICS["goodput"], CellSettings.of({"workload": UPLOAD}, NO_EFFECT)).tail is not Tail.SKEWED


def test_the_page_shows_the_network_in_the_place_of_the_path() -> None:
    made = uploads()
    text = render(made, analyse(made))
    assert 'aria-label="network between this machine and 192.0.2.7:9470, round trip 20 ms"' in text
    assert "Loss inferred from TCP&#x27;s retransmissions" in text or "Loss inferred from TCP's retransmissions" in text
