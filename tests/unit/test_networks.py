"""Networks with a name: what each sets, what a study says of it, and how they are listed."""

import itertools
import json
import re
from typing import Any

import pytest

from cells import checked
from crosswind.catalog import catalog
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.files import load_study
from crosswind.study.networks import NETWORKS, Network, Source
from fixture_types import Crosswind
from study_texts import ECHO, study

NETWORK = '[path]\nnetwork = {}\n{}\n[workload]\nkind = "echo"\n'


def path_of(network: str, more: str = "") -> dict[str, Any]:
    (cell,) = checked(Study.from_toml(NETWORK.format(f'"{network}"', more), name="s"))
    return dict(cell.parameters["path"])


def note_of(network: str, more: str = "") -> str:
    (note,) = Study.from_toml(NETWORK.format(network, more), name="s").network_notes
    return note


# Round trip in ms; down and up in kbit/s. From WebPageTest's connectivity.ini.sample, Chrome's NetworkManager.ts (its
# targets) and Firefox's throttling/profiles.js (K = 1024 bit/s), typed here a second time.
FROM_THEIR_FILES = {
    "wpt-cable": (28, 5000, 1000), "wpt-dsl": (50, 1500, 384), "wpt-fios": (4, 20_000, 5000), "wpt-dial": (120, 49, 30),
    "wpt-lte": (70, 12_000, 12_000), "wpt-4g": (170, 9000, 9000), "wpt-3g": (300, 1600, 768),
    "wpt-3g-fast": (150, 1600, 768), "wpt-3g-slow": (200, 780, 330), "wpt-3g-em": (400, 400, 400),
    "wpt-edge": (840, 240, 200), "wpt-2g": (800, 280, 256),
    "chrome-3g": (400, 500, 500), "chrome-slow-4g": (150, 1600, 750), "chrome-fast-4g": (60, 9000, 1500),
    "firefox-gprs": (500, 51.2, 20.48), "firefox-2g": (300, 256, 51.2), "firefox-good-2g": (150, 460.8, 153.6),
    "firefox-3g": (100, 768, 256), "firefox-good-3g": (40, 1572.864, 768), "firefox-4g": (20, 4194.304, 3145.728),
    "firefox-dsl": (5, 2097.152, 1048.576), "firefox-wifi": (2, 31_457.28, 15_728.64),
}  # fmt: skip


def number(network: Network, way: str, key: str) -> int:
    value = network.hops[""][way][key].value
    assert isinstance(value, int)
    return value


def test_the_profiles_of_other_tools_are_theirs() -> None:
    prefixes = ("wpt-", "chrome-", "firefox-")
    found = {
        name: (
            number(network, "forward", "delay") / 1e6 + number(network, "reverse", "delay") / 1e6,
            number(network, "reverse", "rate") / 1000,
            number(network, "forward", "rate") / 1000,
        )
        for name, network in NETWORKS.items()
        if name.startswith(prefixes)
    }
    assert found == FROM_THEIR_FILES


# Mbit/s, ms of round trip and jitter, % of loss, packets of a burst: iroh's DEGRADE_LEVELS, typed a second time.
LADDER = (
    (100, 16, 0, 0.1, 5), (25, 40, 12, 1, 6), (8, 90, 15, 2, 8),
    (3, 200, 30, 3, 10), (1.5, 300, 40, 5, 12), (0.8, 450, 60, 8, 20),
)  # fmt: skip


def test_the_ladder_is_that_of_iroh_and_each_rung_is_worse() -> None:
    for rung, (rate, rtt, jitter, loss, burst) in enumerate(LADDER):
        path = path_of(f"ladder-{rung}")
        assert path["forward"] == path["reverse"] == defaults() | {
            "delay_ns": rtt * 500_000, "rate_bps": rate * 1_000_000, "queue": {"time_ns": rtt * 1_000_000},
            "jitter_ns": jitter * 1_000_000, "loss": loss / 100, "loss_burst": burst,
        }  # fmt: skip
    for before, after in itertools.pairwise(LADDER):
        assert before[0] > after[0]
        assert all(less < more for less, more in zip(before[1:], after[1:], strict=True))


def test_the_networks_that_were_asked_for_are_there() -> None:
    asked = "lan wifi wifi-lossy dsl cable fibre 2g 3g hspa 4g 5g satellite-geo satellite-leo transatlantic thesis-lo"
    assert set(asked.split()) | {"localhost", "wan", "hsdpa+"} <= NETWORKS.keys()


