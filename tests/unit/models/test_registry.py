"""From a cell to a prediction: inputs, the link's cap, silence, and broken assumptions."""

import copy

import pytest

from crosswind.models import MODELS, predict
from crosswind.models.situation import situation

CELL = {
    "path": {
        "family": "ipv4",
        "mtu_bytes": 1500,
        "forward": {"delay_ns": 50_000_000, "loss": 0.01, "rate_bps": 100_000_000},
        "reverse": {"delay_ns": 50_000_000, "loss": 0.0, "rate_bps": 100_000_000},
    },
    "host": {"profile": "linux", "congestion_control": "reno"},
    "workload": {"kind": "transfer", "transport": "tcp", "direction": "upload", "size_bytes": 1_000_000},
}


def changed(**parts):
    cell = copy.deepcopy(CELL)
    for path, value in parts.items():
        *heads, last = path.split("__")
        place = cell
        for head in heads:
            place = place[head]
        place[last] = value
    return cell


def test_mathis_of_a_cell() -> None:
    found = predict("mathis-c1", CELL)
    assert found.value == pytest.approx(8 * 1448 / 0.1 / 0.1)
    assert found.violated == ()
    assert (found.metric, found.unit) == ("goodput", "bit/s")


def test_segment_sizes_follow_family_and_timestamps() -> None:
    assert situation(CELL).mss_bytes == 1448
    assert situation(changed(path__family="ipv6")).mss_bytes == 1428
    assert situation(changed(host__timestamps=False)).mss_bytes == 1460
    assert situation(changed(path__forward__count="ethernet")).packet_bytes == 1538


def test_an_empty_cell_has_the_defaults_of_the_protocol() -> None:
    read = situation({"workload": {"kind": "transfer"}})
    assert (read.mss_bytes, read.congestion_control, read.initial_window, read.rtt_s) == (1448, "cubic", 10, None)
    old = situation({"host": {"profile": "freebsd-8"}, "workload": {"kind": "transfer"}})
    assert (old.congestion_control, old.initial_window, old.min_rto_s) == ("reno", 3, 0.23)


def test_a_download_loses_on_the_way_back() -> None:
    cell = changed(workload__direction="download")
    assert situation(cell).loss == 0.0
    assert situation(cell).loss_back == 0.01


def test_the_link_caps_and_the_formula_stays_visible() -> None:
    found = predict("mathis", changed(path__forward__rate_bps=1_000_000))
    assert found.value == pytest.approx(1_000_000 * 1448 / 1500)
    assert found.uncapped > found.value
    assert "capped by the link" in found.notes


def test_without_loss_mathis_gives_no_number_and_the_link_is_the_limit() -> None:
    found = predict("mathis", changed(path__forward__loss=0.0))
    assert found.uncapped is None
    assert found.value == pytest.approx(100e6 * 1448 / 1500)
    unlimited = changed(path__forward__loss=0.0, path__forward__rate_bps=None)
    assert predict("mathis", unlimited).value is None


@pytest.mark.parametrize("name", ["mathis", "pftk", "pftk-goodput", "pftk-approximate", "cubic"])
def test_no_model_describes_bbr(name: str) -> None:
    found = predict(name, changed(host__congestion_control="bbr"))
    assert found.value is None
    assert any("does not describe BBR" in note for note in found.notes)


def test_ten_percent_loss_is_outside_mathis() -> None:
    found = predict("mathis", changed(path__forward__loss=0.1))
    assert any("above 1" in text for text in found.violated)


def test_a_path_without_delay_takes_the_measured_round_trip_and_says_so() -> None:
    cell = changed(path__forward__delay_ns=0, path__reverse__delay_ns=0)
    assert predict("mathis", cell).value is None
    found = predict("mathis", cell, measured_rtt_ns=2_000_000)
    assert found.inputs["rtt_s"] == 0.002
    assert any("smallest measured round trip stands for it" in note for note in found.notes)


def test_models_apply_to_their_workload_only() -> None:
    echo = {"path": CELL["path"], "workload": {"kind": "echo", "transport": "tcp"}}
    applying = {name for name in MODELS if predict(name, echo) is not None}
    assert applying == {"ping-pong"}
    assert predict("ping-pong", {"path": CELL["path"], "workload": {"kind": "echo", "transport": "udp"}}) is None
    lossy = {name for name in MODELS if predict(name, CELL) is not None}
    assert lossy == set(MODELS) - {"ping-pong", "slow-start"}


def test_ping_pong_of_an_open_loop_waits_for_delayed_acks() -> None:
    path = {"forward": {"loss": 0.1}, "reverse": {"loss": 0.1}}
    thesis = {"path": path, "workload": {"kind": "echo", "mode": "open", "rate_per_s": 2}}
    # R0 = 0 is not a path; 1 us stands for the thesis's loopback: .44 p / (1 - 2p) = 55.0 ms.
    assert predict("ping-pong", thesis, measured_rtt_ns=1000).value == pytest.approx(55.0e6, rel=1e-4)


def test_slow_start_of_a_cell_is_in_nanoseconds() -> None:
    cell = changed(path__forward__loss=0.0, path__forward__rate_bps=6_000_000, workload__size_bytes=15_000)
    cell["host"] = {"profile": "freebsd-8"}
    assert predict("slow_start", cell).value == pytest.approx(0.206e9)


def test_an_unknown_model_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        predict("newton", CELL)
