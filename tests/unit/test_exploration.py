"""What a run says first for which nobody declared a question: estimates, and how what people choose compares."""

import numpy as np
import polars as pl
import pytest

from crosswind.findings.pipeline import analyse
from crosswind.report.text.exploration import is_chosen
from crosswind.report.text.headline import headline_sentences
from records import MS, echoes, path, record, runs, transfers

OFFSETS = (-0.02, 0.01, 0.0, 0.02, -0.01, 0.005, -0.005, 0.015)


def cell(index: int, mean_ms: float, *, repetitions: int = 8, **levels: str):
    """Repetitions of a cell over UDP, of ten echoes each, off by shares of the mean in an order of their own."""
    offsets = np.random.default_rng(index).permutation(OFFSETS)[:repetitions]
    rtts = [round(mean_ms * MS * (1 + offset)) for offset in offsets]
    parameters = {"path": path(), "workload": {"kind": "echo", "transport": "udp"}}
    named = {key.replace("_", ".", 1): level for key, level in levels.items()}
    return runs(index, [echoes([rtt] * 10) for rtt in rtts], named, parameters=parameters)


def said_of(*cells) -> list[str]:
    """What a run of these cells says before its extent."""
    said = headline_sentences(analyse(record(*(run for one in cells for run in one))))
    extent = next(at for at, sentence in enumerate(said) if " of them failed" in sentence)
    return said[:extent]


@pytest.mark.parametrize(("late_ms", "metrics"), [(0, ["round-trip"]), (8, ["round-trip", "response"])])
def test_response_times_are_named_where_messages_waited(late_ms: int, metrics: list[str]) -> None:
    parameters = {"path": path(), "workload": {"kind": "echo", "transport": "tcp", "mode": "open"}}
    sent = [index * 100 * MS for index in range(5)]
    samples = echoes([20 * MS] * 5).with_columns(
        sent_ns=pl.Series([at + late_ms * MS for at in sent]),
        received_ns=pl.Series([at + (late_ms + 20) * MS for at in sent]),
        intended_ns=pl.Series(sent),
    )
    said = said_of(runs(0, [samples] * 3, parameters=parameters))
    assert [sentence.split()[1] for sentence in said if sentence.startswith("Median ")] == metrics


def test_levels_that_are_suffered_are_not_compared() -> None:
    """Never again is a preset 74 times another one."""
    cells = [cell(at, mean, path_network=name) for at, (name, mean) in enumerate((("lan", 0.5), ("wan", 37.0)))]
    assert said_of(*cells) == ["Median round-trip time: 501 µs (lan) to 37.1 ms (wan) in 2 cells."]


@pytest.mark.parametrize(
    ("other_ms", "expected"),
    [
        (9, "0.900 [0.893, 0.907] times that with tcp; a difference is shown (exploratory)."),
        (10, "1.000 [0.992, 1.008] times that with tcp; no difference is shown (exploratory)."),
    ],
)
def test_levels_that_are_chosen_are_compared_by_their_medians(other_ms: float, expected: str) -> None:
    said = said_of(cell(0, 10, workload_transport="tcp"), cell(1, other_ms, workload_transport="quic"))
    assert said[1].startswith("Median round-trip time with quic is ")
    assert said[1].split(" is ", 1)[1] == expected
    assert said[0].endswith(" in 2 cells.")  # the estimates, whether or not a difference is shown


def test_of_many_levels_the_smallest_and_the_largest_ratio_are_named() -> None:
    cells = [
        cell(2 * at + lossy, mean * (1 + lossy), workload_transport=name, path_loss=f"{lossy}%")
        for at, (name, mean) in enumerate((("tcp", 10.0), ("quic", 9.0), ("udp", 5.0)))
        for lossy in (0, 1)
    ]
    said = said_of(*cells)
    assert said[0] == "Median round-trip time: 5.01 ms (udp, loss 0%) to 20.1 ms (tcp, loss 1%) in 6 cells."
    assert said[1].startswith("Median round-trip time by transport: 0.500 (udp, at loss ")
    assert said[1].endswith(") times that with tcp; 4 of 4 comparisons show a difference (exploratory).")
    assert len(said) == 2


def test_few_repetitions_have_values_and_no_comparison() -> None:
    (alone,) = said_of(cell(0, 10, repetitions=1))
    assert alone.startswith("Median round-trip time: ")
    assert alone.endswith(" ms in 1 repetition.")
    two = cell(0, 10, repetitions=2, workload_transport="tcp"), cell(1, 9, repetitions=2, workload_transport="quic")
    assert said_of(two[0])[0].endswith(" ms in 2 repetitions.")
    assert said_of(*two)[1].endswith("too few repetitions to show a difference.")


def test_the_metric_is_the_main_one_of_the_workload() -> None:
    parameters = {"workload": {"kind": "transfer", "transport": "tcp", "duration_ns": 8000 * MS}}
    made = runs(0, [transfers([rate]) for rate in (5e6, 5.1e6, 4.9e6)], parameters=parameters)
    assert said_of(made) == ["Median goodput: 4.900 to 5.100 Mbit/s in 3 repetitions."]


@pytest.mark.parametrize(
    ("factor", "chosen"),
    [
        ("workload.transport", True), ("host.congestion_control", True), ("host.sack", True), ("workload.client", True),
        ("workload.connection", True), ("workload.direction", True), ("path.family", True), ("path.loss", False),
        ("path.network", False), ("path.forward.delay", False), ("path.queue", False), ("path.rate", False),
        ("workload.size", False), ("workload.messages", False), ("part", False),
    ],
)  # fmt: skip
def test_people_choose_transports_and_suffer_paths(factor: str, chosen: bool) -> None:
    assert is_chosen(factor) is chosen
