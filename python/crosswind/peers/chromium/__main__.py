"""The peer: reads a job, measures in Chromium, prints events (docs/peers.md).

python -m crosswind.peers.chromium < job.json
"""

import signal
import sys
from collections.abc import Iterable

from crosswind.errors import CrosswindError
from crosswind.peers.chromium.browser import Browser, browser
from crosswind.peers.chromium.events import DevtoolsEvent, events, ready, say
from crosswind.peers.chromium.job import Job, read_job, read_text, warnings
from crosswind.peers.chromium.navigation import Navigation
from crosswind.peers.chromium.page import load_page


def main() -> int:
    """Run the program. Returns its exit status."""
    # Whoever ends it, the browser and its profile go first.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        job = read_job(read_text(sys.stdin))
        with browser(job) as running:
            events = _navigated(running, job) if job.kind == "page" else _measured(running, job)
        for message in warnings(job):
            say({"event": "warning", "message": message})
        for event in events:
            say(event)
        say({"event": "finished"})
    except CrosswindError as error:
        say({"event": "error", "message": error.message, "hint": error.hint})
        return 1
    except BrokenPipeError:
        # Whoever started it does not listen any more.
        return 1
    return 0


def _measured(running: Browser, job: Job) -> Iterable[DevtoolsEvent]:
    """A page's own measurements."""
    page = load_page(running, job)
    say(ready(running.version, page.clock))
    return events(page.run(), page.said, job.transport)


def _navigated(running: Browser, job: Job) -> Iterable[DevtoolsEvent]:
    """DevTools' events on the pages visited."""
    navigation = Navigation(running, job)
    say(ready(running.version, navigation.clock))
    return navigation.run()


if __name__ == "__main__":
    sys.exit(main())
