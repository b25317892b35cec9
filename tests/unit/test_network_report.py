"""The report of a run over a network that is really there: what its ends know, and what is inferred."""

import math
from typing import Any

import pytest

from cell_events import FINISHED, NETWORK_CLOCKS, network
from crosswind.analysis.designs import design_of
from crosswind.analysis.result import Result
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.path_effect import NO_EFFECT
from crosswind.cell.record import RunRecord
from crosswind.findings.pipeline import analyse
from crosswind.report.run_page import render, sections_of
from crosswind.report.text.conditions import condition_lines
from crosswind.report.text.headline import inferred_sentences, verdict
from crosswind.stats.design import Tail
from records import MS, echoes, record, runs, transfers


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


def lines_of(result: Result) -> dict[str, str]:
    assert result.conditions is not None
    return {line.about: line.text for line in condition_lines(result.conditions)}


def test_the_conditions_say_between_whom_the_network_is_and_what_is_known_of_it() -> None:
    found = lines_of(analyse(uploads()))
    assert found["Network"] == "the real network between this machine and 192.0.2.7:9470; nothing is emulated"
    assert found["Round trip"] == "20 ms, the shortest of each repetition"
    assert found["Server"] == "crosswind-cell 0.1.1 on Linux 6.8.0; the client is crosswind-cell 0.1.0"
    assert found["Clocks"] == "one-way delays are not shown: the server's is 1.25 ms behind ± 61 µs"
    assert found["Drops"] == "inferred from TCP's retransmissions; unknown for UDP and QUIC"
    assert "Path" not in found


@pytest.mark.parametrize(
    ("clocks", "text"),
    [
        ({"method": "same kernel", "one_way": True}, "one-way delays are shown: both ends share a clock"),
        ({"offset_ns": 5000, "one_way": True}, "one-way delays are shown: the server's is 5 µs ahead ± 61 µs"),
    ],
)
def test_one_way_delays_are_shown_where_the_clocks_are_known(clocks: dict[str, Any], text: str) -> None:
    assert lines_of(analyse(uploads(clocks={**NETWORK_CLOCKS, **clocks})))["Clocks"] == text


def test_no_ledger_and_no_fidelity_are_no_doubt() -> None:
    result = analyse(uploads())
    (cell,) = result.cells
    assert (cell.ledger, cell.fidelity, cell.packet_loss) == (None, None, {})
    assert verdict(result).text == (
        "Every cell is valid. The network is real: nothing is emulated, and packets are not counted."
    )
    assert "Ledger and fidelity" not in [section.title for section in sections_of(result)]


def test_loss_is_inferred_from_retransmissions_in_each_direction() -> None:
    (cell,) = analyse(uploads()).cells
    there, back = cell.retransmitted["forward"], cell.retransmitted["reverse"]
    assert (there.segments, there.retransmitted, there.shortest_round_trip_ns) == (5000, 50, 20 * MS)
    assert there.share is not None
    assert there.share.value == 0.01
    assert there.share.low is not None
    assert there.share.low < 0.01
    assert (back.segments, back.retransmitted) == (2500, 0)


def test_models_predict_from_what_is_inferred() -> None:
    result = analyse(uploads())
    mathis, pftk = result.cells[0].models
    # 1448 bytes of payload in 20 ms, 1 % of the segments lost: 8 * 1448 / 0.02 * sqrt(3/2) / 0.1 bit/s.
    assert mathis.value == pytest.approx(8 * 1448 / 0.02 * math.sqrt(1.5) / 0.1)
    assert mathis.inputs["loss"] == 0.01
    assert mathis.inputs["rtt_s"] == 0.02
    assert mathis.ratio == pytest.approx(5.8e6 / mathis.value)
    assert pftk.value is not None
    assert pftk.value < mathis.value
    assert any("inferred" in note for note in mathis.notes)
    assert "Models, of inferred loss and round-trip time" in [section.title for section in sections_of(result)]


def test_what_a_real_network_delays_is_taken_to_be_skewed() -> None:
    cell = CellSettings.of(parameters(UPLOAD), NO_EFFECT)
    assert design_of(METRICS["goodput"], cell).tail is Tail.SKEWED
    assert design_of(METRICS["goodput"], CellSettings.of({"workload": UPLOAD}, NO_EFFECT)).tail is not Tail.SKEWED


def test_what_models_expect_is_said_as_inferred() -> None:
    result = analyse(uploads(models=("mathis",)))
    # 8 * 1448 / 0.02 * sqrt(3/2) / 0.1 bit/s, as above.
    assert inferred_sentences(result) == [
        "Of 1 % loss and 20 ms round trip, both inferred from TCP, Mathis expects 7.09 Mbit/s; measured: 5.8 Mbit/s."
    ]
    assert inferred_sentences(analyse(uploads(models=()))) == []


def test_a_download_is_sent_by_the_server() -> None:
    download = parameters({**UPLOAD, "direction": "download"})
    tcp = network()["tcp"]
    swapped = network(tcp={"client": tcp["server"], "server": tcp["client"]})
    made = record(*runs(0, [transfers([5.8e6])] * 5, parameters=download, end=ended(swapped)), models=["mathis"])
    (prediction,) = analyse(made).cells[0].models
    assert prediction.inputs["loss"] == 0.01


def test_without_retransmissions_a_model_has_no_number() -> None:
    (prediction,) = analyse(uploads(again=0, models=("mathis",))).cells[0].models
    assert (prediction.value, prediction.ratio) == (None, None)


def test_without_tcp_nothing_is_inferred() -> None:
    workload = {"kind": "echo", "transport": "udp"}
    made = record(*runs(0, [echoes([MS] * 9)] * 5, parameters=parameters(workload), end=ended(network(tcp=None))))
    result = analyse(made)
    assert result.cells[0].retransmitted == {}
    assert result.valid


def test_the_page_shows_the_network_in_the_place_of_the_path() -> None:
    made = uploads()
    text = render(made, analyse(made))
    assert 'aria-label="network between this machine and 192.0.2.7:9470, round trip 20 ms"' in text
    assert "Loss inferred from TCP&#x27;s retransmissions" in text or "Loss inferred from TCP's retransmissions" in text
