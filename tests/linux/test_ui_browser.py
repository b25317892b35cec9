"""The page of `crosswind ui` in a browser: a study is started, watched to its end, and its report opened."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from conftest import ROOT, requires, requires_cell
from crosswind.peers.chromium.browser import browser
from crosswind.peers.chromium.devtools import evaluate
from crosswind.peers.chromium.job import Job

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


def test_a_study_is_started_watched_and_reported(tmp_path: Path) -> None:
    requires("chromium")
    cell = requires_cell()
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

                when("!document.querySelector('button.main').disabled")
                study = base64.b64encode(STUDY.encode()).decode()
                evaluate(
                    devtools,
                    session,
                    f"const area = document.querySelector('textarea'); area.value = atob('{study}');"
                    "area.dispatchEvent(new Event('input'))",
                )
                assert "says more than the form" in when("document.body.innerText.includes('1 repetitions:')")
                evaluate(devtools, session, "document.querySelector('button.main').click()")
                watched = when("document.body.innerText.includes('done: 1 of 1')")
                assert "<img src=x" in watched and "3 of 3 ok" in watched
                assert "token" not in evaluate(devtools, session, "location.href")
                assert evaluate(devtools, session, "document.title") == "Crosswind"
                link = "[...document.querySelectorAll('a')].find((a) => a.textContent === 'Report').href"
                report = evaluate(devtools, session, f"fetch({link}).then((answer) => answer.text())")
                assert "<h1>&lt;img src=x" in report
        finally:
            server.terminate()
