"""What files of Python import, in functions and for type checkers too: no two files need each other."""

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from conftest import ROOT

FILES = {
    ".".join(path.relative_to(ROOT / "python").with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "python/crosswind").rglob("*.py")
}


def circle(sources: Mapping[str, str]) -> list[str]:
    """Some modules of which each imports the next one, and the last one the first; none where there is no circle."""
    imports = {name: imported_by(text, sources) - {name} for name, text in sources.items()}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def imported_by(text: str, known: Mapping[str, str]) -> set[str]:
    """Those of the known modules that a file names. Who imports a package's module does not need the package."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "an import names its module in full"
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= modules if modules <= known.keys() else {*modules, node.module}
    return imported & known.keys()


def test_no_file_needs_one_that_needs_it() -> None:
    assert circle({name: path.read_text(encoding="utf-8") for name, path in FILES.items()}) == []


@pytest.mark.parametrize("back", ["import p.a", "from p import a", "from p.a import x", "from p import n, a"])
@pytest.mark.parametrize("where", ["{}", "def f():\n    {}", "if TYPE_CHECKING:\n    {}"])
def test_a_circle_is_found_wherever_an_import_stands(back: str, where: str) -> None:
    others = {"p": "n = 1", "p.b": "import p.c", "p.a": "from p.b import f"}
    assert circle({**others, "p.c": "x = 1"}) == []
    assert set(circle({**others, "p.c": where.format(back)})) == {"p.a", "p.b", "p.c"}
