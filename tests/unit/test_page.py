"""The page as data: what HTML renders, and what a program may read in its place."""

import json

from jsonschema import Draft202012Validator

from crosswind.findings.pipeline import analyse
from crosswind.report.html import render
from crosswind.report.page import Page, Section, Sentence, Tone, schema_text
from crosswind.report.run_page import drawn_page
from crosswind.report.tables.table import Table, names, numbers
from records import MS, echoes, record, runs


def test_a_run_is_a_page_that_its_schema_describes() -> None:
    made = record(*runs(0, [echoes([10 * MS, 11 * MS])] * 3, {"path.loss": "0%"}), notes=["A note."])
    page = json.loads(drawn_page(made, analyse(made)).to_json())
    Draft202012Validator(json.loads(schema_text())).validate(page)
    assert (page["schema"], page["title"], page["notes"]) == ("crosswind.page/1", "A title", ["A note."])
    (rtt,) = [section for section in page["sections"] if section["title"].startswith("Round-trip time")]
    assert rtt["charts"][0]["charts"][0]["specification"]["layer"]
    assert rtt["tables"][0]["rows"][0][:2] == ["0%", "6"]


def test_texts_of_a_page_change_nothing_of_it() -> None:
    hostile = '</script><b onclick="x">\u202e'
    table = Table(hostile, [*names(hostile), *numbers("n")], [[hostile, "1"]], links={0: [(hostile, 'a"b.html')]})
    section = Section(hostile, [Sentence(f"Yes: {hostile}", Tone.GOOD)], tables=[table], note=hostile)
    page = Page(
        hostile,
        hostile,
        Sentence(hostile, Tone.BAD),
        [Sentence(hostile)],
        [section],
        [Sentence(hostile)],
        notes=[hostile],
    )
    text = render(page)
    assert "</script><b" not in text
    assert "<b onclick" not in text
    assert "\u202e" not in text
    assert '<a href="a&quot;b.html">' in text
    assert text.count("&lt;b onclick=&quot;x&quot;&gt;") > 8
