"""The page of `crosswind ui` over HTTP: who is answered, and what runs and studies are to it."""

import errno
import hmac
import http.client
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import requires_cell
from crosswind.api.results import REPORT
from crosswind.store.directory import Store
from crosswind.store.manifest import Status
from crosswind.ui import studies
from crosswind.ui.server import server_of
from crosswind.ui.watch import Watch
from fixture_types import Crosswind
from runs import new_run

TOKEN = "the-token"
Ask = Callable[..., tuple[int, Mapping[str, str], Any]]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """That of a server of the runs in tmp_path/runs."""
    listening = socket.create_server(("127.0.0.1", 0))
    number = listening.getsockname()[1]
    server = server_of(tmp_path / "runs", token=TOKEN, port=number)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield number
    server.should_exit = True
    thread.join()
    listening.close()


def headers_of_page(port: int) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}", "Origin": f"http://127.0.0.1:{port}"}


@pytest.fixture
def ask(port: int) -> Ask:
    """Asks it as its own page does, unless the headers say otherwise."""

    def asked(path: str, body: object = None, **headers: str) -> tuple[int, Mapping[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        content = None if body is None else json.dumps(body)
        connection.request("POST" if content else "GET", path, content, {**headers_of_page(port), **headers})
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        is_json = answer.headers.get("content-type") == "application/json"
        return answer.status, dict(answer.headers), json.loads(said) if is_json else said

    return asked


def with_key(address: str, *, of: str = "") -> str:
    """An address with its key, or with that of another one."""
    key = hmac.new(TOKEN.encode(), (of or address).encode(), "sha256").hexdigest()
    return f"{address}{'&' if '?' in address else '?'}key={key}"


def test_only_its_own_page_with_the_token_is_answered(ask: Ask) -> None:
    assert ask("/api/runs")[0] == 200
    assert "script-src 'self'" in ask("/")[1]["content-security-policy"]
    for header in ("", TOKEN, "Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \xff"):
        for path in ("/api/runs", "/runs/run/report", "/api/live", "/compare", "/no-such-page"):
            assert ask(path, Authorization=header)[0] == 403, (header, path)
        assert ask("/api/form", {"what": "echo"}, Authorization=header)[0] == 403
    for origin in ("http://evil.example", "null", "http://127.0.0.1"):
        assert ask("/api/form", {"what": "echo"}, Origin=origin)[0] == 403
        assert ask("/style.css", Origin=origin)[0] == 403
    assert ask("/", Host="evil.example")[0] == 403


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css"])
def test_the_page_itself_is_no_secret_and_no_answer_sets_a_cookie(ask: Ask, path: str) -> None:
    status, headers, _ = ask(path, Authorization="")
    assert (status, "set-cookie" in headers) == (200, False)
    assert "set-cookie" not in ask(f"/?token={TOKEN}")[1]


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)]
)
def test_what_a_browser_sends_for_another_site_is_refused(ask: Ask, site: str, status: int) -> None:
    of_browser = {"Sec-Fetch-Site": site}
    assert ask("/", **of_browser)[0] == ask("/api/runs", **of_browser)[0] == status
    assert ask(with_key("/api/live?host=&seconds=x"), Authorization="", **of_browser)[0] == status
    assert ask("/api/form", FORM, **of_browser)[0] == status


def test_a_key_opens_its_own_address_to_be_read(ask: Ask, tmp_path: Path) -> None:
    new_run(tmp_path / "runs" / "run").close()
    for address in ("/api/runs", "/runs/run/report", "/compare?a=run&b=r%20u", "/api/live?host=&seconds=x"):
        assert ask(with_key(address), Authorization="")[0] in {200, 409}, address
        for wrong in (
            address,
            f"{address}?key=",
            with_key(address, of="/"),
            f"{with_key(address)}&a=b",
            with_key(address).upper(),
        ):
            assert ask(wrong, Authorization="")[0] == 403, wrong
    assert ask(with_key("/api/runs/run/remove"), {"yes": True}, Authorization="")[0] == 403


def test_runs_are_those_on_the_disk_and_none_in_use_is_removed(ask: Ask, tmp_path: Path) -> None:
    root, hostile = tmp_path / "runs", '"><img src=x onerror=alert(1)>'
    new_run(root / hostile).close()
    with new_run(root / "cut") as store:
        store.set_status(Status.INTERRUPTED)
    in_use = new_run(root / "used")
    states = {run["name"]: run["status"] for run in ask("/api/runs")[2]}
    assert states == {hostile: "died", "cut": "interrupted", "used": "running"}
    assert ask("/api/runs/used/remove", {"yes": True})[0] == 409
    assert ask("/api/runs/cut/remove", {"yes": True})[0] == 200
    in_use.close()
    for name in ("..", "%2e%2e", "cut", "used%2f..%2fused", ".used.removed"):
        assert ask(f"/api/runs/{name}/remove", {"yes": True})[0] in {404, 409}, name
    assert {path.name for path in root.iterdir()} == {hostile, "used"}


