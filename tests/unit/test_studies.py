"""The built-in studies: they hold together, keep their time, and carry the published figures."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import linear_regression
from typing import Any

import pytest

from cells import checked
from conftest import requires_binary
from crosswind.analysis.designs import design_of
from crosswind.analysis.settings import CellSettings
from crosswind.api.first_look import first_look
from crosswind.catalog.metrics import METRICS
from crosswind.cell.check import CheckedCell
from crosswind.errors import EngineError
from crosswind.execution.planning import planned_cells, presentation
from crosswind.findings.declared import DeclaredTable
from crosswind.findings.figure.declare import FigureTable
from crosswind.findings.published.declare import Published
from crosswind.models import unknown_models
from crosswind.stats.design import mean_shortage
from crosswind.store.manifest import Options
from crosswind.study.design import Study
from crosswind.study.files import builtin_names
from crosswind.study.keys import SETTINGS
from crosswind.study.plan import Plan
from study_texts import shipped

ROOT = Path(__file__).parents[2]
NAMES = builtin_names()
SECOND_NS = 10**9
NATIVE = ("socketio-websocket", "socketio-webtransport")


@cache
def cells_of(name: str) -> tuple[CheckedCell, ...]:
    """Every cell of a study that comes with Crosswind."""
    return checked(shipped(name))


def durations_ns(study: Study) -> list[int]:
    """What each run of the plan takes."""
    cells = checked(study)
    return [cells[item.cell.index].forecast.duration_ns for item in Plan.of(study)]


def duration_ns(study: Study) -> int:
    return sum(durations_ns(study))


def workload_of(cell: CheckedCell) -> dict[str, Any]:
    return dict(cell.parameters["workload"])


def rtt_ns(cell: CheckedCell) -> int:
    return sum(cell.parameters["path"][direction]["delay_ns"] for direction in ("forward", "reverse"))


def losses(cell: CheckedCell) -> tuple[float, float]:
    """Forward and reverse."""
    path = cell.parameters["path"]
    return path["forward"]["loss"], path["reverse"]["loss"]


def published_in(study: Study) -> tuple[Published, ...]:
    return tuple(number for number in study.findings["published"] if isinstance(number, Published))


def published(name: str, *keys: str) -> dict[tuple[str, ...], float]:
    return {tuple(p.levels[key] for key in keys): p.mean for p in published_in(shipped(name))}


def questions_of(study: Study, *, of_documents: bool = False) -> list[dict[str, Any]]:
    """What the study asks, or what documents say."""
    cells = list(study.cells())
    made = [question.as_dict(cells) for question in study.findings["question"]]
    return [question for question in made if bool(question["source"]) is of_documents]


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_variant_is_smaller_and_takes_less_than_a_minute(name: str) -> None:
    study, quick = shipped(name), shipped(name).quick()
    assert len(Plan.of(quick)) < len(Plan.of(study))
    expected_ns = durations_ns(first_look(study, clock="real")[0])
    assert sum(expected_ns) < sum(cells_of(name)[item.cell.index].forecast.duration_ns for item in Plan.of(study))
    cells = checked(quick)
    # A run in virtual time keeps one processor busy. A forecast of a flow does not know how a change slows it.
    slowed = any(cell.parameters.get("flows") and cell.parameters["path"].get("changes") for cell in cells)
    limit_s = 120 if slowed else 60
    assert sum(cells[item.cell.index].forecast.virtual_ns for item in Plan.of(quick)) / 2 < limit_s * SECOND_NS
    if cells[0].parameters["host"]["clock"] == "virtual":
        return
    # A run on the machine's clock begins with two cells a processor; where there are hundreds that mostly wait, with
    # many more. It measures what the full study does, of fewer cells, so it may take longer than in virtual time.
    side_by_side = 20 if len(expected_ns) >= 150 else 4
    assert max(sum(expected_ns) / side_by_side, *expected_ns) < 420 * SECOND_NS


def test_the_quick_start_leaves_room_for_slow_machines() -> None:
    assert duration_ns(shipped("quickstart")) / 4 < 20 * SECOND_NS


@pytest.mark.parametrize("name", NAMES)
def test_every_published_figure_stands_beside_a_cell(name: str) -> None:
    cells, quick = list(shipped(name).cells()), shipped(name).quick()
    quick_parts = {cell.part for cell in quick.cells()}
    for figure in published_in(shipped(name)):
        assert any(figure.where.matches(cell) for cell in cells), figure
    for figure in published_in(quick):
        is_left_out = any(text not in quick.factors.get(key, (text,)) for key, text in figure.levels.items())
        is_left_out |= quick_parts.isdisjoint(cell.part for cell in cells if figure.where.matches(cell))
        assert is_left_out or any(figure.where.matches(cell) for cell in quick.cells()), figure
    beside = published_in(quick)
    assert not beside or any(figure.where.matches(cell) for figure in beside for cell in quick.cells())


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_and_fit_varies_in_the_whole_study(name: str) -> None:
    study = shipped(name)
    cells = list(study.cells())
    for drawn in (*study.findings["figure"], *study.findings["fit"]):
        assert isinstance(drawn, DeclaredTable)
        table = drawn.table
        keys = [table.x, table.series] if isinstance(table, FigureTable) else [table.x, table.by, table.over]
        own = [cell for cell in cells if drawn.where.matches(cell) and {*filter(None, keys)} <= cell.levels.keys()]
        for key in filter(None, keys):
            assert len({cell.levels[key] for cell in own}) > 1, (drawn, key)
    for place, names in study.named_models.items():
        assert unknown_models(names) == [], place
    for fit in study.findings["fit"]:
        assert all(entry["cells"] for entry in fit.as_dict(cells)["published"])


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_is_about_cells_of_the_whole_study(name: str) -> None:
    study = shipped(name)
    cells = list(study.cells())
    for statement in questions_of(study, of_documents=True):
        own = [cell for cell in cells if cell.index in statement["cells"]]
        assert own, statement
        assert all(level["cells"] for level in statement["compare"]), statement
        if statement["factor"] is not None:
            assert len({cell.levels[statement["factor"]] for cell in own}) > 1, statement


@pytest.mark.parametrize("name", NAMES)
def test_every_question_has_cells_that_differ_in_its_factor_alone(name: str) -> None:
    study = shipped(name)
    cells = list(study.cells())
    for question in questions_of(study):
        factor, own = question["factor"], [cell for cell in cells if cell.index in question["cells"]]
        assert own, question["asks"]
        if factor is None:
            continue
        levels = {cell.levels[factor] for cell in own}
        compared = {index for level in question["compare"] for index in level["cells"]} or {cell.index for cell in own}
        groups = Counter(
            tuple((key, text) for key, text in cell.levels.items() if key != factor)
            for cell in own
            if cell.index in compared
        )
        assert max(groups.values()) == len(question["compare"] or levels), question["asks"]


def test_transfer_time_is_the_whole_of_table_1() -> None:
    study = shipped("transfer-time")
    of_table = ("5k", "15k", "64k", "256k", "1m", "20m", "20m-delay")
    assert study.factors["part"] == (*of_table, "fresh", "after-losses")
    cells = [whole for whole in checked(study) if whole.cell.part in of_table]
    keys = ("path.delay", "path.loss", "path.rate")
    levels = {key: {whole.cell.settings[key].text for whole in cells} for key in keys}
    assert levels == {
        "path.delay": {"0ms", "15ms", "50ms"},
        "path.loss": {"0%", "2%", "5%", "8%", "10%"},
        "path.rate": {"1.5mbit", "6mbit", "15mbit", "25mbit"},
    }
    sizes = (5_000, 15_000, 64_000, 256_000, 1_000_000, 20_000_000)
    assert Counter(workload_of(cell)["size_bytes"] for cell in cells) == dict.fromkeys(sizes, 60)
    assert {(whole.cell.part, study.repetitions_of(whole.cell)) for whole in cells} == {
        *((part, 20) for part in ("5k", "15k", "64k", "256k", "1m", "20m")),
        ("20m-delay", 6),
    }
    for cell in cells:
        forward, reverse = losses(cell)
        assert forward == reverse
        assert workload_of(cell)["timeout_ns"] == 3600 * SECOND_NS


def test_a_statement_of_table_3_is_of_hosts_that_remember_and_of_others() -> None:
    cells = {whole.cell.index: whole for whole in cells_of("transfer-time")}
    for statement in questions_of(shipped("transfer-time"), of_documents=True):
        if statement["choice"]:
            hosts = [cells[index].parameters["host"] for index in statement["cells"]]
            kept = (True, 0) if statement["choice"].startswith("a memory") else (False, 1)
            assert {(host["tcp_metrics"], host["tcp_recovery"]) for host in hosts} == {kept}


def test_transfers_of_up_to_1_mb_support_an_interval_of_every_mean() -> None:
    study = shipped("transfer-time")
    for whole in cells_of("transfer-time"):
        if workload_of(whole)["size_bytes"] <= 1_000_000 and losses(whole) != (0, 0):
            design = design_of(METRICS["transfer_time"], CellSettings.of(whole.parameters, whole.effect))
            repetitions = study.repetitions_of(whole.cell)
            assert mean_shortage(design, repetitions, repetitions * workload_of(whole)["count"]) is None, whole.cell


def test_the_held_out_test_is_on_what_was_not_fitted() -> None:
    fitted = [whole.cell for whole in cells_of("transfer-time")]
    known = {key: {cell.settings[key].text for cell in fitted} for key in ("path.rate", "workload.size")}
    for whole in cells_of("transfer-time-held-out"):
        cell = whole.cell
        new = {key for key, texts in known.items() if cell.settings[key].text not in texts}
        both = {"path.rate", "workload.size"}
        of_size = {"workload.size"}
        expected = {"size": of_size, "remembered-size": of_size, "rate": {"path.rate"}, "path": both, "large": both}
        assert new == expected[str(cell.part)]
        rtts_ns = {"path": {60_000_000}, "large": {10_000_000, 150_000_000}}.get(cell.part or "", {0})
        assert rtt_ns(whole) in rtts_ns


def test_no_cell_with_loss_is_both_fitted_and_held_out() -> None:
    def paths(name: str) -> set[str]:
        cells = [whole.cell for whole in cells_of(name)]
        return {
            str(
                dict(
                    sorted(
                        (k, v.text) for k, v in cell.settings.items() if k.startswith("path") or k == "workload.size"
                    )
                )
            )
            for cell in cells
        }

    assert paths("transfer-time-model").isdisjoint(paths("transfer-time-held-out"))


def test_what_the_notes_of_latency_by_link_say_of_its_tables() -> None:
    """The slopes and ratios in words are those of the published numbers."""
    figures = [figure for figure in published_in(shipped("latency-by-link")) if figure.metric == "total"]
    means = {
        name: [figure.mean for figure in figures if figure.levels["workload.transport"] == name]
        for name in ("tcp", "http1", "https1")
    }
    rtts = [0, 3, 10, 30]
    slopes = {name: linear_regression(rtts, values).slope for name, values in means.items()}
    assert {name: round(slope, 2) for name, slope in slopes.items()} == {"tcp": 2.88, "http1": 3.19, "https1": 3.09}
    ratios = [round(100 * (s / p - 1)) for s, p in zip(means["https1"], means["http1"], strict=True)]
    assert ratios == [26, -18, -7, -4]


def test_latency_by_link_has_new_and_kept_connections() -> None:
    cells = cells_of("latency-by-link")
    kept = Counter((cell.cell.part, workload_of(cell)["connection"]) for cell in cells)
    assert kept == {
        ("connections", "new"): 36, ("connections", "kept"): 36, ("two-writes", "new"): 4, ("lossy", "kept"): 2,
        ("resumed", "new"): 16,
        ("early-data", "new"): 12,
    }  # fmt: skip
    assert {cell.parameters["path"]["family"] for cell in cells} == {"ipv6"}
    assert {rtt_ns(cell) // 10**6 for cell in cells} == {0, 3, 10, 30}


def test_published_times_of_message_size_are_table_2() -> None:
    table = {
        ("socketio-websocket", "10%"): [40.72, 50.47, 53.06, 57.09],
        ("socketio-websocket", "15%"): [93.90, 100.87, 101.27, 92.65],
        ("socketio-websocket", "20%"): [167.61, 152.94, 148.30, 176.14],
        ("socketio-webtransport", "10%"): [16.93, 15.42, 14.15, 18.04],
        ("socketio-webtransport", "15%"): [25.47, 24.71, 27.86, 24.34],
        ("socketio-webtransport", "20%"): [39.89, 38.02, 39.51, 59.39],
    }
    assert published("message-size", "workload.transport", "path.loss", "workload.size") == {
        (*levels, size): mean
        for levels, means in table.items()
        for size, mean in zip(("1", "50", "100", "1000"), means, strict=True)
    }
    study = shipped("message-size")
    assert {figure.levels["part"] for figure in published_in(study)} == {"one-packet"}
    for cell in cells_of("message-size"):
        forward, reverse = losses(cell)
        assert forward == reverse
        messages = {"one-packet": 1000, "several-packets": 400, "distances": 200}[cell.cell.part]
        found = {key: workload_of(cell)[key] for key in ("payload", "mode", "messages")}
        assert found == {"payload": "text", "mode": "closed", "messages": messages}
    # What the thesis had not: no loss, and more than one packet.
    levels = {
        part: {key: {cell.levels[key] for cell in study.cells() if cell.part == part} for key in keys}
        for part in ("one-packet", "several-packets")
        for keys in [("path.loss", "workload.size")]
    }
    assert levels == {
        "one-packet": {"path.loss": {"0%", "10%", "15%", "20%"}, "workload.size": {"1", "50", "100", "1000"}},
        "several-packets": {"path.loss": {"0%", "1%", "5%"}, "workload.size": {"1kB", "4kB", "16kB"}},
    }
    gap = [ws - wt for ws, wt in zip(*(table[name, "20%"] for name in NATIVE), strict=True)]
    assert (round(gap[0], 2), round(sum(gap) / 4)) == (127.72, 117)


def test_the_thesis_as_run_has_its_browser_its_server_and_its_table() -> None:
    keys = ("workload.transport", "path.loss", "workload.size")
    assert published("thesis", *keys) == published("message-size", *keys)
    study = shipped("thesis")
    as_run = [cell for cell in cells_of("thesis") if cell.cell.part == "as-run"]
    assert len(as_run) == len(published_in(study)) == 24
    for cell in as_run:
        workload = workload_of(cell)
        assert (workload["client"]["name"], workload["server"]["name"]) == ("chromium", "deno")
        assert (workload["messages"], workload["mode"], workload["payload"]) == (1000, "closed", "text")
        assert (rtt_ns(cell), cell.parameters["path"]["mtu_bytes"]) == (0, 1500)


def test_the_thesis_compares_transports_between_the_same_ends() -> None:
    ends = [cell.levels for cell in shipped("thesis").cells() if cell.part == "ends"]
    keys = ("workload.client", "workload.server", "path.loss", "workload.transport")
    pairs = [(client, server) for client in ("native", "deno", "chromium") for server in ("native", "deno")]
    assert {tuple(levels[key] for key in keys) for levels in ends} == {
        (client, server, loss, transport) for client, server in pairs for loss in ("0%", "10%") for transport in NATIVE
    }


def test_what_message_size_says_of_delays_is_the_binomial() -> None:
    study = shipped("message-size")
    questions = questions_of(study)
    same = [question for question in questions if question["yes"] == "same"]
    said = " ".join((*study.notes, *(question["note"] for question in questions)))

    def share(loss: float, packets: int) -> str:
        return f"{100 * (1 - (1 - loss) ** (2 * packets)):.1f}"

    assert [share(loss, 1) for loss in (0.1, 0.15, 0.2)] == ["19.0", "27.8", "36.0"]
    assert "19.0, 27.8 and 36.0 %" in said
    for loss in (0.01, 0.05):
        one, three, twelve = (share(loss, packets) for packets in (1, 3, 12))
        assert f"{one}, {three} and {twelve} % " in said
        assert f"{three} and {twelve} %" in said.partition("With 1, 3")[0]
    # The margin is half of what the thesis's smallest step of loss does, 8.75 points, rounded down.
    assert [(question["bound"], question["scale"]) for question in same] == [
        (0.04, "difference"),
        (0.25, "ratio"),
    ]
    assert 0.04 < (0.36 - 0.2775) / 2 < (0.2775 - 0.19) / 2
    small, significant = 50.47 / 40.72, 57.09 / 40.72
    assert (round(small, 2), round(significant, 2)) == (1.24, 1.40)
    assert [len(question["cells"]) for question in same] == [32, 32]


def test_pages_are_those_of_the_report() -> None:
    assert published("page-load", "path.delay", "path.loss") == {
        ("15ms", "0%"): 0.468, ("15ms", "2%"): 0.979, ("15ms", "5%"): 1.778,
    }  # fmt: skip
    for cell in cells_of("page-load"):
        workload = workload_of(cell)
        assert sum(workload[size] for size in ("html_bytes", "scripts_bytes", "images_bytes")) == 636_000
        assert workload["connections"] == (6 if workload["transport"] == "https1" else 1)
        path = cell.parameters["path"]
        assert path["reverse"]["rate_bps"] == (None if cell.cell.part == "floor" else 6_000_000)
        assert path["backend"] == ("direct" if cell.cell.part == "floor" else "tun")


def test_websocket_or_http_on_the_articles_networks() -> None:
    study = shipped("websocket-or-http")
    assert study.factors["path.network"] == ("localhost", "lan", "wan", "hsdpa+")
    assert study.factors["workload.connection"] == ("new", "kept")
    assert study.factors["workload.direction"] == ("upload", "download")
    assert study.factors["workload.size"] == ("1", "1kB", "10kB", "100kB")
    large = [cell for cell in study.cells() if cell.part == "large"]
    assert {cell.settings["workload.size"].value for cell in large} == {10_000_000}
    notes = presentation(study)["notes"]
    assert sum(note.startswith("Network ") for note in notes) == 4
    (wan,) = [note for note in notes if note.startswith("Network wan ")]
    assert "sets path.delay = 20ms, path.forward.rate = 5mbit, path.reverse.rate = 20mbit, " in wan


def test_client_profile_is_profiled_without_an_emulator() -> None:
    study = shipped("client-profile")
    assert study.profile
    assert {cell.parameters["path"]["backend"] for cell in checked(study)} == {"direct"}
    assert set(study.factors["workload.transport"]) == {"websocket", "wss", "http1", "https1", "webtransport"}
    assert published("client-profile", "part") == {("transports",): 4.55, ("websocket-client-by-byte",): 4.55}
    (beside,) = [figure for figure in published_in(study) if figure.levels["part"] == "transports"]
    assert (beside.levels["workload.transport"], beside.levels["workload.direction"]) == ("websocket", "upload")
    plan = planned_cells(study.quick(), Options(), binary=requires_binary())
    assert all(planned.parameters["output"]["profile"] for planned in plan)


def test_client_profile_has_one_library_that_masks_in_two_ways() -> None:
    cells = checked(shipped("client-profile").quick())
    programs = {cell.cell.part: workload_of(cell) for cell in cells}
    today, by_byte = programs["websocket-client"], programs["websocket-client-by-byte"]
    assert today["server"] == by_byte["server"]
    assert [word for word in by_byte["client"] if word not in today["client"]] == ["--slow-mask"]
    # The plan names no machine's paths.
    assert today["client"][:4] == ["{python}", "-P", "-m", "crosswind.peers.websocket_client"]
    assert today["server"][0] == "{cell}"
    served = json.loads(today["server"][2].replace("{server}", "10.0.0.2"))
    assert served == {"transport": "websocket", "address": "10.0.0.2:8080", "stay": True}
    (figure,) = presentation(shipped("client-profile"))["asked"]["published"][1:2]
    assert figure["functions"] == {"mask": 4.48, "send": 0.027, "format": 0.011, "array.tobytes": 0.01}


def test_mathis_impairs_the_forward_direction_only() -> None:
    whole = cells_of("mathis")
    tests = [cell for cell in whole if cell.cell.part == "tests"]
    sweep = [cell for cell in whole if cell.cell.part == "sweep"]
    assert (len(tests), len(sweep)) == (12, 24)
    assert {rtt_ns(cell) for cell in tests} == {0, 200_000_000}
    assert {losses(cell) for cell in tests} == {(0.0, 0.0), (0.1, 0.0)}
    assert {losses(cell)[1] for cell in sweep} == {0}
    assert (min(losses(cell)[0] for cell in sweep), max(losses(cell)[0] for cell in sweep)) == (0.0001, 0.2)
    own = [figure for figure in published_in(shipped("mathis")) if figure.levels["part"] == "tests"]
    assert {figure.levels["path.forward.loss"]: figure.mean for figure in own} == {"0%": 94, "10%": 2.88}
    figure = own[0]
    assert sum(figure.where.matches(cell.cell) for cell in whole) == 3
    assert (figure.mean, figure.unit) == (94, "Mbit/s")


def test_no_queue_can_drop_in_transfers_without_loss() -> None:
    for cell in cells_of("bandwidth-or-delay"):
        queue = cell.parameters["path"]["reverse"]["queue"]
        # The whole transfer fits into the queue, so it cannot overflow.
        assert queue["packets"] * 1448 >= workload_of(cell)["size_bytes"]


def test_outages_begin_while_every_part_is_busy_and_only_transports_give_up() -> None:
    for cell in cells_of("outage"):
        path, workload = cell.parameters["path"], workload_of(cell)
        (change,) = path["changes"]
        if cell.cell.part == "quiet":
            assert change["forward"] == change["reverse"] == {"loss": 0.0}
            continue
        assert (change["forward"], change["reverse"]) == ({"loss": 1.0}, {"loss": 1.0})
        last_start_ns = change["start_ns"] + change["spread_ns"]
        if cell.cell.part == "messages":
            busy_ns = SECOND_NS * workload["messages"] / workload["rate_per_s"]
        elif workload["kind"] == "transfer":
            busy_ns = 8 * SECOND_NS * workload["size_bytes"] / path["reverse"]["rate_bps"]
        else:
            busy_ns = workload["messages"] * rtt_ns(cell)
        assert busy_ns > last_start_ns
        # A back-off holds an exchange up for twice the outage; nothing but the transport is to give it up. A client
        # that only receives has a timeout of its own, which is all that ends its wait.
        held_up_ns = change["for_ns"] * (1 if cell.cell.part == "receivers" else 2)
        assert workload["timeout_ns"] > held_up_ns
        assert cell.deadline_ns > last_start_ns + held_up_ns


def test_the_example_of_the_reference_is_a_study() -> None:
    text = (ROOT / "docs/study.md").read_text(encoding="utf-8")
    example = text.split("```toml\n")[1].split("```")[0]
    study = Study.from_toml(example, name="example")
    assert (len(study), len(Plan.of(study))) == (8, 80)


def test_the_reference_lists_every_key() -> None:
    text = (ROOT / "docs/study.md").read_text(encoding="utf-8")
    missing = [key for key in SETTINGS if f"`{key.rsplit('.', 1)[-1]}`" not in text]
    assert missing == []


def test_a_document_s_own_question_comes_first() -> None:
    first = {name: questions_of(shipped(name))[0] for name in NAMES}
    asked = {
        name: (first[name]["metric"], first[name]["factor"], [level["level"] for level in first[name]["compare"]])
        for name in ("thesis", "message-size", "latency-by-link", "mathis", "transfer-time", "page-load")
    }
    assert asked == {
        # Section 4.1 of the thesis: whether averages of 1 and of 1000 characters differ.
        "thesis": ("rtt", "workload.size", ["1", "1000"]),
        "message-size": ("rtt", "workload.size", ["1", "1000"]),
        # Fig. 5.1: all four protocols, each divided by UDP's one round trip.
        "latency-by-link": ("total", "workload.transport", ["udp", "tcp", "http1", "https1"]),
        # Tests 1 and 2 of the article: 94 and 2.88 Mbit/s.
        "mathis": ("goodput", "path.forward.loss", ["0%", "10%"]),
        "transfer-time": ("transfer_time", "path.loss", ["0%", "2%"]),
        # Section IV.C and table III: 30 ms, and the 200 ms of Google.
        "page-load": ("page_load", "path.loss", ["0%", "2%"]),
    }
    assert {factor for name in asked for factor in [first[name]["where"].get("host.congestion_control")]} == {
        None, "cubic",
    }  # fmt: skip


# --- on a machine that lacks something --------------------------------------------------------------------------------

WITH_PEERS = ("page-load", "thesis", "websocket-or-http")
"""The studies with cells that need a browser or npm packages."""


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No browser, no Node, no npm packages, no kernel of virtual time."""
    for user in ("chromium.browser", "node.install"):
        monkeypatch.setattr(f"crosswind.peers.{user}.find_program", lambda _name: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path))


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize("name", NAMES)
def test_every_study_runs_on_a_bare_machine_or_asks_for_the_kernel(name: str) -> None:
    full = shipped(name).on_this_machine()
    # What is left out has its reason, and what to do about it.
    left_out = [note for note in full.left_out if note.startswith("No cells with")]
    assert bool(left_out) == (name in WITH_PEERS)
    assert all("not installed (" in note for note in left_out), left_out
    for study in (full, first_look(shipped(name))[0]):
        try:
            assert checked(study)
        except EngineError as error:
            assert error.message.startswith("there is no kernel of virtual time")
            assert error.hint is not None
            assert "virtual" in study.document["host"]["clock"]


@pytest.mark.parametrize("name", WITH_PEERS)
@pytest.mark.parametrize("lacks", ["chromium", "npm packages"])
def test_a_study_runs_without_one_of_the_things_its_peers_need(
    name: str, lacks: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if lacks == "chromium":
        monkeypatch.setattr("crosswind.peers.chromium.browser.find_program", lambda _name: None)
    else:
        monkeypatch.setattr("crosswind.peers.chromium.browser.check_installed", lambda: None)
        monkeypatch.setattr("crosswind.peers.node.install.packages_directory", lambda: tmp_path / "none")
    study = shipped(name).on_this_machine()
    assert checked(study)
    # A page over HTTP or WebSocket takes a browser alone.
    assert bool(study.left_out) == (lacks == "chromium" or name == "thesis")
