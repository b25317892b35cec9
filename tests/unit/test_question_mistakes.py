"""Mistakes in the questions of a study: each names file, line, key and value, and what would be right."""

import pytest

from crosswind.errors import StudyError
from crosswind.study.design import Study
from study_texts import ECHO, study

LEVELS = ECHO + 'transport = ["tcp", "udp"]\nsize = [1, 100]\n[path]\nloss = ["0%", "5%"]\n'
RIGHT = {
    "asks": '"Is UDP faster than TCP?"',
    "metric": '"rtt"',
    "factor": '"workload.transport"',
    "compare": '["tcp", "udp"]',
}


def asking(**changes: str) -> str:
    """A study with one question, from line 7 on: its keys in the order of RIGHT, then the others."""
    lines = [f"{key} = {value}" for key, value in (RIGHT | changes).items() if value]
    return LEVELS + "[[question]]\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"asks": ""}, "7: question[1].asks: is missing", "asks ="),
        ({"asks": '"UDP is faster."'}, '8: question[1].asks: "UDP is faster." is not a question', "question mark"),
        ({"asks": '"?"'}, '8: question[1].asks: "?" is not a question', "one sentence"),
        ({"asks": f'"{"a" * 200}?"'}, "8: question[1].asks: the question has 201 characters", "at most 200"),
        ({"asks": '"Is it\\nso?"'}, "8: question[1].asks: it has several lines", "on one line"),
        ({"metric": '"rt"'}, '9: question[1].metric: "rt" is not a metric', 'did you mean "rtt"?'),
        ({"metric": '"lots"'}, '9: question[1].metric: "lots" is not a metric', 'did you mean "lost"?'),
        ({"metric": '"goodput"'}, "9: question[1].metric: no cell of the question has the metric goodput", "workload"),
        ({"factor": '"workload.transprt"'}, '10: question[1].factor: "workload.transprt" is not a factor\'s key',
         'did you mean "workload.transport"?'),
        ({"factor": '"part"'}, '10: question[1].factor: "part" is not a factor\'s key', "known"),
        ({"compare": '["tcp"]'}, "11: question[1].compare: compare has 1 level, and a comparison takes two", "first"),
        ({"compare": "[]"}, "11: question[1].compare: compare has no level", "the reference first"),
        ({"compare": '["tcp", "tcp"]'}, "11: question[1].compare[2]: tcp is compared with itself", "once"),
        ({"compare": '["tcp", "tpc"]'}, '11: question[1].compare[2]: "tpc" is not', "did you mean"),
        ({"compare": '["tcp", "quic"]'}, "11: question[1].compare[2]: no cell of the question has workload.transport "
         "= quic", "levels there: tcp, udp"),
        ({"factor": '"workload.size"', "compare": '[1, "1B"]'},
         "11: question[1].compare[2]: 1B is compared with itself", "once"),
        ({"statistic": '"average"'}, '12: question[1].statistic: "average" is wrong', "'median'"),
        ({"metric": '"delayed_share"', "statistic": '"median"'},
         "12: question[1].statistic: delayed_share has no median in a repetition", "by its mean"),
        ({"metric": '"cpu_client"', "statistic": '"p95"'},
         "12: question[1].statistic: cpu_client has no p95 in a repetition", "by its mean"),
        ({"statistic": '"share"'}, "12: question[1].statistic: rtt is not a share of exchanges", "mean, median"),
        ({"yes": '"faster"'}, '12: question[1].yes: "faster" is wrong', "'less'"),
        ({"yes": '"same"'}, "7: question[1].margin: whether two levels are the same takes a margin", "5ms"),
        ({"scale": '"log"'}, '12: question[1].scale: "log" is wrong', "'ratio'"),
        ({"metric": '"lost"', "scale": '"ratio"'}, "12: question[1].scale: lost may be 0 or less", "difference"),
        ({"margin": '"5 apples"'}, '12: question[1].margin: "5 apples" is not a margin', "ms"),
        ({"margin": '"5ms"', "scale": '"ratio"'}, '12: question[1].margin: "5ms" is the margin of a difference',
         "another margin"),
        ({"margin": '"5%"', "scale": '"difference"'}, '12: question[1].margin: "5%" is the margin of a ratio', "leave"),
        ({"where": '{ "path.los" = "5%" }'}, '12: question[1].where."path.los": there is no key "path.los"', "did you"),
        ({"where": '{ "path.loss" = "7%" }'}, "12: question[1].where: no cell has path.loss = 7%", "levels of this"),
        ({"where": '{ "workload.transport" = "tcp" }'},
         "12: question[1].where: workload.transport has one value only where workload.transport = tcp", "compared"),
        ({"figure": '"Fig. 1"'}, '12: question[1].figure: no figure has the title "Fig. 1"', "no figure"),
        ({"expects": '"less"'}, "12: question[1].expects: unknown key", "known"),
    ],
)  # fmt: skip
def test_a_mistake_names_file_line_key_and_value(changes: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(asking(**changes))
    assert caught.value.message.startswith(f"my.toml:{message}")
    assert hint in (caught.value.hint or "")
    assert caught.value.exit_code == 2


def test_what_is_better_is_a_yes_unless_the_study_says_otherwise() -> None:
    def yes(text: str) -> str:
        (question,) = study(text).questions
        return question.yes

    assert yes(asking()) == "less"
    assert yes(asking(yes='"more"')) == "more"
    transfers = asking(metric='"goodput"').replace('"echo"', '"transfer"').replace('["tcp", "udp"]', '["tcp", "quic"]')
    assert yes(transfers) == "more"


def test_what_a_plan_has_of_a_question() -> None:
    (question,) = study(asking(where='{ "workload.size" = 1 }', margin='"25%"', statistic='"median"')).questions
    made = question.as_dict(list(study(asking()).cells()))
    assert made == {
        "asks": "Is UDP faster than TCP?", "metric": "rtt", "statistic": "median", "factor": "workload.transport",
        "margin": "25%", "bound": 0.25, "is_ratio": True, "yes": "less", "where": {"workload.size": "1"}, "note": "",
        "cells": [0, 2, 4, 6],
        "compare": [{"level": "tcp", "cells": [0, 4]}, {"level": "udp", "cells": [2, 6]}],
    }  # fmt: skip
    (lost,) = study(asking(metric='"lost"', statistic='"share"')).questions
    assert (lost.as_dict([])["statistic"], lost.is_ratio) == ("mean", False)


def test_levels_that_were_set_anew_leave_a_question_without_cells() -> None:
    """`--set` and `[quick]` may take away what a question is about: the report then says so."""
    made = study(asking(where='{ "path.loss" = "5%" }')).with_overrides({"path.loss": "0%"})
    (question,) = made.questions
    assert question.as_dict(list(made.cells()))["cells"] == []


def test_a_question_is_no_part_of_what_is_measured() -> None:
    assert study(asking()).digest() == study(LEVELS).digest()
    assert Study.from_canonical(study(asking()).canonical()).questions == study(asking()).questions
