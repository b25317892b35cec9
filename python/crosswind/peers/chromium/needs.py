"""What the peer chromium needs of this machine."""

from crosswind.peers.chromium.browser import find_chromium
from crosswind.peers.chromium.errors import ChromiumError
from crosswind.peers.registry import Missing


def missing() -> Missing | None:
    """What it lacks, if anything. Its version is looked at when it runs: asking takes as long as starting it."""
    try:
        find_chromium()
    except ChromiumError as error:
        return Missing(error.message, error.hint or "`make browser` installs it")
    return None
