"""`crosswind ui`: a page to work in, on this machine alone."""

import webbrowser
from pathlib import Path

import click

from crosswind.store.listing import DEFAULT_ROOT

_PORT = 8460


@click.command()
@click.argument("root", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[ROOT]")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, metavar="PORT", help="0: a free one."
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
def command(root: Path | None, port: int, open_page: bool) -> None:
    """Serve a page to work in: the runs in ROOT (crosswind-runs/), new studies, and their reports.

    The page is served to this machine alone. Its address holds a token, without which nobody is answered. Ctrl-C ends
    the server; runs that were started from the page go on.
    """
    # Slow to import: --help should not wait.
    from crosswind.ui.server import serve

    def opened(address: str) -> None:
        click.echo(address)
        click.echo("Ctrl-C ends the server; runs go on.", err=True)
        if open_page:
            webbrowser.open(address)

    serve(root or DEFAULT_ROOT, port=port, opened=opened)
