"""The page of `crosswind ui` in a browser: a study is started, watched to its end, and its report opened."""

import base64
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from conftest import ROOT, requires, requires_cell
from crosswind.peers.chromium.browser import browser
from crosswind.peers.chromium.devtools import evaluate
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
delay_error_p99 = "1s"
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


def test_a_study_is_started_watched_and_reported(tmp_path: Path) -> None:
    requires("chromium")
    cell = requires_cell()
    axe = npm_packages(AXE_SOURCE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CROSSWIND_CELL": str(cell)}
    command = [sys.executable, "-m", "crosswind", "ui", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as server:
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
                devtools.call("Page.navigate", session=session, url=f"{address}#/new")
                devtools.wait(lambda: bool(loaded), what="the page", timeout_s=60)

                def when(condition: str) -> str:
                    return str(evaluate(devtools, session, f"({WHEN})(() => {condition})", timeout_s=120))

                def press(key: str) -> None:
                    event = {"key": key, "code": key, "text": {"Enter": "\r"}.get(key, "")}
                    event["windowsVirtualKeyCode"] = {"Tab": 9, "Enter": 13}[key]
                    for kind in ("keyDown", "keyUp"):
                        devtools.call("Input.dispatchKeyEvent", session=session, type=kind, **event)

                when("document.querySelector('button.main').ariaDisabled === 'false'")
                study = base64.b64encode(STUDY.encode()).decode()
                evaluate(
                    devtools,
                    session,
                    f"const area = document.querySelector('textarea'); area.value = atob('{study}');"
                    "area.dispatchEvent(new Event('input'))",
                )
                assert "says more than the form" in when("document.body.innerText.includes('1 cell, 1 repetition:')")
                # By the keyboard alone.
                evaluate(devtools, session, "document.querySelector('textarea').focus()")
                for _ in range(8):
                    press("Tab")
                    if evaluate(devtools, session, "document.activeElement.className") == "main":
                        break
                press("Enter")
                watched = when("document.body.innerText.includes('done: 1 of 1 repetition;')")
                assert " ms" in evaluate(devtools, session, "document.querySelector('table.heat td').textContent")
                assert "<img src=x" in watched and "3 of 3 ok" in watched
                assert "token" not in evaluate(devtools, session, "location.href")
                assert str(evaluate(devtools, session, "document.title")).endswith("> · Crosswind")
                link = "[...document.querySelectorAll('a')].find((a) => a.textContent === 'Report').href"
                report = evaluate(devtools, session, f"fetch({link}).then((answer) => answer.text())", timeout_s=120)
                assert "<h1>&lt;img src=x" in report
                evaluate(devtools, session, (axe / "axe-core" / "axe.min.js").read_text(encoding="utf-8") + "; 0")
                for page, shown in {
                    "runs": f"document.querySelector('div.answer').textContent === {in_short(report)}",
                    "new": "document.querySelector('button.main').ariaDisabled === 'false'",
                    "live": "document.querySelector('form')",
                    "studies": "document.querySelector('table')",
                }.items():
                    assert evaluate(devtools, session, AXE, timeout_s=120) == ""
                    evaluate(devtools, session, f"location.hash = '#/{page}'")
                    when(shown)
                assert evaluate(devtools, session, AXE, timeout_s=120) == ""
        finally:
            server.terminate()