@pytest.mark.parametrize(
    "form",
    [
        {"what": "echo", "network": "4g", "compare": "workload.transport=tcp,quic", "sure": "5%", "loss": "0%,2%"},
        {"what": "page", "network": "lan,4g", "compare": "path.network=lan,4g", "sure": "2s", "loss": ""},
        {"what": "transfer", "network": "lan", "compare": "path.loss=0%,2%", "sure": "12", "loss": ""},
        {"what": "connect", "network": "lan", "compare": "nothing", "sure": "12", "loss": "1%"},
    ],
)
def test_form_and_toml_follow_each_other(form: dict[str, str]) -> None:
    text = studies.text_of(form)
    assert studies.form_of(text) == form
    assert studies.form_of(text + "\n[report]\nnotes = ['mine']\n") is None


def test_a_study_is_checked_as_plan_does(ask: Ask) -> None:
    requires_cell()
    form = {"what": "echo", "network": "lan", "compare": "tcp,quic", "sure": "3"}
    text = ask("/api/form", form)[2]["toml"]
    found = ask("/api/check", {"toml": text})[2]
    assert (found["plan"]["forecast"]["repetitions"], found["form"]["what"]) == (6, "echo")
    wrong = ask("/api/check", {"toml": text.replace('kind = "echo"', 'kind = "ecco"')})[2]
    line = text[: text.index('kind = "echo"')].count("\n") + 1
    assert wrong["error"].startswith(f"study.toml:{line}: workload.kind") and "echo" in wrong["hint"]
    status, _, refused = ask("/api/runs", {"toml": text, "name": "../elsewhere"})
    assert (status, refused["error"]) == (409, "this is no name of a study")


def test_a_run_is_read_once_for_all_who_watch_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.ui.watch.time.time_ns", lambda: 1 << 62)
    store = new_run(tmp_path / "run")
    plans = []
    read_plan = Store.plan.func
    monkeypatch.setattr(Store, "plan", property(lambda self: plans.append(0) or read_plan(self)))
    watch = Watch(tmp_path / "run")
    first, everything = watch.news(0)
    assert {"plan", "state", "cells"} <= set(everything)
    taken = len(plans)
    assert watch.news(first) == (first, {})
    assert set(watch.news(0)[1]) == set(everything)
    assert len(plans) == taken
    store.set_status(Status.INTERRUPTED)
    store.close()
    later, changed = watch.news(first)
    assert (set(changed), changed["state"]["status"]) == ({"state"}, "interrupted")
    assert watch.news(later)[1] == {}


def test_what_the_disk_or_a_command_refuses_is_said(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("crosswind.ui.by_hand.temporary_directory", full)
    path = {"delay": 1, "loss": 0, "rate": 0, "queue": 0, "jitter": 0}
    status, _, said = ask("/api/path", path)
    assert (status, said["error"]) == (409, "No space left on device")
    for asked in ("host=x&seconds=ten", "host=--json&seconds=1", "host=x&tcp=-1&seconds=1"):
        assert "event: problem" in ask(f"/api/live?{asked}")[2], asked
    assert ask("/api/runs", {"toml": "", "name": "x", "on": "--help"})[0] == 409


def test_a_run_that_cannot_be_shown_hides_no_other(ask: Ask, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    new_run(root / "good").close()
    foreign = root / os.fsdecode(b"foreign-\xff")
    (root / "good").rename(foreign)
    new_run(root / "good").close()
    (root / os.fsdecode(b"empty-\xff")).mkdir()
    listed = {run["name"]: run.get("problem") for run in ask("/api/runs")[2]}
    assert listed == {
        "good": None,
        "foreign-\\udcff": "its name is not UTF-8: rename it",
        "empty-\\udcff": "its name is not UTF-8: rename it",
    }
    for name in ("foreign-%ff", "%00", "a" * 5000, "%ED%A0%80"):
        assert ask(f"/runs/{name}/report")[0] == 409, name


def _not_text(page: Path) -> None:
    page.write_bytes(b"<h1>\xff")


def _link(page: Path) -> None:
    page.with_name("secret").write_text("secret", encoding="utf-8")
    page.symlink_to(page.with_name("secret"))


@pytest.mark.parametrize("make", [_not_text, os.mkfifo, _link, Path.mkdir])
def test_a_report_that_is_no_page_is_made_anew(ask: Ask, tmp_path: Path, make: Callable[[Path], None]) -> None:
    with new_run(tmp_path / "runs" / "run") as store:
        store.set_status(Status.DONE)
    make(tmp_path / "runs" / "run" / REPORT)
    assert [(run["name"], run["answer"]) for run in ask("/api/runs")[2]] == [("run", "")]
    status, _, said = ask("/runs/run/report")
    # There is no repetition of which one could be made.
    assert (status, said.startswith("error: ")) == (409, True) and "no undamaged result" in said


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda log: log.symlink_to("/dev/zero")])
def test_a_log_that_is_no_file_is_left_alone(ask: Ask, tmp_path: Path, make: Callable[[Path], None]) -> None:
    run = tmp_path / "runs" / "run"
    new_run(run).close()
    make(run.with_name("run.log"))
    assert Watch(run).news(0)[1].get("log", "") == ""
    status, _, said = ask("/api/runs/run/resume", {"yes": True})
    assert status == 409 and "run.log" in said["error"]


