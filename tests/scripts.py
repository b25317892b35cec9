"""Scripts of packaging/ as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType

from conftest import ROOT


def script_module(path: str) -> ModuleType:
    """A script by its path."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
