"""Pages visited by the browser, one after another, each on new connections."""

import contextlib
import json
from collections.abc import Sequence

from crosswind.peers.chromium.browser import Browser
from crosswind.peers.chromium.connections import Connections
from crosswind.peers.chromium.devtools import DevTools, NoAnswerError
from crosswind.peers.chromium.events import BrowserClock, DevtoolsEvent
from crosswind.peers.chromium.job import Job
from crosswind.peers.chromium.loading import Loading
from crosswind.peers.chromium.page import attach, page_crashed

_EVENTS = (
    "Network.requestWillBeSent",
    "Network.responseReceived",
    "Network.dataReceived",
    "Network.loadingFinished",
    "Network.loadingFailed",
    "Page.domContentEventFired",
    "Page.lifecycleEvent",
    "Page.loadEventFired",
)
METRICS_FILE = "load-metrics.jsonl"
"""The browser's own load metrics, in the peer's directory, a line for each page."""
_PAINT_TIMEOUT_S = 1.0
_CLOCK = BrowserClock("CLOCK_MONOTONIC", 1_000, 0)
"""Of the times of DevTools, which are microseconds."""


class Navigation:
    """A page of the browser that goes where the job says. Attributes: clock: of its times."""

    clock = _CLOCK

    def __init__(self, browser: Browser, job: Job) -> None:
        self._devtools: DevTools = browser.devtools
        self._job = job
        self._session = attach(browser.devtools)
        self._connections = Connections(browser.devtools)
        for domain in ("Inspector", "Network", "Page"):
            self._devtools.call(f"{domain}.enable", session=self._session)
        self._devtools.on("Inspector.targetCrashed", page_crashed)
        self._devtools.call("Page.setLifecycleEventsEnabled", session=self._session, enabled=True)
        # Every page is loaded from the server.
        self._devtools.call("Network.setCacheDisabled", session=self._session, cacheDisabled=True)

    def run(self) -> Sequence[DevtoolsEvent]:
        """Loads the pages, and keeps the browser's own load metrics. Returns the events of all (docs/peers.md)."""
        events: list[DevtoolsEvent] = []
        metrics: list[str] = []
        connections = 0
        timeout_ns: int = self._job.workload["timeout_ns"]
        for page in range(self._job.workload["count"]):
            loading = self._load()
            events += loading.events(page, connections, timeout_ns=timeout_ns)
            connections += max(1, loading.connections)
            metrics.append(json.dumps({"page": page, **loading.milestones_ms}))
        if self._job.directory is not None:
            (self._job.directory / METRICS_FILE).write_text("\n".join([*metrics, ""]), encoding="ascii")
        return events

    def _load(self) -> Loading:
        self._connections.close()
        loading = Loading()
        for name in _EVENTS:
            self._devtools.on(name, lambda event, name=name: loading.handle(name, event))  # type: ignore[misc]
        self._devtools.send("Page.navigate", session=self._session, url=page_url(self._job))
        try:
            timeout_s = self._job.workload["timeout_ns"] / 1e9
            self._devtools.wait(lambda: loading.is_whole, what="a navigation", timeout_s=timeout_s)
        except NoAnswerError:
            self._devtools.call("Page.stopLoading", session=self._session)
            return loading
        # The first frame may be later than the last byte. A page that paints nothing has none.
        with contextlib.suppress(NoAnswerError):
            self._devtools.wait(lambda: loading.is_painted, what="the first paint", timeout_s=_PAINT_TIMEOUT_S)
        return loading


def page_url(job: Job) -> str:
    """Where the server has the page (docs/peers.md, Pages)."""
    workload = job.workload
    keys = ("html_bytes", "scripts", "scripts_bytes", "images", "images_bytes")
    return f"{job.origin}/page/{'/'.join(str(workload[key]) for key in keys)}"
