"""A page as data: sentences, sections, charts and tables, as HTML, JSON (crosswind.page/1) and a terminal show them.

Page -> Sentence, Term, Table
     -> Picture -> Element
     -> Section -> Sentence, Table, Panels -> Chart

`Shown` says what one of the renderers leaves out. A terminal has no charts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from crosswind.report.tables.table import Shown, Table

Specification = dict[str, Any]
"""A chart in the language of Vega-Lite, with its data."""


class Tone(Enum):
    """What a sentence means for who reads it."""

    PLAIN = "plain"
    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


VERDICT_TONES = {"pass": Tone.GOOD, "fail": Tone.BAD, "inconclusive": Tone.DOUBTFUL}
"""Of what has to hold."""


@dataclass(frozen=True)
class Sentence:
    """A sentence. Attributes: short: what stands in its place without room. shown: where."""

    text: str
    tone: Tone = Tone.PLAIN
    short: str = ""
    shown: Shown = Shown.EVERYWHERE


@dataclass(frozen=True)
class Chart:
    """A chart: its caption, its Vega-Lite specification, which holds its data, and remarks to print below.

    The specification is empty on a page that is made for a terminal.
    """

    caption: str
    specification: Specification = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panels:
    """Charts of one kind, and how many there would be: at most MAX_PANELS of them are drawn."""

    charts: list[Chart]
    total: int


class SectionPlace(Enum):
    """Where a section stands on a page."""

    ANSWERS = "answers"
    """First: the question, its answer, and the figure that shows it."""
    FIGURES = "figures"
    BEFORE_METRICS = "before"
    """What only some studies ask for."""
    AFTER_METRICS = "after"


@dataclass(frozen=True)
class Section:
    """A section of a page: what it says, its charts, how to read them, and tables below.

    Attributes:
        charts: of one or several kinds. folded: whether the whole section opens when it is clicked. note: a remark.
    """

    title: str
    sentences: Sequence[Sentence] = ()
    charts: Sequence[Panels] = ()
    tables: Sequence[Table] = ()
    caption: str = ""
    folded: bool = False
    note: str = ""
    place: SectionPlace = SectionPlace.BEFORE_METRICS

    @property
    def is_empty(self) -> bool:
        """Whether it has neither a chart nor a table nor a sentence."""
        return not (self.tables or self.sentences or any(panels.charts for panels in self.charts))


@dataclass(frozen=True)
class Element:
    """What a path does to packets. Attributes: is_varied: whether it is a factor of the study."""

    name: str
    text: str
    is_varied: bool = False


@dataclass(frozen=True)
class Picture:
    """A path between two ends, with what it does to packets on the way there and on the way back."""

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
        about: what it is the page of. verdict: whether to trust what it shows. banners: what stands out by its tone.
        answers: sections that stand first: a question each, its answer, and the figure that shows it.
        lines: further sentences. picture, terms: the conditions of the measurement.
        doubts: why cells are not valid, and warnings.
        summary: the main numbers, which the sections have in full. conclusion: what the whole comes to, said last.
        notes: the study's own. provenance: where the numbers come from; design: the study as it was run.
        of_machine: the title of the machine's own network settings among the provenance.
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
    """The JSON Schema of a page."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(Page).json_schema(mode="serialization")
    schema["properties"] = {"schema": {"const": SCHEMA}, **schema["properties"]}
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