@pytest.mark.parametrize("name", NETWORKS)
def test_every_number_of_a_network_has_a_source(name: str) -> None:
    network = NETWORKS[name]
    own = [key for source in network.own_sources for key in source.keys]
    assert len(set(own)) == len(own)
    assert set(own) <= set(network.settings)
    sourced = [key for key in network.settings if any(source.is_of(key) for source in network.sources)]
    assert sourced == list(network.settings)
    assert all(source.text and not source.text.endswith(".") for source in network.sources)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_keys_of_a_network_say_the_same_as_its_name(name: str) -> None:
    keys = "".join(
        (f'[[path.hop]]\nname = "{hop}"\n' if hop else "[path]\n")
        + "".join(f'{key} = "{text}"\n' for key, text in own.items())
        for hop, own in NETWORKS[name].keys.items()
    )
    (written,) = checked(study(f"{keys}{ECHO}"))
    # A change has a name of its own there: the test of a network that changes looks at it.
    assert dict(written.parameters["path"]) == {key: own for key, own in path_of(name).items() if key != "changes"}


def defaults() -> dict[str, object]:
    """What a direction is of which a network says nothing."""
    known = {key.name: key.default for key in catalog().direction.keys if key.default is not None}
    return known | {"rate_bps": None, "queue": None}


def test_a_network_gives_both_directions() -> None:
    usual = defaults()
    assert path_of("localhost")["forward"] == usual
    wan = path_of("wan")
    # 100 ms of each link: 5 Mbit/s up, 20 Mbit/s down
    assert wan["forward"] == usual | {"delay_ns": 20_000_000, "rate_bps": 5_000_000, "queue": {"bytes": 62_500}}
    assert wan["reverse"] == usual | {"delay_ns": 20_000_000, "rate_bps": 20_000_000, "queue": {"bytes": 250_000}}
    # Never less than ten full packets: 100 ms of 384 kbit/s would be 4800 bytes.
    assert path_of("dsl")["forward"]["queue"] == {"bytes": 15_000}
    assert NETWORKS["dsl"].source(["queue"]).endswith("at least ten packets")


def test_a_network_may_lose_packets() -> None:
    assert [path_of("wifi-lossy")[way]["loss"] for way in ("forward", "reverse")] == [0.02, 0.02]
    assert path_of("thesis-lo")["reverse"] == defaults() | {"loss": 0.1}
    assert path_of("thesis-lo", 'loss = "20%"')["forward"]["loss"] == 0.2
    lossy = path_of("thesis-lo", 'forward.loss = "0%"')
    assert (lossy["forward"]["loss"], lossy["reverse"]["loss"]) == (0.0, 0.1)


def test_a_key_beside_a_network_overrides_it() -> None:
    both = path_of("hsdpa+", 'loss = "1%"\nqueue = "50p"\nforward.delay = "1ms"')
    set_beside = defaults() | {"loss": 0.01, "queue": {"packets": 50}}
    assert both["forward"] == set_beside | {"delay_ns": 1_000_000, "rate_bps": 2_000_000}
    assert both["reverse"] == set_beside | {"delay_ns": 35_000_000, "rate_bps": 8_000_000}
    assert path_of("lan", 'rate = "unlimited"')["forward"]["queue"] is None
    # A machine without a link has no queue; the link that a study gives it has the usual one.
    assert path_of("localhost", 'rate = "1mbit"')["forward"]["queue"] == {"packets": 1000}


