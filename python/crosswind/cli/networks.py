"""`crosswind networks`: the named networks, their numbers and sources."""

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from crosswind.cli.output import plain_console
from crosswind.errors import UsageError, did_you_mean
from crosswind.study.networks import NETWORKS, Network
from crosswind.study.networks.network import ROUND_QUEUE, NetworkDirection, numbers_of
from crosswind.terminal_table import Cell, Column, numbers, print_table

SCHEMA = "crosswind.networks/1"
_WIDE = 110


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object, schema {SCHEMA}.")
def command(name: str | None, as_json: bool) -> None:
    """List the named networks, their numbers and sources.

    With NAME: that network alone, and the study keys that it stands for. A study sets `network = "4g"` under [path],
    the command line `--network 4g`; any key set beside it overrides it.
    """
    chosen = NETWORKS if name is None else {name: _named(name)}
    if as_json:
        document = {"schema": SCHEMA, "networks": [_as_dict(network) for network in chosen.values()]}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    elif name is None:
        _print_all(plain_console())
    else:
        _print_one(plain_console(), NETWORKS[name])


def _named(name: str) -> Network:
    if name not in NETWORKS:
        close = did_you_mean(name, NETWORKS)
        hint = f"{close} " if close.startswith("did you mean") else ""
        raise UsageError(f'there is no network "{name}"', hint=f"{hint}`crosswind networks` lists them")
    return NETWORKS[name]


def _print_all(console: Console) -> None:
    wide = not sys.stdout.isatty() or console.width >= _WIDE
    heads = ("round trip", "down", "up", *(["queue down / up"] if wide else []), "loss")
    rows: list[list[Cell]] = []
    for network in NETWORKS.values():
        rtt, down, up, queues, loss = numbers_of(network)
        said = Text(f"{network.what}. ").append(f"{network.own_source}.", style="dim")
        rows.append([network.name, rtt, down, up, *([queues] if wide else []), loss, said])
    print_table(console, [Column("network"), *numbers(*heads), Column("description and source")], rows)
    queues = f"Queues without a source are round numbers: {ROUND_QUEUE.text.partition(': ')[2]}."
    console.print(Text(f"\n{queues} `crosswind networks NAME` has the keys of one of them.", style="dim"))


def _print_one(console: Console, network: Network) -> None:
    console.print(f"{network.name}: {network.what}", style="bold")
    for source in network.sources:
        console.print(f"{source.of}: {source.text}", style="dim")
    console.print()
    console.print("In a study this is the same as:", style="dim")
    lines = ["[path]", *(f'{key} = "{text}"' for key, text in network.keys.items())]
    console.print("\n".join(lines), soft_wrap=True)


def _as_dict(network: Network) -> dict[str, Any]:
    return {
        "name": network.name,
        "what": network.what,
        "keys": network.keys,
        "forward": _direction(network.forward),
        "reverse": _direction(network.reverse),
        "sources": [{"of": source.of, "text": source.text} for source in network.sources],
    }


def _direction(direction: NetworkDirection) -> dict[str, Any]:
    queue = direction.queue
    return {
        "delay_ns": direction.delay_ns,
        "rate_bps": direction.rate_bps,
        "queue_bytes": None if queue is None else queue.size_bytes,
        "loss": None if direction.loss is None else float(direction.loss),
    }
