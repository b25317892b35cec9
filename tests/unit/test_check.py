"""Cells that crosswind-cell refuses: each refusal names the place, the study's key and value, and the levels."""

import json
import math
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cells import adhoc, checked, only_cell
from crosswind.catalog import CellUnit, KeyType, catalog
from crosswind.cell.check import check_study
from crosswind.cell.kernels import Kernel
from crosswind.errors import EngineError, StudyError
from crosswind.study.design import Study
from crosswind.study.number_types import number_text, range_of

ECHO = '[workload]\nkind = "echo"\n'
Recorded = Callable[..., Path]


def study(text: str) -> Study:
    return Study.from_toml(text, name="my", file="my.toml")


def refused(wanted: Study) -> StudyError:
    with pytest.raises(StudyError) as caught:
        checked(wanted)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    return caught.value


REFUSED = [
    ('[path]\ndelay = "1h"', "4: path.delay (1h) is too large"),
    ("[path]\nmtu = 575", "4: path.mtu (575) is too small"),
    ("size = [5, 0]", "3: workload.size (0) is too small (1 of 2 cells)"),
    ('[host]\ntcp_rmem = "1 2"', '4: host.tcp_rmem "1 2" is not three sizes'),
    ('[[flow]]\nkind = "transfer"\ntransport = "udp"', "5: flow.1.transport udp cannot do transfer"),
    ('[[flow]]\nkind = "program"\nclient = ["a", "{port}"]', "3: flow.1.server is missing"),
    ('[[flow]]\nkind = "echo"\ncount = 300', "5: flow.1.count (300) is too large"),
    ('[[path.at]]\nname = "outage"\nstart = "1s"', "3: path.at.outage changes nothing"),
    ('client = { command = ["a"], ready = "tcp:7" }', "3: workload.client (a): ready is set, and only a server"),
    ('[path]\nmtu = 1279\nfamily = "ipv6"', "4: path.mtu 1279 is not between 1280 and 65535"),
    ('[path]\nbackend = "direct"\nloss = "1%"', "4: path.backend "),
    ('[path]\nbackend = "direct"\nnetwork = "lan"', "4: path.backend "),
    ('transport = "udp"\nsize = 65508', "4: workload.size 65508 "),
    ('transport = "udp"\nsize = 65528\n[path]\nfamily = "ipv6"', "4: workload.size 65528 "),
    (
        'transport = "quic"\n[path]\nmtu = 1227',
        "5: path.mtu 1227 is too small for quic: the first packets of QUIC have 1228",
    ),
    (
        'transport = "webtransport"\n[path]\nmtu = 600\nbackend = "direct"',
        "5: path.mtu 600 is too small for webtransport",
    ),
    ('transport = "quic-datagram"\nsize = "1200B"', "4: workload.size (1200B) "),
    ('transport = "http1"\nconnection = "new"\nresumption = "session"', "5: workload.resumption (session) "),
    ('transport = "wss"\nconnection = "new"\nresumption = "0-rtt"', "5: workload.resumption "),
    ('transport = "tls"\nresumption = "session"', "4: workload.resumption (session) "),
    ('transport = "quic"\npayload = "text"', "4: workload.payload is text"),
    ('transport = "http3"\nstream = "new"', "4: workload.stream is new"),
    ('transport = "socketio-webtransport"\npolling = true', "4: workload.polling (true) "),
    ('mode = "open"', "1: workload.rate is missing"),
    ('mode = "open"\nrate = 5\nconnection = "new"', "5: workload.connection is new"),
    ('mode = "open"\nrate = 5\ndirection = "upload"', "5: workload.direction "),
]


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_a_refusal_names_file_line_key_and_value(more: str, message: str) -> None:
    assert refused(study(ECHO + more + "\n")).message.startswith(f"my.toml:{message}")


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("transfer", {}, "command line: workload.size is missing"),
        ("connect", {"transport": "udp"}, "workload.transport udp: workload.transport udp cannot do connect"),
        ("program", {}, "command line: workload.client is missing"),
        ("transfer", {"size": 1, "duration": "1s"}, "workload.duration 1s: workload.duration "),
        ("page", {"transport": "http2", "connections": 6}, "workload.connections 6: workload.connections (6) "),
        ("page", {"transport": "http1", "scripts": 3, "scripts_size": 2}, "workload.scripts 3: workload.scripts 3 "),
        ("connect", {"transport": "h2c", "resumption": "session"}, "workload.resumption session: workload.resumption "),
        ("echo", {"host__congestion_control": "vegas"}, "host.congestion_control vegas: host.congestion_control "),
    ],
)
def test_a_refusal_names_the_option(kind: str, options: dict[str, object], message: str) -> None:
    assert refused(adhoc(kind, **options)).message.startswith(message)


