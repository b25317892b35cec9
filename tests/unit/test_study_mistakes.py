"""Mistakes in study files: each names file, line, key and value, and what would be right."""

import pytest

from crosswind.errors import StudyError
from study_texts import ECHO, study

FIGURE = '[[figure]]\ntitle = "t"\nmetric = "rtt"\n'
FIT = """[[fit]]
title = "t"
model = "caia-exponential"
metric = "total"
x = "path.loss"
by = "workload.size"
over = "path.rate"
"""


MISTAKES = [
    ('[path]\nloss = ["0%", "101%"]', '4: path.loss: "101%" is more than 100%', "from 0% to 100%"),
    ('[path]\nloss = "-1%"', '4: path.loss: "-1%" is negative', "from 0% to 100%"),
    ('[path]\ndelay = "-5ms"', '4: path.delay: "-5ms" is negative', "as 50ms"),
    ('[path]\nrate = "100 mbps"', '4: path.rate: "100 mbps": "mbps" is not a unit here', 'did you mean "100mbit"?'),
    ('[path]\nfamily = "ipv5"', '4: path.family: "ipv5" is not one of ipv4, ipv6', "did you mean"),
    ('[path]\nqueue = "100p"', "4: path.queue has no effect: no rate is set", 'add rate = "100mbit"'),
    (
        '[path]\nloss = "1%"\n[path.forward]\nloss = "1%"\n[path.reverse]\nloss = "2%"',
        "4: path.loss has no effect",
        "remove path.loss",
    ),
    ("sise = 1", "3: workload.sise: unknown key", 'did you mean "size"?'),
    ('[paht]\nloss = "1%"', "3: paht: unknown table", 'did you mean "path"?'),
    ("size = []", "3: workload.size: the list is empty", "at least one level"),
    ("size = [1, 1]", '3: workload.size: the list has "1" twice', "must differ"),
    ('size = [1, "1B"]', '3: workload.size: the list has "1B" and "1", which are the same', "must differ"),
    ("size = [\n  1,\n  -1\n]", "3: workload.size: -1 is negative", "a size is"),
    ("messages = true", "3: workload.messages: true is not a whole number", "a whole number from 1 to"),
    ("count = 3", "3: workload.count: workload echo does not take count", "echo takes client, connection"),
    ("rate = 5", "3: workload.rate has no effect: mode is not open", 'add mode = "open"'),
    ("[study]\nrepetitions = 0", "4: study.repetitions: 0 is wrong", "greater than or equal to 1"),
    ('[study]\nseed = "x"', '4: study.seed: "x" is wrong', "whole number"),
    ('[[part]]\nname = "a"\n[[part]]\nname = "a"', '6: part.a.name: two parts are named "a"', "of its own"),
    ('[[part]]\nname = "A b"', '4: part."A b".name: "A b" is wrong', "lower-case"),
    ("[[part]]\n[part.path]", "3: part[1].name: is missing", "name ="),
    ('[[part]]\nname = "x"\n[part.workload]\nsise = 1', "6: part.x.workload.sise: unknown key", 'did you mean "size"?'),
    ('[quick]\n"path.los" = "1%"', '4: quick "path.los": there is no key "path.los"', 'did you mean "path.loss"?'),
    ('[quick]\n"path.loss" = "200%"', '4: quick "path.loss": "200%" is more than 100%', "100%"),
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
    (
        '[[repetitions]]\nwhere = { "workload.sise" = 1 }\nat_most = 1',
        '4: repetitions[1].where."workload.sise": there is no key "workload.sise"',
        'did you mean "workload.size"?',
    ),
    (
        '[[repetitions]]\nwhere = { "path.loss" = "5ms" }\nat_most = 1',
        '4: repetitions[1].where."path.loss": "5ms": "ms" is not a unit of probability',
        "from 0% to 100%",
    ),
    (
        '[path]\nloss = ["0%", "5%"]\n[[repetitions]]\nwhere = { "path.loss" = "2%" }\nat_most = 1',
        "6: repetitions[1].where: no cell has path.loss = 2%",
        "levels of this study",
    ),
    (
        '[[repetitions]]\nwhere = { "path.loss" = "0%" }\nat_most = 1',
        "4: repetitions[1].where: no cell has path.loss = 0%",
        "levels of this study",
    ),
    (
        '[[repetitions]]\nwhere = { part = "a" }\nat_most = 1',
        '4: repetitions[1].where.part: there is no part "a"',
        "no parts",
    ),
    ("[[repetitions]]\nwhere = {}\nat_most = 0", "5: repetitions[1].at_most: 0 is wrong", "greater than or equal to 1"),
    ("[[repetitions]]\nat_most = 1", "3: repetitions[1].where: is missing", "where ="),
    (FIGURE + 'x = "path.los"', '6: figure[1].x: "path.los" is not a factor\'s key', 'did you mean "path.loss"?'),
    (FIGURE + 'x = "workload.kind"', '6: figure[1].x: "workload.kind" is not a factor\'s key', "did you mean"),
    (FIGURE + 'x = "part"', '6: figure[1].x: "part" is not a factor\'s key', "known: path.backend"),
    (
        FIGURE + 'x = "path.loss"\nseries = "path.loss"',
        '7: figure[1].series: "path.loss" is x already',
        "another factor's key",
    ),
    (
        FIGURE + 'x = "path.loss"\nscale = "logarithmic"',
        '7: figure[1].scale: "logarithmic" is wrong',
        "'linear' or 'log'",
    ),
    (
        FIGURE + 'x = "path.loss"\nwhere = { "path.delay" = "5%" }',
        '7: figure[1].where."path.delay": "5%"',
        "a duration is",
    ),
    (FIGURE.replace('"rtt"', '"rt"') + 'x = "path.loss"', '5: figure[1].metric: "rt" is not a metric', '"rtt"'),
    (FIT.replace("caia-exponential", "line"), '5: fit[1].model: "line" is wrong', "'caia-exponential'"),
    (FIT.replace('"total"', '"goodput"'), "6: fit[1].metric: goodput is not a time", "fits times only"),
    (FIT.replace('"path.loss"', '"path.delay"'), "7: fit[1].x: path.delay is not a loss", "path.loss"),
    (FIT.replace('"path.rate"', '"workload.size"'), '9: fit[1].over: "workload.size" is by already', "another"),
    (
        FIT + 'published = [{ level = "5 apples", source = "s", b = 1 }]',
        '10: fit[1].published[1].level: "5 apples": "apples" is not a unit here',
        "a size is",
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
        ("a = " + "[" * 5000, "my.toml: values are nested too deeply"),
        ("a = " + "9" * 5000, "my.toml: a number has too many digits"),
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
        study(ECHO + 'size = "x"\nmessages = "x"\n')
    assert caught.value.message == 'my.toml:3: workload.size: "x" is not a size (and 1 more problem)'
