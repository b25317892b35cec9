"""What tables, notes and provenance look like on the page."""

import re

import pytest

from crosswind.analysis import analyse
from crosswind.report.markup import Markup
from crosswind.report.page import Section
from crosswind.report.tables.table import Table, numbers
from records import MS, echoes, record, run


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        ("20.11 [20.09, 20.14]", ["[20.09, 20.14]"]),
        ("20.0064 exact", ["exact"]),
        ("not measured", ["not measured"]),
        ("exactly so", []),
        ("differs", []),
    ],
)
def test_what_belongs_to_a_value_is_softer_than_it(text: str, beside: list[str]) -> None:
    section = Section("A", tables=[Table("B", numbers("rtt"), [[text]])])
    assert re.findall(r'<span class="beside">([^<]*)</span>', Markup().section(section)) == beside


def test_notes_show_commands_as_code_and_provenance_as_they_were_typed() -> None:
    result = analyse(record(run(0, echoes([20 * MS] * 3))))
    provenance = {"command": ["crosswind", "run"], "list": ["a", "b"]}
    changed = result.model_copy(update={"notes": ("`a <b>` asks.",), "provenance": provenance})
    assert "<li><code>a &lt;b&gt;</code> asks.</li>" in Markup().notes(changed)
    page = Markup().provenance(changed)
    assert "<dt>command</dt><dd>crosswind run</dd>" in page
    assert "<dt>list</dt><dd>a, b</dd>" in page
