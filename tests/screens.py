"""The screen of a result as plain text."""

from crosswind.analysis.result import Result
from crosswind.report.run_page import page_of
from crosswind.report.text.terminal import print_screen
from crosswind.text.console import Console


def render(result: Result, *, width: int = 80, everything: bool = False) -> str:
    """The page of a result as a terminal of a given width shows it, without colour."""
    console = Console(width=width, no_color=True, force_terminal=False, highlight=False, record=False)
    with console.capture() as captured:
        print_screen(page_of(result), console, everything=everything)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"
