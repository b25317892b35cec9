"""The page of `crosswind ui` in a browser: a study is started, watched to its end, and its report opened."""

import base64
import html
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from conftest import ROOT, requires, requires_cell
from crosswind.peers.chromium.browser import browser
from crosswind.peers.chromium.devtools import DevTools, evaluate
from crosswind.peers.chromium.job import Job
from npm_packages import AXE as AXE_SOURCE
from npm_packages import npm_packages

STUDY = """
title = "<img src=x onerror=document.title='hostile'>"
[path]
delay = "1ms"
[workload]
kind = "echo"
messages = 3
[budget]
delay_error_p99 = "10s"
exchange_delay = "10s"
starvation = "100%"
probe_starvation = "100%"
"""

WHEN = """(done) => new Promise((found) => {
  const look = () => { try { if (done()) return found(document.body.innerText); } catch (_) {} setTimeout(look, 20); };
  look();
})"""


AXE = """axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })
  .then((found) => found.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`).join("\\n"))"""
"""What WCAG AA has against a page."""


def in_short(report: object) -> str:
    """What a report says in its description, as a text of JavaScript."""
    (description,) = re.findall('<meta name="description" content="(.+)">', str(report))
    return json.dumps(html.unescape(description))


@dataclass(frozen=True)
class Tab:
    """A tab of a browser that shows the page. Attributes: address: as `crosswind ui` printed it."""

    address: str
    devtools: DevTools
    session: str

    def evaluate(self, script: str) -> Any:
        """The value of some JavaScript in it."""
        return evaluate(self.devtools, self.session, script, timeout_s=120)

    def when(self, condition: str) -> str:
        """What it shows once a condition holds."""
        return str(self.evaluate(f"({WHEN})(() => {condition})"))


@contextmanager
def opened_page(directory: Path, fragment: str) -> Iterator[Tab]:
    """`crosswind ui`, and a browser that shows one of its pages."""
    requires("chromium")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CROSSWIND_CELL": str(requires_cell())}
    command = [sys.executable, "-m", "crosswind", "ui", "--port", "0"]
    with subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            port = urlsplit(address).port
            assert port is not None
            with browser(Job("127.0.0.1", port, {"transport": "http1", "kind": "page"})) as running:
                devtools = running.devtools
                target = devtools.call("Target.createTarget", url="about:blank")["targetId"]
                session = devtools.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
                loaded: list[object] = []
                devtools.on("Page.loadEventFired", loaded.append)
                devtools.call("Page.enable", session=session)
                devtools.call("Page.navigate", session=session, url=f"{address}{fragment}")
                devtools.wait(lambda: bool(loaded), what="the page", timeout_s=60)
                yield Tab(address, devtools, session)
        finally:
            server.terminate()


@contextmanager
def another_server() -> Iterator[tuple[str, list[str]]]:
    """A server on another port of this machine: its address, and the heads of what it was asked."""
    heads: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heads.append(str(self.headers))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<title>elsewhere</title>")

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", heads
        finally:
            server.shutdown()
            thread.join()


def test_no_other_server_of_this_machine_gets_the_token(tmp_path: Path) -> None:
    with opened_page(tmp_path, "#/studies") as tab, another_server() as (elsewhere, heads):
        tab.when("document.querySelector('table')")
        (token,) = parse_qs(urlsplit(tab.address).query)["token"]
        tab.devtools.call("Page.navigate", session=tab.session, url=elsewhere)
        tab.when("document.title === 'elsewhere'")
        assert "Host: 127.0.0.1:" in heads[0]
        assert token not in heads[0]


def test_a_study_is_started_watched_and_reported(tmp_path: Path) -> None:
    axe = npm_packages(AXE_SOURCE)
    with opened_page(tmp_path, "#/new") as tab:

        def press(key: str) -> None:
            event = {"key": key, "code": key, "text": {"Enter": "\r"}.get(key, "")}
            event["windowsVirtualKeyCode"] = {"Tab": 9, "Enter": 13}[key]
            for kind in ("keyDown", "keyUp"):
                tab.devtools.call("Input.dispatchKeyEvent", session=tab.session, type=kind, **event)

        tab.when("document.querySelector('button.main').ariaDisabled === 'false'")
        study = base64.b64encode(STUDY.encode()).decode()
        tab.evaluate(
            f"const area = document.querySelector('textarea'); area.value = atob('{study}');"
            "area.dispatchEvent(new Event('input'))",
        )
        assert "says more than the form" in tab.when("document.body.innerText.includes('1 cell, 1 repetition:')")
        # By the keyboard alone.
        tab.evaluate("document.querySelector('textarea').focus()")
        for _ in range(8):
            press("Tab")
            if tab.evaluate("document.activeElement.className") == "main":
                break
        press("Enter")
        # What has ended is told after the state.
        ended = "['done: 1 of 1 repetition;', '3 of 3 ok'].every((text) => document.body.innerText.includes(text))"
        watched = tab.when(ended)
        assert " ms" in tab.evaluate("document.querySelector('table.heat td').textContent")
        assert "<img src=x" in watched
        assert "token" not in tab.evaluate("location.href")
        assert str(tab.evaluate("document.title")).endswith("> · Crosswind")
        link = "[...document.querySelectorAll('a')].find((a) => a.textContent === 'Report').href"
        report = tab.evaluate(f"fetch({link}).then((answer) => answer.text())")
        assert "<h1>&lt;img src=x" in report
        tab.evaluate((axe / "axe-core" / "axe.min.js").read_text(encoding="utf-8") + "; 0")
        for page, shown in {
            "runs": f"document.querySelector('div.answer').textContent === {in_short(report)}",
            "new": "document.querySelector('button.main').ariaDisabled === 'false'",
            "live": "document.querySelector('form')",
            "studies": "document.querySelector('table')",
        }.items():
            assert tab.evaluate(AXE) == ""
            tab.evaluate(f"location.hash = '#/{page}'")
            tab.when(shown)
        assert tab.evaluate(AXE) == ""
