"""The documents behind the studies: their errors, each decided by a rule or at least said; their numbers and places.

The errors are those that a reader of the five documents finds. `PRINTED` is what the documents print, place by place.
"""

import re
from collections import Counter

import pytest

from crosswind.execution.planning import presentation
from crosswind.findings.published.declare import OwnStatement, Published, PublishedTable
from crosswind.findings.question.declare import QuestionTable
from crosswind.study.design import Study
from crosswind.study.files import builtin_names
from documents import NOTE, OWN, RUN, Document, kept_section, shown
from study_texts import shipped

NAMES = builtin_names()

ERRORS = [error for document in Document.all() for error in document.errors]


def said_by(study: Study, kind: str) -> list[str]:
    """What a study says of documents in one of the three ways."""
    if kind == NOTE:
        return list(study.notes)
    if kind == OWN:
        return [statement.summary for statement in own_statements_of(study)]
    return [question["asks"] for question in presentation(study)["asked"]["question"]]


def statements_of(study: Study) -> list[QuestionTable]:
    """What documents say, as it is written."""
    tables = [question.table for question in study.findings["question"]]
    return [table for table in tables if isinstance(table, QuestionTable) and table.source is not None]


def own_statements_of(study: Study) -> list[OwnStatement]:
    """The same, of what documents' own numbers decide."""
    return [each for each in study.findings["published"] if isinstance(each, OwnStatement)]


def own_tables_of(study: Study) -> list[PublishedTable]:
    return [each.table for each in own_statements_of(study)]


def test_the_errors_of_the_documents_are_decided_by_rule_or_said() -> None:
    missing = [
        each.error for each in ERRORS if not any(each.says in said for said in said_by(shipped(each.study), each.by))
    ]
    assert missing == []
    assert len(ERRORS) == 66
    assert Counter(each.by for each in ERRORS) == {OWN: 36, RUN: 13, NOTE: 17}


@pytest.mark.parametrize("name", NAMES)
def test_no_note_has_a_result_of_a_run(name: str) -> None:
    """Results stand in runs, and in docs/documents.md, which is written from them: in a note they become stale."""
    assert [note for note in shipped(name).notes if re.search(r"\d \[[\d.]+, [\d.]+\]", note)] == []


@pytest.mark.parametrize("document", Document.all(), ids=lambda document: document.title)
def test_the_page_of_documents_has_the_statements_and_errors_of_its_studies(document: Document) -> None:
    """Numbers of the quick runs are compared in tests/virtual/test_first_screens.py; here what needs no run."""
    for name in document.studies:
        page, study = kept_section(name), shipped(name)
        for statement in statements_of(study):
            assert f"| {str(statement.says).rstrip('.')} |" in page, (name, statement.says)
        for each in document.errors:
            if each.study == name:
                assert f"| {each.error} | {each.by} |" in page
            if each.study == name and each.by != RUN:
                assert shown(each, study, ()).rstrip(".") in page


