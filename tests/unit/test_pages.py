"""Golden pages (tests/pages): of each run, the report says what is written there."""

import pytest

from pages import PLACE, Case, cases_of

CASES = [case for file in sorted(PLACE.rglob("*.md")) for case in cases_of(file)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file.stem}: {case.title}")
def test_a_run_is_shown_as_its_page_says(case: Case) -> None:
    assert case.filled() == case.text, "if it should be so: make pages, and read the difference"
