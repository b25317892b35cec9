"""Titles name the levels that are run: of the whole study, of its quick variant, and with keys set anew."""

from typing import Any

import pytest

from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.study.design import Study
from crosswind.study.files import builtin_names, load_study

STUDY = """
title = "Messages of {workload.size} over links of {path.delay}"
[path]
delay = ["0ms", "15ms", "1.5ms"]
rate = ["6mbit", "unlimited"]
[workload]
kind = "echo"
transport = ["udp", "tcp"]
size = [1, "10kB", "100kB"]
[quick]
"workload.size" = "300B"
"path.delay" = ["15ms", "50ms"]
[[figure]]
title = "{workload.transport}: {workload.size} at {path.delay}, {path.rate}, {like this}"
metric = "rtt"
x = "path.delay"
where = { "workload.size" = "10kB" }
"""


def titles(study: Study) -> tuple[str, list[str]]:
    shown = presentation(study)
    return shown["title"], [figure["title"] for figure in shown["asked"]["figure"] if figure["cells"]]


def test_a_title_has_the_levels_of_its_cells_as_people_write_them() -> None:
    assert titles(Study.from_toml(STUDY, name="mine")) == (
        "Messages of 1 B, 10 kB and 100 kB over links of 0, 1.5 and 15 ms",
        ["udp and tcp: 10 kB at 0, 1.5 and 15 ms, 6mbit and unlimited, {like this}"],
    )


def test_the_quick_variant_and_overrides_have_titles_of_their_own() -> None:
    study = Study.from_toml(STUDY, name="mine")
    assert titles(study.quick()) == ("Messages of 300 B over links of 15 and 50 ms", [])
    many = study.with_overrides({"workload.size": "1,10,100,1kB,2MB", "path.delay": "0ms", "path.rate": "6mbit"})
    assert titles(many)[0] == "Messages of 1 B to 2 MB over links of 0 ms"


@pytest.mark.parametrize("table", ["", '[[figure]]\nmetric = "rtt"\nx = "path.loss"\n'])
def test_a_placeholder_that_is_no_key_is_refused(table: str) -> None:
    text = '[workload]\nkind = "echo"\ntransport = "udp"\n'
    title = 'title = "{workload.sice}"\n'
    with pytest.raises(StudyError, match=r"the title names {workload.sice}, and there is no such key") as caught:
        Study.from_toml(text + table + title if table else title + text, name="mine")
    assert caught.value.hint == 'did you mean "workload.size"?'


@pytest.mark.parametrize("name", builtin_names())
def test_no_built_in_title_has_a_placeholder_left(name: str) -> None:
    study = load_study(name)
    for variant in (study, study.quick()):
        made: dict[str, Any] = presentation(variant)
        shown = [
            made["title"],
            *(table["title"] for kind in ("figure", "fit") for table in made["asked"][kind]),
        ]
        assert not [title for title in shown if "{" in title]


def test_titles_of_built_in_studies_are_those_of_what_is_run() -> None:
    assert load_study("latency-by-link").title.endswith("over links of 0, 1.5, 5 and 15 ms each way")
    fewer = load_study("latency-by-link").with_overrides({"path.delay": ["0ms", "1.5ms", "15ms"]})
    assert fewer.title.endswith("over links of 0, 1.5 and 15 ms each way")
    study = load_study("websocket-or-http")
    assert study.title == "WebSocket or HTTP: messages of 1 B to 10 MB on several networks"
    assert study.quick().title == "WebSocket or HTTP: messages of 1 B, 10 kB and 10 MB on several networks"
    profile = load_study("client-profile").with_overrides({"part.transports.workload.size": "1MB"})
    assert "Time of 1 MB" in titles(profile)[1]
