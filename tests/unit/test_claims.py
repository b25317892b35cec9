"""Statements that a rule decides, from study file to report, on data whose truth is known: both ways."""

from typing import Any

import numpy as np
import pytest

from crosswind.analysis import analyse, collect
from crosswind.analysis.asked import asked_of
from crosswind.analysis.claims import _PARTS, Range, claims_of
from crosswind.analysis.effects import mean_error
from crosswind.analysis.result import ClaimResult, Interval
from crosswind.analysis.settings import CellSettings
from crosswind.errors import StudyError
from crosswind.execution.options import RunOptions
from crosswind.execution.planning import presentation
from crosswind.execution.session import start
from crosswind.report.html import render as render_html
from crosswind.report.tables.claims import claim_tables
from crosswind.report.text.answers import answer_sentence
from crosswind.report.text.claims import claim_sentence
from crosswind.report.text.headline import sentences, tally
from crosswind.report.text.terminal import render
from crosswind.report.text.thresholds import threshold_sentence
from crosswind.study.claims import RULES
from crosswind.study.design import Study
from effects import effect_of
from records import MS, echoes, path, record, runs, timed, transfers

FACTOR = "path.loss"
SPREAD = (-0.02, 0.01, 0.0, 0.02, -0.01, 0.005, -0.005, 0.015)
"""By how much the repetitions of a cell are off, as a share of its mean; each cell has them in an order of its own."""


def cell(index: int, mean_ms: float, level: str | None = None, *, spread: float = 1.0, **levels: str):
    """Eight repetitions of a cell over UDP, of five echoes each."""
    offsets = np.random.default_rng(index).permutation(SPREAD) * spread
    rtts = [round(mean_ms * MS * (1 + offset)) for offset in offsets]
    own = levels | ({} if level is None else {FACTOR: level})
    place = path(delay_ns=round(float(levels.get("path.delay", "0ms").removesuffix("ms")) * MS))
    parameters = {"path": place, "workload": {"kind": "echo", "transport": "udp"}}
    return runs(index, [echoes([rtt] * 5) for rtt in rtts], own, parameters=parameters)


def asked(rule: str, cells: int, **fields: Any) -> dict[str, Any]:
    """A claim about the round-trip time of the first `cells` cells, as a plan has it."""
    given = {"says": "It is so.", "source": "A paper", "metric": "rtt", "statistic": "mean", "rule": rule,
             "factor": FACTOR, "is_ratio": True, "where": {}, "note": "", "cells": list(range(cells))}  # fmt: skip
    return given | fields


def verdict_of(claim: dict[str, Any], *cells: Any) -> ClaimResult:
    (judged,) = analyse(record(*(run for cell in cells for run in cell), claims=[claim])).claims
    return judged


def of_times(*means_ms: float, spread: float = 1.0) -> list[Any]:
    return [cell(index, mean, f"{index}%", spread=spread) for index, mean in enumerate(means_ms)]


def same_every_time(index: int, rtt_ms: float, level: str, repetitions: int):
    """Repetitions that could differ and do not."""
    return runs(index, [echoes([round(rtt_ms * MS)] * 5)] * repetitions, {FACTOR: level})


@pytest.mark.parametrize(
    ("repetitions", "at_least", "expected"),
    [(8, 1.4, "holds"), (8, 1.6, "does not hold"), (6, 1.4, "holds"), (5, 1.4, "cannot tell"), (2, 1.4, "cannot tell")],
)
def test_what_is_the_same_every_time_is_judged_by_how_often_it_was_seen(
    repetitions: int, at_least: float, expected: str
) -> None:
    cells = [same_every_time(index, rtt, f"{index}%", repetitions) for index, rtt in enumerate((20, 30))]
    compare = [{"level": f"{index}%", "cells": [index]} for index in range(2)]
    made = verdict_of(asked("ratio", 2, compare=compare, low=at_least, high=None), *cells)
    assert made.verdict == expected
    sentence = claim_sentence(made)
    assert f"1.500 (in all {repetitions} repetitions) times" in sentence
    assert (f"{6 - repetitions} more" in sentence) == (expected == "cannot tell")


