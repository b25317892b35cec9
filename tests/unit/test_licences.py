"""The licence check: SPDX expressions are read as they are meant. The notices of others are there and current."""

import importlib.util
from types import ModuleType

import pytest
import vl_convert

from conftest import ROOT


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    return program("licences")


def program(name: str) -> ModuleType:
    """A program in packaging/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("MIT/Apache-2.0", True),
        ("GPL-2.0/GPL-3.0", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("MIT AND (GPL-3.0-only OR Apache-2.0)", True),
        ("MIT OR Apache-2.0 AND GPL-3.0-only", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0 WITH Classpath-exception-2.0", False),
        ("", False),
        ("(MIT", False),
        ("MIT extra", False),
    ],
)
def test_expressions(licences: ModuleType, expression: str, allowed: bool) -> None:
    known = {"MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"}
    assert licences.permitted(expression, known) is allowed


def test_what_says_nothing_is_refused(licences: ModuleType) -> None:
    packages = [("a 1", None), ("b 1", "MIT"), ("c 1", "Proprietary")]
    assert list(licences.refusals(packages, {"MIT"})) == [("a 1", None), ("c 1", "Proprietary")]


def test_the_notices_name_every_crate_and_script_that_users_get() -> None:
    notices = program("notices")
    text = notices.NOTICES.read_text(encoding="utf-8")
    assert text == notices.notices()
    for name in (
        "   ring ",
        "   quinn ",
        "   vega 6",
        "BoringSSL",
        "University of Washington Interactive Data Lab",
        "Bostock",
    ):
        assert name in text
    assert f"vl-convert-python {notices.locked('vl-convert-python')}\n" in text
    assert vl_convert.get_vega_version() in text