PRINTED: dict[str, dict[str, tuple[float, ...]]] = {
    "thesis": {
        "title": (), "section 4.1": (10, 15, 20, 1000, 1, 50, 100), "chapter 7": (),
        "section 6.1": (40.72, 57.09, 59.39, 128, 38, 39, 10, 15, 20, 1, 100, 1000),
        "table 2": (
            40.72, 50.47, 53.06, 57.09, 16.93, 15.42, 14.15, 18.04, 93.90, 100.87, 101.27, 92.65, 25.47, 24.71, 27.86,
            24.34, 167.61, 152.94, 148.30, 176.14, 39.89, 38.02, 39.51, 59.39, 10, 15, 20, 1, 50, 100, 1000,
        ),
    },
    "CAIA 120405A": {
        "section I": (200, 400, 0.59, 113), "section II": (5, 500), "section V": (1,),
        "sections I and IV.C": (200, 400, 0.59),
        "tables I and II": (),
        "table I": (1500, 6000, 15000, 25000, 0, 2, 5, 8, 10, 15e3, 64e3, 256e3, 1e6, 20e6),
        "table II": (5e3, 15e3, 256e3, 1e6, 20e6, 0.04, 21, 0.03, 22, 0.2, 25.5, 0.6, 27, 7, 30.5),
        "table III": (15, 256, 0.069, 0.010, 0.060, 0.399, 0.501, 1.25, 0.468, 0.979, 1.778, 2, 5),
        "table IV": (0.2310, 1.54, 5.69, 0.2090, 0.68, 1.79, 0.2040, 0.65, 1.75, 0.2040, 0.61, 1.70, 100),
        "table V": (0.0900, 1.43, 5.58, 0.0690, 0.542, 1.44, 0.0640, 0.511, 1.15, 0.0640, 0.399, 0.508, 30),
        "table VI": (15.86, 2.66, 1.146, 0.6342, 0.6350, 1.1467, 43.33, 7.013, 3.633, 1.230, 1.231, 3.639, 30, 100),
        "section IV.A": (35, 5, 6, 10, 36, 1500, 500), "section IV.D": (1, 50), "figs 16 and 17": (1, 30, 100),
        "section IV.C": (6, 30, 784, 450, 150, 36, 15, 10, 2, 5, 60, 256, 400, 750, 100, 70, 2000, 92.7, 12),
        "footnote 1": (4, 3), "footnote 2": (5, 15, 6),
        "equation 3": (0.02, 3.48e-7), "equation 4": (0.02, 1.15, 13600), "equation 5": (0.02, 1.15, 13600, 40, 2),
    },
    "WebSockets performance": {
        "": (100, 10), "profile of send() with 10 MB": (4.550, 4.480, 0.011, 0.009, 4.512, 4.500, 4.491, 0.027, 0.010),
    },
    "Vijayaragavan": {
        "table 1.1": (0, 3, 10, 30), "section II": (), "section III": (1,), "section IV": (15, 4), "section V": (),
        "table 2.1": (1.9, 3.51, 2.09, 10.2, 0.46, 0.27, 29.0, 1.21, 0.72, 88.0, 0.43, 0.31),
        "table 4.1": (3.8, 2.04, 1.26, 14.2, 2.78, 1.72, 34.6, 2.50, 1.55, 99.9, 0.73, 0.45),
        "table 4.2": (4.8, 1.87, 1.12, 11.6, 0.43, 0.23, 32.2, 1.06, 0.62, 96.3, 2.48, 1.3),
    },
    "Packet Loss and Round-Trip Time": {
        "": (10,), "test 1": (94,), "test 2": (2.88, 10), "test 3": (200,), "the Mathis equation": (1,),
    },
    "RFC 1122": {"section 4.2.3.5": (100,)},
    "Linux ip-sysctl": {"tcp_retries2": (15, 924.6)},
    "RFC 8033": {"": (15,)}, "RFC 8289": {"": (5,)},
    "Ware and others": {"abstract": (40, 16)}, "Kakhki and others": {"section 1": (2,)},
    "quinn 2711": {"": (3, 125, 65, 300, 306, 64, 1000, 563, 52, 632, 710, 14, 828, 1, 197, 512, 5, 25, 50)},
    "quic-go 5734": {"": (3, 17.5, 1, 23, 200, 20, 90, 10, 1.4, 3.4, 40)},
}  # fmt: skip


def document_of(source: str) -> str | None:
    return next((name for name in PRINTED if source.removeprefix("the ").startswith(name)), None)


def places_of(document: str, source: str) -> list[str]:
    """The places of a document that a source names, "tables III and V" as both of them."""
    text = re.sub(r"(table|section|equation|test)s ([\w.]+) (?:and|to) ([\w.]+)", r"\1 \2 and \1 \3", source)
    text = re.sub(r"tables ([\w.]+), ([\w.]+) and ([\w.]+)", r"table \1, table \2 and table \3", text)
    text = re.sub(r"(section|table)s (I) and (IV\.C)", r"\1 \2 and \1 \3", text)
    named = [place for place in PRINTED[document] if place and re.search(rf"{re.escape(place)}(?![\w])(?!\.\w)", text)]
    return named or ([""] if "" in PRINTED[document] else [])


@pytest.mark.parametrize("name", NAMES)
def test_every_source_names_a_document_and_a_place_that_it_has(name: str) -> None:
    asked = presentation(shipped(name))["asked"]
    for source in [each["source"] for kind in ("question", "published") for each in asked[kind]]:
        if not source:
            continue
        document = document_of(source)
        assert document is not None, source
        assert places_of(document, source), source


@pytest.mark.parametrize("name", NAMES)
def test_all_statements_of_a_document_are_one_family(name: str) -> None:
    """They are corrected for each other by what stands before the comma."""
    for statement in statements_of(shipped(name)):
        assert str(statement.source).partition(",")[0] in PRINTED


@pytest.mark.parametrize("name", NAMES)
def test_a_published_number_is_printed_at_the_place_that_it_names(name: str) -> None:
    for row in shipped(name).findings["published"]:
        if not isinstance(row, Published) or row.inferred:
            continue
        document = document_of(row.source)
        assert document is not None
        printed = [number for place in places_of(document, row.source) for number in PRINTED[document][place]]
        for number in (row.mean, row.sd, row.ci, row.n):
            assert number is None or number in printed or document == "WebSockets performance", (row.source, number)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_statement_is_given_is_printed_in_the_document_or_is_no_number_of_it(name: str) -> None:
    # Of formulas: sizes of segments and packets, losses as fractions, rates in bit/s, and numbers of an experiment.
    ours = {0, 1448, 1500, 5000, 0.1, 0.15, 0.2, 94e6, 2, 1, 8, 1000}
    for table in own_tables_of(shipped(name)):
        document = document_of(table.source)
        assert document is not None
        printed = {number for place in PRINTED[document].values() for number in place} | ours
        for given in table.given.values():
            numbers = given if isinstance(given, list) else [given] if isinstance(given, int | float) else []
            assert set(numbers) <= printed, (table.says, set(numbers) - printed)


