"""`crosswind init`: what it writes can be planned and run; four questions, or four options; nothing is overwritten."""

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from cells import checked
from crosswind.study.design import Study
from crosswind.study.networks import NETWORKS
from crosswind.study.starter import STARTERS, starter
from fixture_types import Crosswind

PAGE = """\
# A study: what is measured, over which network, what is compared, and how sure the answer is to be.
#     crosswind plan mine.toml           what it will run, and how long that takes
#     crosswind run mine.toml --quick    a first look
#     crosswind run mine.toml            the run, and its report
# Every value may be changed. A list is a factor: each of its levels is measured, and they are compared.

title = "Page load time over {path.network}: {workload.transport}"

[path]
# A network with a name; `crosswind networks` lists them, with their numbers. A key beside it overrides it:
# loss = "1%" is that of each direction, delay = "20ms" is one way.
network = ["4g", "wifi"]

[workload]
# A kind of workload: what is asked of the transport.
kind = "page"
# How messages are carried; a list compares them.
transport = ["http2", "http3"]
# How many in one repetition.
count = 3
# How long one may take: long enough for a slow network.
timeout = "10m"

[host]
# Virtual time takes no privileges and repeats exactly; processor time is measured on the real clock alone.
# clock = "virtual"

[study]
# Each cell is run until its interval is as narrow as asked below, but no more often than this.
repetitions_max = 100
seed = 1

# What the run is for: its report opens with the answer. The first level is what others are compared with.
[[question]]
asks = "Is the mean page load time shorter with http3 than with http2, by 1 % or more?"
metric = "page_load"
factor = "workload.transport"
compare = ["http2", "http3"]
# A smaller difference is a no.
margin = "1%"

# How sure: the 95 % interval of the mean reaches at most so far to either side.
[[precision]]
target = "5%"
"""

FOUR = ("--what", "page", "--network", "4g,wifi", "--compare", "http2,http3", "--sure", "5%")


def test_the_study_is_commented_and_complete(crosswind: Crosswind) -> None:
    status, out, err = crosswind("init", "mine.toml", *FOUR)
    assert (status, out) == (0, "")
    assert Path("mine.toml").read_text(encoding="utf-8") == PAGE
    assert err.startswith("wrote mine.toml: 4 cells\nhint: crosswind plan mine.toml ")
    assert crosswind("plan", "mine.toml")[0] == 0
    assert crosswind("plan", "mine.toml", "--quick")[0] == 0


def made(**answers: str) -> Study:
    """The study of some answers, as its text has it."""
    return Study.from_toml(starter(answers)[1], name="study")


@pytest.mark.parametrize(
    ("what", "compare", "asks", "yes"),
    [
        ("transfer", "reno,bbr", "Is the mean time with connection set-up shorter with bbr than with reno", "less"),
        ("echo", "tcp,quic,udp", "Is the mean round-trip time shorter with quic or udp than with tcp", "less"),
        ("echo", "host.sack=true,false", "Is the mean round-trip time shorter with sack false than with sack true",
         "less"),
        ("page", "0%,2%", "Does the mean page load time differ between loss 0% and loss 2%", "different"),
        ("echo", "lan,wifi", "Does the mean round-trip time differ between 4g and lan or wifi", "different"),
        ("echo", "path.forward.lose=0,0 3", "Does the mean round-trip time differ between lose 0 and lose 0 3",
         "different"),
    ],
)  # fmt: skip
def test_what_is_compared_is_a_question(what: str, compare: str, asks: str, yes: str) -> None:
    (question,) = made(what=what, compare=compare, sure="20").findings["question"]
    assert (question.as_dict([])["asks"], question.yes) == (f"{asks}, by 1 % or more?", yes)


@pytest.mark.parametrize("what", STARTERS)
def test_every_kind_over_every_network_can_be_run(what: str) -> None:
    study = made(what=what, network=",".join(NETWORKS))
    assert (len(study), [text.text for text in study.precisions]) == (2 * len(NETWORKS), ["5%"])
    # A repetition on the slowest of them ends before its exchanges time out.
    for cell in checked(study):
        workload = cell.parameters["workload"]
        exchanges = workload.get("count") or workload["messages"]
        assert cell.forecast.duration_ns / exchanges < workload["timeout_ns"] / 2, cell.cell.levels
        assert cell.forecast.duration_ns < 600 * 10**9, cell.cell.levels


