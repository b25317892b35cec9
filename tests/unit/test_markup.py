"""What tables, notes and provenance look like on the page."""

import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest

from crosswind.cell.record import RunRecord
from crosswind.findings.pipeline import analyse
from crosswind.report.html import render as render_page
from crosswind.report.markup import Markup
from crosswind.report.page import Page, Section, Sentence, Tone
from crosswind.report.run_page import render
from crosswind.report.tables.table import Table, numbers
from records import MS, echoes, record, runs


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


def test_what_is_bad_is_marked() -> None:
    table = Table("B", numbers("n"), [["1"], ["2"]], marked={1})
    verdicts = [Sentence("All failed.", Tone.BAD), Sentence("None failed.", Tone.GOOD)]
    text = render_page(Page("T", "A", Sentence("Well."), verdicts, [Section("A", tables=[table])]))
    assert '<div class="banner bad">All failed.</div>' in text
    assert '<div class="banner good">None failed.</div>' in text
    assert text.count('<tr class="marked">') == 1
    assert text.index('<tr class="marked">') > text.index(">1<")


def test_notes_show_commands_as_code_and_provenance_as_they_were_typed() -> None:
    provenance = {"command": ["crosswind", "run"], "list": ["a", "b"]}
    page = render_page(Page("T", "A", Sentence("Well."), notes=["`a <b>` asks."], provenance=provenance))
    assert "<li><code>a &lt;b&gt;</code> asks.</li>" in page
    assert "<dt>command</dt><dd>crosswind run</dd>" in page
    assert "<dt>list</dt><dd>a, b</dd>" in page


class Structure(HTMLParser):
    """What a page tells those who do not see it: every tag with its attributes, the text of captions, and the order of
    headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag and wanted.items() <= attrs.items()]


def two_transports(**changes) -> RunRecord:
    """Two cells of eight repetitions of five exchanges, with a note."""
    rtts = {"tcp": 20 * MS, "udp": 10 * MS}
    cells = [
        runs(cell, [echoes([rtt + 1000 * n for n in range(5)]) for _ in range(8)], {"workload.transport": name})
        for cell, (name, rtt) in enumerate(rtts.items())
    ]
    return record(*(one for cell in cells for one in cell), notes=["A note."], **changes)


def test_a_page_can_be_read_without_seeing_it() -> None:
    made = two_transports()
    text = render(made, analyse(made))
    page = Structure(text)
    assert page.all("html", lang="en")
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(page.headings))
    # Tables: a caption, and heads that say what they head.
    assert len(page.all("caption")) == len(page.all("table")) > 1
    assert {attrs.get("scope") for attrs in page.all("th")} == {"col", "row"}
    # Whatever scrolls can be reached with the keyboard, and has a name.
    places = [attrs["id"] for _, attrs in page.tags if attrs.get("id")]
    assert len(places) == len(set(places))
    for region in [attrs for _, attrs in page.tags if "scroll" in (attrs.get("class") or "").split()]:
        assert region["tabindex"] == "0"
        assert region["aria-labelledby"] in places
    # Contents: a link to every section.
    links = [attrs["href"] for attrs in page.all("a")]
    assert links == [f"#{attrs['id']}" for attrs in [*page.all("section"), *page.all("details")] if attrs.get("id")]
    assert len(links) > 3
    # Charts: a text with their main numbers.
    charts = page.all("div", **{"class": "chart", "role": "img"})
    assert charts
    assert any("tcp" in chart["aria-label"] and "20" in chart["aria-label"] for chart in charts)


def test_small_pages_have_no_contents() -> None:
    assert Markup().contents() == ""


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_what_can_be_clicked_is_large_and_dark_enough(ground: str) -> None:
    style = files("crosswind.report").joinpath("style.css").read_text(encoding="utf-8")
    themes = [
        dict(re.findall(r"--([a-z-]+): #([0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)
    ]
    colours = {"light": themes[0], "dark": themes[0] | themes[1]}[ground]
    for colour, behind in [("accent", "ground"), ("soft", "ground"), ("soft", "raised"), ("ink", "ground"),
                           *((name, f"{name}-ground") for name in ("good", "doubt", "bad"))]:  # fmt: skip
        assert contrast(colours[colour], colours[behind]) >= 4.5, (colour, behind)
    (button,) = re.findall(r"\.save button \{(.*?)\}", style)
    assert "font-size: 0.875rem" in button
    assert "min-height: 24px" in button
    assert "opacity" not in "".join(re.findall(r"\.save[^{]*\{(.*?)\}", style))
    assert ":focus-visible" in style


def contrast(one: str, other: str) -> float:
    """The ratio of two colours' luminances (WCAG 2.2, relative luminance and contrast ratio)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