def moving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes 4g a network that sets keys which no other does, and changes over time."""
    handover = {"name": "handover", "every": "15s", "for": "1s", "delay": "90ms", "reverse": {"loss": "5%"}}
    path = {"delay": "20ms", "jitter": "3ms", "reverse": {"loss_burst": 4, "loss": "1%"}, "at": [handover]}
    monkeypatch.setitem(NETWORKS, "4g", Network("4g", "a moving network", path, (Source("delay", "nowhere"),)))  # type: ignore[misc]


def test_a_network_may_set_any_key_and_change_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moving(monkeypatch)
    path = path_of("4g")
    assert path["forward"] == defaults() | {"delay_ns": 20_000_000, "jitter_ns": 3_000_000}
    assert (path["reverse"]["loss"], path["reverse"]["loss_burst"]) == (0.01, 4)
    (change,) = path["changes"]
    assert (change["name"], change["every_ns"], change["for_ns"]) == ("4g handover", 15_000_000_000, 1_000_000_000)
    assert (change["forward"], change["reverse"]) == ({"delay_ns": 90_000_000}, {"delay_ns": 90_000_000, "loss": 0.05})
    # A key of the study's own counts at all times.
    (change,) = path_of("4g", 'delay = "4ms"')["changes"]
    assert (change["forward"], change["reverse"]) == ({}, {"loss": 0.05})
    assert "changes" not in path_of("4g", 'delay = "4ms"\nloss = "0%"')
    assert note_of('"4g"', 'delay = "4ms"').startswith(
        "Network 4g (a moving network) sets path.jitter = 3ms, path.reverse.loss_burst = 4, path.reverse.loss = 1% and "
        "path.at.handover = (for 1s, every 15s, reverse.loss 5%); the study itself sets path.delay."
    )


def test_a_hop_has_the_changes_of_its_network(monkeypatch: pytest.MonkeyPatch) -> None:
    moving(monkeypatch)
    hops = '[[path.hop]]\nname = "air"\nnetwork = "4g"\n[[path.hop]]\nname = "line"\nnetwork = "lan"\n'
    own = '[[path.at]]\nname = "outage"\nhop = "line"\nfor = "1s"\nloss = "100%"\n'
    (cell,) = checked(study(hops + own + ECHO))
    changes = cell.parameters["path"]["changes"]
    assert [(change["name"], change["hop"]) for change in changes] == [("outage", "line"), ("air 4g handover", "air")]
    # Both lose packets at the same time: crosswind-cell names the study's key, which sets the network.
    overlapping = own.replace('"line"', '"air"')
    with pytest.raises(StudyError, match=r"path\.hop\.air\.network \(4g\)"):
        checked(study(hops + overlapping + ECHO))


def of_two_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes 4g a network of two hops, of which one changes."""
    roaming = {"name": "roaming", "hop": "wifi", "every": "15s", "for": "1s", "loss": "100%"}
    hops = [
        {"name": "wifi", "delay": "2ms", "loss": "1%"},
        {"name": "line", "delay": "9ms", "forward": {"rate": "1mbit"}, "reverse": {"rate": "5mbit"}},
    ]
    sources = (Source("wifi.delay", "here"), Source("line.delay", "there"), Source("loss, rate", "nowhere"))
    monkeypatch.setitem(NETWORKS, "4g", Network("4g", "two hops", {"hop": hops, "at": [roaming]}, sources))  # type: ignore[misc]


def test_a_network_may_have_several_hops_and_changes_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    of_two_hops(monkeypatch)
    path = path_of("4g")
    assert [hop["name"] for hop in path["hops"]] == ["wifi", "line"]
    wifi, line = path["hops"]
    assert wifi["forward"] == wifi["reverse"] == defaults() | {"delay_ns": 2_000_000, "loss": 0.01}
    assert (line["forward"]["rate_bps"], line["reverse"]["rate_bps"]) == (1_000_000, 5_000_000)
    (change,) = path["changes"]
    assert (change["name"], change["hop"], change["forward"]) == ("4g roaming", "wifi", {"loss": 1})
    assert note_of('"4g"', "reverse.rate = '2mbit'") == (
        "Network 4g (two hops) sets path.hop.wifi.delay = 2ms, path.hop.wifi.loss = 1%, path.hop.line.delay = 9ms, "
        "path.hop.line.forward.rate = 1mbit and path.at.roaming = (for 1s, every 15s, hop wifi, loss 100%); the study "
        "itself sets path.reverse.rate. Numbers: wifi.delay: here; line.delay: there; loss, rate: nowhere."
    )


def test_a_key_beside_a_network_of_hops_means_the_only_hop_that_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    of_two_hops(monkeypatch)
    wifi, line = path_of("4g", 'rate = "3mbit"\nloss = "2%"')["hops"]
    assert (line["forward"]["rate_bps"], line["reverse"]["rate_bps"], wifi["forward"]["rate_bps"]) == (
        3_000_000,
    ) * 2 + (None,)
    assert (wifi["forward"]["loss"], line["forward"]["loss"]) == (0.02, 0.0)
    # A key of the study's own counts at all times.
    assert "changes" not in path_of("4g", 'loss = "2%"')
    named = path_of("4g", '[[path.hop]]\nname = "line"\nloss = "3%"\nforward.delay = "1ms"')["hops"]
    assert [hop["name"] for hop in named] == ["wifi", "line"]
    assert (named[1]["forward"]["loss"], named[1]["forward"]["delay_ns"], named[1]["reverse"]["delay_ns"]) == (
        0.03,
        1_000_000,
        9_000_000,
    )
    base = Study.from_toml(NETWORK.format('"4g"', ""), name="s")
    (cell,) = checked(base.with_overrides({"path.hop.line.queue": "7p", "path.rate": "2mbit"}))
    assert cell.parameters["path"]["hops"][1]["forward"]["queue"] == {"packets": 7}
    # Beside a network of one hop, each level with its own.
    one, two = checked(Study.from_toml(NETWORK.format('["lan", "4g"]', 'loss = "2%"'), name="s"))
    assert one.parameters["path"]["forward"]["loss"] == two.parameters["path"]["hops"][0]["forward"]["loss"] == 0.02


