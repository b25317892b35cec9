"""docs/path-oracles.md has a row for every key of the path, and the tests that it names exist."""

import re
from pathlib import Path

from crosswind.catalog import KeyType, catalog

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/path-oracles.md").read_text(encoding="utf-8")
FOLDERS = {"test_": "tests/virtual/{}.py", "shape": "crates/path/src/delay/{}.rs", "": "crates/path/tests/{}.rs"}


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r" \| ", line.strip("| "))] for line in lines]


def test_every_key_of_the_path_has_an_oracle() -> None:
    keys = catalog().direction.keys
    choices = [choice for key in keys if key.type is KeyType.CHOICE for choice in key.choices or ()]
    known = {*(key.study for key in (*keys, *catalog().changes.keys)), *choices}
    written = [name for cells in rows() for name in re.findall(r"`([^`]+)`", cells[0])]
    assert sorted(written) == sorted(known)
    assert all(len(cells) == 5 and all(cells) for cells in rows())


def test_the_tests_that_are_named_exist() -> None:
    names = re.findall(r"`([a-z0-9_]+(?:::[a-z0-9_]+)+)`", PAGE)
    assert len(names) > 60
    for name in names:
        *module, test = name.split("::")
        if name in {"test_file::test", "file::test", "disciplines::cake::test", "shape::test"}:
            continue
        path = next(path for beginning, path in FOLDERS.items() if module[0].startswith(beginning))
        text = (ROOT / path.format("/".join(module))).read_text(encoding="utf-8")
        assert re.search(rf"\b(def|fn) {test}\(", text), name