DIGITS = "9" * 5000
FORM = {"what": "echo", "network": "lan", "compare": "nothing", "sure": "3"}
TOML = '[path]\ndelay = "1ms"\n[workload]\nkind = "echo"\n'


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *(("/api/form", {**FORM, key: text}) for key in ("what", "network", "sure") for text in ("\ud800", "\0")),
        ("/api/form", {**FORM, "sure": DIGITS}),
        ("/api/path", {"delay": "\ud800"}),
        ("/api/path", {"delay": float("inf")}),
        ("/api/runs", {"toml": TOML, "name": "x", "on": "a\0b"}),
        ("/api/runs", {"toml": TOML, "name": "x", "on": "\ud800"}),
        ("/api/runs", {"toml": TOML, "name": "x", "on": "a" * 200_000}),
        ("/api/runs", {"toml": f"{TOML}# \ud800", "name": "x"}),
        ("/api/check", {"toml": f"{TOML}# \ud800"}),
        (f"/runs/run/explain?cell={DIGITS}", None),
        ("/api/runs/%00/remove", {"yes": True}),
    ],
)
def test_what_no_command_can_be_given_is_refused(ask: Ask, tmp_path: Path, path: str, body: object) -> None:
    new_run(tmp_path / "runs" / "run").close()
    status, _, said = ask(path, body)
    assert status == 409
    assert "hint" in said
    assert sorted(place.name for place in (tmp_path / "runs").iterdir()) == ["run"]


def test_a_session_that_leaves_no_run_is_an_error(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.ui.commands._command", lambda *_: ["true"])
    status, _, said = ask("/api/runs", {"toml": TOML, "name": "x"})
    assert (status, said["error"]) == (409, "the command failed")
    assert list((tmp_path / "runs").iterdir()) == []


def test_the_same_of_what_is_asked_of_a_host_or_a_study(ask: Ask) -> None:
    for asked in (f"host=x&seconds={DIGITS}", f"host=x&tcp={DIGITS}&seconds=1", "host=a%00b&seconds=1"):
        assert ask(f"/api/live?{asked}")[2].startswith("event: problem"), asked
    found = ask("/api/check", {"toml": f"{TOML}messages = {DIGITS}"})[2]
    assert found["form"] is None and found["error"].startswith("study.toml: a number has too many digits")


def test_a_request_that_does_not_arrive_ends_its_connection_and_no_other(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.ui.server._PATIENCE_S", 0.05)
    new_run(tmp_path / "runs" / "run").close()
    own = "".join(f"{name}: {value}\r\n" for name, value in headers_of_page(port).items())
    head = f"Host: 127.0.0.1:{port}\r\n{own}"
    for sent in (
        "",
        "GET / HT",
        f"GET / HTTP/1.1\r\n{head}",
        f"POST /api/form HTTP/1.1\r\n{head}Content-Length: 9\r\n\r\n{{",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as slow:
            slow.sendall(sent.encode())
            assert slow.recv(1) == b"", sent
    # One that is answered goes on: a watched run gives a sign of life each half second.
    with socket.create_connection(("127.0.0.1", port), timeout=30) as watching, watching.makefile("rb") as lines:
        watching.sendall(f"GET /api/runs/run/events HTTP/1.1\r\n{head}\r\n".encode())
        assert [next(line for line in lines if line == b": \n") for _ in range(2)] == [b": \n"] * 2


def test_a_port_that_is_taken_is_one_clear_error(crosswind: Crosswind) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = crosswind("ui", "--port", str(port))
    assert (status, out) == (2, "")
    assert (
        err == f"error: cannot listen on 127.0.0.1:{port}: Address already in use\nhint: --port 0 takes a free port\n"
    )
