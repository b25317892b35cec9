"""What a program writes into a page, and what it leaves alone."""

import pytest

from crosswind.text.sections import fill_sections

PAGE = """Before.
<!-- table: rows -->
old
<!-- end -->
Between.
<!-- table: columns -->
<!-- end -->
<!-- list: rows -->
of another kind
<!-- end -->
"""


def test_sections_of_a_kind_are_written_anew() -> None:
    contents = {"rows": lambda: r"| a\b |" + "\n", "columns": lambda: "| c |\n"}
    filled = fill_sections(PAGE, "table", contents)
    expected = PAGE.replace("old\n", r"| a\b |" + "\n").replace("columns -->\n", "columns -->\n| c |\n")
    assert filled == expected
    assert fill_sections(filled, "table", contents) == filled


def test_a_section_that_nobody_writes() -> None:
    with pytest.raises(KeyError, match="columns"):
        fill_sections(PAGE, "table", {"rows": str})