DERIVED = {
    "0.267": 14.15 / 53.06, "0.416": 16.93 / 40.72, "0.238": 39.89 / 167.61, "127.72": 167.61 - 39.89,
    "511": 979 - 468, "1310": 1778 - 468,
}  # fmt: skip
"""Numbers in sources that the documents do not print, from those that they do."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")
_NO_NUMBER = re.compile(
    r"(?:tables?|sections?|chapter|equations?|footnote|figs?\.?|tests?|RFC) [\d.]+(?:, [\d.]+)*(?: and [\d.]+)?|"
    "120405A|1997|quinn 2711|quic-go 5734"
)


@pytest.mark.parametrize("name", NAMES)
def test_a_number_in_a_source_is_printed_at_its_place(name: str) -> None:
    study = shipped(name)
    for source in (str(table.source) for table in (*statements_of(study), *own_tables_of(study))):
        document = document_of(source)
        printed = {1.0} if document is None else {
            scale * number
            for place in places_of(document, source) for number in PRINTED[document][place] for scale in (1, 1000)
        }  # fmt: skip
        for text in _NUMBER.findall(_NO_NUMBER.sub("", source)):
            decimals = len(text.partition(".")[2])
            known = {*printed, *([DERIVED[text]] if text in DERIVED else [])}
            assert any(round(number, decimals) == float(text) for number in known), (source, text)


def test_the_ratios_of_table_2_are_from_the_least_to_the_most_of_its_cells() -> None:
    table = presentation(shipped("thesis"))["asked"]["published"]
    rows = {tuple(row["levels"].values())[1:]: row["mean"] for row in table if "mean" in row}
    ratios = {
        loss: [rows["socketio-webtransport", loss, size] / rows["socketio-websocket", loss, size]
               for size in ("1", "50", "100", "1000")]
        for loss in ("10%", "15%", "20%")
    }  # fmt: skip
    every = [ratio for of_loss in ratios.values() for ratio in of_loss]
    low, high = min(ratios["10%"]), max(ratios["10%"])
    said = f"table 2 has {low:.3f} to {high:.3f} times at 10 %, {min(every):.3f} to {max(every):.3f} at all losses"
    for name in ("thesis", "message-size"):
        assert any(said in str(statement.source) for statement in statements_of(shipped(name)))


@pytest.mark.parametrize(
    ("name", "says", "inside", "outside"),
    [
        ("transfer-time-held-out", "is 36 % off", (0.36,), (0.0, 0.30)),
        ("queue-size", "1 MB takes 1.1467 s", (1.1467e9,), (0.6342e9, 1.3e9)),
        ("transfer-time", "adds 0.501 s", (0.501e9,), (0.4e9,)),
        ("transfer-time", "adds 0.4 s", (0.4e9,), (0.501e9,)),
        ("transfer-time", "adds 10 ms", (10e6,), (5e6, 15e6)),
        ("message-size", "is 128 ms", (127.72e6,), (117.04e6,)),
        ("latency-by-link", "HTTPS is 15 % faster", (0.85,), (0.82, 0.93, 0.96)),
        ("latency-by-link", "HTTP grows by 3.19 ms", (3.19e6,), (2e6, 3e6)),
    ],
)
def test_a_range_is_as_tight_as_its_sentence(
    name: str, says: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    asked = presentation(shipped(name))["asked"]["question"]
    ranges = {(each["low"], each["high"]) for each in asked if each["source"] and says in each["asks"]}
    ((low, high),) = ranges  # The same with each choice.
    assert all(low <= number <= high for number in inside)
    assert not any(low <= number <= high for number in outside)


_WITHIN = re.compile(r"([\d.]+) (?:ms|s|Mbit/s)\b(?! of round).*?, within (a tenth|a fifth|a quarter|\d+ %)")
_SHARES = {"a tenth": 0.1, "a fifth": 0.2, "a quarter": 0.25}


@pytest.mark.parametrize("name", NAMES)
def test_the_range_of_a_quantity_is_what_its_sentence_allows(name: str) -> None:
    for statement in statements_of(shipped(name)):
        says = str(statement.says)
        found = _WITHIN.search(says)
        if found is None or statement.model or statement.yes or statement.scale not in (None, "difference", "slope"):
            continue
        number = float(re.findall(r"([\d.]+) (?:ms|s|Mbit/s)(?!\w)", says[: found.end()].partition(" for each")[0])[-1])
        share = _SHARES.get(found[2]) or float(found[2].split()[0]) / 100
        low, high = (float(re.match(r"[\d.]+", str(bound))[0]) for bound in (statement.at_least, statement.at_most))  # type: ignore[index]
        assert (low, high) == pytest.approx((number * (1 - share), number * (1 + share)), rel=3e-3), says