def test_every_number_is_held_to_its_range_at_the_option_that_set_it() -> None:
    known = catalog()
    groups = {"path": known.direction.keys, "host": known.host.keys, "workload": known.workloads["echo"].keys}
    for section, keys in groups.items():
        for key in keys:
            is_plain = key.type in (KeyType.INTEGER, KeyType.NUMBER) and key.unit is not CellUnit.PROBABILITY
            if is_plain and key.only_with is None and key.maximum is not None:
                option, beyond = f"{section}.{key.study}", number_text(key, math.ceil(key.maximum) + 1)
                error = refused(Study.adhoc("echo", {option: beyond}))
                assert error.message == f"{option} {beyond}: {option} ({beyond}) is too large"
                assert error.hint == range_of(key, key.minimum, key.maximum)


@pytest.mark.parametrize("mtu", ["1228B", "1280B"])
def test_quic_fits_where_its_first_datagrams_do(mtu: str) -> None:
    assert only_cell("echo", transport="quic", path__mtu=mtu)
    assert only_cell("echo", transport="tcp", path__mtu="600B")


PLACEHOLDER = '[workload]\nkind = "program"\nclient = ["curl", "http://{srver}/"]\nserver = ["{cell}"]\n'


def test_a_word_that_is_nearly_a_placeholder_is_refused_with_the_one_that_is_meant() -> None:
    error = refused(study(PLACEHOLDER))
    assert error.message.startswith("my.toml:3: workload.client ")
    assert error.message.endswith(" has {srver}, which is not a placeholder")
    assert error.hint is not None
    assert error.hint.startswith("did you mean {server}?")


def test_a_program_that_is_not_here_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """`plan` said "checked" of it, and `run` failed."""
    plain = tmp_path / "plain"
    plain.write_text("no program", encoding="utf-8")
    for client, server, said in (
        (
            "no-such-program",
            "true",
            "my.toml:3: workload.client cannot be started: cannot find the program no-such-program",
        ),
        (
            "true",
            "no-such-program",
            "my.toml:4: workload.server cannot be started: cannot find the program no-such-program",
        ),
        (str(plain), "true", f"my.toml:3: workload.client cannot be started: cannot run {plain}: it"),
    ):
        error = refused(study(f'[workload]\nkind = "program"\nclient = ["{client}"]\nserver = ["{server}"]\n'))
        assert error.message.startswith(said)
        assert error.hint


@pytest.mark.parametrize(
    "argument",
    [
        "{server}",
        "{python}x{cell}",
        "${srver}",
        "%{clent}",
        "{{srver}}",
        "{name}",
        "{print $1}",
        '{"server": 1}',
        "{1..3}",
    ],
)
def test_other_braces_in_the_arguments_of_programs_stay(argument: str) -> None:
    assert only_cell("program", client=f"true '{argument}'")


