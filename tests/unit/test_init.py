"""`crosswind init`: what it writes can be planned and run; four questions, or four options; nothing is overwritten."""

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from cells import checked
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.networks import NETWORKS
from crosswind.study.starter import starter, sureness_of
from crosswind.study.starter_answers import STARTERS, Answers, Factor, read_factor, read_networks, read_workload
from fixture_types import Crosswind

PAGE = """\
# A study: what is measured, over which network, what is compared, and how sure the answer is to be.
#     crosswind plan mine.toml           what it will run, and how long that takes
#     crosswind run mine.toml --quick    a first look
#     crosswind run mine.toml            the run, and its report
# Every value may be changed. A list is a factor: each of its levels is measured, and they are compared.

title = "Page loads over 4g and wifi: http2 or http3"

[path]
# A network with a name; `crosswind networks` lists them, with their numbers. A key beside it overrides it:
# loss = "1%" is that of each direction, delay = "20ms" is one way.
network = ["4g", "wifi"]

[workload]
# Pages, one after another, each on new connections.
kind = "page"
# How many in one repetition.
count = 3
# What is compared.
transport = ["http2", "http3"]

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

# How sure: the 95 % interval of the mean reaches at most so much of itself to either side.
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


@pytest.mark.parametrize(
    ("what", "compare", "asks", "yes"),
    [
        ("transfer", "reno,bbr", "Is the mean goodput higher with bbr than with reno", "more"),
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
    text = starter(Answers(what, ("4g",), read_factor(compare), repetitions=20))
    (question,) = Study.from_toml(text, name="study").findings["question"]
    assert (question.as_dict([])["asks"], question.yes) == (f"{asks}, by 1 % or more?", yes)


def test_where_nothing_is_compared_there_is_no_question() -> None:
    text = starter(Answers("echo", ("4g",), read_factor("nothing"), repetitions=20))
    assert Study.from_toml(text, name="study").findings["question"] == ()


@pytest.mark.parametrize("what", STARTERS)
def test_every_kind_over_every_network_can_be_run(what: str) -> None:
    for sure in ("5%", "20"):
        answers = Answers(what, tuple(NETWORKS), read_factor(STARTERS[what].compare), *sureness_of(sure, what))
        made = Study.from_toml(starter(answers), name="s")
        assert len(made) == 2 * len(NETWORKS)
        # A repetition on the slowest of them ends before its exchanges time out.
        for cell in checked(made):
            workload = cell.parameters["workload"]
            exchanges = workload.get("count") or workload["messages"]
            assert cell.forecast.duration_ns / exchanges < workload["timeout_ns"] / 2, cell.cell.levels
            assert cell.forecast.duration_ns < 600 * 10**9, cell.cell.levels


@pytest.mark.parametrize(
    ("text", "key", "levels"),
    [
        ("tcp,quic", "workload.transport", ("tcp", "quic")),
        (" http2 , http3 ", "workload.transport", ("http2", "http3")),
        ("wifi,4g", "path.network", ("wifi", "4g")),
        ("wifi", "path.network", ("wifi",)),
        ("cubic,bbr", "host.congestion_control", ("cubic", "bbr")),
        ("0%,2%,5%", "path.loss", ("0%", "2%", "5%")),
        ("10ms,0.1s", "path.delay", ("10ms", "0.1s")),
        ("1kB,64KiB", "workload.size", ("1kB", "64KiB")),
        ("path.rate=5mbit,20mbit", "path.rate", ("5mbit", "20mbit")),
        ("loss = 0%,1%", "path.loss", ("0%", "1%")),
        ("connection=new,kept", "workload.connection", ("new", "kept")),
        ("nothing", "", ()),
        ("", "", ()),
    ],
)
def test_levels_say_by_themselves_what_is_compared(text: str, key: str, levels: tuple[str, ...]) -> None:
    assert read_factor(text) == Factor(key, levels)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--compare", "wifi"), 'network = ["4g", "wifi"]'),
        (("--compare", "4g,wifi"), 'network = ["4g", "wifi"]'),
        (("--compare", "cubic,bbr"), 'congestion_control = ["cubic", "bbr"]'),
        (("--compare", "0%,2%"), 'loss = ["0%", "2%"]'),
        (("--compare", "messages=10,100"), "messages = [10, 100]"),
        (("--compare", "nothing"), 'transport = "tcp"'),
        (("--sure", "2ms"), 'target = "2ms"'),
        (("--precision", "2 %"), 'target = "2 %"'),
        (("--sure", "30"), "repetitions = 30"),
        (("--network", "wpt-2g,lan"), 'network = ["wpt-2g", "lan"]'),
    ],
)
def test_an_answer_is_a_line_of_the_study(crosswind: Crosswind, arguments: tuple[str, str], line: str) -> None:
    given = {"--what": "echo", "--network": "4g", "--compare": "tcp,quic", "--sure": "5%"}
    given["--sure" if arguments[0] == "--precision" else arguments[0]] = arguments[1]
    words = [word for option, value in given.items() for word in (option, value)]
    status, out, err = crosswind("init", "-", *words)
    assert (status, err) == (0, "")
    assert line in out.splitlines()
    checked(Study.from_toml(out, name="s"))


def test_a_transfer_over_a_slow_network_is_smaller_and_may_take_longer() -> None:
    fast = starter(Answers("transfer", ("lan",), Factor(), repetitions=1))
    assert 'size = "1MB"\n' in fast
    assert "timeout" not in fast
    slow = starter(Answers("transfer", ("lan", "firefox-gprs"), Factor(), repetitions=1))
    assert 'size = "10kB"\n' in slow
    page = starter(Answers("page", ("firefox-gprs",), Factor(), repetitions=1))
    assert 'timeout = "30m"\n' in page
    assert "count = 1\n" in page


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"--what": "echoo"}, '"echoo" is not a kind of workload', 'did you mean "echo"?'),
        ({"--what": "program"}, "program: docs/study.md describes studies of your own programs", "one of echo"),
        ({"--network": "5gg"}, 'there is no network "5gg"', 'did you mean "5g"? `crosswind networks` lists them'),
        ({"--network": "4g,"}, '"4g,": a name is empty', "one comma between"),
        ({"--compare": "tcp,wifi"}, 'it is not clear what "tcp,wifi" is', "KEY=LEVELS"),
        ({"--compare": "tcp"}, "workload.transport = tcp: one level compares nothing", "name two or more"),
        ({"--compare": "rate=1,2"}, '"rate" may be path.rate or workload.rate', "in full"),
        ({"--compare": "los=0%,1%"}, 'there is no key "los"', 'did you mean "loss"?'),
        ({"--compare": "loss=0%,101%"}, 'path.loss: "101%" is more than 100%', "from 0% to 100%"),
        (
            {"--compare": "udp,tcp", "--what": "page"},
            "workload page does not run over udp",
            "transports that it runs over",
        ),
        ({"--compare": "streams=1,2"}, "error: workload.streams: workload echo does not take streams", "echo takes"),
        ({"--sure": "very"}, '"very" is not a precision', "a number of repetitions"),
        ({"--compare": "8B,100kB", "--what": "multiplex"}, "workload.size", "at most 1kB"),
        ({"--sure": "0"}, "0 is not a number of repetitions", "from 1"),
        ({"--sure": "5 parsec"}, '"5 parsec"', "a number of repetitions"),
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
    assert '"pages" is not a kind of workload (did you mean "page"?)' in err
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


def test_the_parts_of_an_answer() -> None:
    assert read_workload("echo") == "echo"
    assert read_networks("4g, wifi,4g") == ("4g", "wifi")
    assert sureness_of(" 12 ", "echo") == ("", 12)
    with pytest.raises(StudyError, match="is not a precision"):
        sureness_of("5kbit/s", "echo")


def test_loss_stands_beside_what_is_compared(crosswind: Crosswind) -> None:
    words = ("init", "-", "--what", "echo", "--network", "lan", "--compare", "tcp,quic", "--sure", "10")
    status, out, _ = crosswind(*words, "--loss", "0%,2%")
    assert status == 0
    assert '\nloss = ["0%", "2%"]\n' in out
    study = Study.from_toml(out, name="study", file="-")
    cells = {(cell.levels["workload.transport"], cell.levels["path.loss"]) for cell in study.cells()}
    assert cells == {(transport, loss) for transport in ("tcp", "quic") for loss in ("0%", "2%")}
    assert crosswind(*words[:-3], "0%,1%", *words[-2:], "--loss", "0%,2%")[2] == (
        "error: loss is compared already: 0%, 1%\nhint: leave --loss away\n"
    )


def test_a_study_on_standard_output_names_a_file_in_its_comments(crosswind: Crosswind) -> None:
    _, out, _ = crosswind("init", "-", "--what", "echo", "--network", "lan", "--compare", "tcp,quic", "--sure", "10")
    assert "\n#     crosswind plan study.toml " in out
    assert " - " not in out
