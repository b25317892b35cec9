"""Reports as people and programs read them."""

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from crosswind.analysis import analyse
from crosswind.errors import DiskError
from crosswind.report import (
    estimates_frame,
    print_result,
    samples_frame,
    write_csv,
    write_html,
    write_json,
    write_parquet,
)
from crosswind.report.charts import POINTS, curve, distribution, roles_of
from crosswind.report.files import whole
from crosswind.report.format import interval, number, quantity, scale_of
from crosswind.report.headline import sentences, verdict
from crosswind.report.html import render
from crosswind.report.terminal import render as render_text
from crosswind.result import Interval
from records import MS, echoes, finished, record, run, transfers

RTTS = [20 * MS + 1000 * (index * 37 % 100) for index in range(100)]  # neighbours are not alike


def two_cells(**changes):
    clean = run(0, echoes(RTTS), {"path.loss": "0%"}, end=finished(packets=100))
    lossy = run(
        1,
        echoes([None if rtt // 1000 % 10 == 5 else rtt for rtt in RTTS]),
        {"path.loss": "5%"},
        end=finished(packets=100, lost=5),
    )
    return record(clean, lossy, **changes)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_terminal_text() -> None:
    text = lines(render_text(analyse(two_cells()), width=80))
    assert text[:4] == [
        "A title",
        "✓ Every packet is accounted for, and emulation kept its budget in every cell.",
        "  2 cells, 2 repetitions, 200 exchanges, 10 of them lost.",
        "  Round-trip time: no difference shown between levels of loss.",
    ]
    start = text.index("Round-trip time, ms")
    assert text[start + 1].split() == ["loss", "n", "median", "[95", "%]", "mean", "[95", "%]"]
    assert text[start + 2].startswith("0%    100  20.049 [20.039, 20.060]  20.049 [")
    assert text[start + 3].startswith("5%     90  20.049 [20.039, 20.060]  20.049 [")
    lost = text.index("Exchanges lost")
    assert re.sub(" +", " ", text[lost + 3]) == "5% 100 10 10 % [4.9 %, 17.6 %] ok 90, timeout 10"
    assert any("p99: not enough samples: p99 at 95% needs 368 (2 cells)" in line for line in text)


def test_terminal_marks_what_must_not_be_trusted() -> None:
    bad = run(0, echoes(RTTS), end=finished(valid=False, reasons=["delay error p99 3 ms is over the budget of 1 ms"]))
    text = render_text(analyse(record(bad)))
    assert "✗ 1 of 1 cell must not be trusted" in text
    assert "delay error p99 3 ms is over the budget" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_number_is_broken_across_lines(width: int) -> None:
    text = render_text(analyse(two_cells(models=["ping-pong"])), width=width)
    longest = max(len(line) for line in text.splitlines())
    assert longest <= max(width, 60)
    assert "[20.039, 20.060]" in text


def test_colour_on_a_terminal_only_and_never_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(**options) -> str:
        out = io.StringIO()
        print_result(analyse(two_cells()), Console(file=out, width=80, **options))
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
    assert page.loaded == []
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


def test_html_says_what_the_run_says() -> None:
    entry = {"source": "Table 9", "metric": "rtt", "unit": "ms", "levels": {"path.loss": "0%"}, "mean": 20.05}
    made = two_cells(published=[entry], notes=["A note."])
    text = render(made, analyse(made))
    for said in ("A title", "theirs lies in our interval", "Table 9", "A note.", "Clopper-Pearson", "order statistics",
                 "Ledger and fidelity", "Provenance", "no difference shown"):  # fmt: skip
        assert said in text


def test_html_of_a_run_in_which_everything_failed() -> None:
    made = record(run(0, None))
    text = render(made, analyse(made))
    assert "deadline of 600 s passed" in text
    assert "vegaEmbed" not in text


def test_throughput_is_drawn_beside_the_models() -> None:
    cells = []
    for index, loss in enumerate((0.0, 0.01, 0.05)):
        path = {"forward": {"loss": loss, "delay_ns": 10 * MS, "rate_bps": 100_000_000}}
        parameters = {"path": path, "workload": {"kind": "transfer", "transport": "tcp", "duration_ns": MS}}
        samples = transfers([5e6, 6e6, 7e6])
        cells.append(run(index, samples, {"path.loss": f"{loss:.0%}"}, parameters=parameters))
    made = record(*cells, models=["mathis", "pftk"])
    text = render(made, analyse(made))
    specs = json.loads(re.search(r'<script id="specs"[^>]*>(.*?)</script>', text, re.S).group(1))
    rows = [row for spec in specs.values() for values in spec.get("datasets", {}).values() for row in values]
    titles = {row.get("model") for row in rows}
    assert {"Mathis, C = sqrt(3/2)", "PFTK, sending rate"} <= titles


def test_curves_keep_every_sample_up_to_a_limit_and_the_tail_beyond() -> None:
    values, shares = curve(pl.Series(range(POINTS)).to_numpy().astype(float))
    assert len(values) == POINTS
    values, shares = curve(pl.Series(range(100_000)).to_numpy().astype(float))
    assert len(values) <= POINTS
    assert (values[0], values[-1], shares[-1]) == (0, 99_999, 1)
    assert sum(share > 0.9 for share in shares) == pytest.approx(POINTS / 2, abs=2)


def test_a_wide_spread_gets_a_logarithmic_axis() -> None:
    def scale(slowest: int) -> str:
        from crosswind.analysis import collect  # noqa: PLC0415

        data = collect(record(run(0, echoes([20 * MS] * 40 + [slowest]))))
        return distribution("rtt", data)[0].spec["encoding"]["x"]["scale"]["type"]

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


def test_units_are_those_of_people() -> None:
    assert quantity(20_110_000, "ns") == "20.1 ms"
    assert quantity(2.88e6, "bit/s") == "2.88 Mbit/s"
    assert quantity(999, "ns") == "999 ns"
    assert scale_of([5e3, 2e6, 3e6], "ns") == (1e6, "ms")
    assert scale_of([], "ns") == (1.0, "ns")


def test_an_estimate_without_a_number_is_a_dash() -> None:
    nothing = Interval(value=None, low=None, high=None, n=3, level=0.95, method="m", reason="r")
    assert interval(nothing) == "–"


def test_verdict_and_sentences() -> None:
    result = analyse(two_cells(planned=5))
    assert verdict(result) == ("doubtful", "Incomplete: 2 of 5 repetitions were executed; those are valid.")
    assert verdict(analyse(record()))[0] == "bad"
    assert verdict(analyse(record(run(0, echoes([MS] * 20)))))[0] == "good"
    assert sentences(analyse(record(run(0, echoes([MS] * 20))))) == [
        "1 cell, 1 repetition, 20 exchanges, 0 of them lost."
    ]


def test_exports(tmp_path: Path) -> None:
    made = two_cells()
    result = analyse(made)
    write_json(result, tmp_path / "r.json")
    write_csv(result, tmp_path / "r.csv")
    write_parquet(samples_frame(made), tmp_path / "s.parquet")
    write_html(made, result, tmp_path / "r.html")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["study"] == "a-study"
    rows = pl.read_csv(tmp_path / "r.csv")
    assert rows.height == 2 * 4  # two cells, one metric, four statistics
    median = rows.filter((pl.col("cell") == 0) & (pl.col("statistic") == "median"))
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
    with pytest.raises(RuntimeError), whole(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match="cannot write") as error:
        write_json(analyse(two_cells()), tmp_path / "file" / "r.json")
    assert error.value.hint
