"""Networks of one's own, in a file: what a study makes of them and keeps, and what is refused with which line."""

import tomllib
from pathlib import Path

import pytest

from cells import checked
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.files import load_study
from crosswind.study.keys import SETTINGS
from crosswind.study.networks import FOLDER, NETWORKS
from crosswind.study.resolve import network_named
from crosswind.study.toml_text import write_toml
from fixture_types import Crosswind
from study_texts import ECHO, study

OFFICE = """
[network.office]
what = "the office's line"
path.delay = "8ms"
path.forward.rate = "2mbit"
path.reverse.rate = "16mbit"
[[network.office.source]]
of = "delay"
text = "pings of a week"
[[source]]
of = "rate"
text = "the contract"
"""
TWO = """
[network.home]
[[network.home.path.hop]]
name = "wifi"
delay = "2ms"
loss = "1%"
[[network.home.path.hop]]
name = "line"
rate = "5mbit"
[[network.home.path.at]]
name = "radio"
hop = "wifi"
trace = "radio.csv"
[network.lab]
path.delay = "1ms"
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nets").mkdir()
    for name, text in {"office.toml": OFFICE, "two.toml": TWO, "radio.csv": "0,5\n1,6\n"}.items():
        Path("nets", name).write_text(text, encoding="utf-8")


def test_a_study_keeps_what_the_file_says() -> None:
    text = '[path]\nnetwork = ["4g", { file = "office.toml" }, "file=two.toml name=lab"]\n'
    Path("nets", "s.toml").write_text(text + ECHO + '[quick]\n"path.network" = { file = "office.toml" }\n')
    of = load_study("nets/s.toml")
    assert of.factors == {"path.network": ("4g", "office", "lab")}
    before = [cell.parameters["path"] for cell in checked(of)]
    assert before[1]["forward"]["rate_bps"], before[1]["reverse"]["rate_bps"] == (2_000_000, 16_000_000)
    note = of.network_notes[1]
    assert note.startswith("Network office (the office's line) sets path.delay = 8ms, path.forward.rate = 2mbit and")
    assert note.endswith("Numbers: delay: pings of a week; rate: the contract.")
    Path("nets", "office.toml").unlink()
    for again in (Study.from_canonical(of.canonical()), Study.from_toml(of.to_toml(), name="again")):
        assert [cell.parameters["path"] for cell in checked(again)] == before
        assert again.digest() == of.digest()
        assert [cell.parameters["path"] for cell in checked(again.quick())] == before[1:2]


def test_hops_changes_and_traces_are_those_of_the_file() -> None:
    flags = {"path.network": "--network"}
    options = {"workload.transport": "tcp", "path.network": "file=nets/two.toml name=home", "path.hop.wifi.loss": "3%"}
    (cell,) = checked(Study.adhoc("echo", options, flags=flags))
    path = cell.parameters["path"]
    assert [(hop["name"], hop["forward"].get("loss")) for hop in path["hops"]] == [("wifi", 0.03), ("line", 0.0)]
    (change,) = path["changes"]
    assert (change["hop"], change["trace"]) == ("wifi", str(Path("nets/radio.csv").absolute()))


def test_a_shipped_file_with_other_names_is_such_a_file() -> None:
    for file in sorted(FOLDER.glob("*.toml")):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        renamed = {f"my-{name}": table for name, table in document["network"].items()}
        Path("copy.toml").write_text(write_toml({**document, "network": renamed}), encoding="utf-8")
        for name in renamed:
            value = SETTINGS["path.network"].type.level({"file": "copy.toml", "name": name}).value
            own, of_crosswind = network_named(value), NETWORKS[name.removeprefix("my-")]
            assert (own.name, own.what, own.keys) == (name, of_crosswind.what, of_crosswind.keys)
            assert [change.keys for change in own.changes] == [change.keys for change in of_crosswind.changes]
            assert {key: own.source([key]) for key in own.settings} == {
                key: of_crosswind.source([key]) for key in of_crosswind.settings
            }


def test_the_command_line_takes_one_wherever_it_takes_a_network(crosswind: Crosswind) -> None:
    Path("nets").mkdir()
    Path("nets", "office.toml").write_text(OFFICE, encoding="utf-8")
    status, out, _ = crosswind("networks", "file=nets/office.toml")
    assert (status, 'forward.rate = "2mbit"' in out) == (0, True)
    answers = ("--what", "echo", "--compare", "tcp,udp", "--sure", "3")
    assert crosswind("init", "nets/s.toml", "--network", "file=nets/office.toml", *answers)[0] == 0
    written = Path("nets/s.toml").read_text(encoding="utf-8")
    assert 'network = "file=office.toml"' in written
    status, out, _ = crosswind("plan", "nets/s.toml")
    assert (status, out.splitlines()[0]) == (0, "Round-trip time over office: tcp and udp")
    # Its own question compares them by their names.
    status, out, _ = crosswind("plan", "echo", "--network", "lan,file=nets/office.toml")
    assert (status, "factor   path.network = lan, office" in out) == (0, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", ":1: not TOML: "),
        ("", ": is empty"),
        ("# nothing\n", ": there is no network in it"),
        ("[network]\nx = 5", ":2: 5 is not a table"),
        ('path.delay = "5ms"', ':1: "path" is no table of a file of networks'),
        ('[network.x]\npath.delai = "5ms"', ":2: delai: there is no such key of a network"),
        ('[network.x]\ndelay = "5ms"', ':2: "delay" is no key of a network'),
        ("[network.x]\npath.delay = 5", ":2: delay: 5 has no unit"),
        ('[network.x]\npath.delay = ["5ms", "6ms"]', ':2: delay: ["5ms", "6ms"] is a list'),
        ('[network.x]\npath.network = { file = "y" }', ":2: a network is made of keys, not of another network"),
        ('[network.x]\npath.family = "ipv6"', ":2: family: there is no such key of a network"),
        ("[network.x]\npath = 5", ":2: the network sets no key of a path"),
        ('[network.x]\npath.forward = "1ms"', ':2: "1ms" is not a table'),
        ('[network.4g]\npath.delay = "1ms"', ":1: 4g is a network of Crosswind's own"),
        ('[network."a b"]\npath.delay = "1ms"', ':1: "a b" cannot be the name of a network'),
        ('[network.x]\npath.delay = "1ms"\nsource = 5', ":3: 5 is no list of tables"),
        ('[network.x]\npath.delay = "1ms"\n[[network.x.source]]\nof = "delay"', ":3: text of a source is not"),
        ('[network.x]\n[[network.x.path.hop]]\nname = "a"\nnetwork = "4g"', ":4: a network is made of keys"),
        ('[network.x]\n[[network.x.path.hop]]\nname = "A"\ndelay = "1ms"', ':3: "A" cannot be the name of a hop'),
        ('[network.x]\n[[network.x.path.at]]\nhop = "q"\nloss = "1%"', ':3: there is no hop "q"'),
        ('[network.x]\nwhat = "a\\u202eb"\npath.delay = "1ms"', ":2: "),
    ],
)
def test_what_is_no_network_is_refused_with_its_line(text: str, message: str) -> None:
    Path("bad.toml").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        study(f'[path]\nnetwork = {{ file = "bad.toml" }}\n{ECHO}')
    assert caught.value.message.startswith(f"my.toml:2: path.network: bad.toml{message}"), caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ('{ file = "none.toml" }', "none.toml: cannot be read: No such file"),
        ('{ file = "nets" }', "nets: is a directory"),
        ('{ file = "/dev/null" }', "/dev/null: cannot be read: it is not a regular file"),
        ("{ file = 5 }", "5 is not the path of a file"),
        ('{ file = "nets/two.toml" }', "nets/two.toml: it has several networks: home, lab"),
        ('{ file = "nets/two.toml", name = "x" }', 'nets/two.toml: there is no network "x" in it'),
        ('{ file = "nets/office.toml", loss = "1%" }', '"loss" does not go with the file of a network'),
        ('{ name = "x", path = {} }', "path: the network sets no key of a path"),
        (
            '[{ file = "nets/office.toml" }, { name = "office", path = { loss = "1%" } }]',
            'the list has two levels that are called "office"',
        ),
    ],
)
def test_what_names_no_file_of_a_network_is_refused(network: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(f"[path]\nnetwork = {network}\n{ECHO}")
    assert caught.value.message.startswith(f"my.toml:2: path.network: {message}"), caught.value.message
    assert caught.value.hint
