"""Options and arguments for a run's place: a directory, or an address on an object store."""

from pathlib import Path
from typing import Any

import click

from crosswind.store.addresses import place_of


class RunPath(click.Path):
    """A directory as a Path; for an address, as s3://bucket/studies/latency, its copy's path."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises: UsageError for a malformed address."""
        if isinstance(value, str) and value[:5].lower() == "s3://":
            return place_of(value)
        return super().convert(value, param, ctx)


RUN_PATH = RunPath()
