"""What pytest loads: the options, the marker, the fixture `net`, and what failing tests say."""

import shutil
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from crosswind.errors import UsageError
from pytest_crosswind import marker
from pytest_crosswind.estimate import explanation_of
from pytest_crosswind.net import Net, jobs_at_a_time, remove_run, text_of
from pytest_crosswind.reports import PAGE, Reports, directory_name, note_runs

_FAILED = pytest.StashKey[bool]()
_RUNS = pytest.StashKey[list[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("crosswind", "network tests")
    group.addoption(
        "--crosswind-report",
        metavar="DIR",
        type=Path,
        help=f"keep each run of net.run() in DIR, with its report.html; {PAGE} lists them",
    )
    group.addoption(
        "--crosswind-skip",
        action="store_true",
        help="skip tests with the fixture net where this machine cannot run them, instead of failing them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker; and one meaning of DIR for all of xdist's workers, with one page that lists what they did."""
    config.addinivalue_line("markers", marker.DESCRIPTION)
    if config.option.crosswind_report is not None:
        config.option.crosswind_report = config.option.crosswind_report.absolute()
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Reports(config.option.crosswind_report, config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test once for each combination of the levels that its markers list."""
    if "net" not in metafunc.fixturenames:
        return
    try:
        levels = list(marker.combinations(marker.settings_of(metafunc.definition.iter_markers(marker.NAME))))
    except UsageError as error:
        pytest.fail(f"{metafunc.definition.nodeid}: {text_of(error)}", pytrace=False)
    if levels != [{}]:
        metafunc.parametrize("_network_levels", levels, ids=map(marker.id_of, levels), indirect=True)


@pytest.fixture
def _network_levels(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The levels of this test's factors."""
    return dict(getattr(request, "param", {}))


@pytest.fixture
def net(request: pytest.FixtureRequest, _network_levels: dict[str, Any], tmp_path: Path) -> Iterator[Net]:
    """Runs a client and a server over an emulated path: `net.run(client=..., server=..., network="4g", loss="2%")`."""
    node, config = request.node, request.config
    settings = marker.settings_of(node.iter_markers(marker.NAME))
    report: Path | None = config.option.crosswind_report
    runs = node.stash.setdefault(_RUNS, [])
    numbers = count(1)

    def directory() -> Path:
        number = next(numbers)
        place = tmp_path / f"crosswind-{number}" if report is None else report / directory_name(node.nodeid, number)
        remove_run(place)
        runs.append(place)
        return place

    yield Net(
        node.nodeid,
        defaults={**settings, **_network_levels},
        directory=directory,
        with_report=report is not None,
        skips=config.option.crosswind_skip,
        jobs=jobs_at_a_time(),
    )
    if report is None and not node.stash.get(_FAILED, False):
        for place in runs:
            shutil.rmtree(place, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Says which runs a test has made, and of a failing one where they are."""
    made = yield
    if "net" in getattr(item, "fixturenames", ()):
        note_runs(made, item.stash.get(_RUNS, []))
    if made.failed:
        item.stash[_FAILED] = True
        kept = [f"crosswind report {place}" for place in item.stash.get(_RUNS, ()) if place.exists()]
        if kept:
            made.sections.append(("runs on emulated paths", "\n".join(kept)))
    return made


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """What is said of an estimate that does not keep to a bound."""
    return explanation_of(op, left, right)