@pytest.mark.parametrize(
    ("compare", "key", "levels"),
    [
        (" tcp , quic ", "workload.transport", ("tcp", "quic")),
        ("wifi,lan", "path.network", ("4g", "wifi", "lan")),
        ("4g,wifi", "path.network", ("4g", "wifi")),
        ("wifi", "path.network", ("4g", "wifi")),
        ("cubic,bbr", "host.congestion_control", ("cubic", "bbr")),
        ("0%,2%,5%", "path.loss", ("0%", "2%", "5%")),
        ("10ms,0.1s", "path.delay", ("10ms", "0.1s")),
        ("1kB,2KiB", "workload.size", ("1kB", "2KiB")),
        ("path.rate=5mbit,20mbit", "path.rate", ("5mbit", "20mbit")),
        ("loss = 0%,1%", "path.loss", ("0%", "1%")),
        ("connection=new,kept", "workload.connection", ("new", "kept")),
        ("messages=10,100", "workload.messages", ("10", "100")),
        ("path.hop.wifi.loss=0%,1%", "path.hop.wifi.loss", ("0%", "1%")),
    ],
)
def test_levels_say_by_themselves_what_is_compared(compare: str, key: str, levels: tuple[str, ...]) -> None:
    network = "wifi-fibre" if "hop" in key else "4g"
    study = made(what="echo", network=network, compare=compare, sure="20")
    assert study.factors == {key: levels}
    checked(study)


def test_nothing_compared_is_one_cell_without_a_question() -> None:
    for compare in ("nothing", ""):
        study = made(what="echo", compare=compare, sure="2 ms")
        assert (len(study), study.findings["question"], study.precisions[0].text) == (1, (), "2 ms")


def test_a_network_of_a_file_is_named_beside_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my study.toml").write_text('[network.office]\nwhat = "office"\npath.delay = "5ms"\n', encoding="utf-8")
    (tmp_path / "studies").mkdir()
    study, text = starter({"network": "lan, file='my study.toml'", "compare": "lan"}, file="studies/mine.toml")
    assert study.factors["path.network"] == ("lan", "office")
    assert """network = ["lan", "file='../my study.toml'"]""" in text
    assert Study.from_toml(text, name="mine", file="studies/mine.toml").factors == study.factors


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"--what": "echoo"}, "--what echoo: no kind of workload to begin with", 'did you mean "echo"?'),
        ({"--what": "program"}, "--what program: no kind of workload to begin with", "known: echo, "),
        ({"--network": "5gg"}, '--network 5gg: "5gg" is no network', "`crosswind networks` lists them"),
        ({"--network": "4g,"}, '--network 4g,: "" is no network', "`crosswind networks` lists them"),
        ({"--network": "file=no.toml"}, "--network file=no.toml: no.toml: cannot be read", "a file with"),
        ({"--network": "file=\udcff.toml"}, "--network: has the hidden character", "remove it"),
        ({"--compare": "tcp,wifi"}, "--compare tcp,wifi: it is not clear what that is", "KEY=LEVELS"),
        ({"--compare": "tcp"}, "--compare tcp: one level compares nothing", "name two or more"),
        ({"--compare": "4g"}, "--compare 4g: one level compares nothing", "name two or more"),
        ({"--compare": "tcp,tcp"}, '--compare tcp,tcp: the list has "tcp" twice', "must differ"),
        ({"--compare": "rate=1,2"}, '"rate" may be path.rate or workload.rate', "in full"),
        ({"--compare": "los=0%,1%"}, '--compare los=0%,1%: there is no key "los"', 'did you mean "loss"?'),
        ({"--compare": "loss=0%,101%"}, '--compare 0%,101%: "101%" is more than 100%', "from 0% to 100%"),
        ({"--compare": "udp,tcp", "--what": "page"}, "--compare udp,tcp: ", "transports that can"),
        ({"--compare": "streams=1,2"}, "--compare 1,2: workload echo does not take", "echo takes"),
        ({"--compare": "8B,100kB", "--what": "multiplex"}, "--compare 8B,100kB: workload.size", "from 8B to 1kB"),
        ({"--sure": "very"}, '--sure very: target: "very" is not a precision', "half the width"),
        ({"--sure": "0"}, "--sure 0: 0 is wrong", "greater than"),
        ({"--loss": "1%,x"}, '--loss 1%,x: "x"', "%"),
        ({"--loss": "0%", "--compare": "0%,1%"}, "--loss 0%: loss is compared already", "leave --loss away"),
    ],
)
def test_a_wrong_answer_writes_nothing(
    crosswind: Crosswind, arguments: dict[str, str], message: str, hint: str
) -> None:
    given = {"--what": "echo", "--network": "4g", "--compare": "tcp,quic", "--sure": "5%", **arguments}
    words = [word for option, value in given.items() for word in (option, value)]
    status, out, err = crosswind("init", "s.toml", *words)
    assert (status, out) == (2, "")
    first, second = err.splitlines()
    assert message in first
    assert hint in second
    assert not Path("s.toml").exists()


