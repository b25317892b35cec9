"""The peer: reads a job, measures in Chromium, prints events (docs/peers.md).

python -m crosswind.peers.chromium < job.json
"""

import sys

from crosswind.errors import CrosswindError
from crosswind.peers.chromium.browser import browser
from crosswind.peers.chromium.events import events, ready, say
from crosswind.peers.chromium.job import read_job, read_text
from crosswind.peers.chromium.page import CLOCK_RESOLUTION_NS, load_page


def main() -> int:
    """Run the program. Returns its exit status."""
    try:
        job = read_job(read_text(sys.stdin))
        with browser(job) as running:
            page = load_page(running, job)
            say(ready(running.version, page.origin_ns, CLOCK_RESOLUTION_NS))
            report = page.run()
        for event in events(report, page.said, job.transport):
            say(event)
        say({"event": "finished"})
    except CrosswindError as error:
        say({"event": "error", "message": error.message, "hint": error.hint})
        return 1
    except BrokenPipeError:
        # Whoever started it does not listen any more.
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