@pytest.mark.parametrize(
    ("more", "message", "hint"),
    [
        (
            'delay = "1ms"',
            "s:3: path.delay does not say which hop of 4g it is of",
            "write path.hop.wifi.delay or path.hop.line.delay",
        ),
        (
            'forward.jitter = "1ms"',
            "s:3: path.forward.jitter does not say which hop of 4g it is of",
            "write path.hop.wifi.forward.jitter or path.hop.line.forward.jitter",
        ),
        (
            '[[path.hop]]\nname = "vpn"\nloss = "1%"',
            "s:5: path.hop[1].loss: the network 4g has no hop vpn",
            "its hops: wifi, line",
        ),
    ],
)
def test_a_key_of_no_clear_hop_is_refused(monkeypatch: pytest.MonkeyPatch, more: str, message: str, hint: str) -> None:
    of_two_hops(monkeypatch)
    with pytest.raises(StudyError) as caught:
        Study.from_toml(NETWORK.format('"4g"', more), name="s")
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_network_of_hops_is_no_hop(monkeypatch: pytest.MonkeyPatch) -> None:
    of_two_hops(monkeypatch)
    with pytest.raises(StudyError, match=r"path\.hop\[1\]\.network: 4g has several hops, and cannot be one"):
        study('[[path.hop]]\nname = "air"\nnetwork = "4g"\n' + ECHO)


def test_the_keys_of_a_network_that_changes_are_a_study(monkeypatch: pytest.MonkeyPatch, crosswind: Crosswind) -> None:
    moving(monkeypatch)
    out = crosswind("networks", "4g")[1]
    (written,) = checked(study(out[out.index("[path]") :] + ECHO))
    named = path_of("4g")
    assert written.parameters["path"] == named | {"changes": [named["changes"][0] | {"name": "handover"}]}
    (listed,) = json.loads(crosswind("networks", "4g", "--json")[1])["networks"]
    assert listed["changes"] == [
        {"name": "handover", "keys": {"for": "1s", "every": "15s", "delay": "90ms", "reverse.loss": "5%"}}
    ]
    assert "a moving network; jitter 3ms, reverse.loss_burst 4, handover (for 1s, every 15s," in " ".join(
        crosswind("networks")[1].split()
    )


def test_a_note_says_key_by_key_what_was_applied_and_what_the_study_sets() -> None:
    assert note_of('"4g"') == (
        "Network 4g (a mobile network of the fourth generation) sets path.delay = 85ms, path.rate = 9mbit and "
        "path.queue = 112.5kB. Numbers: delay, rate: WebPageTest's 4G (wpt-4g); queue: a round number: what the link "
        "carries in 100 ms, and at least ten packets."
    )
    some = note_of('"4g"', 'rate = "1mbit"\nqueue = "9p"\nforward.delay = "1ms"')
    assert (
        " sets path.reverse.delay = 85ms; the study itself sets path.forward.delay, path.rate and path.queue. " in some
    )
    # The queue is the study's: where the network's is from is of no interest.
    assert "Numbers: delay, rate: " in some
    assert "round" not in some
    assert " path.delay = 0ms, path.rate = unlimited and path.loss = 10%. " in note_of('"thesis-lo"')


def test_a_note_tells_levels_apart_where_they_decide_what_has_an_effect() -> None:
    note = note_of('"4g"', 'rate = ["1mbit", "unlimited"]')
    assert (
        "sets path.delay = 85ms and path.queue = 112.5kB where path.rate = 1mbit; the study itself sets path.rate"
        in note
    )
    assert "sets path.delay = 85ms where path.rate = unlimited; the study itself sets path.rate" in note


def test_a_note_tells_parts_apart_that_set_different_keys() -> None:
    text = """
[path]
network = "lan"
[[part]]
name = "own"
path.delay = "1ms"
workload.kind = "echo"
[[part]]
name = "other"
workload.kind = "echo"
"""
    (note,) = study(text).network_notes
    assert "in own it sets path.rate = 100mbit and path.queue = 250kB; the study itself sets path.delay; " in note
    assert "in other it sets path.delay = 250us, path.rate = 100mbit and path.queue = 250kB. " in note


