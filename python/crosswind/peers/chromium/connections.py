"""Closes the browser's kept connections, so the next request opens a new one. Pages cannot do this."""

from crosswind.peers.chromium.devtools import DevTools, Message, evaluate
from crosswind.peers.chromium.job import HTTP_VERSIONS, Job

BINDING = "crosswindCloseConnections"
"""The function for a page's request."""
_URL = "chrome://net-internals/#sockets"
# The second answer proves the first message done: both go the same way, in order.
_CLOSE = """import("chrome://resources/js/cr.js").then((resources) => {
  chrome.send("flushSocketPools");
  return resources.sendWithPromise("hstsQuery", "localhost");
})"""


def wants_new_connections(job: Job) -> bool:
    """Whether the browser must open new connections."""
    return job.transport in HTTP_VERSIONS and (
        job.kind in ("connect", "page") or job.workload.get("connection") == "new"
    )


class Connections:
    """The browser's own page for its connections, able to close them."""

    def __init__(self, devtools: DevTools) -> None:
        self._devtools = devtools
        target = devtools.call("Target.createTarget", url=_URL, background=True)["targetId"]
        self._session = devtools.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        # Until it is loaded nothing can be imported; the wait is for the page's own scripts.
        self._ask("document.readyState === 'complete' || new Promise((resolve) => addEventListener('load', resolve))")

    def close(self) -> None:
        """Closes all connections, busy or not. Raises: ChromiumError."""
        self._ask(_CLOSE)

    def serve(self, page: str) -> None:
        """Offers the page in this session the function `BINDING`."""
        self._devtools.call("Runtime.addBinding", session=page, name=BINDING)

        def close(_: Message) -> None:
            self.close()
            self._devtools.send("Runtime.evaluate", session=page, expression="crosswind.connectionsClosed()")

        self._devtools.on("Runtime.bindingCalled", close)

    def _ask(self, expression: str) -> None:
        evaluate(self._devtools, self._session, f"Promise.resolve({expression}).then(() => true)")
