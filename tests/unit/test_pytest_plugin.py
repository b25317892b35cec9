"""pytest-crosswind without a network: what its package says of itself, factors, and names of kept runs."""

import tomllib
from importlib import import_module
from typing import Any

import pytest

from conftest import ROOT
from crosswind.errors import UsageError
from pytest_crosswind import Direction, marker
from pytest_crosswind.plugin import directory_name
from pytest_crosswind.programs import command_of
from pytest_crosswind.settings import keys


def metadata(path: str) -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / path).read_text(encoding="utf-8"))["project"])


def mark(*args: object, **settings: object) -> pytest.Mark:
    return pytest.Mark(marker.NAME, args, settings, _ispytest=True)


def test_the_package_has_crosswinds_version_and_its_entry_point_is_there() -> None:
    own, crosswind = metadata("packaging/pytest-crosswind/pyproject.toml"), metadata("pyproject.toml")
    assert (own["version"], own["requires-python"]) == (crosswind["version"], crosswind["requires-python"])
    (module,) = own["entry-points"]["pytest11"].values()
    assert import_module(module).net


def test_factors_are_combined_the_first_one_changing_slowest() -> None:
    levels = list(marker.combinations({"loss": ["0%", "2%"], "delay": "20ms", "network": ("4g", "3g")}))
    ids = ["loss=0%,network=4g", "loss=0%,network=3g", "loss=2%,network=4g", "loss=2%,network=3g"]
    assert [marker.id_of(each) for each in levels] == ids
    assert list(marker.combinations({"delay": "20ms"})) == [{}]
    with pytest.raises(UsageError, match="loss to an empty list"):
        list(marker.combinations({"loss": []}))


def test_the_closest_marker_counts() -> None:
    marks = [mark(loss="2%"), mark(loss="5%", seed=3)]
    assert marker.settings_of(marks) == {"loss": "2%", "seed": 3}
    with pytest.raises(UsageError, match="takes settings by name, not '2%'"):
        marker.settings_of([mark("2%")])


def test_settings_are_the_keys_of_a_study_without_their_table() -> None:
    assert keys()["loss"] == "path.loss"
    assert keys()["forward_loss"] == "path.forward.loss"
    assert keys()["congestion_control"] == "host.congestion_control"
    assert keys()["timeout"] == "workload.timeout"
    assert "transport" not in keys()
    assert len(set(keys().values())) == len(keys())


def test_no_two_tests_have_the_same_directory() -> None:
    tests = ["a/test_x.py::test_y[loss=2%]", "a/test_x.py::test_y[loss=2 ]", "b/test_x.py::test_y[loss=2%]"]
    names = [directory_name(test, number) for test in tests for number in (1, 2)]
    assert len(set(names)) == 6
    assert all(name.startswith("test_x.py-test_y-loss=2-") and "/" not in name for name in names)


def test_a_command_is_a_list_or_a_text_split_as_a_shell_does() -> None:
    assert command_of("sh -c 'exit 3'", "client") == ["sh", "-c", "exit 3"]
    assert command_of(["cat", ROOT], "client") == ["cat", str(ROOT)]
    for wrong in ("", [], "'", [3]):
        with pytest.raises(UsageError, match="the client "):
            command_of(wrong, "client")  # type: ignore[arg-type]


def test_counts_are_sums_over_repetitions() -> None:
    parts = [
        {"packets": 5, "bytes": 500, "delivered": 3, "delivered_bytes": 300, "dropped": {"loss": 2}},
        {"packets": 7, "bytes": 700, "delivered": 5, "delivered_bytes": 500, "dropped": {"loss": 1, "queue": 1}},
    ]
    both = Direction.of(parts)
    assert both == Direction(12, 1200, 8, 800, {"loss": 3, "queue": 1})
    assert both.dropped == 4
