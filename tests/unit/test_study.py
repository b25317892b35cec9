"""Study files: what is read, and what every mistake is told."""

import json
from pathlib import Path

import pytest

from crosswind.errors import StudyError
from crosswind.study import Study, builtin_studies, decode, load_study

ECHO = '[workload]\nkind = "echo"\n'
ISSUE_EXAMPLE = """
title = "TCP and UDP echo on a lossy path"
[path]
delay = "10ms"                  # each way
loss = ["0%", "5%"]             # in each direction
rate = "100mbit"
queue = "100p"                  # packets; or "64kB"
family = "ipv4"
mtu = 1500
[host]
profile = "linux"
congestion_control = "cubic"
[workload]
kind = "echo"
transport = ["tcp", "udp"]
size = [1, 1000]
messages = 500
connections = 1
[study]
repetitions = 3
seed = 1
"""
PARTS = """
[path]
loss = ["0%", "5%"]
[path.forward]
delay = "3ms"
[workload]
messages = 7
[[part]]
name = "small"
[part.workload]
kind = "echo"
size = 1
[[part]]
name = "bulk"
[part.path]
delay = "1ms"
[part.workload]
kind = "transfer"
size = ["1kB", "1MB"]
"""


def study(text: str) -> Study:
    return Study.from_toml(text, name="my", file="my.toml")


def test_a_list_is_a_factor() -> None:
    read = study(ISSUE_EXAMPLE)
    assert read.factors == {
        "path.loss": ("0%", "5%"),
        "workload.transport": ("tcp", "udp"),
        "workload.size": ("1", "1000"),
    }
    assert len(read) == 8
    assert (read.title, read.repetitions, read.seed) == ("TCP and UDP echo on a lossy path", 3, 1)
    first, *_, last = read.cells()
    assert first.levels == {"path.loss": "0%", "workload.transport": "tcp", "workload.size": "1"}
    assert last.levels == {"path.loss": "5%", "workload.transport": "udp", "workload.size": "1000"}
    assert last.index == 7
    assert float(last.parameters.path.forward.loss) == 0.05
    assert last.parameters.path.rtt_ns == 20_000_000
    assert last.parameters.workload.timeout_ns == 1_080_000_000


def test_parts_expand_on_their_own() -> None:
    read = study(PARTS)
    assert read.factors == {
        "part": ("small", "bulk"),
        "path.loss": ("0%", "5%"),
        "workload.size": ("1kB", "1MB"),
    }
    cells = list(read.cells())
    assert [cell.levels for cell in cells[:3]] == [
        {"part": "small", "path.loss": "0%"},
        {"part": "small", "path.loss": "5%"},
        {"part": "bulk", "path.loss": "0%", "workload.size": "1kB"},
    ]
    assert cells[0].parameters.path.forward.delay_ns == 3_000_000
    assert cells[0].parameters.path.reverse.delay_ns == 0
    # The part's delay means both directions, whatever the study says of one.
    assert cells[2].parameters.path.forward.delay_ns == cells[2].parameters.path.reverse.delay_ns == 1_000_000
    assert cells[0].parameters.workload.messages == 7
    assert cells[2].parameters.workload.messages is None


def test_a_list_of_argument_lists_is_a_factor() -> None:
    read = study('[workload]\nkind = "program"\nclient = [["ping", "{server}"], ["true"]]\nserver = ["sleep", "9"]\n')
    assert read.factors == {"workload.client": ("ping '{server}'", "true")}
    assert [cell.parameters.workload.client for cell in read.cells()] == [("ping", "{server}"), ("true",)]
    assert next(read.cells()).parameters.workload.server == ("sleep", "9")