def test_a_congestion_control_that_the_kernel_of_virtual_time_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(Path("linux"), "6.12", "6.12.90", "s", "d", "o", frozenset({"reno", "cubic"}))
    monkeypatch.setattr("crosswind.cell.check.find_kernel", lambda: kernel)
    monkeypatch.setattr("crosswind.cell.clocks.find_kernel", lambda: kernel)
    wanted = '[host]\nclock = "virtual"\ncongestion_control = ["cubic", "vegas"]\n'
    error = refused(study(ECHO + wanted))
    assert error.message == (
        "my.toml:5: host.congestion_control (vegas) is not offered by the kernel of virtual time (6.12.90) "
        "(1 of 2 cells)"
    )
    assert error.hint == "it offers: cubic reno"
    silent = Kernel(Path("linux"), "6.12", "6.12.90", "s", "d", "o", None)
    monkeypatch.setattr("crosswind.cell.check.find_kernel", lambda: silent)
    assert len(checked(study(ECHO + wanted))) == 2


def test_what_is_refused_in_some_cells_names_the_levels_that_decide() -> None:
    text = ECHO + 'transport = ["tcp", "udp"]\nsize = [1, 65508, 65509]\n[path]\nloss = ["0%", "1%"]\n'
    said = refused(study(text)).message
    assert said.startswith("my.toml:4: workload.size 65508 ")
    # Loss decides nothing, and the size is named already.
    assert said.endswith(", where workload.transport = udp (2 of 12 cells)")


def test_a_refusal_in_a_part_names_the_part() -> None:
    text = """
[[part]]
name = "small"
[part.workload]
kind = "echo"
[[part]]
name = "large"
[part.workload]
kind = "echo"
transport = ["tcp", "udp"]
size = "66kB"
"""
    said = refused(study(text)).message
    assert said.startswith("my.toml:11: part.large.workload.size (66kB) ")
    assert said.endswith(", where workload.transport = udp (1 of 3 cells)")


def test_the_largest_datagrams_fit() -> None:
    for size, family in ((65507, "ipv4"), (65527, "ipv6")):
        cell = only_cell("echo", transport="udp", size=size, path__family=family)
        assert cell.parameters["workload"]["size_bytes"] == size


