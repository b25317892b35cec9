"""What a report says of the conditions under which a run measured."""

from crosswind.analysis.result import SettingValues
from crosswind.findings.pipeline import analyse
from crosswind.report.run_page import render
from crosswind.report.text.conditions import condition_lines, values_text
from records import MS, echoes, path, record, runs
from screens import render as render_text

ECHO = {"kind": "echo", "transport": "tcp", "size_bytes": 1, "messages": 100, "connection": "kept"}
HOST = {"profile": "linux", "congestion_control": "cubic", "nodelay": True, "clock": "real"}


def measured(paths, *, hosts=(HOST,), workloads=(ECHO,), **changes):
    """A cell for each path, with two repetitions; hosts and workloads are repeated in turn."""
    made = []
    for index, own in enumerate(paths):
        parameters = {
            "path": own,
            "host": hosts[index % len(hosts)],
            "workload": workloads[index % len(workloads)],
        }
        made += runs(index, [echoes([MS] * 3)] * 2, {"path.loss": str(index)}, parameters=parameters)
    return record(*made, **changes)


def lines(record) -> dict[str, str]:
    found = analyse(record).conditions
    assert found is not None
    return {line.about: line.text for line in condition_lines(found)}


def test_what_is_the_same_and_what_varies() -> None:
    found = analyse(measured([path(loss=loss, delay_ns=10 * MS) for loss in (0.05, 0.0, 0.15)])).conditions
    assert [way.direction for way in found.path] == ["each way"]
    assert found.path[0].settings == [
        SettingValues(name="loss", values=["0%", "5%", "15%"], is_factor=True),
        SettingValues(name="delay", values=["10ms"], is_factor=False),
    ]


def test_every_line_is_words() -> None:
    made = measured([path(loss=loss, delay_ns=10 * MS, rate_bps=20_000_000) for loss in (0.0, 0.05)])
    assert lines(made) == {
        "Path": "loss 0% or 5%, rate 20mbit, delay 10ms, each way",
        "Workload": "echo, transport tcp",
        "Hosts": "profile linux, congestion control cubic, nodelay on; else the kernel's defaults",
        "Clock": "the machine's clock, Linux 6.1.0",
        "Extent": "2 repetitions of each cell",
    }


def test_the_terminal_cuts_no_condition_short() -> None:
    made = measured([path(loss=loss, delay_ns=10 * MS, rate_bps=20_000_000) for loss in (0.0, 0.05)])
    words = " ".join(render_text(analyse(made), width=60).split())
    for about, text in lines(made).items():
        if about not in ("Clock", "Workload"):
            assert f"{about}: {text}" in words


def test_directions_that_differ_have_a_line_each() -> None:
    asymmetric = {"forward": {"loss": 0.0, "delay_ns": 5 * MS, "rate_bps": 1_000_000, "queue": {"packets": 20}},
                  "reverse": {"loss": 0.01, "delay_ns": 5 * MS, "rate_bps": None, "queue": None}}  # fmt: skip
    found = lines(measured([asymmetric]))
    assert found["Path, client to server"] == "rate 1mbit, queue 20p, delay 5ms"
    assert found["Path, server to client"] == "loss 1%, delay 5ms"


def test_a_path_that_does_nothing_says_so() -> None:
    assert lines(measured([path()]))["Path"] == "no loss, no delay, unlimited rate, each way"


def test_a_workload_names_what_differs_from_its_defaults() -> None:
    large = ECHO | {"size_bytes": 100_000, "connection": "new"}
    assert lines(measured([path()], workloads=[large]))["Workload"] == "echo, transport tcp, size 100kB, connection new"
    both = lines(measured([path(), path()], workloads=[ECHO, large]))
    assert both["Workload"] == "echo, transport tcp, size 1B or 100kB, connection kept or new"


def test_what_a_rate_counts_is_said_of_the_rate() -> None:
    counted = {way: own | {"rate_bps": 1_000_000, "count": "ethernet"} for way, own in path().items()}
    assert "rate counts ethernet" in lines(measured([counted]))["Path"]


def test_a_rate_of_messages_is_none_of_a_link() -> None:
    steady = ECHO | {"mode": "open", "rate_per_s": 5.0}
    assert "rate 5 a second" in lines(measured([path()], workloads=[steady]))["Workload"]


def test_a_command_is_one_line_that_is_not_long() -> None:
    command = ["{python}", "-m", "a.module", "--size", "10000000", "--messages", "10", "--and", "many more words"]
    program = {"kind": "program", "client": command, "server": ["true"]}
    text = lines(measured([path()], workloads=[program]))["Workload"]
    assert "client '{python}' -m a.module --size …ges 10 --and 'many more words'" in text
    assert "server true" in text


def test_a_host_setting_of_some_cells_only_is_the_kernels_own_in_the_others() -> None:
    other = HOST | {"min_rto_ns": 230 * MS}
    found = lines(measured([path(), path()], hosts=[HOST, other]))
    assert "min rto the kernel's own or 230ms" in found["Hosts"]


def test_many_values_are_their_ends_and_their_number() -> None:
    many = SettingValues(name="loss", values=[f"{loss}%" for loss in range(10)], is_factor=True)
    assert values_text(many) == "0% … 9% (10 values)"


def test_date_and_machine_stand_beside_the_extent() -> None:
    machine = {"cpus": 2, "cpu_model": "A processor", "virtualisation": "hypervisor"}
    made = measured([path()])
    made.provenance.update({"started": "2026-11-23T02:31:49.481+00:00", "machine": machine})
    extent = "2 repetitions of each cell, 2026-11-23 02:31 UTC, virtual machine, 2 processors (A processor)"
    assert lines(made)["Extent"] == extent


def test_the_page_draws_the_path_before_anything_else() -> None:
    made = measured([path(loss=loss, delay_ns=10 * MS) for loss in (0.0, 0.05)])
    text = render(made, analyse(made))
    assert 'aria-label="Path, each way: loss 0% or 5%, delay 10ms"' in text
    assert text.count('<span class="element varied"><b>loss</b> 0% or 5%</span>') == 2
    assert text.index('class="conditions"') < text.index("<h2>")


def test_a_run_without_cells_has_no_conditions() -> None:
    made = record()
    assert analyse(made).conditions is None
    assert 'class="conditions"' not in render(made, analyse(made)).split("<body>")[1]