MISTAKES = [
    ('[path]\nloss = ["0%", "101%"]', '4: path.loss: "101%" is more than 100%', "from 0% to 100%"),
    ('[path]\nloss = "-1%"', '4: path.loss: "-1%" is negative', "from 0% to 100%"),
    ('[path]\ndelay = "-5ms"', '4: path.delay: "-5ms" is negative', "as 50ms"),
    ('[path]\ndelay = "1h"', '4: path.delay: "1h" is too much', "at most 600s"),
    ("[path]\nrate = 0", "4: path.rate: a rate of 0 lets nothing through", "as 10mbit"),
    ('[path]\nrate = "100 mbps"', '4: path.rate: "100 mbps": "mbps" is not a unit here', 'did you mean "100mbit"?'),
    ("[path]\nmtu = 575", "4: path.mtu: 575 is less than it can be", "from 576 to 65535"),
    ("[path]\nmtu = 65536", "4: path.mtu: 65536 is more than it can be", "from 576 to 65535"),
    ('[path]\nmtu = 1279\nfamily = "ipv6"', "4: path.mtu: an MTU of 1279 is too little for IPv6", "1280"),
    ('[path]\nfamily = "ipv5"', '4: path.family: "ipv5" is not one of ipv4, ipv6', "did you mean"),
    ('[path]\nqueue = "100p"', "4: path.queue has no effect: the link has no rate", "rate"),
    (
        '[path]\nbackend = "direct"\nloss = "1%"',
        '5: the direct backend has no emulator, so path.loss cannot be "1%"',
        "remove loss",
    ),
    (
        '[path]\nloss = "1%"\n[path.forward]\nloss = "1%"\n[path.reverse]\nloss = "2%"',
        "4: path.loss has no effect",
        "remove path.loss",
    ),
    ("sise = 1", "3: workload.sise: unknown key", 'did you mean "size"?'),
    ('[paht]\nloss = "1%"', "3: paht: unknown table", 'did you mean "path"?'),
    ("size = 0", "3: workload.size: 0 is too little", "at least 1B"),
    ("size = []", "3: workload.size: the list is empty", "at least one level"),
    ("size = [1, 1]", '3: workload.size: the list has "1" twice', "must differ"),
    ('size = [1, "1B"]', '3: workload.size: the list has "1B" and "1", which is the same', "must differ"),
    ("size = [\n  1,\n  -1\n]", "3: workload.size: -1 is negative", "a size is"),
    ('transport = "udp"\nsize = 65508', "4: workload.size: 65508 bytes do not fit into a UDP datagram", "65507"),
    (
        'transport = "udp"\nsize = 65528\n[path]\nfamily = "ipv6"',
        "4: workload.size: 65528 bytes do not fit into a UDP datagram",
        "65527",
    ),
    ("messages = true", "3: workload.messages: true is not a whole number", "a count is"),
    ("count = 3", "3: workload.count: workload echo does not take count", "echo takes connection"),
    ('mode = "open"', "3: workload.mode: an open loop needs workload.rate", "rate = 100"),
    (
        'mode = "open"\nrate = 5\nconnection = "new"',
        "5: workload.connection: an open loop keeps its connections",
        "closed",
    ),
    ('size = "2GiB"', "3: workload.size: an echo of 2147483648 bytes is too large", "1GiB"),
    ("rate = 5", "3: workload.rate has no effect in a closed loop", 'mode = "open"'),
    ("[study]\nrepetitions = 0", "4: study.repetitions: 0 is wrong", "greater than or equal to 1"),
    ('[study]\nseed = "x"', '4: study.seed: "x" is wrong', "whole number"),
    ('[[part]]\nname = "a"\n[[part]]\nname = "a"', '6: part.a.name: two parts are named "a"', "of its own"),
    ('[[part]]\nname = "A b"', '4: part."A b".name: "A b" is wrong', "lower-case"),
    ("[[part]]\n[part.path]", "3: part[1].name: is missing", "name ="),
    ('[[part]]\nname = "x"\n[part.workload]\nsise = 1', "6: part.x.workload.sise: unknown key", 'did you mean "size"?'),
    ('[quick]\n"path.los" = "1%"', '4: quick "path.los": there is no key "path.los"', 'did you mean "path.loss"?'),
    ('[quick]\n"path.loss" = "200%"', '4: quick "path.loss": path.loss: "200%" is more than 100%', "100%"),
    ('x = = "', "3: not TOML: Invalid value", "a line is"),
    (
        '[[published]]\nsource = "s"\nmetric = "rt"\nunit = "ms"\nmean = 1',
        '5: published[1].metric: "rt" is not a metric',
        'did you mean "rtt"?',
    ),
    (
        '[[published]]\nsource = "s"\nmetric = "rtt"\nunit = "bit/s"\nmean = 1',
        '6: published[1].unit: "bit/s" is not a unit of rtt',
        "ns, us, ms, s",
    ),
    (
        '[[published]]\nsource = "s"\nmetric = "rtt"\nunit = "ms"\nmean = 1\nlevels = { "path.dely" = "1ms" }',
        '8: published[1].levels."path.dely": there is no key "path.dely"',
        'did you mean "path.delay"?',
    ),
]


