"""Study files: what is read of them, how they are stored, and how they are found."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from cells import delays_ns
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.files import builtin_studies, decode, load_study
from study_texts import ECHO, FACTORS, ISSUE_EXAMPLE, LIMITS, PARTS, SHOWN, study


def test_a_list_is_a_factor() -> None:
    read = study(ISSUE_EXAMPLE)
    assert read.factors == {
        "path.loss": ("0%", "5%"),
        "workload.transport": ("tcp", "udp"),
        "workload.size": ("1", "1000"),
    }
    assert len(read) == 8
    assert (read.title, read.repetitions, read.seed) == ("TCP and UDP echo on a lossy path", 3, 1)
    first, *_, last = read.cells()
    assert first.levels == {"path.loss": "0%", "workload.transport": "tcp", "workload.size": "1"}
    assert last.levels == {"path.loss": "5%", "workload.transport": "udp", "workload.size": "1000"}
    assert last.index == 7
    assert (last.settings["path.loss"].value, last.settings["path.delay"].value) == (Decimal("0.05"), 10_000_000)


def test_parts_expand_on_their_own() -> None:
    read = study(PARTS)
    assert read.factors == {
        "part": ("small", "bulk"),
        "path.loss": ("0%", "5%"),
        "workload.size": ("1kB", "1MB"),
    }
    cells = list(read.cells())
    assert [cell.levels for cell in cells[:3]] == [
        {"part": "small", "path.loss": "0%"},
        {"part": "small", "path.loss": "5%"},
        {"part": "bulk", "path.loss": "0%", "workload.size": "1kB"},
    ]
    assert delays_ns(cells[0]) == {"path.forward": 3_000_000}
    # The part's delay means both directions, whatever the study says of one.
    assert delays_ns(cells[2]) == {"path.forward": 1_000_000, "path.reverse": 1_000_000}
    assert cells[0].settings["workload.messages"].value == 7
    assert "workload.messages" not in cells[2].settings


def test_a_list_of_argument_lists_is_a_factor() -> None:
    read = study('[workload]\nkind = "program"\nclient = [["ping", "{server}"], ["true"]]\nserver = ["sleep", "9"]\n')
    assert read.factors == {"workload.client": ("ping '{server}'", "true")}
    assert [cell.settings["workload.client"].value for cell in read.cells()] == [("ping", "{server}"), ("true",)]
    assert next(read.cells()).settings["workload.server"].value == ("sleep", "9")


def limited(**overrides: str) -> list[int]:
    read = study(PARTS + LIMITS).with_overrides({key.replace("__", "."): text for key, text in overrides.items()})
    return [read.repetitions_of(cell) for cell in read.cells()]


def test_some_cells_are_run_less_often() -> None:
    # small at 0 % and 5 %; bulk at 0 % with 1kB and 1MB, at 5 % likewise. The least limit counts.
    assert limited() == [4, 3, 4, 2, 3, 2]
    assert limited(study__repetitions="1") == [1] * 6
    assert limited(path__loss="5.0%") == [3, 3, 2]


def test_a_limit_on_levels_that_were_set_anew_is_left_away() -> None:
    read = study(PARTS + LIMITS)
    assert limited(path__loss="1%") == [4, 4, 2]
    assert read.with_overrides({"path.loss": "1%"}).document["repetitions"] == read.document["repetitions"][:1]
    without = read.with_overrides({"path.loss": "1%", "workload.size": "7"})
    assert (
        without.digest()
        == study(PARTS + "[study]\nrepetitions = 4").with_overrides({"path.loss": "1%", "workload.size": "7"}).digest()
    )
    assert study(without.to_toml()).canonical() == without.canonical()
    assert Study.from_canonical(without.canonical()).digest() == without.digest()


def test_limits_count_among_the_runs() -> None:
    many = ECHO + "size = [1, 2]\n[study]\nrepetitions = 100000\n[path]\nloss = " + str([n / 100 for n in range(20)])
    with pytest.raises(StudyError, match="4,000,000 runs"):
        study(many)
    few = many + '\n[[repetitions]]\nwhere = { "workload.size" = "1B" }\nat_most = 1'
    with pytest.raises(StudyError, match="2,000,020 runs"):
        study(few)


def test_toml_written_reads_back_to_the_same_study() -> None:
    awkward = ISSUE_EXAMPLE.replace('"TCP and UDP echo on a lossy path"', r'"a \"b\" \\ c\n ü"')
    for text in (
        awkward,
        PARTS,
        PARTS + LIMITS,
        FACTORS + SHOWN,
        '[workload]\nkind = "program"\nclient = [["a b", "c\\u007f"], ["d"]]\n',
    ):
        first = study(text)
        again = study(first.to_toml())
        assert again.canonical() == first.canonical()
        assert again.digest() == first.digest()
        stored = json.loads(json.dumps(first.canonical()))
        assert stored == first.canonical()
        assert Study.from_canonical(stored).canonical() == stored
    with pytest.raises(StudyError, match=r"is not crosswind\.study/1"):
        Study.from_canonical({"schema": "crosswind.study/2"})


def test_the_digest_covers_what_is_measured_and_nothing_else() -> None:
    first = study(ISSUE_EXAMPLE)
    assert first.digest() == study(ISSUE_EXAMPLE.replace("TCP and UDP", "Another")).digest()
    assert first.digest() != first.with_overrides({"study.seed": "2"}).digest()
    assert first.digest() != first.with_overrides({"path.loss": "0%"}).digest()
    limit = '[[repetitions]]\nwhere = { "path.loss" = "5%" }\nat_most = '
    digests = [study(ISSUE_EXAMPLE + text).digest() for text in ("", limit + "1", limit + "2")]
    assert len(set(digests)) == 3
    assert study(FACTORS).digest() == study(FACTORS + SHOWN).digest()


def test_the_digests_of_stored_runs_stay() -> None:
    # Written down in run directories: `--resume` with a study compares them.
    assert [load_study(name).digest()[:16] for name in ("latency-by-link", "mathis", "quickstart")] == [
        "2edb79ad98b7f2f6",
        "26bd82f3d59b46bc",
        "0c3525ffd6ae4eb8",
    ]


def test_studies_are_found(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ISSUE_EXAMPLE)
    assert load_study(str(path)).name == "mine"
    assert load_study("mathis").name == "mathis"
    assert "mathis" in dict(builtin_studies())
    for wrong, message, hint in [
        ("quickstrat", "no study file or built-in study", 'did you mean "quickstart"?'),
        (str(tmp_path / "none.toml"), "no such file", "known: "),
        (str(tmp_path), "is a directory", "name a .toml file"),
        ("x" * 5000, "", ""),
        ("", "no study file", ""),
    ]:
        with pytest.raises(StudyError) as caught:
            load_study(wrong)
        assert message in caught.value.message
        assert hint in (caught.value.hint or "")


def test_files_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b'title = "a"\n\xff\n')
    with pytest.raises(StudyError, match=r"binary\.toml:2: not UTF-8 text"):
        load_study(str(path))
    with pytest.raises(StudyError, match="more than 1,000,000 bytes"):
        decode(b" " * 1_000_001, "big.toml")
