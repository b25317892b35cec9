"""`study.parts` runs some parts of a study; `study.optional_peers` leaves out the cells of what is not installed."""

from collections.abc import Callable

import pytest

from crosswind.errors import StudyError
from crosswind.peers.registry import KnownPeer, Obstacle
from crosswind.study.design import Study
from crosswind.study.files import load_study
from crosswind.study.optional_peers import for_this_machine
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
    assert [level.texts for level in question.compare] == [{"part": "small"}, {"part": "browser"}]


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
    assert [level.texts for level in left.levels] == [{"part": "small"}, {"part": "bulk"}]
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
    here, notes = for_this_machine(optional(PARTS + BROWSER + ABOUT_PARTS))
    assert parts_of(here) == ["small", "bulk"]
    assert notes == (
        "No cells with chromium: Chromium is not installed (apt-get install chromium).",
        "So the part browser is not run.",
    )
    assert (here.left_out, here.notes) == (notes, ())
    assert here.findings["question"] == here.findings["published"] == ()
    # It is the same study where everything is installed and the parts are chosen by hand.
    by_hand = study(PARTS + BROWSER + ABOUT_PARTS + '[study]\nparts = ["small", "bulk"]\n')
    assert here.digest() == by_hand.digest()


@pytest.mark.usefixtures("no_chromium")
def test_a_level_that_is_missing_is_left_out() -> None:
    here, notes = for_this_machine(optional('[workload]\nkind = "echo"\nclient = ["native", "chromium"]\n'))
    assert here.factors == {"workload.client": ("native",)}
    assert len(notes) == 1


@pytest.mark.usefixtures("no_chromium")
def test_a_study_of_which_nothing_would_be_left_stays_as_it_is() -> None:
    # It is refused when its cells are checked, as without optional peers.
    for text in ('[workload]\nkind = "echo"\nclient = ["chromium"]\n', BROWSER):
        here, notes = for_this_machine(optional(text))
        assert [cell.settings["workload.client"].text for cell in here.cells()] == ["chromium"]
        assert notes == ()


@pytest.mark.usefixtures("no_chromium")
def test_a_peer_that_is_asked_for_is_refused(crosswind: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = crosswind("plan", "page-load", "--client", "chromium")
    assert (status, out) == (2, "")
    assert "note: So the parts browser and floor are not run." in err
    assert "workload.client is chromium, and Chromium is not installed" in err


def test_where_everything_is_installed_all_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownPeer, "missing", lambda _peer, _transport: None)
    design = optional(PARTS + BROWSER)
    here, notes = for_this_machine(design)
    assert (parts_of(here), notes) == (["small", "bulk", "browser"], ())
    # What is optional somewhere else does not change what is measured here.
    assert here.digest() == study(f"{PARTS}{BROWSER}[study]\n").digest()


@pytest.mark.parametrize("name", ["page-load", "websocket-or-http"])
@pytest.mark.usefixtures("no_chromium")
def test_built_in_studies_run_without_a_browser(name: str) -> None:
    here, notes = for_this_machine(load_study(name))
    assert "So the parts browser and floor are not run." in notes
    assert not any("workload.client" in cell.settings for cell in here.cells())


@pytest.mark.parametrize(
    ("missing", "parts", "cells"),
    [
        ((), ["as-run", "sizes", "ends", "several-packets"], 68),
        (("chromium",), ["sizes", "ends"], 24),
        (("deno",), ["sizes", "ends"], 16),
        (("chromium", "deno"), ["sizes", "ends"], 12),
    ],
)
def test_the_thesis_runs_with_what_is_installed(
    missing: tuple[str, ...], parts: list[str], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnownPeer, "missing", lambda peer, _transport: NOT_HERE if peer.name in missing else None)
    here, notes = for_this_machine(load_study("thesis"))
    assert (parts_of(here), len(list(here.cells()))) == (parts, cells)
    assert [note for note in notes if note.startswith("No cells with")] == (
        [f"No cells with {' and '.join(missing)}: Chromium is not installed (apt-get install chromium)."]
        if missing
        else []
    )


def test_an_optional_peer_that_does_not_exist() -> None:
    with pytest.raises(StudyError, match=r'"chromum" is not a peer that comes with Crosswind') as caught:
        study('[workload]\nkind = "echo"\n[study]\noptional_peers = ["chromum"]\n')
    assert caught.value.hint == 'did you mean "chromium"?'
