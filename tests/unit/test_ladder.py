"""Ladders: a study over ever worse networks, and the rung on which it breaks."""

from collections.abc import Sequence
from typing import Any

import pytest

from cells import checked
from crosswind.analysis.result import Result
from crosswind.api.ladder import NOTE, RUNGS, over_ladder
from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.findings.ladder.result import Ladder
from crosswind.findings.ladder.show import SHOWING, ladder_table
from crosswind.findings.pipeline import analyse
from crosswind.report.page import Tone
from crosswind.study.design import Study
from fixture_types import Crosswind
from records import MS, echoes, record, runs
from study_texts import ECHO, study

BOTH = ECHO + 'transport = ["tcp", "quic"]\n'
SPREAD = (-0.02, 0.01, 0.0, 0.02, -0.01, 0.005, -0.005, 0.015)
NAMES = ("good", "worse", "bad")


def climb(first: int, rtts_ms: Sequence[float], lost: Sequence[int], transport: str = "tcp") -> list[Any]:
    """Cells of one transport: eight repetitions of a hundred echoes, of which so many are lost."""
    return [
        one
        for rung, (rtt, gone) in enumerate(zip(rtts_ms, lost, strict=True))
        for one in runs(
            first + rung,
            [echoes([None] * gone + [round(rtt * MS * (1 + offset))] * (100 - gone)) for offset in SPREAD],
            {"path.network": NAMES[rung], "workload.transport": transport},
        )
    ]


def asked(cells: int) -> dict[str, Any]:
    own = list(range(cells))
    metrics = dict.fromkeys(map(str, own), "rtt")
    return {"factor": "path.network", "rungs": list(NAMES), "note": "", "cells": own, "metrics": metrics}


def result_of(*cells: list[Any], **findings: Any) -> Result:
    every = [one for own in cells for one in own]
    return analyse(record(*every, ladders=[asked(3 * len(cells))], **findings))


def threshold(bound_ms: int, cells: int) -> dict[str, Any]:
    text = f"mean(rtt) > {bound_ms}ms"
    rungs = ", ".join(f'"{name}"' for name in ("lan", "wifi", "4g"))
    made = study(f'[path]\nnetwork = [{rungs}]\n{BOTH}[[threshold]]\nfail_if = "{text}"\n')
    return presentation(made)["asked"]["threshold"][0] | {"cells": list(range(cells))}


def test_the_rung_on_which_exchanges_fail_is_named_with_its_numbers() -> None:
    result = result_of(climb(0, (10, 20, 80), (0, 0, 7)), climb(3, (10, 20, 80), (0, 0, 0), "quic"))
    (ladder,) = result.of(Ladder)
    assert ladder.rungs == list(NAMES)
    tcp, quic = ladder.climbs
    assert [(each.kind, each.rung, each.before) for each in tcp.breaks] == [("failed", "bad", "worse")]
    assert tcp.sentence.startswith(
        "On the ladder with transport tcp: exchanges fail from bad on (56 of 800 (7 %) on bad); mean round-trip time "
    )
    assert quic.breaks == []
    assert quic.sentence.startswith("On the ladder with transport quic: no exchange fails up to bad; mean ")
    assert " on good, " in quic.sentence
    assert [each.tone for each in SHOWING.banners(result)] == [Tone.BAD, Tone.GOOD]
    rows = [(row[0], row[1], row[2], row[-1]) for row in ladder_table(ladder).rows]
    assert rows[2] == ("transport tcp", "bad", "56 of 800 (7 %)", "exchanges fail")
    assert rows[3] == ("transport quic", "good", "0 of 800", "")


def test_a_threshold_fails_from_a_rung_on() -> None:
    result = result_of(climb(0, (10, 25, 80), (0, 0, 0)), thresholds=[threshold(20, 3)])
    (found,) = result.of(Ladder)[0].climbs[0].breaks
    assert (found.kind, found.rung, found.before) == ("threshold", "worse", "good")
    assert found.text.startswith("“mean(rtt) > 20ms” fails from worse on (25.0")
    assert " on worse, 10.0" in found.text


