"""A page as data: sentences, sections, charts and tables, for HTML, JSON (crosswind.page/1) and a terminal.

Page -> Sentence, Term, Table
     -> Picture -> Element
     -> Section -> Sentence, Table, Panels -> Chart

`Shown` says what one of the renderers leaves out. A terminal has no charts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from crosswind.report.tables.table import Shown, Table

Specification = dict[str, Any]
"""A Vega-Lite chart with its data."""


class Tone(Enum):
    """A sentence's meaning for its reader."""

    PLAIN = "plain"
    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


VERDICT_TONES = {"pass": Tone.GOOD, "fail": Tone.BAD, "inconclusive": Tone.DOUBTFUL}
"""For verdicts on requirements."""


@dataclass(frozen=True)
class Sentence:
    """A sentence. Attributes: short: its substitute in little room. shown: where."""

    text: str
    tone: Tone = Tone.PLAIN
    short: str = ""
    shown: Shown = Shown.EVERYWHERE


@dataclass(frozen=True)
class Chart:
    """A chart: its caption, its Vega-Lite specification with its data, and remarks to print below.

    The specification is empty on a terminal's page.
    """

    caption: str
    specification: Specification = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panels:
    """Charts of one kind, and their full number: at most MAX_PANELS are drawn."""

    charts: list[Chart]
    total: int


class SectionPlace(Enum):
    """Where a section stands on a page."""

    ANSWERS = "answers"
    """First: the question, its answer, and its figure."""
    FIGURES = "figures"
    BEFORE_METRICS = "before"
    """Only at some studies' request."""
    AFTER_METRICS = "after"


@dataclass(frozen=True)
class Section:
    """A page's section: its sentences, its charts with their legends, and tables below.

    Attributes:
        charts: one or several kinds. folded: whether the section opens with a click. note: a remark.
        details: further ones below, each opening with a click, or with a link to its place; in HTML alone.
    """

    title: str
    sentences: Sequence[Sentence] = ()
    charts: Sequence[Panels] = ()
    tables: Sequence[Table] = ()
    caption: str = ""
    folded: bool = False
    note: str = ""
    place: SectionPlace = SectionPlace.BEFORE_METRICS
    details: Sequence["Section"] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has neither a chart nor a table nor a sentence."""
        return not (self.tables or self.sentences or any(panels.charts for panels in self.charts))


def link_name(title: str) -> str:
    """A section's place in links."""
    return re.sub(r"\W+", "-", title.lower()).strip("-") or "section"


@dataclass(frozen=True)
class Element:
    """An element's effect on packets. Attributes: is_varied: whether it is a factor in the study."""

    name: str
    text: str
    is_varied: bool = False


@dataclass(frozen=True)
class Picture:
    """A path between two ends, with its elements in both directions."""

    ends: tuple[str, str]
    there: Sequence[Element]
    back: Sequence[Element]
    description: str


@dataclass(frozen=True)
class Term:
    """A condition of a measurement: its name, its value in words, and where it is shown."""

    name: str
    text: str
    shown: Shown = Shown.EVERYWHERE


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        about: its subject. verdict: whether to trust the page. banners: sentences standing out by tone.
        answers: the first sections: a question each, its answer, and its figure.
        lines: further sentences. picture, terms: the conditions of the measurement.
        doubts: reasons for invalid cells, and warnings.
        summary: the main numbers, in full in the sections. conclusion: the last lines.
        notes: the study's own. provenance: the numbers' origin; design: the study as run.
        of_machine: the provenance title for the machine's own network settings.
    """

    title: str
    about: str
    verdict: Sentence
    banners: Sequence[Sentence] = ()
    answers: Sequence[Section] = ()
    lines: Sequence[Sentence] = ()
    picture: Picture | None = None
    terms: Sequence[Term] = ()
    doubts: Sequence[Sentence] = ()
    summary: Sequence[Table] = ()
    sections: Sequence[Section] = ()
    conclusion: Sequence[str] = ()
    notes: Sequence[str] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    design: Mapping[str, Any] | None = None
    of_machine: str = "Network settings of the machine itself"

    def to_json(self, *, indent: int | None = 2) -> str:
        """The page as JSON text, schema `crosswind.page/1`, non-ASCII characters kept."""
        from pydantic import TypeAdapter

        data = {"schema": SCHEMA, **TypeAdapter(Page).dump_python(self, mode="json")}
        return json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)


SCHEMA = "crosswind.page/1"


def schema_text() -> str:
    """A page's JSON Schema."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(Page).json_schema(mode="serialization")
    schema["properties"] = {"schema": {"const": SCHEMA}, **schema["properties"]}
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
