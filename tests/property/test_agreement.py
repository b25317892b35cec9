"""Studies and crosswind-cell agree on what a cell can be: neither takes what the other refuses.

A cell is drawn from the catalogue key by key, senseless values and combinations included, and said twice: as the JSON
that crosswind-cell reads, and as the options of a study.
"""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import requires_binary
from crosswind.catalog import CellUnit, Key, KeyType, catalog
from crosswind.cell.refusal import Refusal, refusal_error
from crosswind.cell.spec import cell_json
from crosswind.errors import StudyError
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.keys import default_transport

Json = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """The same cell as JSON and as a study."""

    kind: str
    json: Json
    options: dict[str, object]


def numbers(key: Key) -> st.SearchStrategy[float]:
    """Values up to the ends of a key's range, and now and then one beyond them."""
    low, high = 1 if key.minimum is None else key.minimum, 10**9 if key.maximum is None else key.maximum
    inside = {low, high, min(low + 1, high), min(max(low, 10), high), min(max(low, 1000), high)}
    outside = {low - 1, high + 1, 0}
    drawn = st.sampled_from(sorted(inside) * 6 + sorted(outside))
    return drawn.map(lambda value: int(value) if float(value).is_integer() else value)


def values(key: Key) -> st.SearchStrategy[tuple[object, object]]:
    """A value of a key: in the JSON of a cell, and in a study."""
    if key.unit is CellUnit.NANOSECONDS:
        return numbers(key).map(lambda number: (number, f"{number}ns"))
    if key.unit is CellUnit.BITS_PER_SECOND:
        return st.one_of(st.just((None, "unlimited")), numbers(key).map(lambda number: (number, f"{number}bit")))
    if key.unit is CellUnit.PROBABILITY:
        return st.sampled_from([0.0, 0.001, 0.05, 0.5, 1.0, 1.5, -0.25]).map(lambda number: (number, number))
    if key.type in (KeyType.INTEGER, KeyType.NUMBER):
        return numbers(key).map(lambda number: (number, number))
    if key.type is KeyType.QUEUE:
        sizes = st.sampled_from([0, 1, 10, 100, 1000, 64_000])
        packets = sizes.map(lambda size: ({"packets": size}, f"{size}p"))
        return st.one_of(packets, sizes.map(lambda size: ({"bytes": size}, f"{size}B")))
    mine = {"name": "mine", "command": ["true", "{address}"]}
    of_peers = [(None, "native"), (mine, mine), ({**mine, "command": []}, {**mine, "command": []})]
    words = {
        KeyType.BOOLEAN: [True, False],
        KeyType.CHOICE: [*key.choices * 6, "nonsense"],
        KeyType.TRANSPORT: [*catalog().transports, *catalog().transports, "nonsense"],
        KeyType.STRING: ["cubic", "reno", "cubic", "no such name", "nothing-known"],
        KeyType.ARGUMENTS: [["true"], ["ping", "{server}"], ["sleep", "9"], []],
    }
    same = st.sampled_from(words.get(key.type, [None])).map(lambda word: (word, word))
    return st.sampled_from(of_peers) if key.type is KeyType.PEER else same


@st.composite
def cells(draw: st.DrawFn) -> Said:
    """A cell of any kind, with some keys of its own and now and then one that it does not take."""
    known = catalog()
    kind = draw(st.sampled_from(sorted(known.workloads)))
    workload = [("workload", key) for key in known.workloads[kind].keys]
    # `client` and `server` are peers of most workloads and the programs of one.
    own = {key.name: key.type for _, key in workload}
    others = (key for other in known.workloads.values() for key in other.keys)
    foreign = [("workload", key) for key in others if own.get(key.name, key.type) is key.type]
    single = [key for key in known.direction_keys if key.type is not KeyType.SERIES]
    around = [
        *(("path", key) for key in known.path.keys),
        *((f"path.{direction}", key) for direction in ("forward", "reverse") for key in single),
        *(("host", key) for key in known.host.keys),
    ]
    some = st.sampled_from
    chosen = draw(st.lists(some(workload), max_size=4, unique_by=lambda pair: pair[1].name))
    chosen += draw(st.lists(some(around), max_size=2, unique_by=lambda pair: (pair[0], pair[1].name)))
    if draw(st.integers(0, 19)) == 0:
        chosen += [draw(some(foreign))]
    cell: Json = {"schema": "crosswind.cell/1", "path": {"forward": {}, "reverse": {}}, "host": {}, "workload": {}}
    usual = default_transport(kind)
    cell["workload"] = {"kind": kind} | ({} if usual is None else {"transport": usual})
    options: dict[str, object] = {}
    for group, key in chosen:
        as_json, as_study = draw(values(key))
        if key.only_with is not None and as_json == key.default:
            continue  # A cell may say what it has by default; a study refuses it where it has no effect.
        table = cell
        for step in group.split("."):
            table = table[step]
        table[key.name] = as_json
        options[f"{group}.{key.study}"] = as_study
    for direction in ("forward", "reverse"):
        _leave_out(cell["path"][direction], known.direction_keys)
    return Said(kind, cell, options)


def _leave_out(table: Json, keys: tuple[Key, ...]) -> None:
    """Takes away what a study leaves out of a cell: the queue of a link that is said to be unlimited.

    A queue of 0, which no link can have, stays: a study refuses it whatever stands beside it.
    """
    for key in keys:
        condition = key.only_with
        has_no_effect = condition is not None and condition.values is None and table.get(condition.key, ...) is None
        if has_no_effect and table.get(key.name) not in ({"packets": 0}, {"bytes": 0}):
            table.pop(key.name, None)


def ask(lines: list[Json]) -> list[Json]:
    text = "\n".join(map(json.dumps, lines))
    answer = subprocess.run([requires_binary(), "--check"], input=text, capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 2), answer
    return [json.loads(line) for line in answer.stdout.splitlines()]


def designed(said: Said) -> tuple[Study, Cell] | StudyError:
    try:
        study = Study.adhoc(said.kind, said.options)
    except StudyError as error:
        return error
    (cell,) = study.cells()
    return study, cell


def names_a_place(error: StudyError, said: Said) -> bool:
    return error.message.startswith(("command line", *(f"{key} " for key in said.options)))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(cells(), min_size=10, max_size=30))
def test_studies_and_crosswind_cell_take_the_same_cells(batch: list[Said]) -> None:
    designs = [designed(said) for said in batch]
    taken = [design for design in designs if not isinstance(design, StudyError)]
    answers = ask([said.json for said in batch] + [cell_json(cell, study.budget) for study, cell in taken])
    direct, by_study = answers[: len(batch)], iter(answers[len(batch) :])
    for said, design, expected in zip(batch, designs, direct, strict=True):
        if isinstance(design, StudyError):
            # What has no effect, a study refuses; a cell may take it.
            assert expected["event"] == "refused" or "has no effect" in design.message, (said, design.message)
            assert names_a_place(design, said), design.message
            continue
        found = next(by_study)
        assert found["event"] == expected["event"], (said, found, expected)
        if found["event"] == "checked":
            assert found["cell"] == expected["cell"]
            continue
        study, cell = design
        error = refusal_error(study, [cell], {0: Refusal(found["key"], found["message"], found["hint"])})
        assert names_a_place(error, said), error.message
