"""What charts say to those who cannot see them."""

from dataclasses import dataclass

import altair as alt
import pytest

from crosswind.report.charts.description import description
from crosswind.report.charts.style import Specification, inline, specification


@dataclass(frozen=True)
class Mark:
    """A mark with its number, in words where `estimate` has it."""

    level: str
    at: float
    value: float
    estimate: str | None = None
    kind: str | None = None


def drawn(*marks: Mark, x: str = "loss, %, log scale", y: str = "goodput, Mbit/s") -> Specification:
    levels = list(dict.fromkeys(mark.level for mark in marks))
    chart = alt.Chart(inline(marks)).mark_point()
    scale = alt.Scale(domain=levels)
    return specification(
        [chart.encode(x=alt.X("at:Q", title=x), y=alt.Y("value:Q", title=y), color=alt.Color("level:N", scale=scale))],
        100,
    )


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        (
            [Mark("reno", 1.0, 7.1, "mean 7.1 [7.0, 7.2] Mbit/s"), Mark("bbr", 1.0, 9.0)],
            "Throughput. Goodput in Mbit/s, by loss, for reno, bbr. "
            "reno, loss 1 %: mean 7.1 [7.0, 7.2] Mbit/s. bbr, loss 1 %: 9.000 Mbit/s.",
        ),
        (
            [*(Mark("reno", float(at), 20.0 - at) for at in range(13)), Mark("reno", 1.0, 500.0, kind="sample")],
            "Throughput. Goodput in Mbit/s, by loss. "
            "Smallest of 13: loss 12 %: 8.000 Mbit/s; largest: loss 0 %: 20.00 Mbit/s.",
        ),
    ],
)
def test_few_numbers_are_named_and_of_many_the_ends(marks: list[Mark], said: str) -> None:
    assert description(drawn(*marks), "Throughput") == said


def test_of_a_distribution_the_parts_are_named() -> None:
    steps = [Mark("tcp", 20.0 + n, n * 10.0) for n in range(1, 11)]
    made = drawn(*steps, x="round-trip time, ms", y="share of samples, %")
    assert description(made, "Curves") == (
        "Curves. Round-trip time in ms, by share of samples. "
        "tcp: half at most 25.00 ms, 90 % at most 29.00 ms, all at most 30.00 ms."
    )
