"""The question that a run from options asks by itself, and the repetitions that an answer takes."""

from typing import Any

import pytest

from crosswind.study.design import Study
from crosswind.study.edits import FurtherTables
from crosswind.study.own_question import with_own_question


def asked(kind: str, **options: str) -> Study:
    return with_own_question(Study.adhoc(kind, {key.replace("__", "."): value for key, value in options.items()}))


def question(study: Study) -> dict[str, Any]:
    (table,) = study.document["question"]
    return dict(table)


def test_what_people_choose_is_what_a_run_asks_about() -> None:
    study = asked("echo", path__loss="0%,5%", workload__transport="tcp,udp")
    assert question(study) == {
        "asks": "Is the mean round-trip time shorter with udp than with tcp, by 1 % or more?",
        "metric": "rtt",
        "factor": "workload.transport",
        "compare": ["tcp", "udp"],
        "margin": "1%",
    }
    assert study.repetitions == 10


def test_a_factor_of_the_network_may_differ() -> None:
    table = question(asked("transfer", path__loss="0%,1%"))
    assert (table["yes"], table["factor"]) == ("different", "path.loss")
    assert table["asks"].startswith("Does the mean ") and table["asks"].endswith(
        "differ between loss 0% and loss 1%, by 1 % or more?"
    )


def test_a_factor_of_a_flow_says_of_which_one() -> None:
    alone = Study.adhoc("echo", {"workload.transport": "udp"})
    study = alone.edited(FurtherTables(flows=("transfer --name upload --count 0,1",)))
    assert question(with_own_question(study)) == {
        "asks": "Does the mean round-trip time differ between upload count 0 and upload count 1, by 1 % or more?",
        "metric": "rtt",
        "factor": "flow.upload.count",
        "compare": [0, 1],
        "margin": "1%",
        "yes": "different",
    }


def test_levels_that_are_series_stay_series() -> None:
    assert question(asked("echo", path__forward__lose="[[0], [0, 3]]"))["compare"] == ["0", "0 3"]


def test_one_cell_asks_nothing_and_has_the_repetitions_of_an_interval() -> None:
    study = asked("echo", path__loss="1%")
    assert "question" not in study.document
    assert study.repetitions == 10


def test_what_the_options_say_of_repetitions_stays() -> None:
    assert asked("echo", workload__transport="tcp,udp", study__repetitions="3").repetitions == 3
    precise = with_own_question(Study.adhoc("echo", {"workload.transport": "tcp,udp"}).with_precision("5%"))
    assert "study" not in precise.document


@pytest.mark.parametrize(("losses", "repetitions"), [(2, 10), (20, 10), (40, 11), (400, 14)])
def test_many_levels_take_as_many_repetitions_as_a_sign_test_of_the_first(losses: int, repetitions: int) -> None:
    # 2 * 0.5^n < 0.05 / (cells - 1): 10 for up to 26 cells.
    levels = ",".join(f"{number / 100}%" for number in range(losses))
    assert asked("echo", path__loss=levels).repetitions == repetitions
