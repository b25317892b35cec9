"""Numbers of documents beside those of a run."""

import pytest

from crosswind.analysis import analyse
from records import MS, echoes, parted, record, runs

PUBLISHED = {"source": "Table 1", "metric": "rtt", "unit": "ms", "levels": {"path.delay": "10ms"}, "mean": 20.0}


def published(entry: dict, rtts: list[int], **changes):
    tables = [echoes(part) for part in parted(rtts, 5)] if len(rtts) >= 30 else [echoes(rtts)]
    made = runs(0, tables, {"path.delay": "10 ms"})
    (found,) = analyse(record(*made, published=[entry], **changes)).published
    return found


def test_a_published_number_inside_our_interval() -> None:
    found = published(PUBLISHED, [20 * MS - 500 + 20 * index for index in range(50)])
    assert (found.theirs, found.unit, found.cell, found.inside) == (20 * MS, "ns", 0, True)
    assert found.remark == "theirs lies in our interval"
    assert found.ratio == pytest.approx(1, abs=1e-5)


def test_a_published_number_outside_our_interval_with_and_without_its_own() -> None:
    rtts = [30 * MS + index for index in range(50)]
    assert published(PUBLISHED, rtts).remark == "outside our interval; ours is 1.5 times theirs"
    assert published(PUBLISHED | {"ci": 11.0}, rtts).remark == "the intervals overlap; ours is 1.5 times theirs"
    # 20 ms and 21 either way: an interval that holds times below 0 says nothing.
    assert published(PUBLISHED | {"ci": 21.0}, rtts).remark == (
        "outside our interval; ours is 1.5 times theirs; their interval reaches below 0, where no such number is"
    )


def test_a_published_number_without_one_of_ours() -> None:
    assert published(PUBLISHED, [20 * MS] * 3).remark == (
        "ours is as much as theirs; an interval of a mean needs 3 repetitions, there is 1: 2 more"
    )
    assert published(PUBLISHED | {"metric": "goodput"}, [20 * MS] * 30).remark == "this cell has no such metric"
    missing = published(PUBLISHED | {"levels": {"path.delay": "30ms"}}, [20 * MS] * 30)
    assert (missing.cell, missing.remark) == (None, "no cell of this run has these levels")


def test_a_published_level_may_be_a_fixed_setting_of_the_study() -> None:
    entry = PUBLISHED | {"levels": {"path.delay": "10ms", "path.family": "ipv6"}}
    rtts = [20 * MS + index for index in range(50)]
    assert published(entry, rtts, study={"path": {"family": "ipv6"}}).cell == 0
    assert published(entry, rtts, study={"path": {"family": "ipv4"}}).cell is None


def test_the_plan_says_which_cells_a_published_number_belongs_to() -> None:
    entry = PUBLISHED | {"levels": {"path.delay": "written otherwise"}, "cells": [0]}
    rtts = [20 * MS + index for index in range(50)]
    assert published(entry, rtts).cell == 0
    assert published(PUBLISHED | {"cells": []}, rtts).cell is None


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(ValueError, match="unknown unit 'furlong'"):
        published(PUBLISHED | {"unit": "furlong"}, [20 * MS] * 30)