@pytest.mark.parametrize(
    ("rule", "fields", "means_ms", "expected"),
    [
        ("value", {"factor": None, "low": 9e6, "high": 11e6, "is_ratio": False}, (10, 10.2), "holds"),
        ("value", {"factor": None, "low": 9e6, "high": 11e6, "is_ratio": False}, (10, 12), "does not hold"),
        ("value", {"factor": None, "low": 9e6, "high": 11e6, "is_ratio": False}, (10, 11), "cannot tell"),
        ("ratio", {"low": 2}, (10, 22), "holds"),
        ("ratio", {"low": 2}, (10, 18), "does not hold"),
        ("ratio", {"low": 2}, (10, 20), "cannot tell"),
        ("ratio", {"high": 0.5}, (10, 4), "holds"),
        ("ratio", {"high": 0.5}, (10, 6), "does not hold"),
        ("difference", {"low": 4e6, "high": 6e6, "is_ratio": False}, (10, 15), "holds"),
        ("difference", {"low": 4e6, "high": 6e6, "is_ratio": False}, (15, 10), "does not hold"),
        ("equivalent", {"low": 0.8, "high": 1.25}, (10, 10.5, 9.8), "holds"),
        ("equivalent", {"low": 0.8, "high": 1.25}, (10, 10.5, 14), "does not hold"),
        ("equivalent", {"low": 0.8, "high": 1.25}, (10, 10.5, 12.5), "cannot tell"),
        ("equivalent", {"low": -1e6, "high": 1e6, "is_ratio": False}, (10, 10.5), "holds"),
        ("equivalent", {"low": -1e6, "high": 1e6, "is_ratio": False}, (10, 12), "does not hold"),
        ("differs", {"low": 0.8, "high": 1.25}, (10, 14, 7), "holds"),
        ("differs", {"low": 0.8, "high": 1.25}, (10, 14, 13.9), "does not hold"),
        ("differs", {"low": 0.8, "high": 1.25}, (10, 14, 8), "cannot tell"),
        ("rises", {"low": 1}, (10, 11, 13), "holds"),
        ("rises", {"low": 1}, (10, 11, 9), "does not hold"),
        ("rises", {"low": 1}, (10, 11, 11), "cannot tell"),
        ("falls", {"high": 1}, (13, 11, 10), "holds"),
        ("falls", {"high": 1}, (9, 11, 10), "does not hold"),
    ],
)  # fmt: skip
def test_every_rule_decides_either_way(
    rule: str, fields: dict[str, Any], means_ms: tuple[float, ...], expected: str
) -> None:
    assert verdict_of(asked(rule, len(means_ms), **fields), *of_times(*means_ms)).verdict == expected


def of_delays(times_ms: dict[int, float]) -> list[Any]:
    """Cells by the delay each way."""
    return [cell(index, time, **{"path.delay": f"{delay}ms"}) for index, (delay, time) in enumerate(times_ms.items())]


@pytest.mark.parametrize(
    ("rule", "bounds", "times_ms", "effects", "expected"),
    [
        # Time proportional to the square root of the round trip, then to the round trip itself.
        ("power-law", (0.4, 0.6), {1: 10, 4: 20, 16: 40}, [0.5, 0.5], "holds"),
        ("power-law", (0.4, 0.6), {1: 10, 4: 20, 16: 80}, [0.5, 1], "does not hold"),
        # Two round trips and 5 ms, then three round trips.
        ("slope", (1.8e6, 2.2e6), {5: 25, 15: 65, 50: 205}, [2e6, 2e6], "holds"),
        ("slope", (1.8e6, 2.2e6), {5: 30, 15: 90, 50: 300}, [3e6, 3e6], "does not hold"),
    ],
)  # fmt: skip
def test_laws_are_about_neighbouring_levels(
    rule: str, bounds: tuple[float, float], times_ms: dict[int, float], effects: list[float], expected: str
) -> None:
    claim = asked(rule, 3, factor="path.delay", low=bounds[0], high=bounds[1], is_ratio=rule == "power-law")
    # In any order of the cells: neighbours are those of the numbers.
    found = verdict_of(claim, *of_delays(times_ms)[::-1])
    assert found.verdict == expected
    assert [part.effect.value for part in found.parts] == pytest.approx(effects, rel=0.02)
    assert [(part.reference, part.other) for part in found.parts] == [
        (f"{first}ms", f"{second}ms") for first, second in zip(times_ms, [*times_ms][1:], strict=False)
    ]


