"""Options with a unit."""

from collections.abc import Callable
from typing import Any

import click

from crosswind.errors import UsageError
from crosswind.text.units import UnitError


def read_by(parse: Callable[[object], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """A reader for an option's value, by a function from crosswind.text.units; it raises UsageError."""

    def read(_context: click.Context, option: click.Parameter, text: str | None) -> Any:
        try:
            return None if text is None else parse(text)
        except UnitError as error:
            raise UsageError(f"{option.opts[0]} {text}: {error.message}", hint=error.hint) from None

    return read
