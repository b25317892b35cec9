"""The measuring page: loads it into the browser without a byte on the network, and runs a job in it."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from crosswind.peers.chromium.browser import Browser
from crosswind.peers.chromium.connections import Connections, wants_new_connections
from crosswind.peers.chromium.devtools import LOAD_TIMEOUT_S, DevTools, Message, evaluate
from crosswind.peers.chromium.events import BrowserClock
from crosswind.peers.chromium.job import ChromiumError, Job
from crosswind.peers.node.install import socketio_bundle

CLOCK_RESOLUTION_NS = 5_000
"""For `performance.now()` in an isolated page (Blink's `ClampTimeResolution`)."""

_PREFIX = "crosswind/"

HEADERS = (
    # An isolated page has a 5 us clock; others have a 100 us one.
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
)


@dataclass
class LoadedPage:
    """A loaded page. Attributes: clock: for its times. said: the browser's developer messages on failed requests."""

    devtools: DevTools
    session: str
    clock: BrowserClock
    said: list[str]

    def run(self) -> Mapping[str, Any]:
        """Runs the job. Returns the page's report. Raises: ChromiumError with the page's exception."""
        report: Mapping[str, Any] = json.loads(evaluate(self.devtools, self.session, "crosswind.run()", timeout_s=None))
        return report


def load_page(browser: Browser, job: Job) -> LoadedPage:
    """Loads the page for a job. Raises: ChromiumError when it does not load."""
    devtools, html = browser.devtools, document(job)
    session = attach(devtools)
    said: list[str] = []
    devtools.on("Log.entryAdded", lambda event: said.append(str(event["entry"]["text"])))
    devtools.on("Inspector.targetCrashed", page_crashed)
    for domain in ("Inspector", "Log", "Page", "Performance"):
        devtools.call(f"{domain}.enable", session=session)
    _navigate(devtools, session, job, html)
    if wants_new_connections(job):
        Connections(devtools).serve(session)
    given = {
        "workload": dict(job.workload),
        "origin": job.origin,
        "certificateSha256": job.certificate_sha256,
        "virtualTime": job.virtual_time,
    }
    state = evaluate(devtools, session, f"crosswind.prepare({json.dumps(given)})")
    if state != {"isolated": True, "secure": True}:
        raise ChromiumError(f"the page is not isolated, so its clock is too coarse: {state}")
    clock = BrowserClock("performance.now", CLOCK_RESOLUTION_NS, _origin_ns(devtools, session))
    return LoadedPage(devtools, session, clock, said)


def attach(devtools: DevTools) -> str:
    """Returns the session for the browser's first page."""
    targets = devtools.call("Target.getTargets")["targetInfos"]
    page = next((target["targetId"] for target in targets if target["type"] == "page"), None)
    if page is None:
        page = devtools.call("Target.createTarget", url="about:blank")["targetId"]
    return str(devtools.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"])


def _navigate(devtools: DevTools, session: str, job: Job, html: str) -> None:
    """Answers the page's only request here, and gets out of the way of all further ones."""
    loaded: list[bool] = []
    url = f"{job.origin}/crosswind"
    headers = [{"name": name, "value": value} for name, value in HEADERS]
    body = base64.b64encode(html.encode()).decode("ascii")

    def answer(event: Message) -> None:
        request = event["requestId"]
        parameters = {"responseCode": 200, "responseHeaders": headers, "body": body}
        devtools.send("Fetch.fulfillRequest", session=session, requestId=request, **parameters)
        devtools.send("Fetch.disable", session=session)

    devtools.on("Fetch.requestPaused", answer)
    devtools.on("Page.loadEventFired", lambda _: loaded.append(True))
    devtools.call("Fetch.enable", session=session, patterns=[{"urlPattern": url}])
    problem = devtools.call("Page.navigate", session=session, url=url).get("errorText")
    if problem:
        raise ChromiumError(f"Chromium does not load its page {url}: {problem}")
    devtools.wait(lambda: bool(loaded), what=f"loading its page {url}", timeout_s=LOAD_TIMEOUT_S)


def _origin_ns(devtools: DevTools, session: str) -> int:
    """Chromium's clock is CLOCK_MONOTONIC (base/time/time_now_posix.cc); a page's begins with its navigation."""
    metrics = devtools.call("Performance.getMetrics", session=session)["metrics"]
    started_s: float = next(metric["value"] for metric in metrics if metric["name"] == "NavigationStart")
    return round(started_s * 1e9)


def page_crashed(_: Message) -> None:
    """Raises: ChromiumError, when a page has crashed."""
    raise ChromiumError("the page in Chromium has crashed", hint="is there enough memory?")


def document(job: Job) -> str:
    """Return the HTML. Its import map has the modules of page/ and workloads/ as crosswind/NAME, and Socket.IO.

    Raises: CrosswindError when the job needs Socket.IO's client, and it is not installed.
    """
    imports = {f"{_PREFIX}{name}": _data(module) for name, module in _modules()}
    if job.transport.startswith("socketio-"):
        imports["socket.io-client"] = _data(_socketio_client())
    return "\n".join([
        "<!doctype html>",
        "<title>Crosswind</title>",
        # Without it the browser asks the server for /favicon.ico.
        '<link rel="icon" href="data:,">',
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>',
        f'<script type="module" src="{imports[f"{_PREFIX}main.js"]}"></script>',
    ])  # fmt: skip


def _modules() -> Iterator[tuple[str, bytes]]:
    """Its own modules, and those shared by the peers in JavaScript."""
    for file in files("crosswind.peers.chromium").joinpath("page").iterdir():
        yield file.name, file.read_bytes()
    for file in files("crosswind.peers").joinpath("workloads").iterdir():
        # A module in a data: URL has no directory for another one.
        yield file.name, re.sub(rb'(?<= from ")\./', _PREFIX.encode(), file.read_bytes())


def _data(module: bytes) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(module).decode('ascii')}"


def _socketio_client() -> bytes:
    module = socketio_bundle()
    try:
        return module.read_bytes()
    except OSError as error:
        raise ChromiumError(
            f"cannot read {module}: {error.strerror}", hint="`crosswind browser install` installs it"
        ) from error