def test_what_breaks_on_the_first_rung_and_what_never_works_again() -> None:
    (found,) = result_of(climb(0, (10, 20, 30), (1, 100, 100))).of(Ladder)[0].climbs
    assert [(each.kind, each.rung, each.before) for each in found.breaks] == [
        ("failed", "good", None), ("unusable", "worse", "good"),
    ]  # fmt: skip
    assert (
        "exchanges fail on the first rung already (8 of 800 (1 %) on good, 800 of 800 (100 %) on bad)" in found.sentence
    )
    assert found.sentence.endswith("; none succeeds from worse on.")


def test_an_answer_that_turns_names_its_rung() -> None:
    question = {
        "asks": "Is quic faster?", "source": "", "metric": "rtt", "statistic": "mean", "factor": "workload.transport",
        "yes": "less", "scale": "ratio", "low": None, "high": 1.0, "is_open": True, "cells": list(range(6)),
        "compare": [{"level": "tcp", "cells": [0, 1, 2]}, {"level": "quic", "cells": [3, 4, 5]}],
    }  # fmt: skip
    better, worse = climb(0, (10, 20, 80), (0, 0, 0)), climb(3, (9, 18, 95), (0, 0, 0), "quic")
    (ladder,) = result_of(better, worse, questions=[question]).of(Ladder)
    (turn,) = ladder.turns
    assert (turn.rung, turn.answers) == ("bad", {"good": "yes", "worse": "yes", "bad": "no"})
    assert turn.sentence.startswith("The answer to “Is quic faster?” turns on bad: no there (ratio 1.18")
    assert "yes on good (ratio 0.90" in turn.sentence
    same = climb(3, (9, 18, 70), (0, 0, 0), "quic")
    assert result_of(better, same, questions=[question]).of(Ladder)[0].turns == []


# --- the study --------------------------------------------------------------------------------------------------------


def test_a_study_runs_on_every_rung() -> None:
    made, _ = over_ladder(study(BOTH), clock="real")
    assert made.factors == {"path.network": RUNGS, "workload.transport": ("tcp", "quic")}
    assert made.findings["ladder"][0].summary.endswith("ladder-4, ladder-5")
    delays = [cell.parameters["path"]["forward"]["delay_ns"] for cell in checked(made)]
    assert delays == sorted(delays)
    assert len(set(delays)) == len(RUNGS) == 6
    (figure,) = made.findings["figure"]
    assert (figure.table.metric, figure.table.x, figure.table.series) == ("rtt", "path.network", "workload.transport")
    # It is kept and read back as any other study.
    assert Study.from_canonical(made.canonical()).factors == made.factors


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ('[path]\nnetwork = "4g"\n', "path.network"),
        ('[path]\nloss = ["0%", "1%"]\n', "path.loss"),
        ('[path]\nforward.delay = "1ms"\n', "path.forward.delay"),
        ('[[path.hop]]\nname = "air"\nloss = "1%"\n', "path.hop.air.loss"),
        ('[[path.at]]\nname = "outage"\nfor = "1s"\nloss = "1%"\n', "path.at.outage.for"),
    ],
)
def test_a_study_that_sets_its_network_is_refused_with_the_place(path: str, key: str) -> None:
    with pytest.raises(
        StudyError, match=rf"^my.toml:\d+: .*{key} is set beside --ladder, whose rungs set the network$"
    ):
        over_ladder(study(path + BOTH))
    over_ladder(study('[path]\nfamily = "ipv6"\nmtu = 1400\n' + BOTH))


def test_a_ladder_needs_rungs() -> None:
    with pytest.raises(StudyError, match=r"^my.toml:\d+: ladder\[1\].factor: path.network is no factor of this study$"):
        study(ECHO + "[[ladder]]\n")
    own = study('[path]\nloss = ["0%", "5%", "20%"]\n' + ECHO + '[[ladder]]\nfactor = "path.loss"\n')
    assert presentation(own)["asked"]["ladder"][0]["rungs"] == ["0%", "5%", "20%"]


def test_the_command_line_refuses_a_network_beside_the_ladder(crosswind: Crosswind) -> None:
    words = ("plan", "echo", "--ladder", "--clock", "real")
    assert crosswind(*words, "--network", "4g")[2].startswith(
        "error: --network 4g: path.network is set beside --ladder, whose rungs set the network\nhint: leave it out"
    )
    assert crosswind(*words, "--to", "192.0.2.1")[2].startswith("error: --ladder emulates networks, and --to ")
    status, out, err = crosswind(*words, "--transport", "tcp,udp")
    assert (status, NOTE in err) == (0, False)
    assert "network=ladder-5 transport=udp" in out
