"""From a cell to a prediction: inputs, the link's cap, silence, and broken assumptions."""

import copy

import pytest

from crosswind.catalog import catalog
from crosswind.models import MODELS
from effects import predict, situation

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


@pytest.mark.parametrize("name", ["mathis", "mathis-c1", "pftk", "pftk-goodput", "pftk-approximate", "cubic", "bbr"])
@pytest.mark.parametrize("loss", [0.0, 1e-6])
def test_a_window_limits_every_throughput_with_and_without_loss(name: str, loss: float) -> None:
    # 65535 bytes in each round trip of 100 ms. PFTK loses a little at the window as well, more than 1e-6 of it.
    found = predict(name, changed(path__forward__loss=loss, host__window_scaling=False))
    assert found.value == pytest.approx(65535 * 8 / 0.1, rel=0.02 if name.startswith("pftk") else 1e-5)


@pytest.mark.parametrize("name", ["mathis", "pftk", "pftk-goodput", "pftk-approximate", "cubic"])
def test_outside_its_assumptions_a_model_gives_its_number_and_a_warning(name: str) -> None:
    found = predict(name, changed(host__congestion_control="bbr"))
    assert found.value is not None
    assert any("not bbr" in warning for warning in found.violated)
    own = predict("bbr", changed(host__congestion_control="bbr"))
    assert (own.violated, own.value) == ((), pytest.approx(0.99 * 100e6 * 1448 / 1500))


def test_the_window_is_the_smallest_limit_whichever_setting_makes_it() -> None:
    def window(**host):
        return situation({"host": host, "workload": {"kind": "transfer"}}).window_segments

    assert window() is None
    assert window(window_scaling=False) == pytest.approx(65535 / 1448)
    assert window(profile="freebsd-8") == pytest.approx(65535 / 1448)
    assert window(profile="freebsd-8", window_scaling=True) is None
    assert window(profile="freebsd-8", receive_buffer_bytes=14480) == 10
    assert window(send_buffer_bytes=14480, receive_buffer_bytes=28960) == 10


def test_profiles_are_those_of_the_catalogue() -> None:
    for profile in catalog().profiles:
        filled = {"host": {"profile": profile.name, **profile.values}, "workload": {"kind": "transfer"}}
        assert situation({"host": {"profile": profile.name}, "workload": {"kind": "transfer"}}) == situation(filled)


def test_a_setting_that_is_null_is_not_set() -> None:
    empty = situation({"host": {"timestamps": None, "sack": None}, "workload": {"kind": "transfer"}})
    assert (empty.mss_bytes, empty.sack) == (1448, True)


def test_ten_percent_loss_is_outside_mathis() -> None:
    found = predict("mathis", changed(path__forward__loss=0.1))
    assert any("above 1" in text for text in found.violated)


def test_a_path_without_delay_takes_the_measured_round_trip_and_says_so() -> None:
    cell = changed(path__forward__delay_ns=0, path__reverse__delay_ns=0)
    assert predict("mathis", cell).value is None
    found = predict("mathis", cell, measured_rtt_ns=2_000_000)
    assert found.inputs["rtt_s"] == 0.002
    assert any("smallest measured round trip is used instead" in note for note in found.notes)


def test_models_apply_to_their_workload_only() -> None:
    echo = {"path": CELL["path"], "workload": {"kind": "echo", "transport": "tcp"}}
    applying = {name for name in MODELS if predict(name, echo) is not None}
    assert applying == {"ping-pong"}
    quic = {"path": CELL["path"], "workload": {"kind": "echo", "transport": "quic"}}
    assert {name for name in MODELS if predict(name, quic) is not None} == {"quic-ping-pong"}
    assert predict("ping-pong", {"path": CELL["path"], "workload": {"kind": "echo", "transport": "udp"}}) is None
    lossy = {name for name in MODELS if predict(name, CELL) is not None}
    assert lossy == set(MODELS) - {"ping-pong", "quic-ping-pong"}


def test_ping_pong_of_an_open_loop_waits_for_delayed_acks() -> None:
    path = {"forward": {"loss": 0.1}, "reverse": {"loss": 0.1}}
    thesis = {"path": path, "workload": {"kind": "echo", "mode": "open", "rate_per_s": 2}}
    # R0 = 0 is not a path; 1 us stands for the thesis's loopback: .44 p / (1 - 2p) = 55.0 ms.
    assert predict("ping-pong", thesis, measured_rtt_ns=1000).value == pytest.approx(55.0e6, rel=1e-4)


def test_slow_start_of_a_cell_is_in_nanoseconds() -> None:
    cell = changed(path__forward__loss=0.0, path__forward__rate_bps=6_000_000, workload__size_bytes=15_000)
    cell["host"] = {"profile": "freebsd-8"}
    assert predict("slow_start", cell).value == pytest.approx(
        0.204762667e9
    )  # 928 bytes of the last segment are not there


def test_an_unknown_model_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        predict("newton", CELL)


def test_every_model_has_the_name_that_it_is_found_by_and_says_where_it_holds() -> None:
    for name, model in MODELS.items():
        assert model.name == name
        assert model.title and model.source and model.assumptions and model.valid_range
        assert model.unit in {"ns", "bit/s"}
