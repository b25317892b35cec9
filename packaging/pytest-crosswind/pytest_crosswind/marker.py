"""The marker `network`: what it sets holds for every `net.run` of a test, and its lists are factors.

    @pytest.mark.network(network="4g", loss=["0%", "2%"])

runs a test twice, as test[loss=0%] and test[loss=2%].
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import pytest

from crosswind.errors import UsageError
from pytest_crosswind.settings import check_names

NAME = "network"
DESCRIPTION = (
    f"{NAME}(**settings): what net.run() sets unless it says otherwise, as loss='2%'; "
    "a list, as loss=['0%', '2%'], runs the test once for each of its values"
)


def settings_of(marks: Iterable[pytest.Mark]) -> dict[str, Any]:
    """What the markers of a test set. Args: marks: the closest first, which counts. Raises: UsageError."""
    settings: dict[str, Any] = {}
    for mark in marks:
        if mark.args:
            message = f"the marker {NAME} takes settings by name, not {mark.args[0]!r}"
            raise UsageError(message, hint=f'as in @pytest.mark.{NAME}(loss="2%")')
        check_names(mark.kwargs, f"the marker {NAME}")
        settings = {**mark.kwargs, **settings}
    return settings


def combinations(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The levels of all factors, combined: the first one changes slowest. Raises: UsageError for one without levels."""
    factors = {name: levels for name, levels in settings.items() if isinstance(levels, list | tuple)}
    for name, levels in factors.items():
        if not levels:
            raise UsageError(f"the marker {NAME} sets {name} to an empty list", hint="give it a value at least")
    for levels in product(*factors.values()):
        yield dict(zip(factors, levels, strict=True))


def id_of(levels: dict[str, Any]) -> str:
    """What tells the tests of a marker apart: loss=2%,network=4g."""
    return ",".join(f"{name}={level}" for name, level in levels.items())
