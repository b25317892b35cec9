"""`crosswind browser install`: what peers need beside Crosswind."""

import click

from crosswind.peers.install import install


@click.command()
@click.argument("action", type=click.Choice(["install"]))
def command(action: str) -> int:  # noqa: ARG001 -- there is only one
    """Install what browsers and other people's programs need as clients and servers: Chromium, Node, npm packages.

    Programs come from Debian, where that can be done; npm packages, in the versions that Crosswind was tested with, go
    into the user's cache. What is there already is left alone.
    """
    install(click.echo)
    return 0
