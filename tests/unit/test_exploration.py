"""What a run says first for which nobody declared a question: estimates, and how what people choose compares."""

import pytest

from crosswind.report.text.exploration import is_chosen


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
