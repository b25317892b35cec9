"""What can go wrong with the browser, in words."""

from crosswind.errors import CrosswindError


class ChromiumError(CrosswindError):
    """The browser cannot do what it is asked to, or has ended."""
