"""`--to HOST`: what is left of a study where nothing is emulated, and what is said of the rest."""

import pytest

from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.files import load_study
from crosswind.study.real_network import over_network
from crosswind.study.server_address import server_address
from crosswind.text.units import UnitError
from study_texts import ISSUE_EXAMPLE, PARTS, study

SERVER = "192.0.2.7:9470"
NOTHING_IS_EMULATED = (
    f"Nothing is emulated: cells run over the network that is there between this machine and {SERVER}."
)


def texts_of(cell: Cell) -> dict[str, str]:
    return {key: level.text for key, level in cell.settings.items()}


def run_over(text: str) -> tuple[Study, tuple[str, ...]]:
    return over_network(study(text), "192.0.2.7")


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("example.org", "example.org:9470"),
        ("192.0.2.7:80", "192.0.2.7:80"),
        ("::1", "[::1]:9470"),
        ("[2001:db8::7]", "[2001:db8::7]:9470"),
        ("[::1]:9480", "[::1]:9480"),
        ("fe80::1%eth0", "[fe80::1%eth0]:9470"),
    ],
)
def test_a_server_is_a_host_and_a_port(written: str, meant: str) -> None:
    assert server_address(written) == meant
    assert server_address(meant) == meant


@pytest.mark.parametrize("written", ["", "a b", "[foo]:1", "[::1]x", "host:", "host:0", "host:65536", "host:http", 5])
def test_what_is_no_server_is_refused(written: object) -> None:
    with pytest.raises(UnitError):
        server_address(written)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_settings_of_an_emulated_path_go_and_cells_that_are_then_the_same_are_one() -> None:
    design, said = run_over(ISSUE_EXAMPLE)
    assert design.factors == {"workload.transport": ("tcp", "udp"), "workload.size": ("1", "1000")}
    assert texts_of(next(design.cells())) == {
        "path.backend": "network",
        "path.server": SERVER,
        "host.congestion_control": "cubic",
        "workload.kind": "echo",
        "workload.transport": "tcp",
        "workload.size": "1",
        "workload.messages": "500",
        "workload.connections": "1",
    }
    assert said == (
        NOTHING_IS_EMULATED,
        "Left out, as there is no emulated path: path.delay, path.loss, path.rate, path.queue, path.family, path.mtu.",
        "Left out, as they take a network namespace, or a clock of their own: host.profile.",
    )
    assert design.notes == said
    assert design.title == "my over the network to 192.0.2.7:9470"


def test_a_study_that_sets_no_path_keeps_its_title() -> None:
    design, said = run_over('title = "Our messages"\n[workload]\nkind = "echo"\nsize = [1, 2]\n')
    assert (design.title, said) == (f"Our messages over the network to {SERVER}", (NOTHING_IS_EMULATED,))


def test_a_family_is_a_wish() -> None:
    design, _ = over_network(study('[workload]\nkind = "echo"\n'), "example.org", family="ipv6")
    assert texts_of(next(design.cells()))["path.family"] == "ipv6"


def test_it_reads_back_as_the_same_study() -> None:
    design, _ = over_network(load_study("latency-by-link"), SERVER)
    again = Study.from_canonical(design.canonical())
    assert again.digest() == design.digest()
    assert list(again.cells()) == list(design.cells())


# --- parts ------------------------------------------------------------------------------------------------------------


def test_a_part_that_measures_less_of_the_same_is_not_run() -> None:
    design, said = over_network(load_study("mathis"), SERVER)
    assert design.factors == {"host.congestion_control": ("reno", "cubic", "bbr")}
    assert {texts_of(cell)["workload.duration"] for cell in design.cells()} == {"30s"}
    assert "The part tests is not run: without an emulated path, the part sweep measures the same." in said
    assert design.models == ("mathis", "mathis-c1", "pftk", "cubic")


