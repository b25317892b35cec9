"""Reports as people and programs read them."""

import io
import json
import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from crosswind.analysis.cells import collect
from crosswind.findings.pipeline import analyse
from crosswind.report.charts.distributions import CURVE_POINTS, curve, distribution
from crosswind.report.charts.intervals import intervals
from crosswind.report.charts.panels import MAX_BARS, MAX_PANELS, panel_factors, roles_of
from crosswind.report.export import estimates_frame, samples_frame, write_csv, write_json, write_parquet
from crosswind.report.files import whole_file
from crosswind.report.run_page import page_of, render, write_html
from crosswind.report.tables.metrics import metric_table, why_no_interval
from crosswind.report.tables.reasons import merged_reasons
from crosswind.report.text.format import interval, number, with_unit
from crosswind.report.text.terminal import print_screen
from crosswind.stats.design import quantile_shortage
from crosswind.stats.estimate import Interval
from records import MS, echoes, finished, parted, path, record, run, runs, timed

RTTS = [20 * MS + 1000 * (index * 37 % 100) for index in range(100)]  # neighbours are not alike


def two_cells(**changes):
    """Two cells of five repetitions; in the second one of every ten exchanges is lost."""
    lossy = [None if rtt // 1000 % 10 == 5 else rtt for rtt in RTTS]
    return record(
        *runs(0, [echoes(part) for part in parted(RTTS, 5)], {"path.loss": "0%"}, end=finished(packets=100)),
        *runs(1, [echoes(part) for part in parted(lossy, 5)], {"path.loss": "5%"}, end=finished(packets=100, lost=5)),
        **changes,
    )


def test_colour_on_a_terminal_only_and_never_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(**options) -> str:
        out = io.StringIO()
        print_screen(page_of(analyse(two_cells())), Console(file=out, width=80, **options))
        return out.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in printed(force_terminal=True)
    assert "\x1b[" not in printed()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", printed(force_terminal=True))


class Page(HTMLParser):
    """What a browser would load, and the tags it would open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value or "" for key, value in attrs if key in ("src", "href", "srcset", "data", "action")]


def test_html_loads_nothing_and_holds_its_library_once() -> None:
    text = render(two_cells(), analyse(two_cells()))
    page = Page(text)
    assert [target for target in page.loaded if not target.startswith("#")] == []
    assert "link" not in page.tags
    style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
    assert "url(" not in style
    assert "@import" not in style
    assert text.count("window.vegaEmbed") == 1
    assert len(text) < 2_000_000


def test_every_chart_has_its_place_and_its_data() -> None:
    text = render(two_cells(), analyse(two_cells()))
    specs = json.loads(re.search(r'<script id="specs"[^>]*>(.*?)</script>', text, re.S).group(1))
    assert specs
    assert set(specs) == set(re.findall(r'class="chart" id="([^"]+)"', text))
    assert "http" not in json.dumps(specs)


def test_html_escapes_what_comes_from_a_study() -> None:
    evil = '</script><script>alert("x")</script>'
    made = record(
        run(0, echoes(RTTS), {"path.loss": evil}), title=evil, notes=[evil], study={"title": evil}, name=evil,
    )  # fmt: skip
    text = render(made, analyse(made))
    assert "<script>alert" not in text
    assert Page(text).tags.count("script") == 3


def test_the_unit_of_an_exact_number_stands_before_the_word() -> None:
    assert with_unit("20 exact", "ms") == "20 ms exact"
    assert with_unit("20.1 [20.0, 20.2]", "ms") == "20.1 [20.0, 20.2] ms"
    assert with_unit("20.1 (no interval)", "ms") == "20.1 ms (no interval)"
    assert with_unit("20.1 (in all 2 repetitions)", "ms") == "20.1 ms (in all 2 repetitions)"
    assert with_unit("20.1 (19.9 to 20.3)", "ms") == "20.1 (19.9 to 20.3) ms"


def test_limits_of_numbers_are_soft_and_words_in_parentheses_are_not() -> None:
    entry = {"source": "Table (9)", "metric": "rtt", "unit": "ms", "levels": {}, "mean": 20.05, "cells": [0]}
    made = two_cells(published=[entry])
    text = render(made, analyse(made))
    assert ">Table (9)<" in text
    assert re.search(r'class="pair">[\d.]+ <span class="beside">\[[^]]+\] ms</span></td>', text)


def test_shortages_of_one_kind_are_one_sentence() -> None:
    short = "an interval of p95 needs {} repetitions, there are {}: {} more"
    said = [
        (short.format(40, 20, 20), "a"),
        (short.format(1100, 20, 1080), "b"),
        ("no number", "c"),
        ("no number", "a"),
    ]
    assert why_no_interval(said) == [
        "An interval of p95 needs 40 to 1\u202f100 repetitions, there are 20 (2 cells).",
        "No number (2 cells).",
    ]
    # What the same cells lack is one sentence too.
    lacking = [(f"an interval of {what} needs {needed} repetitions, there are 6: {needed - 6} more", cell)
               for what, needed in (("the median", 14), ("a mean", 20)) for cell in "ab"]  # fmt: skip
    assert why_no_interval([*lacking, ("no number", "a")]) == [
        "6 repetitions are too few for intervals: the median needs 14, a mean needs 20 (2 cells).",
        "No number (a).",
    ]
    assert why_no_interval(said[:1]) == ["An interval of p95 needs 40 repetitions, there are 20: 20 more (a)."]
    # What statistics say is what is understood here.
    shortage = quantile_shortage(0.95, 20, 20)
    assert shortage is not None
    assert list(merged_reasons([(shortage.message, "a"), (short.format(99999, 3, 9), "b")])) == [
        f"an interval of p95 needs {shortage.needed} to 99\u202f999 repetitions, there are 3 to 20"
    ]


def test_a_time_has_no_finer_digits_than_its_unit_deserves() -> None:
    made = record(run(0, echoes([8] * 40), {"path.loss": "0%"}), run(1, echoes([20 * MS] * 40), {"path.loss": "1%"}))
    table = metric_table("rtt", analyse(made))
    assert table.title == "Round-trip time, ms"
    assert [row[3].split()[0] for row in table.rows] == ["0.000", "20.00"]


def test_an_interval_that_six_digits_do_not_show_has_four() -> None:
    narrow = Interval(value=1.0535512, low=1.0535510, high=1.0535514, n=9, level=0.95, method="t")
    assert interval(narrow) == "1.054 [1.054, 1.054]"
    assert interval(replace(narrow, high=1.06)) == "1.054 [1.054, 1.060]"


def test_curves_keep_every_sample_up_to_a_limit_and_the_tail_beyond() -> None:
    values, shares = curve(pl.Series(range(CURVE_POINTS)).to_numpy().astype(float))
    assert len(values) == CURVE_POINTS
    values, shares = curve(pl.Series(range(100_000)).to_numpy().astype(float))
    assert len(values) <= CURVE_POINTS
    assert (values[0], values[-1], shares[-1]) == (0, 99_999, 1)
    assert sum(share > 0.9 for share in shares) == pytest.approx(CURVE_POINTS / 2, abs=2)


def test_a_wide_spread_gets_a_logarithmic_axis() -> None:
    def scale(slowest: int) -> str:
        made = record(run(0, echoes([20 * MS] * 40 + [slowest])))
        return (
            distribution("rtt", analyse(made), collect(made)).charts[0].specification["encoding"]["x"]["scale"]["type"]
        )

    assert scale(390 * MS) == "linear"
    assert scale(410 * MS) == "log"


def test_transport_gets_the_colour_and_the_rest_dashes_and_panels() -> None:
    cells = [{"path.loss": a, "workload.transport": b, "size": c} for a in "01" for b in ("tcp", "udp") for c in "12"]
    roles = roles_of(cells)
    assert (roles.colour, roles.dash, roles.panels) == ("workload.transport", "path.loss", ("size",))


@pytest.mark.parametrize(
    ("value", "resolution", "text"),
    [
        (20.1146, 0.0043, "20.115"),
        (20.1146, 0.0021, "20.1146"),
        (44.37, 6.6, "44"),
        (-1234.5, 300, "−1\u202f234"),
        (0.0, None, "0.000"),
        (1234567.0, None, "1\u202f234\u202f567"),
        (None, None, "–"),
    ],
)
def test_numbers_have_the_digits_they_deserve(value: float | None, resolution: float | None, text: str) -> None:
    assert number(value, resolution=resolution) == text


def test_exports(tmp_path: Path) -> None:
    made = two_cells()
    result = analyse(made)
    write_json(result, tmp_path / "r.json")
    write_csv(result, tmp_path / "r.csv")
    write_parquet(samples_frame(made), tmp_path / "s.parquet")
    write_html(made, result, tmp_path / "r.html")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["study"] == "a-study"
    rows = pl.read_csv(tmp_path / "r.csv")
    assert rows["metric"].unique(maintain_order=True).to_list() == ["rtt", "cpu_client", "cpu_server"]
    assert rows.height == 2 * 3 * 6  # two cells, three metrics, six statistics
    median = rows.filter(cell=0, metric="rtt", statistic="median")
    assert median["value"].item() == 20 * MS + 49_500
    samples = pl.read_parquet(tmp_path / "s.parquet")
    assert (samples.height, samples["path.loss"].n_unique()) == (200, 2)
    assert list(tmp_path.glob("*.part")) == []


def test_frames_of_an_empty_run() -> None:
    assert estimates_frame(analyse(record())).height == 0
    assert samples_frame(record()).height == 0


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), whole_file(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def grid(sizes: int, losses: int, **changes):
    """Transfers of every size at every loss, six repetitions each. changes: transport, and of the record."""
    transport = changes.pop("transport", "tcp")
    runs = []
    for size in range(sizes):
        for step in range(losses):
            loss = step / 100
            workload = {"kind": "transfer", "transport": transport, "size_bytes": 1000 * (size + 1)}
            parameters = {"path": path(loss=loss, rate_bps=1_000_000), "workload": workload}
            levels = {"workload.size": f"{size + 1}kB", "path.loss": f"{step}%"}
            for at in range(6):
                took = round((size + 1) * MS * (1 + 0.2 * 2.718 ** (25 * loss) + at / 100))
                samples = timed([took], size=1000 * (size + 1))
                runs.append(run(size * losses + step, samples, levels, repetition=at, parameters=parameters))
    return record(*runs, **changes)


def test_many_cells_are_divided_by_the_factors_with_the_fewest_levels() -> None:
    cells = [{"a": str(a), "b": str(b), "c": str(c)} for a in range(2) for b in range(5) for c in range(36)]
    assert panel_factors(cells, MAX_BARS) == ("a", "b")
    assert panel_factors(cells[:MAX_BARS], MAX_BARS) == ()
    assert panel_factors(cells, 1) == ("a", "b")
    assert panel_factors([{}] * 50, MAX_BARS) == ()


def test_what_is_not_drawn_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    by_two = partial(intervals, most=2)
    monkeypatch.setattr("crosswind.report.charts.intervals.intervals", by_two)
    made = grid(7, 4)  # 7 sizes at each of 4 losses, cut into 2 + 2 + 2 + 1
    result = analyse(made)
    panels = by_two("transfer_time", result, collect(made))
    assert (len(panels.charts), panels.total) == (MAX_PANELS, 16)
    assert [chart.caption for chart in panels.charts[3:5]] == ["loss 0% · cells 7 to 7", "loss 1% · cells 1 to 2"]
    text = render(made, result)
    assert f"Drawn: {MAX_PANELS} of 16 panels. The table has every cell." in text
    assert f"<summary>{MAX_PANELS - 4} more panels</summary>" in text
