"""`crosswind kernel install`: installs a virtual-time kernel from its wheel."""

import os

import click

from crosswind.cell.kernel_wheels import WHEELS, install_kernel
from crosswind.cell.kernels import WHEEL
from crosswind.errors import UsageError


@click.command()
@click.argument("action", type=click.Choice(["install"]))
@click.argument("source", required=False, metavar="[WHEEL|DIRECTORY|ADDRESS]")
def command(action: str, source: str | None) -> int:  # noqa: ARG001 -- there is only one
    """Install the kernel of virtual time, which any user can run, from its wheel.

    The wheel is a file, in a directory, or at an https address; $CROSSWIND_WHEELS names the directory where nothing
    else does. The kernel goes into the user's cache, where every installation of Crosswind finds it.
    """
    place = source or os.environ.get(WHEELS)
    if place is None:
        raise UsageError(
            f"where the kernel is from is not said: {WHEEL}, its directory or its address",
            hint="`make kernel-wheel` in Crosswind's sources makes that wheel; `make kernel` does without it",
        )
    click.echo(f"installed {install_kernel(place)}")
    return 0