def test_of_parts_with_some_cells_in_common_the_one_that_has_all_is_run() -> None:
    alike = load_study("mathis").quick().with_overrides({"part.sweep.workload.duration": "5s"})
    quick, said = over_network(alike, SERVER)
    assert quick.factors == {"host.congestion_control": ("reno", "cubic", "bbr")}
    assert {texts_of(cell)["workload.duration"] for cell in quick.cells()} == {"5s"}
    assert "The part sweep is not run: without an emulated path, the part tests measures the same." in said


def test_parts_that_measure_something_else_stay() -> None:
    design, _ = run_over(PARTS)
    assert design.factors == {"part": ("small", "bulk"), "workload.size": ("1kB", "1MB")}


PROGRAM = '[[part]]\nname = "program"\n[part.workload]\nkind = "program"\nclient = ["ping", "{server}"]\n'
BROWSER = """
[[part]]
name = "browser"
[part.workload]
kind = "echo"
client = ["native", "chromium"]
"""


def test_programs_and_peers_are_not_run_on_two_machines() -> None:
    design, said = run_over(PROGRAM + BROWSER)
    assert [texts_of(cell)["workload.client"] for cell in design.cells()] == ["native"]
    assert said[1:] == (
        "Left out, as a program cannot be started on the other machine: the part program.",
        "Left out, as a program cannot be started on the other machine: cells with chromium.",
    )


def test_a_study_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(StudyError, match="no cell can run without an emulated path") as caught:
        run_over(PROGRAM)
    assert caught.value.hint is not None
    with pytest.raises(StudyError, match="no cell can run without an emulated path"):
        run_over('[workload]\nkind = "echo"\nclient = "chromium"\n')


def test_a_server_answers_no_datagram_with_more_than_it_was_sent() -> None:
    echo = '[workload]\nkind = "echo"\nsize = 1000\ntransport = ["tcp", "udp"]\ndirection = ["upload", "download"]\n'
    design, said = run_over(echo)
    assert [(cell.levels["workload.transport"], cell.levels["workload.direction"]) for cell in design.cells()] == [
        ("tcp", "upload"), ("tcp", "download"), ("udp", "upload"),
    ]  # fmt: skip
    assert said[1:] == (
        "Left out, as a server answers no UDP datagram with more bytes than it received: downloads over udp.",
    )
    with pytest.raises(StudyError, match="no cell can run"):
        run_over('[workload]\nkind = "echo"\ntransport = "udp"\ndirection = "download"\n')


# --- what the report shows --------------------------------------------------------------------------------------------

SHOWN = """
[study]
repetitions = 5
[[question]]
asks = "Is UDP faster?"
metric = "rtt"
factor = "workload.transport"
compare = ["tcp", "udp"]
[[question]]
asks = "Is UDP faster at 5 %?"
metric = "rtt"
factor = "workload.transport"
compare = ["tcp", "udp"]
where = { "path.loss" = "5%" }
[[question]]
asks = "Does UDP need fewer bytes?"
metric = "wire_bytes_forward"
factor = "workload.transport"
compare = ["tcp", "udp"]
[[question]]
asks = "Does UDP spend less on what is lost?"
metric = "spent_recovery"
factor = "workload.transport"
compare = ["tcp", "udp"]
[[figure]]
title = "By transport"
metric = "rtt"
x = "workload.transport"
models = ["ping-pong"]
[[figure]]
title = "By loss"
metric = "rtt"
x = "workload.transport"
series = "path.loss"
[[question]]
source = "a paper"
says = "It takes 20 ms"
metric = "rtt"
at_most = "20ms"
[[question]]
source = "a paper"
says = "Both take the same"
metric = "rtt"
factor = "workload.transport"
yes = "same"
margin = "5%"
[[question]]
asks = "Does it take what the model says?"
metric = "rtt"
model = "ping-pong"
at_most = 1.1
[[question]]
asks = "Does it take less than 50 ms?"
metric = "rtt"
at_most = "50ms"
[[published]]
source = "a paper"
metric = "rtt"
unit = "ms"
columns = ["workload.transport", "mean"]
rows = [["tcp", 5], ["udp", 4]]
[[threshold]]
fail_if = "p95(rtt) > 200ms"
[[threshold]]
fail_if = "p95(rtt) > 300ms where loss = 5%"
[[repetitions]]
where = { "path.loss" = "0%" }
at_most = 2
[report]
models = ["ping-pong", "mathis"]
notes = ["The path is as in the paper."]
"""


