"""`study.parts` runs some parts of a study; `study.optional_peers` leaves out the cells of what is not installed."""

from collections.abc import Callable

import pytest

from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.peers.registry import KnownPeer, Obstacle
from crosswind.study.design import Study
from crosswind.study.plan import Plan
from study_texts import PARTS, study

BROWSER = '[[part]]\nname = "browser"\n[part.workload]\nkind = "echo"\nclient = "chromium"\n'
ABOUT_PARTS = """
[[figure]]
title = "Small"
metric = "rtt"
x = "path.loss"
where = { part = "small" }
[[figure]]
title = "By part"
metric = "rtt"
x = "part"
[[question]]
asks = "Is anything faster?"
metric = "rtt"
factor = "part"
compare = ["small", "browser"]
[[published]]
source = "a report"
metric = "rtt"
unit = "ms"
levels = { part = "browser" }
mean = 5
[[repetitions]]
where = { part = "browser" }
at_most = 1
"""
NOT_HERE = Obstacle("Chromium is not installed", "apt-get install chromium")


@pytest.fixture
def no_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownPeer, "missing", lambda peer, _transport: NOT_HERE if peer.name == "chromium" else None)


def parts_of(design: Study) -> list[str]:
    return list(dict.fromkeys(cell.part for cell in design.cells()))


# --- some parts -------------------------------------------------------------------------------------------------------


def test_only_the_parts_that_are_chosen_are_run() -> None:
    design = study(PARTS + BROWSER + ABOUT_PARTS)
    assert parts_of(design) == ["small", "bulk", "browser"]
    chosen = design.with_overrides({"study.parts": "browser,small"})
    assert parts_of(chosen) == ["small", "browser"]
    assert chosen.factors == {"part": ("small", "browser"), "path.loss": ("0%", "5%")}
    assert [figure.as_dict(chosen.cells())["title"] for figure in chosen.findings["figure"]] == ["Small", "By part"]
    assert [len(chosen.findings[kind]) for kind in ("question", "published")] == [1, 1]
    assert len(chosen.limits) == 1


def test_what_is_about_a_part_that_is_not_run_goes_with_it() -> None:
    design = study(PARTS + BROWSER + ABOUT_PARTS).with_overrides({"study.parts": "small"})
    # A single part is no factor, and no cell says that it belongs to it.
    assert design.factors == {"path.loss": ("0%", "5%")}
    assert [figure.as_dict(design.cells())["title"] for figure in design.findings["figure"]] == ["Small"]
    assert design.findings["question"] == design.findings["published"] == design.limits == ()
    assert [cell.index for cell in design.cells()] == [0, 1]


def test_a_comparison_of_parts_keeps_those_that_are_run() -> None:
    three = ABOUT_PARTS.replace('compare = ["small", "browser"]', 'compare = ["small", "bulk", "browser"]')
    design = study(PARTS + BROWSER + three.replace('"rtt"\nfactor', '"lost"\nfactor'))
    (question,) = design.with_overrides({"study.parts": "small,browser"}).findings["question"]
    assert [level.texts for level in question.named_levels] == [{"part": "small"}, {"part": "browser"}]


def test_a_fit_by_part_keeps_the_published_coefficients_of_those_that_are_run() -> None:
    published = ", ".join(
        f'{{ level = "{part}", b = 1, source = "a report" }}' for part in ("small", "bulk", "browser")
    )
    fit = f"""
[[fit]]
title = "By part"
model = "caia-exponential"
metric = "transfer_time"
x = "path.loss"
by = "part"
over = "workload.size"
published = [{published}]
"""
    (left,) = study(PARTS + BROWSER + fit).with_overrides({"study.parts": "small,bulk"}).findings["fit"]
    assert [level.texts for level in left.named_levels] == [{"part": "small"}, {"part": "bulk"}]
    assert not study(PARTS + BROWSER + fit).with_overrides({"study.parts": "bulk"}).findings["fit"]


def test_rows_of_a_part_that_is_not_run_go() -> None:
    table = """
[[published]]
source = "a report"
metric = "rtt"
unit = "ms"
columns = ["path.loss", { part = ["small", "browser"] }]
rows = [["0%", 5, 6], ["5%", 7, { mean = 8, note = "one run" }]]
"""
    rows = study(PARTS + BROWSER + table).with_overrides({"study.parts": "bulk,browser"}).findings["published"]
    assert [(number.levels, number.mean, number.note) for number in rows] == [
        ({"path.loss": "0%", "part": "browser"}, 6, ""), ({"path.loss": "5%", "part": "browser"}, 8, "one run"),
    ]  # fmt: skip


def test_a_table_for_cells_that_are_not_run_is_no_mistake() -> None:
    limits = '[[repetitions]]\nwhere = { "workload.size" = "1MB" }\nat_most = 1\n'
    design = study(f'{PARTS}{limits}[study]\nparts = ["small"]\n')
    assert parts_of(design) == ["small"]
    assert design.limits == ()


def test_parts_can_be_chosen_again() -> None:
    design = study(f'{PARTS}[study]\nparts = ["small"]\n')
    assert parts_of(design.with_overrides({"study.parts": "bulk", "part.bulk.workload.size": "5kB"})) == ["bulk"]
    again = Study.from_canonical(design.canonical())
    assert (parts_of(again), again.digest()) == (["small"], design.digest())
    assert design.digest() != study(PARTS).digest()


