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
SAYS = {"asks": "", "source": '"A paper"', "says": '"UDP is faster than TCP."'}
NO_FACTOR = SAYS | {"factor": "", "compare": ""}
SAME = {"compare": "", "yes": '"same"'}


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
        ({"metric": '"transfer_time"'},
         "9: question[1].metric: transfer_time is of one workload.transport alone: TCP's handshake has no payload",
         "total counts from asking for the connection"),
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
         "12: question[1].where: workload.transport has one value only where workload.transport = tcp", "leave it out"),
        ({"figure": '"Fig. 1"'}, '12: question[1].figure: no figure has the title "Fig. 1"', "no figure"),
        ({"expects": '"less"'}, "12: question[1].expects: unknown key", "known"),
        ({"says": '"UDP is."'}, "7: question[1].source: says needs a source", "name the document"),
        (SAYS | {"says": ""}, "7: question[1].says: a statement of a document has says", "what the document says"),
        (SAYS | {"asks": '"Is it?"'}, "8: question[1].asks: a statement of a document has says, and no asks", "says"),
        (SAYS | {"at_least": "1", "yes": '"less"'}, "13: question[1].at_least: less has no at_least", "leave out yes"),
        (SAYS | {"yes": '"within"'}, "7: question[1].at_least: within needs at_least, at_most or both", "as at_most"),
        (SAYS | {"at_least": "1", "margin": '"5%"'}, "14: question[1].margin: within has no margin", "leave it out"),
        (SAYS | {"at_least": "2", "at_most": "1"}, "14: question[1].at_most: at_least 2 is more than at_most",
         "exchange"),
        (SAYS | {"at_most": '"5ms"'}, '13: question[1].at_most: "5ms" is not a bound of this number', "a number"),
        (SAYS | {"at_most": '"5"', "scale": '"difference"'}, '13: question[1].at_most: "5" is not a bound', "ms"),
        (SAYS | {"at_most": "'1ms'", "scale": '"value"'}, "9: question[1].factor: the scale value is of single cells",
         "another scale"),
        (SAYS | {"at_most": "1", "model": '"mathis"'}, "9: question[1].factor: the scale model is of single cells",
         "leave out factor"),
        (SAYS | {"at_most": "1", "scale": '"ratio"', "model": '"mathis"'},
         "15: question[1].model: the scale ratio has no model", "model-error"),
        (NO_FACTOR | {"at_most": "1", "scale": '"model"'}, "7: question[1].model: the scale model needs a model",
         "model-error"),
        (NO_FACTOR | {"at_most": "1", "scale": '"ratio"'}, "7: question[1].factor: is missing", "the key"),
        (SAYS | {"at_most": "'1ms'", "scale": '"slope"'},
         "9: question[1].factor: the levels of workload.transport are no numbers, of which there is a slope", "rate"),
        (SAYS | {"scale": '"exponent"', "yes": '"rises"'}, "14: question[1].yes: a number of the scale exponent is not "
         "rises", "at_least or at_most"),
        (SAYS | {"at_most": "1", "metric": '"delayed_share"', "scale": '"exponent"'},
         "14: question[1].scale: delayed_share may be 0 or less", "difference"),
        (SAYS | {"yes": '"rises"', "margin": '"5%"'}, "14: question[1].margin: rises has no margin", "leave it out"),
        *((SAME | {"margin": f'"{margin}"'}, f'12: question[1].margin: "{margin}" is not a margin', "")
          for margin in ("", "5", "ms", "-5ms", "0ms", "1e ms", "5%%")),
        (SAME | {"metric": '"delayed_share"', "margin": '"100%"'}, '12: question[1].margin: "100%" is not a margin',
         "below 100%"),
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
        (question,) = study(text).findings["question"]
        return str(question.as_dict([])["yes"])

    assert yes(asking()) == "less"
    assert yes(asking(yes='"more"')) == "more"
    transfers = asking(metric='"goodput"').replace('"echo"', '"transfer"').replace('["tcp", "udp"]', '["tcp", "quic"]')
    assert yes(transfers) == "more"