def test_what_names_what_is_left_out_or_is_about_another_network_goes() -> None:
    text = ISSUE_EXAMPLE.partition("[study]")[0] + SHOWN
    design, said = run_over(text)
    asked = presentation(design)["asked"]
    assert [question["asks"] for question in asked["question"]] == [
        "Is UDP faster?", "Both take the same", "Does it take less than 50 ms?",
    ]  # fmt: skip
    assert [(figure["title"], figure["models"]) for figure in asked["figure"]] == [("By transport", [])]
    assert [threshold["asks"] for threshold in asked["threshold"]] == ["p95(rtt) > 200ms"]
    assert (asked["published"], design.limits, design.models) == ([], (), ("mathis",))
    assert said[3:] == (
        "Left out, as they name what is left out, or are about numbers of other networks: 1 of 2 thresholds, "
        "5 of 8 questions and statements, the table of a document's numbers, 1 of 2 figures, the limit of repetitions.",
        "Left out, as they predict from the settings of an emulated path: ping-pong.",
        "The study's own remarks are left out, as they are about its emulated path.",
    )


def test_latency_by_link_compares_transports() -> None:
    design, _ = over_network(load_study("latency-by-link"), SERVER)
    assert set(design.factors) == {"part", "workload.transport", "workload.connection"}
    assert sum(not question["source"] for question in presentation(design)["asked"]["question"]) == 4
    assert len(design) == 26


def test_nothing_of_the_emulated_path_is_left_in_any_built_in_study() -> None:
    for name in ("bandwidth-or-delay", "multiplexing", "thesis", "queue-size", "page-load", "websocket-or-http"):
        design, _ = over_network(load_study(name), SERVER)
        keys = {key for cell in design.cells() for key in cell.settings}
        assert {key for key in keys if key.startswith("path.")} == {"path.backend", "path.server"}


# --- transports that are blocked --------------------------------------------------------------------------------------


def test_cells_of_a_blocked_transport_are_left_out() -> None:
    parts = [f'[[part]]\nname = "{name}"\n[part.workload]\ntransport = {of}\n' for name, of in (
        ("datagrams", '"udp"'), ("connections", '["tcp", "http3"]'))]  # fmt: skip
    design, _ = over_network(study('[workload]\nkind = "echo"\n' + "".join(parts)), SERVER)
    why = {"udp": "UDP 9471 gets no answer", "http3": "UDP 9471 gets no answer", "wss": "nothing asks for it"}
    left = design.without_transports(why)
    assert {"udp", "http3"} & {texts_of(cell)["workload.transport"] for cell in left.cells()} == set()
    assert left.left_out == (
        "No cells over udp, which is blocked: UDP 9471 gets no answer.",
        "No cells over http3, which is blocked: UDP 9471 gets no answer.",
        "So the part datagrams is not run.",
    )
    assert [texts_of(cell)["workload.transport"] for cell in left.cells()] == ["tcp"]


def test_a_study_whose_transports_are_all_blocked_is_refused() -> None:
    design, _ = over_network(study('[workload]\nkind = "echo"\ntransport = "udp"\n'), SERVER)
    with pytest.raises(StudyError, match="none of its transports reaches the server"):
        design.without_transports({"udp": "UDP 9471 gets no answer"})
    assert list(design.without_transports({"tcp": "it is refused"}).cells()) == list(design.cells())