def test_a_path_without_an_emulator_has_no_distance() -> None:
    assert (
        only_cell("echo", path__backend="direct", path__network="localhost").parameters["path"]["backend"] == "direct"
    )
    assert "direct" in refused(adhoc("echo", path__backend="direct", path__network="lan")).message


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Makes a crosswind-cell that answers with recorded lines, whatever it is asked to check."""

    def make(*answers: dict[str, Any] | str, status: int = 2, errors: str = "") -> Path:
        lines = "\n".join(answer if isinstance(answer, str) else json.dumps(answer) for answer in answers)
        body = f"import sys\nsys.stdin.read()\nprint({lines!r})\nsys.stderr.write({errors!r})\nsys.exit({status})\n"
        path = tmp_path / "recorded"
        path.write_text(f"#!{sys.executable} -IS\n{body}", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


def refusal(key: str | None, problem: str, hint: str | None = None, **data: Any) -> dict[str, Any]:
    said = {"kind": "bad_cell", "key": key, "code": "impossible", "problem": problem, "hint": hint}
    return {"event": "refused", "index": 0, **said, **data}


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        # A key of both directions, of one, of a network, and of nobody.
        ('[path]\ndelay = "5ms"', "path.forward.delay_ns", ":4: path.delay (5ms) is odd"),
        (
            '[path]\nforward.delay = "5ms"\ndelay = "1ms"',
            "path.forward.delay_ns",
            ":4: path.forward.delay (5ms) is odd",
        ),
        ('[path]\nforward.delay = "5ms"\ndelay = "1ms"', "path.reverse.delay_ns", ":5: path.delay (1ms) is odd"),
        ('[path]\nnetwork = "lan"', "path.reverse.queue", ":4: path.network (lan): queue is odd"),
        ('[path]\nnetwork = "lan"\nqueue = "9p"', "path.reverse.queue", ":5: path.queue (9p) is odd"),
        ('[path]\nloss = "1%"', "path.reverse.rate_bps", ":3: path.rate is odd"),
        ('[host]\nmin_rto = "1s"', "host.min_rto_ns", ":4: host.min_rto (1s) is odd"),
        ('[budget]\nstarvation = "1%"', "budget.starvation", ":4: budget.starvation (1%) is odd"),
        ("", "workload.kind", ":2: workload.kind (echo) is odd"),
        ('[[path.at]]\nloss = "1%"', "path.changes.0.forward", ":3: path.at.1 is odd"),
        ("", "deadline_ns", ": deadline_ns is odd"),
    ],
)
def test_a_key_of_the_cell_becomes_one_of_the_study(recorded: Recorded, text: str, key: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        check_study(study(ECHO + text + "\n"), binary=recorded(refusal(key, "is odd")))
    assert caught.value.message == f"my.toml{message}"


@pytest.mark.parametrize(
    ("text", "said", "message", "hint"),
    [
        (
            "size = 0",
            {"code": "too_small", "minimum": 1, "maximum": 1 << 30},
            "size (0) is too small",
            "from 1B to 1GiB",
        ),
        ('size = "2B"', {"code": "too_large", "minimum": None, "maximum": 1}, "size (2B) is too large", "at most 1B"),
        (
            'mode = "open"',
            {"code": "unknown_choice", "choices": ["opn"]},
            "mode (open) is not one of opn",
            'did you mean "opn"?',
        ),
    ],
)
def test_ranges_and_choices_are_said_as_a_study_has_them(
    recorded: Recorded, text: str, said: dict[str, Any], message: str, hint: str
) -> None:
    key = "workload.mode" if "mode" in text else "workload.size_bytes"
    with pytest.raises(StudyError) as caught:
        check_study(study(ECHO + text + "\n"), binary=recorded(refusal(key, "is odd", **said)))
    assert (caught.value.message, caught.value.hint) == (f"my.toml:3: workload.{message}", hint)


@pytest.mark.parametrize(
    ("answers", "status", "message"),
    [
        ([], 0, "ended with status 0 after 0 of 1 cells: what it said last"),
        (["{}"], 0, "says what this version does not read"),
        (["thread panicked"], 101, "says what this version does not read"),
        ([refusal(None, "no") | {"index": 1}], 2, "ended with status 2 after 1 of 1 cells"),
        ([refusal(None, "no")], 1, "ended with status 1 after 1 of 1 cells"),
        ([{"event": "checked", "index": 0, "cell": {}, "demand": {}}], 0, "says what this version does not read"),
    ],
)
def test_what_no_crosswind_cell_says_is_an_error_of_the_program(
    recorded: Recorded, answers: list[dict[str, Any] | str], status: int, message: str
) -> None:
    with pytest.raises(EngineError) as caught:
        check_study(study(ECHO), binary=recorded(*answers, status=status, errors="what it said last"))
    assert message in caught.value.message
    assert "install Crosswind anew" in (caught.value.hint or "")
    with pytest.raises(EngineError, match="cannot run /nowhere"):
        check_study(study(ECHO), binary=Path("/nowhere"))


@pytest.mark.parametrize(
    ("made", "message", "hint"),
    [
        (
            Study.adhoc("transfer", {}, flags={"workload.size": "--size"}),
            "command line: workload.size is missing",
            "a transfer has a size or a duration; --size sets it",
        ),
        (
            study('[workload]\nkind = "transfer"\n'),
            "my.toml:1: workload.size is missing",
            'a transfer has a size or a duration; size = "64kB" under [workload] sets it',
        ),
        (
            study(ECHO).with_overrides({"path.mtu": "576", "path.family": "ipv6"}, flags={"path.mtu": "--mtu"}),
            "--mtu 576: path.mtu 576 is not between 1280 and 65535",
            "every host has to take 1280 bytes of IPv6 (RFC 8200)",
        ),
        (
            study(ECHO).with_overrides({"path.mtu": "576", "path.family": "ipv6"}),
            "--set path.mtu=576: path.mtu 576 is not between 1280 and 65535",
            "every host has to take 1280 bytes of IPv6 (RFC 8200)",
        ),
    ],
)
def test_a_refusal_names_the_option_or_what_would_set_the_key(made: Study, message: str, hint: str) -> None:
    said = refused(made)
    assert (said.message, said.hint) == (message, hint)
