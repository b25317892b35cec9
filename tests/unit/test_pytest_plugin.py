"""pytest-crosswind without a network: what its package says of itself, factors, and names of kept runs."""

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from crosswind.errors import UsageError
from pytest_crosswind import Direction, Repetition, marker
from pytest_crosswind.programs import command_of
from pytest_crosswind.reports import PAGE, REPORT, Listed, directory_name, page
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


def test_a_value_is_the_last_line_of_what_a_function_prints(tmp_path: Path) -> None:
    nothing = Direction(0, 0, 0, 0, {})
    made = Repetition(0, False, 1.0, nothing, nothing, None, tmp_path, _has_value=True)
    (tmp_path / "client.out").write_text('asked\n{"times_s": [1]}\n', encoding="utf-8")
    assert (made.output, made.value) == ("asked\n", {"times_s": [1]})
    # Its beginning was left out.
    (tmp_path / "client.out").write_text("[1, 2\n[7 bytes are left out here]\n4, 5]\n", encoding="utf-8")
    made = Repetition(0, False, 1.0, nothing, nothing, None, tmp_path, _has_value=True)
    with pytest.raises(UsageError, match="not all were kept"):
        _ = made.value
    assert made.output.startswith("[1, 2\n")


def test_counts_are_sums_over_repetitions() -> None:
    parts = [
        {"packets": 5, "bytes": 500, "delivered": 3, "delivered_bytes": 300, "dropped": {"loss": 2}},
        {"packets": 7, "bytes": 700, "delivered": 5, "delivered_bytes": 500, "dropped": {"loss": 1, "queue": 1}},
    ]
    both = Direction.of(parts)
    assert both == Direction(12, 1200, 8, 800, {"loss": 3, "queue": 1})
    assert both.dropped == 4


def test_the_page_lists_what_failed_first_and_links_the_reports_that_are_there(tmp_path: Path) -> None:
    for name in ("a=1%-1", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a=1%-1" / REPORT).touch()
    tests = [
        Listed("t.py::test_a", "passed", runs=("a=1%-1", "b")),
        Listed("t.py::test_z[<x>]", "failed", "a < b"),
        Listed("t.py::test_c", "skipped", "no kernel"),
        Listed("t.py::test_b", "passed"),
    ]
    text = page(tests, tmp_path)
    assert re.findall(r"t\.py::test_\w", text) == ["t.py::test_z", "t.py::test_c", "t.py::test_a", "t.py::test_b"]
    assert '<div class="banner bad">1 failed, 1 skipped, 2 passed.</div>' in text
    assert "t.py::test_z[&lt;x&gt;]" in text
    assert "a &lt; b" in text
    assert re.findall(r'href="([^"]*)">([^<]*)<', text) == [(f"a%3D1%25-1/{REPORT}", "run 1")]
    assert 'class="banner doubtful"' in page(tests[2:], tmp_path)
    assert 'class="banner good"' in page(tests[3:], tmp_path)


NO_RUNS = """
import pytest
def test_of_something_else(): pass
def test_passes(net): pass
def test_fails(net): assert 1 == 2
@pytest.mark.xfail
def test_expected(net): assert False
@pytest.fixture
def broken(net):
    yield
    raise OSError("no way out")
def test_with_a_broken_end(broken): pass
def test_skipped(net): pytest.skip("not today")
def test_fails_early(net):
    net.run(client=["no-such-program"])
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "xdist"])
def test_every_test_with_a_network_is_listed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'python'}:{ROOT / 'packaging' / 'pytest-crosswind'}")
    monkeypatch.setenv("CROSSWIND_KERNELS", str(pytester.path))
    pytester.makepyfile(test_theirs=NO_RUNS)
    words = ("-p", "pytest_crosswind.plugin", "-p", "no:cacheprovider", "--crosswind-report=kept")
    pytester.runpytest_subprocess(*words, *options)
    text = (pytester.path / "kept" / PAGE).read_text(encoding="utf-8")
    found = [
        (verdict, test, reason)
        for test, verdict, reason in re.findall(
            r"test_theirs\.py::(\w+)</th><td[^>]*>(\w+)</td><td[^>]*>(.*?)</td>", text
        )
    ]
    assert [(test, verdict) for verdict, test, _ in found] == [
        ("test_fails", "failed"),
        ("test_fails_early", "failed"),
        ("test_with_a_broken_end", "error"),
        ("test_skipped", "skipped"),
        ("test_expected", "xfailed"),
        ("test_passes", "passed"),
    ]
    reasons = {test: reason for _, test, reason in found}
    assert reasons["test_fails"] == "assert 1 == 2"
    assert "there is no kernel of virtual time in " in reasons["test_fails_early"]
    assert reasons["test_with_a_broken_end"] == "OSError: no way out"
    assert reasons["test_skipped"] == "Skipped: not today"


def test_what_another_session_left_there_is_listed_too(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'python'}:{ROOT / 'packaging' / 'pytest-crosswind'}")
    pytester.makepyfile(test_theirs="def test_new(net): pass")
    kept = pytester.path / "kept"
    noted = {"test": "test_other.py::test_old", "verdict": "failed", "reason": "late", "runs": ["x"]}
    for name, text in {"old": json.dumps(noted), "old-2": json.dumps(noted), "no": "{", "not": "[1]"}.items():
        (kept / name).mkdir(parents=True)
        (kept / name / "test.json").write_text(text, encoding="utf-8")
        (kept / name / REPORT).touch()
    words = ("-p", "pytest_crosswind.plugin", "-p", "no:cacheprovider", "--crosswind-report=kept")
    pytester.runpytest_subprocess(*words)
    text = (kept / PAGE).read_text(encoding="utf-8")
    assert re.findall(r"test_\w+\.py::test_\w+", text) == ["test_other.py::test_old", "test_theirs.py::test_new"]
    assert re.findall(r'href="([^"]*)"', text) == [f"old/{REPORT}", f"old-2/{REPORT}"]
