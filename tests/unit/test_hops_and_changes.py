"""Paths of several hops, and paths that change over time: what a study says of them, and what a cell gets."""

from pathlib import Path
from typing import Any

import pytest

from cells import checked
from conftest import requires_binary
from crosswind.analysis.conditions import _changes
from crosswind.catalog.factors import factor_scale
from crosswind.cell.spec import cell_json
from crosswind.errors import StudyError
from crosswind.report.charts.over_time import change_periods
from crosswind.report.text.conditions import scheduled_change_text
from crosswind.study.design import Study
from crosswind.study.edits import FurtherTables

STUDY = """
[[path.hop]]
name = "wifi"
rate = ["50mbit", "20mbit"]
delay = "2ms"
reverse.loss = "1%"
[[path.hop]]
name = "line"
network = "dsl"
forward.delay = "9ms"
[[path.at]]
name = "outage"
hop = "wifi"
start = "1s"
for = ["50ms", "200ms"]
loss = "100%"
[[path.at]]
hop = "line"
forward.rate = "64kbit"
[workload]
kind = "echo"
transport = "tcp"
"""


def study(text: str = STUDY) -> Study:
    return Study.from_toml(text, name="study", file="study.toml")


def paths(of: Study) -> list[dict[str, Any]]:
    return [cell_json(cell, {})["path"] for cell in of.cells()]


def test_a_cell_has_its_hops_and_changes_in_their_order() -> None:
    first, *others = paths(study())
    dsl = {"delay_ns": 25_000_000, "rate_bps": 1_500_000, "queue": {"bytes": 18_750}}
    wifi = {"delay_ns": 2_000_000, "rate_bps": 50_000_000}
    assert first["hops"] == [
        {"name": "wifi", "forward": wifi, "reverse": {**wifi, "loss": 0.01}},
        {
            "name": "line",
            "forward": {"delay_ns": 9_000_000, "rate_bps": 384_000, "queue": {"bytes": 15_000}},
            "reverse": dsl,
        },
    ]
    assert first["changes"] == [
        {
            "name": "outage",
            "start_ns": 1_000_000_000,
            "for_ns": 50_000_000,
            "hop": "wifi",
            "forward": {"loss": 1.0},
            "reverse": {"loss": 1.0},
        },
        {"name": "2", "hop": "line", "forward": {"rate_bps": 64_000}, "reverse": {}},
    ]
    assert "forward" not in first
    levels = [(path["hops"][0]["forward"]["rate_bps"], path["changes"][0]["for_ns"]) for path in (first, *others)]
    assert levels == [
        (50_000_000, 50_000_000),
        (50_000_000, 200_000_000),
        (20_000_000, 50_000_000),
        (20_000_000, 200_000_000),
    ]


def test_a_key_of_a_hop_or_a_change_is_a_key_like_any_other() -> None:
    of = study()
    assert of.factors == {"path.hop.wifi.rate": ("50mbit", "20mbit"), "path.at.outage.for": ("50ms", "200ms")}
    changed = of.with_overrides({"path.hop.wifi.rate": "10mbit", "path.at.2.forward.rate": "32kbit,16kbit"})
    assert changed.factors == {"path.at.outage.for": ("50ms", "200ms"), "path.at.2.forward.rate": ("32kbit", "16kbit")}
    # A key of both directions replaces what one direction says.
    plain = changed.with_overrides({"path.at.2.rate": "1mbit"}).document["path"]["at"][1]
    assert plain == {"hop": "line", "rate": "1mbit", "forward": {}}
    assert paths(of.with_overrides({"path.hop.wifi.loss": "5%"}))[0]["hops"][0]["reverse"]["loss"] == 0.05
    added = of.edited(FurtherTables(changes=("late hop=line start=9s for=1s every=10s delay=1ms,2ms",)))
    assert added.factors["path.at.late.delay"] == ("1ms", "2ms")
    assert Study.from_toml(of.to_toml(), name="study", file="again").digest() == of.digest()


def test_a_factor_of_a_hop_or_a_change_has_its_place_on_an_axis() -> None:
    for key, title, unit in (
        ("path.hop.wifi.rate", "wifi rate", "Mbit/s"),
        ("path.at.outage.for", "outage for", "ms"),
        ("path.hop.line.delay", "line delay there and back", "ms"),
    ):
        scale = factor_scale(key)
        assert scale is not None
        assert (scale.title, scale.unit) == (title, unit)


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ('name = "line"', 'name = "wifi"', 'path.hop[2].name: two hops are named "wifi"'),
        ('name = "line"', 'name = "Wi-Fi"', 'path.hop[2].name: "Wi-Fi" is wrong'),
        ("[[path.hop]]", '[path]\ndelay = "1ms"\n[[path.hop]]', "path.delay does not say which hop it is of"),
        ('rate = ["50mbit", "20mbit"]', 'queue = "9p"', "path.hop.wifi.queue has no effect: no rate is set"),
        ('start = "1s"', 'every = "1s"\nspread = "1s"\nbegin = 3', "path.at[1].begin: unknown key"),
        ('for = ["50ms", "200ms"]', 'every = "1s"', "path.at.outage.every has no effect: no for is set"),
        ('hop = "line"\nforward.rate = "64kbit"', 'name = "nothing"', "path.at[2]: the table sets no key"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(was: str, now: str, message: str) -> None:
    with pytest.raises(StudyError) as refused:
        study(STUDY.replace(was, now, 1))
    assert message in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ('hop = "wifi"', 'hop = "wi-fi"', "path.at.outage.hop wi-fi is no hop"),
        ('hop = "line"\n', "", "path.at.2.hop is missing"),
        ('hop = "line"\nforward.rate = "64kbit"', 'hop = "wifi"\nloss = "3%"', "while another change of it may hold"),
        ('start = "1s"', 'every = "10ms"', "is not longer than for"),
    ],
)
def test_what_crosswind_cell_refuses_is_said_in_the_words_of_the_study(was: str, now: str, message: str) -> None:
    requires_binary()
    with pytest.raises(StudyError) as refused:
        checked(study(STUDY.replace(was, now, 1)))
    assert message in str(refused.value)


def test_a_trace_is_a_file_or_one_that_comes_with_crosswind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = '[[path.at]]\ntrace = ["walk", "own.csv"]\n[workload]\nkind = "echo"\ntransport = "tcp"\n'
    builtin, own = (path["changes"][0]["trace"] for path in paths(study(text)))
    assert Path(builtin).read_text("utf-8").startswith("# A phone on foot")
    assert own == str(tmp_path / "own.csv")
    (tmp_path / "walk").write_text("0 1\n")
    assert paths(study(text))[0]["changes"][0]["trace"] == str(tmp_path / "walk")


def test_a_part_overrides_a_key_of_a_change_of_the_study() -> None:
    text = STUDY + '[[part]]\nname = "a"\n[[part]]\nname = "b"\n'
    changed = study(text).with_overrides({"part.b.path.at.outage.for": "5s"})
    assert [path["changes"][0]["for_ns"] for path in paths(changed)[::2]] == [50_000_000] * 2 + [5_000_000_000]


def test_conditions_name_the_trace_that_changes_a_path() -> None:
    changes = [{"name": "radio", "trace": "/far/away/train.csv", "of": "both", "forward": {}, "reverse": {}}]
    (told,) = _changes([{"changes": changes}])
    assert scheduled_change_text(told) == "trace train.csv"
    assert change_periods(changes, 1e9) == []