def test_nothing_is_overwritten_unless_asked(crosswind: Crosswind) -> None:
    Path("study.toml").write_text("mine", encoding="utf-8")
    status, _, err = crosswind("init", *FOUR)
    assert (status, Path("study.toml").read_text(encoding="utf-8")) == (2, "mine")
    assert err == "error: study.toml is there already\nhint: name another file, or replace it with --force\n"
    assert crosswind("init", *FOUR, "--force")[0] == 0
    assert Path("study.toml").read_text(encoding="utf-8") == PAGE.replace("mine.toml", "study.toml")
    assert crosswind("init", ".", *FOUR)[2].startswith("error: . is a directory\n")
    assert crosswind("init", "no/where.toml", *FOUR)[2].startswith("error: there is no directory no\n")


def on_terminal(monkeypatch: pytest.MonkeyPatch, answers: str) -> None:
    """Somebody sits at standard input and types."""
    typed = TextIOWrapper(BytesIO(answers.encode()))
    monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", typed)


def test_without_a_terminal_it_says_which_options_are_missing(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"page\n")))
    status, out, err = crosswind("init", "--what", "page", "--sure", "5%")
    assert (status, out) == (2, "")
    assert err == (
        "error: --network, --compare: missing, and there is no terminal to ask on\n"
        "hint: add --network 4g --compare http2,http3\n"
    )
    assert not Path("study.toml").exists()
    assert crosswind("init", *FOUR)[0] == 0


def test_on_a_terminal_it_asks_again_until_it_understands(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch, "pages\npage\n4g,wifi\nhttp2\nhttp2,http3\n5%\n")
    status, out, err = crosswind("init", "mine.toml")
    assert status == 0
    assert Path("mine.toml").read_text(encoding="utf-8") == PAGE
    assert err.count("What is measured?") == 2
    assert '--what pages: no kind of workload to begin with (did you mean "page"?)' in err
    assert "one level compares nothing (name two or more)" in err
    assert out == ""


def test_an_empty_answer_is_the_usual_one_and_options_are_not_asked_for(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch, "\n\n")
    assert crosswind("init", "a.toml", "--network", "lan", "--sure", "3")[0] == 0
    made = Study.from_toml(Path("a.toml").read_text(encoding="utf-8"), name="a")
    assert made.factors == {"workload.transport": ("tcp", "quic")}
    assert made.repetitions == 3
    on_terminal(monkeypatch, "echo\n")
    assert crosswind("init", "b.toml")[0] == 130
    assert not Path("b.toml").exists()


def test_loss_stands_beside_what_is_compared(crosswind: Crosswind) -> None:
    words = ("init", "-", "--what", "echo", "--network", "lan", "--compare", "tcp,quic", "--sure", "10")
    status, out, _ = crosswind(*words, "--loss", "0%,2%")
    assert status == 0
    assert '\nloss = ["0%", "2%"]\n' in out
    study = Study.from_toml(out, name="study", file="-")
    cells = {(cell.levels["workload.transport"], cell.levels["path.loss"]) for cell in study.cells()}
    assert cells == {(transport, loss) for transport in ("tcp", "quic") for loss in ("0%", "2%")}


def test_a_study_on_standard_output_names_a_file_in_its_comments(crosswind: Crosswind) -> None:
    words = ("--what", "echo", "--network", "lan", "--compare", "nothing", "--precision", "10")
    status, out, err = crosswind("init", "-", *words)
    assert (status, err) == (0, "")
    assert {'transport = "tcp"', "repetitions = 10"} <= set(out.splitlines())
    assert "\n#     crosswind plan study.toml " in out
    assert " - " not in out
