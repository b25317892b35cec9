"""What a cell says of exchanges that succeeded, and of programs."""

from pathlib import Path

import pytest

from linux.lab import KEPT_BYTES, Lab, Object, assert_shortened, left_out_warning


def test_a_cell_without_failures_counts_none(lab: Lab) -> None:
    result = lab.run({"kind": "connect", "transport": "tls", "count": 2}).result
    assert result["samples"] == {"rows": 2, "ok": 2, "lost": 0, "outcomes": []}
    assert result["program"] is None


@pytest.mark.parametrize(
    ("script", "program", "failed"),
    [
        ("exit 0", {"exit_code": 0, "signal": None}, None),
        ("exit 3", {"exit_code": 3, "signal": None}, ("error", "ended with exit status 3")),
        ("echo a; echo b >&2; exit 3", {"exit_code": 3, "signal": None}, ("error", "ended with exit status 3: b")),
        ("echo a; exit 3", {"exit_code": 3, "signal": None}, ("error", "ended with exit status 3: a")),
        ("kill -TERM $$", {"exit_code": None, "signal": 15}, ("error", "ended with signal 15 (SIGTERM)")),
        ("echo a; sleep 100", {"exit_code": None, "signal": 15}, ("timeout", "did not end within 0.3 s: a")),
        (
            "trap '' TERM; while :; do sleep 1; done",
            {"exit_code": None, "signal": 9},
            ("timeout", "did not end within 0.3 s"),
        ),
    ],
)
def test_a_run_of_the_client_is_one_exchange_and_says_how_it_ended(
    lab: Lab, script: str, program: Object, failed: tuple[str, str] | None
) -> None:
    timeout = {"timeout_ns": 300_000_000} if failed and failed[0] == "timeout" else {}
    ended = lab.run({"kind": "program", "client": ["sh", "-c", script], **timeout})
    result = ended.result
    assert (result["program"], result["warnings"]) == (program, [])
    outcomes = []
    if failed:
        outcomes = [{"outcome": failed[0], "count": 1, "first_error": f"the client program {failed[1]}"}]
    assert result["samples"] == {"rows": 1, "ok": 1 - len(outcomes), "lost": len(outcomes), "outcomes": outcomes}
    (sample,) = ended.samples().to_dicts()
    assert sample["outcome"] == (failed[0] if failed else "ok")
    if sample["outcome"] == "timeout":
        assert sample["received_ns"] is None
    else:
        assert 0 < sample["received_ns"] - sample["sent_ns"] <= result["elapsed_ns"]


def once_the_server_ended(script: str, directory: Path) -> Object:
    """A workload whose server fails once its client is there. The client runs `script` once the server has ended."""
    begun, held = directory / "begun", directory / "held"
    hold = f"exec 9> {held}; flock 9; echo held >&9"
    fails = f"{hold}; until [ -e {begun} ]; do sleep 0.01; done; echo address in use >&2; exit 4"
    # A process lets go of its files just before it has ended.
    waits = f"touch {begun}; until [ -s {held} ]; do sleep 0.01; done; flock {held} sleep 0.1; {script}"
    return {"kind": "program", "client": ["sh", "-c", waits], "server": ["sh", "-c", fails]}


def test_the_message_has_the_last_words_of_both_programs(lab: Lab, tmp_path: Path) -> None:
    result = lab.run(once_the_server_ended("echo no answer >&2; exit 3", tmp_path)).result
    assert result["samples"]["outcomes"][0]["first_error"] == (
        "the client program ended with exit status 3: no answer; "
        "the server program had ended before the client, with exit status 4: address in use"
    )
    client = ["sh", "-c", "echo no answer >&2; exit 3"]
    talking = ["sh", "-c", "echo listening; exec sleep 100"]
    result = lab.run({"kind": "program", "client": client, "server": talking}).result
    assert result["samples"]["outcomes"][0]["first_error"] == (
        "the client program ended with exit status 3: no answer; the server program was still running: listening"
    )


def test_a_server_that_fails_while_the_client_succeeds_is_a_warning(lab: Lab, tmp_path: Path) -> None:
    result = lab.run(once_the_server_ended("exit 0", tmp_path)).result
    assert result["samples"]["ok"] == 1
    said = "the server program had ended before the client, with exit status 4: address in use"
    assert result["warnings"] == [{"name": "server_ended", "text": said, "hint": None}]
    once = lab.run({"kind": "program", "client": ["sleep", "0.5"], "server": ["sleep", "0.3"]}).result
    assert once["warnings"] == []


def test_of_a_program_that_writes_much_the_beginning_and_the_end_are_kept(lab: Lab) -> None:
    much = "echo first; head -c 100000000 /dev/zero; echo last"
    ended = lab.run(
        {"kind": "program", "client": ["sh", "-c", f"{much}; exit 3"], "server": ["sh", "-c", f"exec >&2; {much}"]}
    )
    assert ended.result["samples"]["outcomes"][0]["first_error"] == (
        "the client program ended with exit status 3: last; "
        "the server program had ended before the client, with exit status 0: last"
    )
    left_out = 100_000_000 + len("first\nlast\n") - 2 * KEPT_BYTES
    warnings = [left_out_warning(end, kind, left_out=left_out) for end, kind in (("server", "err"), ("client", "out"))]
    assert ended.result["warnings"] == warnings
    for name in ("client.out", "server.err"):
        assert_shortened(ended.directory / name, left_out=left_out)


def test_what_a_program_writes_is_kept_as_it_is_up_to_the_limit(lab: Lab) -> None:
    much = f"echo first; head -c {2 * KEPT_BYTES - 11} /dev/zero; echo last"
    ended = lab.run({"kind": "program", "client": ["sh", "-c", much]})
    assert ended.result["warnings"] == []
    assert (ended.directory / "client.out").read_bytes() == b"first\n" + bytes(2 * KEPT_BYTES - 11) + b"last\n"


def test_a_program_without_end_is_ended_at_its_timeout_and_fills_no_disk(lab: Lab) -> None:
    result = lab.run({"kind": "program", "client": ["yes"], "timeout_ns": 1_000_000_000})
    assert result.result["samples"]["outcomes"] == [
        {"outcome": "timeout", "count": 1, "first_error": "the client program did not end within 1 s: y | y | y"}
    ]
    (warning,) = result.result["warnings"]
    assert warning["text"].startswith("client.out has the first 16 MiB and the last 16 MiB of what the client wrote: ")
    assert (result.directory / "client.out").stat().st_size < 2 * KEPT_BYTES + 100