def test_a_model_is_what_the_statistic_is_divided_by() -> None:
    place = path(delay_ns=25 * MS, loss=0.01)
    workload = {"kind": "transfer", "transport": "tcp", "duration_ns": 10**10}
    parameters = {"path": place, "workload": workload, "host": {"congestion_control": "reno"}}
    tables = [transfers([rate]) for rate in np.linspace(2.9e6, 3.1e6, 60)]
    made = runs(0, tables, parameters=parameters)
    claim = asked("model", 1, factor=None, metric="goodput", model="mathis", low=0.5, high=2.0)
    (judged,) = analyse(record(*made, claims=[claim], models=["mathis"])).claims
    (prediction,) = analyse(record(*made, models=["mathis"])).cells[0].models
    assert judged.parts[0].effect.value == pytest.approx(3e6 / prediction.value)
    assert judged.parts[0].violated == prediction.violated
    inside = 0.5 < 3e6 / prediction.value < 2
    assert judged.verdict == ("holds" if inside else "does not hold")
    (other,) = analyse(record(*made, claims=[claim | {"metric": "transfer_time_app"}])).claims
    assert (other.verdict, other.parts) == ("cannot tell", [])


@pytest.mark.parametrize(("most", "expected"), [(0.2, "holds"), (0.1, "does not hold"), (0.15, "cannot tell")])
def test_the_error_of_a_model_is_its_mean_over_cells(most: float, expected: str) -> None:
    predicted_s = 8 * 256_000 / 6e6  # without loss the curve is the time of the link
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 256_000}
    parameters = {"path": path(rate_bps=6_000_000), "workload": workload}
    cells = []
    for index, over in enumerate((1.1, 0.8)):
        times = [round(1e9 * predicted_s / over * (1 + 0.2 * offset)) for offset in SPREAD]
        cells += runs(index, [timed([time]) for time in times], {FACTOR: f"{index}%"}, parameters=parameters)
    claim = asked("model-error", 2, factor=None, metric="transfer_time", model="caia", high=most)
    (judged,) = analyse(record(*cells, claims=[claim], models=["caia"])).claims
    (part,) = judged.parts
    assert judged.verdict == expected
    # 10 % and 20 %, in whichever direction.
    assert part.effect.value == pytest.approx(0.15, abs=0.002)
    assert part.cells == [0, 1]
    assert "over 2 cells what caia predicts of mean transfer time on the wire is off by 0.1" in claim_sentence(judged)


def test_the_limits_of_a_mean_error_are_what_the_intervals_of_the_cells_allow() -> None:
    def of(value: float, low: float | None, high: float | None, method: str = "m") -> Interval:
        return Interval(
            value=value, low=low, high=high, n=8, level=0.95, method=method, reason="few" if high is None else None
        )

    def ends(*measured: Interval, predicted: float = 1.0) -> tuple[float | None, float | None]:
        made = mean_error(measured, [predicted] * len(measured))
        return made.low, made.high

    # 1 / 0.8 - 1 and 1 / 0.5 - 1; an interval that holds the prediction allows no error at all.
    assert ends(of(0.6, 0.5, 0.8)) == pytest.approx((0.25, 1.0))
    assert ends(of(1.5, 0.8, 2.0)) == pytest.approx((0.0, 0.5))
    assert ends(of(0.6, 0.5, 0.8), of(1.5, 0.8, 2.0)) == pytest.approx((0.125, 0.75))
    # What lasts 2 s at least is off by a half at least, and by less than the whole.
    assert ends(of(3.0, 2.0, None)) == pytest.approx((0.5, 1.0))
    # What lasts 0.5 s at least may be the second that was predicted, or be off by as much as 1.
    assert ends(of(3.0, 0.5, None)) == pytest.approx((0.0, 1.0))
    assert mean_error([of(3.0, None, None)], [1.0]).high is None
    exact = mean_error([of(0.8, None, None, "exact"), of(1.25, None, None, "exact")], [1.0, 1.0])
    assert (exact.is_exact, exact.value) == (True, pytest.approx((0.25 + 0.2) / 2))


