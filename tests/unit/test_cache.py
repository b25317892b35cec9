"""What is in the user's cache is not believed: what is damaged or foreign is made anew, and one line says so."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crosswind import __version__
from crosswind.execution.carried import SCHEMA as CARRIED
from crosswind.execution.carried import read_carried
from crosswind.execution.durations import SCHEMA, Durations, read_durations
from crosswind.files.cache import keep, read_kept
from crosswind.report import html

DIGITS = "9" * 400
MORE_DIGITS = "9" * 5000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, for one test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CROSSWIND_DURATIONS")
    (tmp_path / "crosswind").mkdir()
    return tmp_path / "crosswind"


def pipe(place: Path) -> None:
    os.mkfifo(place)


def huge(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda place: place.write_bytes(b""),
    "not UTF-8": lambda place: place.write_bytes(b"\xff\xfe"),
    "foreign": lambda place: place.write_text("alert(1)"),
    "a directory": Path.mkdir,
    "a pipe": pipe,
    "huge": huge,
    "a link in a circle": lambda place: place.symlink_to(place.name),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_was_kept_is_read_and_nothing_else(cache: Path, capfd: pytest.CaptureFixture[str], damage: str) -> None:
    place = cache / "kept"
    assert read_kept(place) is None
    keep(place, b"content\n\xff")
    assert read_kept(place) == b"content\n\xff"
    assert capfd.readouterr().err == ""
    place.unlink()
    DAMAGE[damage](place)
    assert read_kept(place) is None
    assert read_kept(place) is None
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"note: {place}: ") and line.endswith("; it is made anew")
    keep(place, b"again")
    assert read_kept(place) == (None if damage == "a directory" else b"again")
    assert list(cache.iterdir()) == [place]


def test_a_byte_that_changed_is_seen(cache: Path) -> None:
    keep(cache / "kept", b"content")
    whole = (cache / "kept").read_bytes()
    for at in range(len(whole)):
        (cache / "kept").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read_kept(cache / "kept") is None


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """How often the chart library is made, which takes seconds."""
    made: list[str] = []

    def bundle(snippet: str) -> str:
        made.append(snippet)
        return "the library </script>"

    monkeypatch.setattr("vl_convert.javascript_bundle", bundle)
    html._library.cache_clear()
    yield made
    html._library.cache_clear()


@pytest.mark.parametrize("damage", [None, *DAMAGE])
def test_charts_are_drawn_whatever_is_in_the_place_of_their_library(
    cache: Path, bundled: list[str], damage: str | None
) -> None:
    assert html._library() == "the library <\\/script>"
    (place,) = cache.glob("charts-*")
    html._library.cache_clear()
    assert html._library() == "the library <\\/script>"
    assert len(bundled) == 1
    if damage is not None:
        place.unlink()
        DAMAGE[damage](place)
    html._library.cache_clear()
    assert html._library() == "the library <\\/script>"
    assert len(bundled) == (1 if damage is None else 2)


PAIRS = ["[[{n}, 1]]", "[[1, {n}]]", "[[1]]", "5", "[[[], 1]]"]
NUMBERS = ["Infinity", "-Infinity", "NaN", "1e400", "-1", DIGITS, MORE_DIGITS, '"x"', "null", "[" * 50_000]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "text",
    [
        *(f'{{"schema": "{SCHEMA}", "runs": 1, "cells": {{"a": {pairs}}}}}' for pairs in PAIRS[:2]),
        f'{{"schema": "{SCHEMA}", "runs": N, "cells": {{}}}}',
    ],
)
def test_durations_that_no_cell_took_are_none(
    cache: Path, capfd: pytest.CaptureFixture[str], text: str, number: str
) -> None:
    (cache / "durations.json").write_text(text.replace("{n}", number).replace("N", number))
    assert read_durations() == Durations()
    said = f"note: {cache}/durations.json: it is damaged; the next run makes it anew\n"
    assert capfd.readouterr().err == said


def test_durations_of_another_version_are_no_damage(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (cache / "durations.json").write_text('{"schema": "crosswind.durations/4", "runs": 1, "cells": {}}')
    assert read_durations() == Durations()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("field", ["packets_per_s", "day"])
def test_what_no_machine_carried_is_not_believed(cache: Path, field: str, number: str) -> None:
    known = {"schema": CARRIED, "version": __version__, "packets_per_s": 5, "day": "2026-01-01"}
    place = cache / "carried-durations.json"
    place.write_text(json.dumps(known))
    carried = read_carried()
    assert carried is not None and (carried.packets_per_s, carried.day) == (5, "2026-01-01")
    place.write_text(json.dumps(known | {field: "N"}).replace('"N"', number))
    assert read_carried() is None
    place.write_text(json.dumps(known | {"day": "\x1b[2J"}))
    assert read_carried() is None