@pytest.mark.parametrize(("more", "message", "hint"), MISTAKES)
def test_a_mistake_names_file_line_key_and_value(more: str, message: str, hint: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(ECHO + more + "\n")
    assert caught.value.message.startswith(f"my.toml:{message}")
    assert hint in (caught.value.hint or "")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "my.toml: no workload.kind is set"),
        ('[workload]\nkind = ["echo", "connect"]', 'my.toml:2: workload.kind: ["echo", "connect"] is a list'),
        (
            '[workload]\nkind = "transfer"',
            "my.toml:2: workload.kind: workload transfer: neither size nor duration is set",
        ),
        (
            '[workload]\nkind = "transfer"\nsize = 1\nduration = "1s"',
            "my.toml:2: workload.kind: workload transfer: both size and duration are set",
        ),
        (
            '[workload]\nkind = "transfer"\nsize = 1\ntransport = ["tcp", "udp"]',
            "my.toml:4: workload.transport: workload transfer needs tcp, not udp",
        ),
        (
            '[workload]\nkind = "connect"\ntransport = "udp"',
            "my.toml:3: workload.transport: workload connect needs tcp",
        ),
        ('[workload]\nkind = "program"', "my.toml:2: workload.kind: workload program: no client is set"),
        ("a = " + "[" * 5000, "my.toml: not TOML that can be read"),
        ("a = " + "9" * 5000, "my.toml: not TOML that can be read"),
        (
            ECHO + f"size = {list(range(1, 401))}\nmessages = {list(range(1, 401))}",
            "my.toml: the study has 160,000 cells",
        ),
        (
            ECHO + f"size = {list(range(1, 101))}\n[study]\nrepetitions = 100000",
            "my.toml:5: study.repetitions: the study has 10,000,000 runs",
        ),
    ],
)
def test_impossible_studies(text: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(text)
    assert caught.value.message.startswith(message)


def test_several_mistakes_are_counted() -> None:
    with pytest.raises(StudyError) as caught:
        study(ECHO + 'size = "x"\nmessages = 0\n')
    assert caught.value.message == 'my.toml:3: workload.size: "x" is not a size (and 1 more problem)'


def test_the_largest_datagrams_fit() -> None:
    both = '[workload]\nkind = "echo"\ntransport = "udp"\nsize = {}\n[path]\nfamily = "{}"\n'
    assert len(study(both.format(65507, "ipv4"))) == 1
    assert len(study(both.format(65527, "ipv6"))) == 1


def test_overrides_take_the_same_keys_and_values() -> None:
    read = study(ISSUE_EXAMPLE).with_overrides(
        {"path.loss": "0%,2%,5%", "workload.transport": "tcp", "study.repetitions": "2", "host.sack": "false"}
    )
    assert read.factors == {"path.loss": ("0%", "2%", "5%"), "workload.size": ("1", "1000")}
    assert read.repetitions == 2
    assert next(read.cells()).parameters.host["sack"] is False
    assert study(ISSUE_EXAMPLE).factors["path.loss"] == ("0%", "5%")


def test_an_override_reaches_every_part_that_sets_the_key() -> None:
    read = study(PARTS).with_overrides({"workload.size": "5", "path.delay": "2ms", "part.small.workload.messages": "9"})
    assert {cell.parameters.workload.size_bytes for cell in read.cells()} == {5}
    assert {cell.parameters.path.rtt_ns for cell in read.cells()} == {4_000_000}
    assert [cell.parameters.workload.messages for cell in read.cells()] == [9, 9, None, None]


def test_a_direction_can_be_overridden_beside_the_whole() -> None:
    read = study(PARTS).with_overrides({"path.forward.delay": "8ms", "path.delay": "2ms"})
    delays = {(c.parameters.path.forward.delay_ns, c.parameters.path.reverse.delay_ns) for c in read.cells()}
    assert (8_000_000, 2_000_000) in delays


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"path.loss": "0%,200%"}, '--set path.loss=0%,200%: path.loss: "200%" is more than 100%'),
        ({"path.loss": "0%,,2%"}, "--set path.loss=0%,,2%: path.loss: a level is empty"),
        ({"path.los": "1%"}, '--set path.los=1%: there is no key "path.los"'),
        ({"part.smal.workload.size": "1"}, '--set part.smal.workload.size=1: there is no part "smal"'),
        ({"study.seed": "x"}, '--set study.seed=x: study.seed: "x" is wrong'),
        ({"workload.client": "'"}, "--set workload.client=': \"'\" is not a command: No closing quotation"),
    ],
)
def test_mistakes_in_overrides_name_the_option(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(PARTS).with_overrides(overrides)
    assert caught.value.message == message


def test_adhoc_studies() -> None:
    options = {"workload.transport": "tcp,udp", "path.delay": "10ms", "path.loss": "0%,5%", "workload.size": "1,1000"}
    read = Study.adhoc("echo", options)
    assert len(read) == 8
    assert read.name == "echo"
    with pytest.raises(StudyError) as caught:
        Study.adhoc("echo", {"path.loss": "101%"}, flags={"path.loss": "--loss"})
    assert caught.value.message == '--loss 101%: path.loss: "101%" is more than 100%'
    with pytest.raises(StudyError, match='"eco" is not one of echo'):
        Study.adhoc("eco", {})


def test_quick() -> None:
    read = study(PARTS + '[quick]\n"workload.messages" = 1\n"part.bulk.workload.size" = "1kB"\n').quick()
    assert len(read) == 4
    assert read.factors["path.loss"] == ("0%", "5%")
    assert next(read.cells()).parameters.workload.messages == 1
    with pytest.raises(StudyError, match="no quick variant"):
        study(PARTS).quick()


def test_toml_written_reads_back_to_the_same_study() -> None:
    awkward = ISSUE_EXAMPLE.replace('"TCP and UDP echo on a lossy path"', r'"a \"b\" \\ c\n\u007f ü"')
    for text in (awkward, PARTS, '[workload]\nkind = "program"\nclient = [["a b", "c"], ["d"]]\n'):
        first = study(text)
        again = study(first.to_toml())
        assert again.canonical() == first.canonical()
        assert again.digest() == first.digest()
        stored = json.loads(json.dumps(first.canonical()))
        assert stored == first.canonical()
        assert Study.from_canonical(stored).canonical() == stored
    with pytest.raises(StudyError, match=r"is not crosswind\.study/1"):
        Study.from_canonical({"schema": "crosswind.study/2"})


def test_the_digest_covers_what_is_measured_and_nothing_else() -> None:
    first = study(ISSUE_EXAMPLE)
    assert first.digest() == study(ISSUE_EXAMPLE.replace("TCP and UDP", "Another")).digest()
    assert first.digest() != first.with_overrides({"study.seed": "2"}).digest()
    assert first.digest() != first.with_overrides({"path.loss": "0%"}).digest()


def test_studies_are_found(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ISSUE_EXAMPLE)
    assert load_study(str(path)).name == "mine"
    assert load_study("mathis").name == "mathis"
    assert "mathis" in dict(builtin_studies())
    for wrong, message, hint in [
        ("quickstrat", "no study file or built-in study", 'did you mean "quickstart"?'),
        (str(tmp_path / "none.toml"), "no such file", "known: "),
        (str(tmp_path), "is a directory", "name a .toml file"),
        ("x" * 5000, "", ""),
        ("", "no study file", ""),
    ]:
        with pytest.raises(StudyError) as caught:
            load_study(wrong)
        assert message in caught.value.message
        assert hint in (caught.value.hint or "")


def test_files_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b'title = "a"\n\xff\n')
    with pytest.raises(StudyError, match=r"binary\.toml:2: not UTF-8 text"):
        load_study(str(path))
    with pytest.raises(StudyError, match="too many"):
        decode(b" " * 1_000_001, "big.toml")
