"""docs/examples/pytest: what three libraries' retry policies do at 5 % loss, as those who test with pytest see it."""

import sys

import pytest

from conftest import ROOT, requires

EXAMPLES = ROOT / "docs" / "examples" / "pytest"


@pytest.mark.parametrize(("name", "count"), [("websocket", 2), ("http_retries", 3), ("mqtt", 1)])
def test_an_example(plugin: None, pytester: pytest.Pytester, name: str, count: int) -> None:
    if name == "mqtt":
        requires("mosquitto")
    pytester.makeini("[pytest]")
    options = ["-p", "pytest_crosswind.plugin", "-p", "no:cacheprovider", "-c", "tox.ini"]
    ended = pytester.run(sys.executable, "-m", "pytest", *options, str(EXAMPLES / f"test_{name}.py"))
    ended.assert_outcomes(passed=count)