def test_an_interval_has_to_be_whole_on_its_side() -> None:
    def interval(low: float | None, high: float | None, value: float | None = 1.0, method: str = "m") -> Interval:
        return Interval(value=value, low=low, high=high, n=1, level=0.95, method=method)

    def said(bounds: Range, made: Interval) -> str:
        return bounds.verdict(made, made)

    between, beyond, above = Range(0.5, 2), Range(0.5, 2, inside=False), Range(1, None, is_open=True)
    assert said(between, interval(0.5, 2)) == "holds"
    assert said(between, interval(0.4, 2)) == "cannot tell"
    assert said(between, interval(2.1, 3)) == said(between, interval(0.1, 0.4)) == "does not hold"
    assert [said(beyond, made) for made in (interval(2.1, 3), interval(1, 3), interval(0.6, 1))] == [
        "holds", "cannot tell", "does not hold",
    ]  # fmt: skip
    # A lower bound alone can bear out "at least", and contradict "at most"; it can do nothing else.
    assert said(above, interval(1.1, None)) == "holds"
    assert said(Range(None, 1), interval(1.1, None)) == "does not hold"
    assert said(between, interval(1.1, None)) == "cannot tell"
    # No interval decides nothing, and an exact number everything: exactly 1 is not above 1.
    assert said(between, interval(None, None)) == "cannot tell"
    assert [said(above, interval(None, None, value, "exact")) for value in (1.0, 1.01)] == ["does not hold", "holds"]
    assert said(between, interval(None, None, 2.0, "exact")) == "holds"


def test_one_part_among_many_is_not_believed_as_easily() -> None:
    """What a single comparison contradicts at 95 %, one of twenty does not."""
    bounds = Range(None, 1.0)
    at_95 = Interval(value=1.2, low=1.01, high=1.4, n=1, level=0.95, method="m")
    corrected = at_95.model_copy(update={"low": 0.95, "high": 1.5})
    assert bounds.verdict(at_95, at_95) == "does not hold"
    assert bounds.verdict(at_95, corrected) == "cannot tell"


def test_at_the_very_end_of_the_range_either_verdict_is_rare() -> None:
    """Of 300 studies with the truth at the end, 2.5 % are 7.5; more than 16 happen once in 500 times."""
    rng = np.random.default_rng(7)
    cells, claims = [], []
    for study in range(300):
        for side, mean in enumerate((10.0, 11.0)):
            rtts = mean * MS * (1 + 0.05 * rng.standard_normal(6))
            levels = {FACTOR: f"{side}%", "workload.size": f"{study}"}
            cells += runs(2 * study + side, [echoes([round(rtt)]) for rtt in rtts], levels)
        claims.append(asked("ratio", 0, high=1.1) | {"cells": [2 * study, 2 * study + 1]})
    made = record(*cells, claims=claims)
    verdicts = [claim.verdict for claim in claims_of(asked_of(made).claims, collect(made))]
    assert 0 < verdicts.count("holds") <= 16
    assert 0 < verdicts.count("does not hold") <= 16


def test_groups_are_otherwise_equal_and_levels_are_in_the_order_of_the_claim() -> None:
    cells = [
        cell(2 * at + side, mean, f"{side}%", **{"workload.size": size})
        for at, size in enumerate(("1", "50"))
        for side, mean in enumerate((10, 20))
    ]
    compare = [{"level": "1%", "cells": [1, 3]}, {"level": "0%", "cells": [0, 2]}]
    found = verdict_of(asked("ratio", 4, high=0.6, compare=compare), *cells)
    assert found.verdict == "holds"
    assert [(part.reference, part.other, part.fixed, part.cells) for part in found.parts] == [
        ("1%", "0%", {"workload.size": "1"}, [1, 0]), ("1%", "0%", {"workload.size": "50"}, [3, 2]),
    ]  # fmt: skip