def test_what_a_plan_has_of_a_question() -> None:
    (question,) = study(asking(where='{ "workload.size" = 1 }', margin='"25%"', statistic='"median"')).findings[
        "question"
    ]
    made = question.as_dict(list(study(asking()).cells()))
    assert made == {
        "asks": "Is UDP faster than TCP?", "source": "", "metric": "rtt", "statistic": "median", "scale": "ratio",
        "yes": "less", "factor": "workload.transport", "low": None, "high": 0.8, "inside": True, "is_open": True,
        "margin": "25%", "bound": 0.25, "model": None, "figure": None, "note": "", "where": {"workload.size": "1"},
        "choice": "", "why_open": "", "cells": [0, 2, 4, 6],
        "compare": [{"level": "tcp", "cells": [0, 4]}, {"level": "udp", "cells": [2, 6]}],
    }  # fmt: skip
    (lost,) = study(asking(metric='"lost"', statistic='"share"')).findings["question"]
    assert (lost.as_dict([])["statistic"], lost.as_dict([])["scale"]) == ("mean", "difference")


@pytest.mark.parametrize(
    ("changes", "scale", "yes", "low", "high"),
    [
        ({"at_least": "0.5", "at_most": '"2"'}, "ratio", "within", 0.5, 2),
        ({"at_least": "0", "scale": '"difference"'}, "difference", "within", 0, None),
        ({"factor": "", "compare": "", "at_most": '"5ms"'}, "value", "within", None, 5e6),
        ({"factor": "", "compare": "", "at_least": "0.8", "model": '"ping-pong"'}, "model", "within", 0.8, None),
        ({"factor": '"path.loss"', "compare": "", "scale": '"slope"', "at_most": '"2.5ms"'}, "slope", "within", None,
         2.5e6),
        ({"factor": '"path.loss"', "compare": "", "scale": '"exponent"', "at_least": "-1"}, "exponent", "within", -1,
         None),
        ({"factor": '"path.loss"', "compare": "", "yes": '"falls"'}, "ratio", "falls", None, 1),
        ({"compare": "", "yes": '"different"', "margin": '"25%"'}, "ratio", "different", 0.8, 1.25),
        ({"compare": "", "yes": '"same"', "margin": '"0.25 s"'}, "difference", "same", -0.25e9, 0.25e9),
        ({"metric": '"spent_recovery"', "compare": "", "yes": '"different"'}, "difference", "different", 0, 0),
        (SAME | {"metric": '"wire_packets_forward"', "margin": '"25 %"'}, "ratio", "same", 0.8, 1.25),
        (SAME | {"metric": '"wire_bytes_forward"', "margin": '"1.5kB"'}, "difference", "same", -1500, 1500),
        (SAME | {"metric": '"delayed_share"', "margin": '"4%"'}, "difference", "same", -0.04, 0.04),
        (SAME | {"metric": '"delayed_share"', "margin": '"0.04"'}, "difference", "same", -0.04, 0.04),
    ],
)  # fmt: skip
def test_the_number_that_decides_and_its_range(
    changes: dict[str, str], scale: str, yes: str, low: float | None, high: float | None
) -> None:
    made = study(asking(**(SAYS | changes)))
    (statement,) = made.findings["question"]
    plain = statement.as_dict(list(made.cells()))
    assert (plain["scale"], plain["yes"], plain["inside"]) == (scale, yes, yes != "different")
    assert (plain["low"], plain["high"]) == (pytest.approx(low), pytest.approx(high))
    assert (plain["asks"], plain["source"]) == ("UDP is faster than TCP.", "A paper")
    assert Study.from_toml(made.to_toml(), name="my").canonical() == made.canonical()


def test_levels_that_were_set_anew_leave_a_question_without_cells() -> None:
    """`--set` and `[quick]` may take away what a question is about: the report then says so."""
    made = study(asking(where='{ "path.loss" = "5%" }')).with_overrides({"path.loss": "0%"})
    (question,) = made.findings["question"]
    assert question.as_dict(list(made.cells()))["cells"] == []


def test_a_question_is_no_part_of_what_is_measured() -> None:
    assert study(asking()).digest() == study(LEVELS).digest()
    assert Study.from_canonical(study(asking()).canonical()).findings == study(asking()).findings
