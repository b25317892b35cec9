"""The page that measures: loads it into the browser without a byte on the network, and runs a job in it."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.peers.chromium.browser import Browser
from crosswind.peers.chromium.connections import Connections, wants_new_connections
from crosswind.peers.chromium.devtools import DevTools, Message
from crosswind.peers.chromium.document import HEADERS, document
from crosswind.peers.chromium.errors import ChromiumError
from crosswind.peers.chromium.evaluation import LOAD_TIMEOUT_S, evaluate
from crosswind.peers.chromium.events import Clock
from crosswind.peers.chromium.job import Job

CLOCK_RESOLUTION_NS = 5_000
"""Of `performance.now()` in an isolated page (Blink's `ClampTimeResolution`)."""


@dataclass
class Page:
    """A page that is loaded.

    Attributes: clock: of its times. said: what the browser tells
        developers about failed requests.
    """

    devtools: DevTools
    session: str
    clock: Clock
    said: list[str]

    def run(self) -> Mapping[str, Any]:
        """Runs the job. Returns what the page reports. Raises: ChromiumError with the error that the page throws."""
        report: Mapping[str, Any] = json.loads(evaluate(self.devtools, self.session, "crosswind.run()", timeout_s=None))
        return report


def load_page(browser: Browser, job: Job) -> Page:
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
    clock = Clock("performance.now", CLOCK_RESOLUTION_NS, _origin_ns(devtools, session))
    return Page(devtools, session, clock, said)


def attach(devtools: DevTools) -> str:
    """Returns the session of the browser's first page."""
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
