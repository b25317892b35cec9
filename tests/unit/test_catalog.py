"""The catalogue: it is what crosswind-cell says of itself, and everything that a study can say follows from it."""

import subprocess
import sys
import textwrap
from decimal import Decimal
from pathlib import Path

import pytest

from conftest import ROOT, requires_binary
from crosswind.catalog import Key, KeyType, catalog, catalog_text
from crosswind.cli.study_reference import TABLES, with_tables, written
from crosswind.study.keys import SETTINGS
from crosswind.study.value_types import type_of
from scripts import script_module

DOCUMENTS = ROOT / "docs"


def test_the_catalogue_is_what_crosswind_cell_describes() -> None:
    described = subprocess.run([requires_binary(), "--describe"], capture_output=True, text=True, check=True)
    assert catalog_text() == script_module("packaging/catalog.py").kept_text(described.stdout), "run: make catalog"


def test_the_tables_of_the_reference_are_those_of_the_catalogue() -> None:
    page = (DOCUMENTS / "study.md").read_text(encoding="utf-8")
    assert all(f"<!-- catalogue: {name} -->" in page for name in TABLES)
    assert with_tables(page) == page, "run: make catalog"


def every_key() -> list[Key]:
    known = catalog()
    groups = [known.path, known.host, known.budget, *known.elements, *known.workloads.values()]
    return [key for group in groups for key in group.keys]


@pytest.mark.parametrize("key", every_key(), ids=lambda key: key.name)
def test_a_default_and_the_ends_of_a_range_can_be_written_in_a_study(key: Key) -> None:
    for value in (key.default, key.minimum, key.maximum, *key.choices):
        if value is not None:
            read = type_of([key]).level(written(key, value)).value
            expected = (value,) if key.type is KeyType.SERIES else value
            assert (float(read) if isinstance(read, Decimal) else read) == expected


def test_a_study_has_every_key_of_the_catalogue() -> None:
    known = catalog()
    expected = {"path.network", "workload.kind"}
    expected |= {f"path.{key.study}" for key in (*known.path.keys, *known.direction.keys)}
    expected |= {f"path.{way}.{key.study}" for way in ("forward", "reverse") for key in known.direction.keys}
    expected |= {f"host.{key.study}" for key in known.host.keys}
    expected |= {f"workload.{key.study}" for workload in known.workloads.values() for key in workload.keys}
    assert set(SETTINGS) == expected


# A catalogue with a new element, a new transport and a new workload, and what has to follow from it alone.
TOY = """
import json
import crosswind.catalog

known = json.loads(crosswind.catalog.catalog_text())
key = dict(required=False, varies=True)
jitter = {**key, "name": "jitter_ns", "study": "jitter", "type": "integer", "unit": "ns", "default": 0, "minimum": 0,
          "maximum": 10**9, "help": "How much the delay varies."}
burst = {**key, "name": "burst_bytes", "study": "burst", "type": "integer", "unit": "bytes", "default": 1000,
         "minimum": 1, "maximum": 10**6, "help": "Size of one burst."}
transport = next(key for key in known["workloads"][0]["keys"] if key["type"] == "transport")
known["elements"].append({"name": "jitter", "help": "Random delay.", "keys": [jitter]})
known["transports"].append({**known["transports"][0], "name": "pigeon", "summary": "A stream of pigeons."})
known["workloads"][0]["transports"].append("pigeon")
known["workloads"].append({"kind": "flood", "help": "Bursts.", "sample": "one burst", "transports": ["pigeon"],
                           "keys": [{**transport, "default": "pigeon"}, burst]})
text = json.dumps(known)
crosswind.catalog.catalog_text = lambda: text

from crosswind.cell.spec import cell_json
from crosswind.cli.settings import options
from crosswind.study.design import Study
from crosswind.cli.study_reference import TABLES
from crosswind.study.schema import schema_text

study = Study.adhoc("flood", {"workload.burst": "2kB,4kB", "path.forward.jitter": "1ms"})
first = cell_json(next(study.cells()), study.budget)
assert study.factors == {"workload.burst": ("2kB", "4kB")}
assert first["workload"] == {"kind": "flood", "transport": "pigeon", "burst_bytes": 2000}
assert first["path"] == {"forward": {"jitter_ns": 1000000}, "reverse": {}}
assert len(Study.adhoc("echo", {"workload.transport": "tcp,pigeon"})) == 2
assert {"--jitter", "--forward-jitter", "--burst"} <= set(options().values())
assert '"pigeon"' in schema_text() and '"burst"' in schema_text()
assert "`jitter`" in TABLES["path"]() and "`flood`" in TABLES["workloads"]() and "`pigeon`" in TABLES["transports"]()
"""


def test_a_new_element_transport_and_workload_need_no_change_of_the_package(tmp_path: Path) -> None:
    script = tmp_path / "toy.py"
    script.write_text(textwrap.dedent(TOY), encoding="utf-8")
    environment = {"PYTHONPATH": str(ROOT / "python")}
    ended = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
