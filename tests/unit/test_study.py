"""Study files: what is read, and what every mistake is told."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from crosswind.errors import StudyError
from crosswind.execution.session import presentation, start
from crosswind.study.cells import Cell
from crosswind.study.design import Study, builtin_studies, decode, load_study
from crosswind.study.resolve import resolve

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


FIGURE = '[[figure]]\ntitle = "t"\nmetric = "rtt"\n'
FIT = """[[fit]]
title = "t"
model = "caia-exponential"
metric = "total"
x = "path.loss"
by = "workload.size"
over = "path.rate"
"""
LIMITS = """
[[repetitions]]
where = { part = "bulk", "workload.size" = "1000kB" }
at_most = 2
[[repetitions]]
where = { "path.loss" = 0.05 }
at_most = 3
[study]
repetitions = 4
"""


def study(text: str) -> Study:
    return Study.from_toml(text, name="my", file="my.toml")


def delays_ns(cell: Cell) -> dict[str, object]:
    """The delay of each direction that has one."""
    groups = resolve(cell.settings)
    return {group: setting.value for group in groups for setting in groups[group] if setting.key.name == "delay_ns"}


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
    assert (last.settings["path.loss"].value, last.settings["path.delay"].value) == (Decimal("0.05"), 10_000_000)


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
    assert delays_ns(cells[0]) == {"path.forward": 3_000_000}
    # The part's delay means both directions, whatever the study says of one.
    assert delays_ns(cells[2]) == {"path.forward": 1_000_000, "path.reverse": 1_000_000}
    assert cells[0].settings["workload.messages"].value == 7
    assert "workload.messages" not in cells[2].settings


def test_a_list_of_argument_lists_is_a_factor() -> None:
    read = study('[workload]\nkind = "program"\nclient = [["ping", "{server}"], ["true"]]\nserver = ["sleep", "9"]\n')
    assert read.factors == {"workload.client": ("ping '{server}'", "true")}
    assert [cell.settings["workload.client"].value for cell in read.cells()] == [("ping", "{server}"), ("true",)]
    assert next(read.cells()).settings["workload.server"].value == ("sleep", "9")


MISTAKES = [
    ('[path]\nloss = ["0%", "101%"]', '4: path.loss: "101%" is more than 100%', "from 0% to 100%"),
    ('[path]\nloss = "-1%"', '4: path.loss: "-1%" is negative', "from 0% to 100%"),
    ('[path]\ndelay = "-5ms"', '4: path.delay: "-5ms" is negative', "as 50ms"),
    ('[path]\ndelay = "1h"', '4: path.delay: "1h" is too much', "at most 600s"),
    ("[path]\nrate = 0", "4: path.rate: a rate of 0 lets nothing through", "as 10mbit"),
    ('[path]\nrate = "100 mbps"', '4: path.rate: "100 mbps": "mbps" is not a unit here', 'did you mean "100mbit"?'),
    ("[path]\nmtu = 575", "4: path.mtu: 575 is too little", "at least 576B"),
    ("[path]\nmtu = 65536", "4: path.mtu: 65536 is too much", "at most 65535B"),
    ('[path]\nfamily = "ipv5"', '4: path.family: "ipv5" is not one of ipv4, ipv6', "did you mean"),
    ('[path]\nqueue = "100p"', "4: path.queue has no effect: no rate is set", 'add rate = "100mbit"'),
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
    ("messages = true", "3: workload.messages: true is not a whole number", "a whole number from 1 to"),
    ("count = 3", "3: workload.count: workload echo does not take count", "echo takes connection"),
    ('size = "2GiB"', '3: workload.size: "2GiB" is too much', "at most 1GiB"),
    ("rate = 5", "3: workload.rate has no effect: mode is not open", 'add mode = "open"'),
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
    (FIT.replace('"total"', '"goodput"'), "6: fit[1].metric: goodput is not a time", "a time's curve"),
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
        (
            '[workload]\nkind = "transfer"\nsize = 1\ntransport = ["tcp", "udp"]',
            "my.toml:4: workload.transport: workload transfer does not run over udp",
        ),
        (
            '[workload]\nkind = "connect"\ntransport = "udp"',
            "my.toml:3: workload.transport: workload connect does not run over udp",
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


def test_overrides_take_the_same_keys_and_values() -> None:
    read = study(ISSUE_EXAMPLE).with_overrides(
        {"path.loss": "0%,2%,5%", "workload.transport": "tcp", "study.repetitions": "2", "host.sack": "false"}
    )
    assert read.factors == {"path.loss": ("0%", "2%", "5%"), "workload.size": ("1", "1000")}
    assert read.repetitions == 2
    assert next(read.cells()).settings["host.sack"].value is False
    assert study(ISSUE_EXAMPLE).factors["path.loss"] == ("0%", "5%")


def test_an_override_reaches_every_part_that_sets_the_key() -> None:
    read = study(PARTS).with_overrides({"workload.size": "5", "path.delay": "2ms", "part.small.workload.messages": "9"})
    assert {cell.settings["workload.size"].value for cell in read.cells()} == {5}
    assert {sum(delays_ns(cell).values()) for cell in read.cells()} == {4_000_000}
    messages = [cell.settings.get("workload.messages") for cell in read.cells()]
    assert [level and level.value for level in messages] == [9, 9, None, None]


def test_a_direction_can_be_overridden_beside_the_whole() -> None:
    read = study(PARTS).with_overrides({"path.forward.delay": "8ms", "path.delay": "2ms"})
    assert {"path.forward": 8_000_000, "path.reverse": 2_000_000} in [delays_ns(cell) for cell in read.cells()]


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
    assert next(read.cells()).settings["workload.messages"].value == 1
    with pytest.raises(StudyError, match="no quick variant"):
        study(PARTS).quick()


def limited(**overrides: str) -> list[int]:
    read = study(PARTS + LIMITS).with_overrides({key.replace("__", "."): text for key, text in overrides.items()})
    return [read.repetitions_of(cell) for cell in read.cells()]


def test_some_cells_are_run_less_often() -> None:
    # small at 0 % and 5 %; bulk at 0 % with 1kB and 1MB, at 5 % likewise. The least limit counts.
    assert limited() == [4, 3, 4, 2, 3, 2]
    assert limited(study__repetitions="1") == [1] * 6
    assert limited(path__loss="5.0%") == [3, 3, 2]


def test_a_limit_on_levels_that_were_set_anew_is_left_away() -> None:
    read = study(PARTS + LIMITS)
    assert limited(path__loss="1%") == [4, 4, 2]
    assert read.with_overrides({"path.loss": "1%"}).document["repetitions"] == read.document["repetitions"][:1]
    without = read.with_overrides({"path.loss": "1%", "workload.size": "7"})
    assert (
        without.digest()
        == study(PARTS + "[study]\nrepetitions = 4").with_overrides({"path.loss": "1%", "workload.size": "7"}).digest()
    )
    assert study(without.to_toml()).canonical() == without.canonical()
    assert Study.from_canonical(without.canonical()).digest() == without.digest()


def test_limits_count_among_the_runs() -> None:
    many = ECHO + "size = [1, 2]\n[study]\nrepetitions = 100000\n[path]\nloss = " + str([n / 100 for n in range(20)])
    with pytest.raises(StudyError, match="4,000,000 runs"):
        study(many)
    few = many + '\n[[repetitions]]\nwhere = { "workload.size" = "1B" }\nat_most = 1'
    with pytest.raises(StudyError, match="2,000,020 runs"):
        study(few)


SHOWN = """
[[figure]]
title = "Time by loss"
metric = "total"
x = "path.loss"
series = "workload.size"
where = { "path.rate" = "1mbit" }
models = ["caia"]
[[figure]]
title = "Nothing varies"
metric = "rtt"
x = "path.mtu"
scale = "log"
[[fit]]
title = "b and c"
model = "caia-exponential"
metric = "total"
x = "path.loss"
by = "workload.size"
over = "path.rate"
where = { "path.loss" = "0%" }
published = [{ source = "s", level = "1kB", b = 0.04, c = 21 }, { source = "s", level = 7, a = 1 }]
[[published]]
source = "s"
metric = "total"
unit = "s"
mean = 1
levels = { "path.loss" = 0.05, "workload.size" = "1kB" }
"""
FACTORS = '[path]\nloss = ["0%", "5%"]\nrate = ["1000kbit", "2mbit"]\n' + ECHO + "size = [1000, 2000]\n"


def test_figures_and_fits_know_their_cells_by_meaning() -> None:
    read = study(FACTORS + SHOWN)
    shown = presentation(read)
    # loss 0 %: rate 1 Mbit/s: cells 0, 1 (1000, 2000 bytes), rate 2 Mbit/s: cells 2, 3. Loss 5 %: cells 4 to 7.
    assert shown["figures"] == [
        {
            "title": "Time by loss", "metric": "total", "x": "path.loss", "series": "workload.size",
            "where": {"path.rate": "1mbit"}, "models": ["caia"], "scale": "linear", "note": "", "cells": [0, 1, 4, 5],
        },
        {
            "title": "Nothing varies", "metric": "rtt", "x": "path.mtu", "where": {}, "models": [], "scale": "log",
            "note": "", "cells": [0, 1, 2, 3, 4, 5, 6, 7],
        },
    ]  # fmt: skip
    (fit,) = shown["fits"]
    assert (fit["x"], fit["by"], fit["over"]) == ("path.loss", "workload.size", "path.rate")
    assert (fit["where"], fit["cells"]) == ({"path.loss": "0%"}, [0, 1, 2, 3])
    assert fit["published"] == [
        {"source": "s", "level": "1kB", "b": 0.04, "c": 21.0, "note": "", "cells": [0, 2]},
        {"source": "s", "level": "7", "a": 1.0, "note": "", "cells": []},
    ]
    assert [entry["cells"] for entry in shown["published"]] == [[4, 6]]
    assert json.loads(json.dumps(shown)) == shown


def test_a_published_figure_keeps_its_cell_however_the_level_is_written() -> None:
    for loss in ("5%", "0.05", "5.00%"):
        (entry,) = presentation(study(FACTORS + SHOWN).with_overrides({"path.loss": loss}))["published"]
        assert entry["cells"] == [0, 2]


def test_every_place_that_names_models_is_told() -> None:
    read = study(FACTORS + SHOWN + '[report]\nmodels = ["mathis"]')
    assert read.models == ("mathis",)
    assert read.named_models == {"report.models": ("mathis",), "figure[1].models": ("caia",), "figure[2].models": ()}


def test_an_unknown_model_of_a_figure_is_refused_before_anything_runs() -> None:
    read = study((FACTORS + SHOWN).replace('"caia"', '"ciao"'))
    with pytest.raises(StudyError) as caught:
        start(read, output=None, options={})
    assert caught.value.message == 'figure[1].models: "ciao" is no model'


def test_toml_written_reads_back_to_the_same_study() -> None:
    awkward = ISSUE_EXAMPLE.replace('"TCP and UDP echo on a lossy path"', r'"a \"b\" \\ c\n\u007f ü"')
    for text in (
        awkward,
        PARTS,
        PARTS + LIMITS,
        FACTORS + SHOWN,
        '[workload]\nkind = "program"\nclient = [["a b", "c"], ["d"]]\n',
    ):
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
    limit = '[[repetitions]]\nwhere = { "path.loss" = "5%" }\nat_most = '
    digests = [study(ISSUE_EXAMPLE + text).digest() for text in ("", limit + "1", limit + "2")]
    assert len(set(digests)) == 3
    assert study(FACTORS).digest() == study(FACTORS + SHOWN).digest()


def test_the_digests_of_stored_runs_stay() -> None:
    # Written down in run directories: `--resume` with a study compares them.
    assert [load_study(name).digest()[:16] for name in ("latency-by-link", "mathis", "quickstart")] == [
        "123964598d68510e",
        "54af737828962de1",
        "e55e0e89ba65c6cb",
    ]


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
