"""The page of `crosswind ui` over HTTP: who is answered, and what runs and studies are to it."""

import errno
import http.client
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from conftest import requires_cell
from crosswind.store.directory import Store
from crosswind.store.manifest import Status
from crosswind.ui import studies
from crosswind.ui.app import application
from crosswind.ui.watch import Watch
from fixture_types import Crosswind
from runs import new_run

TOKEN = "the-token"
Ask = Callable[..., tuple[int, Mapping[str, str], Any]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """A server of the runs in tmp_path/runs, asked by its own page unless the headers say otherwise."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config = uvicorn.Config(application(tmp_path / "runs", token=TOKEN, port=port), lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()

    def asked(path: str, body: object = None, **headers: str) -> tuple[int, Mapping[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        own = {"Cookie": f"crosswind-{port}={TOKEN}"} | ({"Origin": f"http://127.0.0.1:{port}"} if body else {})
        method = "GET" if body is None else "POST"
        connection.request(method, path, None if body is None else json.dumps(body), {**own, **headers})
        answer = connection.getresponse()
        content = answer.read().decode()
        is_json = answer.headers.get("content-type") == "application/json"
        return answer.status, dict(answer.headers), json.loads(content) if is_json else content

    yield asked
    server.should_exit = True
    thread.join()
    listening.close()


def test_only_its_own_page_with_the_token_is_answered(ask: Ask) -> None:
    status, headers, _ = ask(f"/?token={TOKEN}", Cookie="")
    assert (status, headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=strict"} <= set(headers["set-cookie"].split("; "))
    assert ask("/")[0] == ask("/api/runs")[0] == 200
    assert "script-src 'self'" in ask("/")[1]["content-security-policy"]
    for path, changed in {
        "/?token=wrong": {"Cookie": ""},
        "/api/runs": {"Cookie": ""},
        f"/api/runs?token={TOKEN}": {"Cookie": ""},
        "/": {"Host": "evil.example"},
        "/style.css": {"Origin": "http://evil.example"},
    }.items():
        assert ask(path, **changed)[0] == 403, path
    for origin in ("http://evil.example", "null", "http://127.0.0.1"):
        assert ask("/api/form", {"what": "echo"}, Origin=origin)[0] == 403


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


def test_a_port_that_is_taken_is_one_clear_error(crosswind: Crosswind) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = crosswind("ui", "--port", str(port))
    assert (status, out) == (2, "")
    assert (
        err == f"error: cannot listen on 127.0.0.1:{port}: Address already in use\nhint: --port 0 takes a free port\n"
    )
