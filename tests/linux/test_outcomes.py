"""What a cell says of exchanges that succeeded, and of programs."""

import pytest

from linux.lab import Lab, Object


def test_a_cell_without_failures_counts_none(lab: Lab) -> None:
    result = lab.run({"kind": "connect", "transport": "tls", "count": 2}).result
    assert result["samples"] == {"rows": 2, "ok": 2, "lost": 0, "outcomes": []}
    assert result["program"] is None


@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("exit 0", {"exit_code": 0, "signal": None}),
        ("exit 3", {"exit_code": 3, "signal": None}),
        ("kill -TERM $$", {"exit_code": None, "signal": 15}),
    ],
)
def test_how_the_client_program_ended_is_a_field_of_the_result(lab: Lab, script: str, program: Object) -> None:
    result = lab.run({"kind": "program", "client": ["sh", "-c", script]}).result
    assert result["program"] == program
    assert result["warnings"] == []
    assert result["samples"] == {"rows": 0, "ok": 0, "lost": 0, "outcomes": []}
