"""`crosswind browser install`: installs the peers' dependencies."""

import click

from crosswind.peers.install import install


@click.command()
@click.argument("action", type=click.Choice(["install"]))
def command(action: str) -> int:  # noqa: ARG001 -- there is only one
    """Install Chromium, Node and npm packages, which can be clients and servers.

    Programs come from Debian where possible. npm packages, in the tested versions, go into the user's cache. What is
    already installed stays as it is.
    """
    install(click.echo)
    return 0