@pytest.mark.parametrize(
    ("network", "more", "message"),
    [
        ('"4g"', 'rate = "1mbit"\nqueue = "9p"\ndelay = "1ms"', "path.delay, path.rate, path.queue are set beside 4g"),
        # Without a rate a queue has no effect, so that nothing of the network is left.
        ('"4g"', 'rate = "unlimited"\ndelay = "1ms"', "path.delay, path.rate are set beside 4g"),
        ('["wifi-lossy", "lan"]', 'rate = "1mbit"\nqueue = "9p"\ndelay = "1ms"', "path.queue are set beside lan"),
        ('"localhost"', 'forward.rate = "1mbit"\nreverse.rate = "1mbit"\ndelay = "1ms"', "set beside localhost"),
    ],
)
def test_a_network_that_changes_nothing_is_refused(network: str, more: str, message: str) -> None:
    with pytest.raises(StudyError, match=f"^s:2: path.network changes nothing: .*{message}"):
        Study.from_toml(NETWORK.format(network, more), name="s")


def test_a_network_from_the_command_line_is_refused_in_its_words() -> None:
    with pytest.raises(StudyError, match=r"--set path.network=4g: path.network changes nothing"):
        load_study("queue-size").with_overrides({"path.network": "4g"})
    with pytest.raises(StudyError, match=r'--set path.network=5gg: "5gg" is no network') as caught:
        load_study("quickstart").with_overrides({"path.network": "5gg"})
    assert caught.value.hint == 'did you mean "5g"? (`crosswind networks` lists them)'


def test_networks_are_levels_of_a_factor() -> None:
    found = Study.from_toml(NETWORK.format('["localhost", "lan", "wan", "hsdpa+"]', ""), name="s")
    assert found.factors == {"path.network": ("localhost", "lan", "wan", "hsdpa+")}
    paths = [cell.parameters["path"] for cell in checked(found)]
    rtts = [path["forward"]["delay_ns"] + path["reverse"]["delay_ns"] for path in paths]
    assert rtts == [0, 500_000, 40_000_000, 70_000_000]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[path]\nnetwork = "chrome-slow-3g"', 'did you mean "chrome-slow-4g"? (`crosswind networks` lists them)'),
        ('[path]\nnetwork = "teleport"', "`crosswind networks` lists them"),
        ("[path]\nnetwork = 4", "`crosswind networks` lists them"),
        ("[path]\nnetwork = []", "a list is a factor and needs at least one level"),
    ],
)
def test_a_wrong_network_has_a_hint(text: str, hint: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(ECHO + text)
    assert caught.value.hint == hint


def test_a_key_outside_its_table_is_told_where_it_belongs() -> None:
    with pytest.raises(StudyError, match=r"my.toml:1: network: unknown key") as caught:
        study('network = "4g"\n' + ECHO)
    assert caught.value.hint == "network belongs under [path]"
    with pytest.raises(StudyError) as caught:
        study('[[part]]\nname = "x"\nsize = 1\n')
    assert caught.value.hint == "size belongs under [part.workload]"


def test_networks_are_listed_with_numbers(crosswind: Crosswind) -> None:
    status, out, _ = crosswind("networks")
    assert status == 0
    assert all(f"\n{name} " in out for name in NETWORKS)
    assert re.search(r"^cable +28ms +5mbit +1mbit +62.5kB / 15kB +a slow cable line$", out, re.MULTILINE)


def test_one_network_is_shown_with_its_sources_and_the_keys_of_a_study(crosswind: Crosswind) -> None:
    status, out, _ = crosswind("networks", "cable")
    assert status == 0
    assert "WebPageTest's Cable (wpt-cable)" in out
    keys = out[out.index("[path]") :]
    found = study(keys + ECHO)
    assert checked(found)[0].parameters["path"] == path_of("cable")
    status, out, err = crosswind("networks", "cabel")
    assert (status, out) == (2, "")
    assert err == 'error: there is no network "cabel"\nhint: did you mean "cable"? `crosswind networks` lists them\n'


def test_networks_as_json(crosswind: Crosswind) -> None:
    every = json.loads(crosswind("networks", "--json")[1])
    assert every["schema"] == "crosswind.networks/1"
    assert [network["name"] for network in every["networks"]] == list(NETWORKS)
    (lossy,) = json.loads(crosswind("networks", "wifi-lossy", "--json")[1])["networks"]
    direction = {"delay_ns": 10_000_000, "rate_bps": 10_000_000, "queue_bytes": 125_000, "loss": 0.02}
    assert lossy["forward"] == lossy["reverse"] == direction
    assert lossy["keys"] == {"delay": "10ms", "rate": "10mbit", "queue": "125kB", "loss": "2%"}