def test_the_quick_variant_may_have_some_parts() -> None:
    design = study(f'{PARTS}[quick]\n"study.parts" = ["bulk"]\n')
    assert parts_of(design) == ["small", "bulk"]
    assert parts_of(design.quick()) == ["bulk"]
    assert parts_of(design.quick().with_overrides({"study.parts": "small"})) == ["small"]


def test_a_part_that_does_not_exist() -> None:
    with pytest.raises(StudyError, match=r'--set study\.parts=smal: there is no part "smal"') as caught:
        study(PARTS).with_overrides({"study.parts": "smal"})
    assert caught.value.hint == 'did you mean "small"?'
    with pytest.raises(StudyError, match="there is no part") as caught:
        study('[workload]\nkind = "echo"\n[study]\nparts = ["a"]\n')
    assert caught.value.hint == "this study has no parts"


# --- optional peers ---------------------------------------------------------------------------------------------------


def optional(text: str) -> Study:
    return study(f'{text}[study]\noptional_peers = ["chromium"]\n')


@pytest.mark.usefixtures("no_chromium")
def test_a_part_that_needs_what_is_missing_is_left_out() -> None:
    here = optional(PARTS + BROWSER + ABOUT_PARTS).on_this_machine()
    assert parts_of(here) == ["small", "bulk"]
    assert here.left_out == (
        "No cells with chromium: Chromium is not installed (apt-get install chromium).",
        "So the part browser is not run.",
    )
    assert here.notes == here.findings["question"] == here.findings["published"] == here.limits == ()


@pytest.mark.usefixtures("no_chromium")
def test_cells_have_the_same_keys_with_and_without_what_is_missing() -> None:
    there = optional(BROWSER + PARTS)
    here = there.on_this_machine()
    keys = {item.key for item in Plan.of(there) if item.cell.part != "browser"}
    assert {item.key for item in Plan.of(here)} == keys
    assert len(here) == len(keys) < len(there)
    assert {(cell.part, cell.absent) for cell in here.every_cell()} == {
        ("browser", "Chromium is not installed"), ("small", ""), ("bulk", ""),
    }  # fmt: skip
    # What a run keeps of its study says it too.
    again = Study.from_canonical(here.canonical())
    assert list(again.every_cell()) == list(here.every_cell())
    assert here.digest() == again.digest() == there.digest()


@pytest.mark.usefixtures("no_chromium")
def test_a_threshold_of_absent_cells_decides_nothing_and_a_question_says_what_is_missing() -> None:
    text = """
[workload]
kind = "echo"
client = ["native", "chromium"]
[[threshold]]
fail_if = "p95(rtt) > 5ms where client = chromium"
[[threshold]]
fail_if = "p95(rtt) > 5ms"
[[question]]
asks = "Is Chromium slower?"
metric = "rtt"
factor = "workload.client"
compare = ["native", "chromium"]
"""
    asked = presentation(optional(text).on_this_machine())["asked"]
    assert [(threshold["cells"], threshold["missing"]) for threshold in asked["threshold"]] == [([0], [])]
    assert [question["missing"] for question in asked["question"]] == [["workload.client chromium"]]


@pytest.mark.usefixtures("no_chromium")
def test_a_level_that_is_missing_is_left_out() -> None:
    here = optional('[workload]\nkind = "echo"\nclient = ["native", "chromium"]\n').on_this_machine()
    assert here.factors == {"workload.client": ("native",)}
    assert len(here.left_out) == 1


@pytest.mark.usefixtures("no_chromium")
def test_a_study_of_which_nothing_would_be_left_stays_as_it_is() -> None:
    # It is refused when its cells are checked, as without optional peers.
    for text in ('[workload]\nkind = "echo"\nclient = ["chromium"]\n', BROWSER):
        here = optional(text).on_this_machine()
        assert [cell.settings["workload.client"].text for cell in here.cells()] == ["chromium"]
        assert here.left_out == ()


@pytest.mark.usefixtures("no_chromium")
def test_a_peer_that_is_asked_for_is_refused(crosswind: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = crosswind("plan", "page-load", "--client", "chromium")
    assert (status, out) == (2, "")
    assert "note: So the parts browser and floor are not run." in err
    assert "workload.client is chromium, and Chromium is not installed" in err


def test_where_everything_is_installed_all_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownPeer, "missing", lambda _peer, _transport: None)
    design = optional(PARTS + BROWSER)
    here = design.on_this_machine()
    assert (parts_of(here), here.left_out) == (["small", "bulk", "browser"], ())
    # What is optional somewhere else does not change what is measured here.
    assert here.digest() == study(f"{PARTS}{BROWSER}[study]\n").digest()


def test_an_optional_peer_that_does_not_exist() -> None:
    with pytest.raises(StudyError, match=r'"chromum" is not a peer that comes with Crosswind') as caught:
        study('[workload]\nkind = "echo"\n[study]\noptional_peers = ["chromum"]\n')
    assert caught.value.hint == 'did you mean "chromium"?'
