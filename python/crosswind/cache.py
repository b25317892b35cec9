"""Where Crosswind keeps what it can make again: in the user's cache."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """`crosswind` in $XDG_CACHE_HOME, else in ~/.cache. It may not exist."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "crosswind"
