"""Options for a study's keys: one for every key, so a new key in the format is a new option.

Names come from the key's last word (`path.loss` is `--loss`), with the exceptions below; texts from the format.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from crosswind.errors import UsageError
from crosswind.study.keys import SETTINGS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound="DataclassInstance")

_NAMES = {"path.count": "link-count", "workload.rate": "message-rate"}
"""Names for keys sharing their last word."""

_NOT_OPTIONS = {"workload.kind", "path.server"}
"""`crosswind run KIND` names the one, `--to` the other."""

_REPEATED = {"workload.env", "workload.client_env", "workload.server_env"}
"""Keys with several texts, each an option of its own."""

FURTHER_OPTIONS = (
    click.option(
        "--hop",
        "hops",
        multiple=True,
        metavar="'NAME KEY=VALUE ...'",
        help="Add a hop to the path, as 'wifi rate=50mbit delay=2ms'; the client's first.",
    ),
    click.option(
        "--at",
        "changes",
        multiple=True,
        metavar="'NAME KEY=VALUE ...'",
        help="Add a change of the path over time, as 'outage start=5s for=1s loss=100%'.",
    ),
    click.option(
        "--beside",
        "flows",
        multiple=True,
        metavar="'KIND --KEY VALUE ...'",
        help="Run a flow beside the workload, as 'transfer --transport tcp --count 4 --start 2s'.",
    ),
)
"""Commands with these options have the fields of `FurtherTables`."""

_VARIANT_OPTIONS = (
    click.option(
        "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a key of the study, as path.loss=5%."
    ),
    *FURTHER_OPTIONS,
    click.option("--ladder", is_flag=True, help="Run on each rung of a ladder of ever worse networks."),
    click.option("--each-loss", is_flag=True, help="Lose each packet in turn: what its loss costs, exactly."),
    click.option(
        "--each-hold", metavar="TIME", help="Hold each packet back in turn, as 1ms: which of them delay the end."
    ),
    click.option("--quick", is_flag=True, help="Run the study's short variant."),
    click.option("--repetitions", type=click.IntRange(1), help="Repetitions per cell; a study may set fewer."),
    click.option(
        "--precision", metavar="TARGET", help="Repeat until intervals are this narrow: 5% of the mean, or 2ms."
    ),
    click.option(
        "--repetitions-max",
        type=click.IntRange(1),
        help="With a precision: maximum repetitions per cell, at least 5.",
    ),
)


def option_name(key: str) -> str:
    """A dotted key's option: `--loss` for `path.loss`, `--forward-loss` for `path.forward.loss`."""
    default = "-".join(key.split(".")[1:]).replace("_", "-")
    return "--" + _NAMES.get(key, default)


def options() -> dict[str, str]:
    """Each setting's dotted key to its option."""
    return {key: option_name(key) for key in SETTINGS if key not in _NOT_OPTIONS}


def setting_options(function: F) -> F:
    """Adds all `options` to a command; `chosen` reads them."""
    return options_of(options())(function)


def variant_options(function: F) -> F:
    """Adds options for a study's variants to a command."""
    for option in reversed(_VARIANT_OPTIONS):
        option(function)
    return function


def options_of(keys: Iterable[str]) -> Callable[[F], F]:
    """Gives a command the options of some keys; it receives them by `chosen`."""

    def with_options(function: F) -> F:
        for key in reversed(list(keys)):
            metavar = "NAME=VALUE" if key in _REPEATED else key.rpartition(".")[2].upper().replace("-", "_")
            text = f"{SETTINGS[key].help} [{key}]"
            name, is_repeated = key.replace(".", "__"), key in _REPEATED
            click.option(option_name(key), name, metavar=metavar, help=text, multiple=is_repeated)(function)
        return function

    return with_options


def chosen(values: Mapping[str, Any]) -> dict[str, str]:
    """The given settings by dotted key, as written."""
    values_by_key = {key: values.get(key.replace(".", "__")) for key in options()}
    given = {key: shlex.join(value) if key in _REPEATED and value else value for key, value in values_by_key.items()}
    return {key: value for key, value in given.items() if value not in (None, ())}


def picked(group: type[T], given: Mapping[str, Any]) -> T:
    """Fills a dataclass from a command's arguments, by name."""
    return group(**{field.name: given[field.name] for field in fields(group)})


def parse_set(assignments: tuple[str, ...]) -> dict[str, str]:
    """`--set key=value` options, by key. Raises: UsageError without a key or value, or for a repeated key."""
    settings: dict[str, str] = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(f"--set {text!r} is not key=value", hint="as in --set path.loss=0%,5%")
        if key in settings:
            raise UsageError(
                f"--set names {key} twice", hint="write several levels in one option: --set path.loss=0%,5%"
            )
        settings[key] = value.strip()
    return settings
