"""`crosswind networks`: the named networks, their numbers and sources."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from crosswind.catalog import catalog
from crosswind.errors import UsageError, did_you_mean
from crosswind.study.keys import SETTINGS
from crosswind.study.network_columns import besides, direction_as_json, network_columns
from crosswind.study.networks import NETWORKS, Network
from crosswind.study.resolve import network_named
from crosswind.text.console import plain_console
from crosswind.text.terminal_table import TextCell, TextColumn, number_columns, print_table
from crosswind.text.units import UnitError
from crosswind.text.visible import one_line

SCHEMA = "crosswind.networks/1"
_WIDE = 110


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object, schema {SCHEMA}.")
def command(name: str | None, as_json: bool) -> None:
    """List the named networks and their numbers.

    With NAME, or file=my-network.toml: that network alone, its sources, and the study keys that it stands for. A study
    sets `network = "4g"` under [path], the command line `--network 4g`; any key set beside it overrides it.
    """
    one = None if name is None else _named(name)
    if as_json:
        chosen = NETWORKS.values() if one is None else (one,)
        document = {"schema": SCHEMA, "networks": [_as_dict(network) for network in chosen]}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    elif one is None:
        _print_all(plain_console())
    else:
        _print_one(plain_console(), one)


def _named(name: str) -> Network:
    if "=" in name:
        try:
            return network_named(SETTINGS["path.network"].type.level(name).value)
        except UnitError as error:
            raise UsageError(error.message, hint=error.hint) from None
    if name not in NETWORKS:
        close = did_you_mean(name, NETWORKS)
        hint = f"{close} " if close.startswith("did you mean") else ""
        raise UsageError(f'there is no network "{name}"', hint=f"{hint}`crosswind networks` lists them")
    return NETWORKS[name]


def _print_all(console: Console) -> None:
    wide = not sys.stdout.isatty() or console.width >= _WIDE
    columns = [column for column in network_columns() if wide or column.narrow]
    heads = [title for column in columns for title in column.titles]
    rows: list[list[TextCell]] = []
    for network in NETWORKS.values():
        what = "; ".join(filter(None, [network.what, besides(network)]))
        rows.append([network.name, *(text for column in columns for text in column.texts(network)), what])
    print_table(console, [TextColumn("network"), *number_columns(*heads), TextColumn("description")], rows)
    notes = dict.fromkeys(source.note for network in NETWORKS.values() for source in network.sources if source.note)
    text = " ".join([*notes, "`crosswind networks NAME` has the sources and keys of one of them."])
    console.print(Text(f"\n{text}", style="dim"))


def _print_one(console: Console, network: Network) -> None:
    console.print(f"{one_line(network.name)}: {network.what}", style="bold")
    for source in network.sources:
        console.print(f"{source.of}: {source.text}", style="dim")
    console.print()
    console.print("In a study this is the same as:", style="dim")
    console.print("\n".join(_as_study(network)), soft_wrap=True, markup=False, highlight=False)


def _as_study(network: Network) -> Iterator[str]:
    for name, keys in network.keys.items():
        yield f'[[path.hop]]\nname = "{name}"' if name else "[path]"
        yield from (f'{key} = "{text}"' for key, text in keys.items())
    for change in network.changes:
        yield "\n[[path.at]]"
        yield from (f'{key} = "{text}"' for key, text in {"name": change.name, **change.keys}.items())


def _as_dict(network: Network) -> dict[str, Any]:
    names = {key.study: key.name for key in catalog().direction.keys}
    hops = {
        name: {
            "keys": network.keys[name],
            **{way: direction_as_json(settings, names) for way, settings in directions.items()},
        }
        for name, directions in network.hops.items()
    }
    changes = [{"name": change.name, "keys": change.keys} for change in network.changes]
    return {
        "name": network.name,
        "what": network.what,
        **({"hops": [{"name": name, **hop} for name, hop in hops.items()]} if network.hop_names else hops[""]),
        **({"changes": changes} if changes else {}),
        "sources": [{"of": source.of, "text": source.text} for source in network.sources],
    }