def test_where_cells_are_missing_or_too_few_nobody_can_tell() -> None:
    compare = [{"level": "0%", "cells": [0]}, {"level": "9%", "cells": []}]
    missing = verdict_of(asked("ratio", 1, low=1, compare=compare), cell(0, 10, "0%"))
    assert (missing.verdict, missing.parts, missing.reason) == (
        "cannot tell", [], "this run has no cell with path.loss 9%",
    )  # fmt: skip
    nowhere = verdict_of(asked("ratio", 0, low=1, where={"path.delay": "9ms"}), cell(0, 10, "0%"))
    assert nowhere.reason == "this run has no cell with path.delay 9ms"
    alone = verdict_of(asked("rises", 1, low=1), cell(0, 10, "0%"))
    assert alone.reason == "this run has no two cells that differ in path.loss alone"
    few = verdict_of(asked("ratio", 2, low=1), cell(0, 10, "0%")[:2], cell(1, 30, "1%")[:2])
    assert (few.verdict, few.parts[0].effect.low) == ("cannot tell", None)
    assert few.parts[0].effect.reason == "an interval of a mean needs 3 repetitions, there are 2: 1 more"
    lost = runs(1, [echoes([None] * 5)] * 3, {FACTOR: "1%"})
    none = verdict_of(asked("ratio", 2, low=1), cell(0, 10, "0%"), lost)
    assert none.verdict == "cannot tell"


def test_medians_are_compared_as_medians() -> None:
    tables = [[echoes([time * MS] * 9 + [900 * MS] * 2) for _ in range(6)] for time in (10, 10)]
    tables[1] = [echoes([10 * MS + at] * 9 + [100 * MS] * 2) for at in range(6)]
    both = [runs(at, tables[at], {FACTOR: f"{at}%"}) for at in (0, 1)]
    found = verdict_of(asked("equivalent", 2, statistic="median", low=0.9, high=1.1), *both)
    assert (found.verdict, found.statistic) == ("holds", "median")
    assert verdict_of(asked("equivalent", 2, low=0.9, high=1.1), *both).verdict == "does not hold"


def test_a_claim_is_a_sentence_everywhere() -> None:
    claim = asked("ratio", 2, low=2.0, high=3.0)
    made = record(*(run for one in of_times(10, 40) for run in one), claims=[claim])
    result = analyse(made)
    assert "The claim does not hold." in sentences(result)
    said = claim_sentence(result.claims[0])
    assert said.startswith("Does not hold: “It is so”: mean round-trip time with loss 1% is 4.0")
    assert said.endswith("] times that with 0%; the statement needs 2 to 3.")
    verdicts, parts = claim_tables(result)
    assert verdicts.rows == [["Does not hold", said.removeprefix("Does not hold: "), "A paper"]]
    assert [row[:3] + row[4:] for row in parts.rows] == [["It is so.", "–", "1% / 0%", "2 to 3", "does not hold"]]
    assert "Does not hold: “It is so”" in " ".join(render(result).split())
    assert "Every comparison of the claims" in render_html(made, result)


def test_the_sentence_names_the_part_that_decides() -> None:
    cells = of_times(10, 11, 16, 30)
    made = record(*(run for one in cells for run in one), claims=[asked("equivalent", 4, low=0.5, high=2.0)])
    said = claim_sentence(analyse(made).claims[0])
    # 30 / 10 is farthest out, before 30 / 11.
    assert "with loss 3% is 3.0" in said
    assert "(of 6 comparisons 4 bear it out, 2 contradict it)" in said


STUDY = """
title = "A study"
[path]
loss = ["0%", "5%"]
delay = ["0ms", "5ms"]
[workload]
kind = "echo"
size = [1, 50]
[[claim]]
says = "So it is."
metric = "rtt"
"""


def claim_of(text: str) -> dict[str, Any]:
    study = Study.from_toml(STUDY + text + "\n", name="s")
    assert Study.from_toml(study.to_toml(), name="s").canonical() == study.canonical()
    assert study.digest() == Study.from_toml(STUDY.partition("[[")[0], name="s").digest()
    (claim,) = presentation(study)["claims"]
    return claim


RATIO = 'rule = "ratio"\nfactor = "path.loss"\n'


