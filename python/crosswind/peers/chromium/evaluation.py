"""Expressions that are evaluated in a page."""

from typing import Any

from crosswind.peers.chromium.devtools import DevTools
from crosswind.peers.chromium.errors import ChromiumError

LOAD_TIMEOUT_S = 20.0


def evaluate(devtools: DevTools, session: str, expression: str, *, timeout_s: float | None = LOAD_TIMEOUT_S) -> Any:
    """The value of an expression in a page, awaited. Raises: ChromiumError with what it throws."""
    answer = devtools.call(
        "Runtime.evaluate",
        session=session,
        timeout_s=timeout_s,
        expression=expression,
        awaitPromise=True,
        returnByValue=True,
    )
    if thrown := answer.get("exceptionDetails"):
        raise ChromiumError(f"the page failed: {thrown.get('exception', {}).get('description', thrown['text'])}")
    return answer["result"].get("value")
