"""A toy is a sentence and a table."""

from collections.abc import Iterator

from crosswind.findings.toy.judge import FastestCell

from crosswind.analysis.result import Result
from crosswind.report.page import Section, Sentence
from crosswind.report.showing import Showing
from crosswind.report.tables.table import Table, names


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    del has_charts
    if toys := result.of(FastestCell):
        yield Section("Toys", tables=[Table("Toys", names("cell"), [[str(toy.cell)] for toy in toys])])


def _remarks(result: Result) -> Iterator[Sentence]:
    yield from (Sentence(toy.sentence) for toy in result.of(FastestCell))


SHOWING = Showing(_sections, remarks=_remarks)