def test_a_claim_knows_its_cells_and_its_range() -> None:
    more = 'compare = ["0.05", 0]\nat_least = 0.5\nat_most = "2"\nwhere = { "workload.size" = 50 }'
    claim = claim_of(RATIO + more)
    # delay 0: loss 0 %: cells 0, 1 (1 and 50 bytes), loss 5 %: 2, 3; delay 5 ms: 4 to 7.
    assert claim["cells"] == [1, 3, 5, 7]
    assert claim["compare"] == [{"level": "0.05", "cells": [3, 7]}, {"level": "0", "cells": [1, 5]}]
    assert (claim["low"], claim["high"], claim["is_ratio"]) == (0.5, 2, True)
    assert claim_of('rule = "value"\nat_most = "5ms"')["high"] == 5e6
    assert claim_of('rule = "slope"\nfactor = "path.delay"\nat_least = 0\nat_most = "2.5ms"')["low"] == 0
    margin = claim_of('rule = "differs"\nfactor = "path.loss"\nmargin = "25%"')
    assert (margin["low"], margin["high"]) == (0.8, 1.25)
    assert claim_of('rule = "equivalent"\nfactor = "path.loss"\nmargin = "5ms"')["low"] == -5e6
    assert (claim_of('rule = "falls"\nfactor = "path.loss"')["high"], claim["source"]) == (1, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('rule = "roughly"', "claim[1].rule: "),
        ('rule = "ratio"\nat_least = 1', "claim[1].factor: the rule ratio needs a factor"),
        (RATIO + "at_least = 1", "claim[1].compare: compare has 0 levels, the rule ratio needs 2"),
        (RATIO + 'compare = ["0%", "5%"]', "claim[1].at_least: the rule ratio needs at_least, at_most or both"),
        (RATIO + 'compare = ["0%", "5%"]\nmargin = "5%"', "claim[1].margin: the rule ratio has no margin"),
        (RATIO + 'compare = ["0%", "5%"]\nat_most = "5ms"', 'claim[1].at_most: "5ms" is not a bound of this rule'),
        (RATIO + 'compare = ["0%", "5%"]\nat_least = 2\nat_most = 1', "claim[1].at_most: at_least 2 is more"),
        (RATIO + 'compare = ["0%", "5 apples"]\nat_most = 1', 'claim[1].compare[2]: "5 apples"'),
        (RATIO + 'compare = ["0%", "5%"]\nat_most = 1\nwhere = { "path.loss" = "0%" }', "claim[1].where: path.loss"),
        (RATIO + 'compare = ["0%", "5%"]\nat_most = 1\nmodel = "mathis"', "claim[1].model: the rule ratio has no"),
        ('rule = "model"\nat_most = 1', "claim[1].model: the rule model needs a model"),
        ('rule = "value"\nat_most = "5ms"\nfactor = "path.loss"', "claim[1].factor: the rule value compares no levels"),
        ('rule = "value"\nat_most = "5"', 'claim[1].at_most: "5" is not a bound of this rule'),
        ('rule = "rises"\nfactor = "path.loss"\nat_least = 1', "claim[1].at_least: the rule rises has no at_least"),
        ('rule = "slope"\nfactor = "path.family"\nat_most = "1ms"', "claim[1].factor: the levels of path.family"),
        ('rule = "differs"\nfactor = "path.loss"', "claim[1].margin: the rule differs needs a margin"),
        ('rule = "rises"\nfactor = "path.los"', 'claim[1].factor: "path.los" is not a factor'),
    ],
)  # fmt: skip
def test_mistakes_in_a_claim(text: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        claim_of(text)
    assert message in caught.value.message


def test_an_unknown_model_of_a_claim_is_refused_before_anything_runs() -> None:
    study = Study.from_toml(STUDY + 'rule = "model"\nmodel = "mathi"\nat_most = 1\n', name="s")
    with pytest.raises(StudyError, match=r'claim\[1\]\.model: "mathi" is not a model'):
        start(study, RunOptions())


def test_every_rule_has_its_parts() -> None:
    assert set(_PARTS) == set(RULES)


@pytest.mark.parametrize(
    ("workload", "share"),
    [
        ({"kind": "echo", "transport": "tcp"}, 0.02),
        ({"kind": "echo", "transport": "udp"}, 0),
        ({"kind": "transfer", "transport": "tcp", "size_bytes": 1000}, 0.02),
        ({"kind": "transfer", "transport": "tcp", "size_bytes": 6000}, 1 - 0.98**4),
        ({"kind": "transfer", "transport": "tcp", "duration_ns": 1}, 1),
        ({"kind": "page", "transport": "http2", "html_bytes": 3000, "images_bytes": 3000}, 1 - 0.98**4),
        ({"kind": "page", "transport": "http2"}, 0.02),
    ],
)
def test_nearly_every_transfer_of_many_packets_loses_one(workload: dict[str, Any], share: float) -> None:
    cell = {"path": path(loss=0.02), "workload": workload}
    settings = CellSettings.of(cell, effect_of(cell))
    assert settings.delayed_share == pytest.approx(share)


DECLARED = """
[path]
delay = ["15ms", "50ms"]
loss = ["0%", "1%"]
[workload]
kind = "echo"
[[claim]]
says = "Loss matters little."
metric = "rtt"
rule = "equivalent"
factor = "path.loss"
margin = "25%"
[[equivalence]]
title = "Does loss matter?"
metric = "rtt"
factor = "path.loss"
margin = "25%"
[[threshold]]
fail_if = "mean(rtt) > 25ms"
[[question]]
asks = "Is it slower with loss?"
metric = "rtt"
factor = "path.loss"
compare = ["0%", "1%"]
yes = "more"
[quick]
"path.delay" = ["15ms"]
"""


def test_what_was_declared_of_more_cells_than_the_run_has_is_not_shown() -> None:
    """A quick variant without one of two delays: what its cells bear out is not shown; what contradicts it is."""
    quick = Study.from_toml(DECLARED, name="some").quick()
    shown = presentation(quick)
    asked_for = {key: shown[key] for key in ("claims", "equivalences", "thresholds")}
    assert {tuple(one["missing"]) for of in asked_for.values() for one in of} == {("path.delay 50ms",)}
    result = analyse(record(*(one for cell in of_times(20.0, 20.5) for one in cell), **asked_for))
    assert (result.claims[0].verdict, result.thresholds[0].verdict) == ("cannot tell", "cannot tell")
    assert {part.verdict for part in result.claims[0].parts} == {"holds"}
    assert claim_sentence(result.claims[0]).startswith("Cannot tell: “Loss matters little”: mean round-trip time with")
    assert "; this run has no cell with path.delay 50ms." in claim_sentence(result.claims[0])
    assert threshold_sentence(result.thresholds[0]).endswith("; this run has no cell with path.delay 50ms.")
    assert tally(result.equivalences[0]) == (
        "cannot tell of all levels of loss: this run has no cell with path.delay 50ms; of the others 1 of 1 pair is "
        "equivalent within 0.8 to 1.25 times"
    )
    apart = analyse(record(*(one for cell in of_times(20.0, 40.0) for one in cell), **asked_for))
    assert (apart.claims[0].verdict, apart.thresholds[0].verdict) == ("does not hold", "fail")
    # The whole study has all that it was declared for, until a cell of it is not executed.
    whole = presentation(Study.from_toml(DECLARED, name="some"))
    assert not any(one.get("missing") for one in whole["claims"])
    part = analyse(record(*(one for cell in of_times(20.0, 20.5) for one in cell), claims=whole["claims"]))
    assert (part.claims[0].verdict, part.claims[0].reason) == ("cannot tell", "2 of its 4 cells were not executed")


def test_a_question_whose_level_is_not_in_the_run_is_not_answered() -> None:
    given = {
        "asks": "Is it slower?", "metric": "rtt", "statistic": "mean", "factor": FACTOR, "yes": "more",
        "compare": [{"level": "0%", "cells": [0]}, {"level": "1%", "cells": [1]}, {"level": "5%", "cells": []}],
        "is_ratio": True, "where": {}, "note": "", "cells": [0, 1],
    }  # fmt: skip
    (answer,) = analyse(record(*(one for cell in of_times(20.0, 40.0) for one in cell), questions=[given])).answers
    assert (answer.verdict, answer.cases[0].verdict) == ("cannot tell", "yes")
    assert answer_sentence(answer).startswith(
        "Cannot tell: this run has no cell with path.loss 5%; of the others: yes: the mean round-trip time with loss 1%"
    )
