"""What came of trying transports, as commands print it."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from crosswind.execution.reach import Reached


def print_reached(console: Console, server: str, tried: Sequence[Reached]) -> None:
    """A heading and a line for each transport."""
    console.print(Text(f"to {server}:"), soft_wrap=True)
    width = longest(one.transport for one in tried)
    for one in tried:
        print_one(console, one, width)


def print_one(console: Console, one: Reached, width: int) -> None:
    """The line of a transport. Args: width: of the longest name."""
    style = "red" if one.is_blocked else "green"
    console.print(Text(f"  {one.transport:<{width}}  ").append(one.text, style=style), soft_wrap=True)


def longest(names: Iterable[str]) -> int:
    """Characters of the longest name."""
    return max(map(len, names), default=0)
