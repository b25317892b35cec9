"""What surrounds a command, and what users write: full disks, narrow terminals, odd bytes, hostile texts."""

import base64
import csv
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from conftest import ROOT, missing, requires, requires_binary
from crosswind.api.results import analysed
from crosswind.errors import StudyError
from crosswind.findings.pipeline import analyse
from crosswind.report.export import spreadsheet_text, write_csv
from crosswind.report.run_page import page_of, render
from crosswind.store.checksums import sealed
from crosswind.store.run import load
from crosswind.text.console import NARROWEST, Console
from fixture_types import Crosswind, UseCell
from records import MS, echoes, record, run
from runs import kept_run
from small_disks import mounted_disk
from study_texts import study

BELL, REVERSED = "\x07", "\u202e"
ANSWERS = ("--what", "echo", "--network", "4g", "--compare", "none", "--sure", "5%")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A run of two cells."""
    times = [20 * MS + number * MS for number in range(30)]
    runs = [run(cell, echoes(times), {"workload.transport": name}) for cell, name in enumerate(("tcp", "udp"))]
    return kept_run(tmp_path / "made", runs)


def crosswind_process(*arguments: str | bytes | Path, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "crosswind", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment}
    return subprocess.run(command, capture_output=True, env=variables, check=False)


@pytest.mark.parametrize("what", ["csv", "parquet", "samples", "html"])
def test_an_export_that_the_disk_has_no_room_for_is_said(
    crosswind: Crosswind, made: Path, tmp_path: Path, what: str
) -> None:
    with mounted_disk(tmp_path / "disk", "4k") as disk:
        status, _, err = crosswind("report", str(made), f"--{what}", str(disk / "file"))
        assert (status, err) == (
            1,
            f"error: cannot write {disk / 'file'}: No space left on device\n"
            "hint: make room or choose another place for the report\n",
        )
        assert list(disk.iterdir()) == []


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=cmd|" /C calc"!A0', "--1", "-"])
def test_a_spreadsheet_does_not_run_what_a_study_calls_a_level(tmp_path: Path, text: str) -> None:
    made = record(*(run(cell, echoes([MS] * 5), {"workload.client": name}) for cell, name in enumerate((text, "-1.5"))))
    write_csv(analyse(made), tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        levels = {row["workload.client"] for row in csv.DictReader(file)}
    assert levels == {f"'{text}", "-1.5"}


@pytest.mark.parametrize("text", ["-1.5", "+3", "1e-9", "-2E+5", "tcp", "a=b", "", "0%"])
def test_numbers_and_plain_texts_stay_as_they_are(text: str) -> None:
    assert spreadsheet_text(text) == text


@pytest.mark.parametrize("hidden", [BELL, REVERSED, "\x1b[2J", "\u2066", "\x9b"])
def test_a_study_with_a_character_that_nobody_sees_is_refused(hidden: str) -> None:
    quoted = "".join(f"\\u{ord(character):04x}" for character in hidden)
    with pytest.raises(StudyError, match=rf"my.toml:1: title: has the hidden character U\+{ord(hidden[0]):04X}"):
        study(f'title = "a{quoted}"\n[workload]\nkind = "echo"\n')
    # What a program is started with is its own affair.
    study(f'[workload]\nkind = "program"\nclient = [["printf", "{quoted}"]]\n')


def test_texts_of_programs_and_servers_are_shown_and_change_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    title = f"a{BELL}b{REVERSED}c\x1b[31m"
    page = render(made := record(run(0, echoes([MS] * 5), {"workload.client": title}), title=title), analyse(made))
    assert not set(page) & {BELL, REVERSED, "\x1b"}
    assert r"a\u0007b\u202ec\u001b[31m" in page
    Console(highlight=False, markup=False, force_terminal=True).print(title)
    assert r"ab\u202ec\u001b[31m" in capfd.readouterr().out  # rich takes the bell out itself.


def test_the_name_of_a_file_in_a_run_of_a_stranger_writes_nothing_of_its_own(crosswind: Crosswind, made: Path) -> None:
    place = made / "cells" / "c000-r00" / "result.json"
    result = json.loads(place.read_text(encoding="utf-8"))
    result["files"]["\x1b[2Jx"] = {"bytes": 1, "sha256": "0" * 64}
    place.write_bytes(sealed({key: value for key, value in result.items() if key != "checksum"}))
    _, out, _ = crosswind("verify", "--files", str(made))
    assert r"\u001b[2Jx is missing" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("columns", ["0", "1", "7", str(NARROWEST), "39"])
def test_a_terminal_of_any_width_is_printed_to(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch, made: Path, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for command in (("report", str(made)), ("report", str(made), "--all"), ("runs", str(made)), ("networks",)):
        status, _, err = crosswind(*command)
        assert (status, err) == (0, "")


@pytest.mark.parametrize("columns", [30, 40])
@pytest.mark.parametrize(
    "words",
    [
        ("report", "--all"),
        ("runs",),
        ("runs", "--details"),
        ("networks",),
        ("predict", "--rtt", "40ms", "--loss", "1%", "--rate", "10mbit"),
    ],
)
def test_no_table_is_wider_than_a_narrow_terminal(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch, made: Path, columns: int, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    status, out, _ = crosswind(*words, *([str(made)] if words[0] in ("report", "runs") else []))
    assert status == 0
    # Sentences at the end are the terminal's to fold.
    ends = page_of(analysed(load(made)).result).conclusion
    lines = [Text.from_ansi(line).plain for line in out.splitlines()]
    assert [line for line in lines if cell_len(line) > columns and line not in ends] == []


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_a_locale_without_utf_8_loses_no_character(made: Path, locale: str) -> None:
    ended = crosswind_process("report", made, LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", NO_COLOR="1")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert "✓" in ended.stdout.decode()


def test_a_directory_that_is_not_utf_8_is_refused_for_a_new_run_and_read(
    crosswind: Crosswind, use_cell: UseCell, made: Path, tmp_path: Path
) -> None:
    use_cell("finish()")
    status, _, err = crosswind("run", "echo", "--transport", "udp", "--output", os.fsdecode(b"a\xff"))
    assert (status, err.splitlines()[0]) == (2, rf"error: {Path.cwd()}/a\udcff is not UTF-8")
    shutil.move(made, tmp_path / os.fsdecode(b"made\xff"))
    ended = crosswind_process(
        b"report", os.fsencode(tmp_path / "made") + b"\xff", b"--csv", os.fsencode(tmp_path) + b"/\xff"
    )
    assert (ended.returncode, ended.stderr) == (0, rf"wrote {tmp_path}/\udcff".encode() + b"\n")


def test_a_pipe_in_the_place_of_a_file_of_ours_is_not_waited_for(
    crosswind: Crosswind, use_cell: UseCell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_cell("finish()")
    for name in ("durations", "durations.lock"):
        os.mkfifo(tmp_path / name)
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "durations"))
    assert crosswind("plan", "echo", "--transport", "udp")[0] == 0
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "manifest.json")
    status, _, err = crosswind("report", str(tmp_path / "run"))
    assert (status, "it is not a regular file" in err) == (2, True)


@pytest.mark.parametrize(
    ("variable", "value", "status"),
    [
        ("PYTHONOPTIMIZE", "2", 2),
        ("POLARS_MAX_THREADS", "0", 2),
        ("POLARS_MAX_THREADS", "100000", 2),
        ("SOURCE_DATE_EPOCH", "x", 2),
        ("SOURCE_DATE_EPOCH", "9" * 20, 2),
        ("CROSSWIND_DURATIONS", "/", 0),
        ("CROSSWIND_DURATIONS", "a" * 300, 0),
    ],
)
def test_a_variable_that_helps_nobody_is_said_or_left(
    use_cell: UseCell, tmp_path: Path, variable: str, value: str, status: int
) -> None:
    use_cell("finish()")
    words = ("run", "echo", "--transport", "udp", "--repetitions", "1", "--no-report", "--output", tmp_path / "run")
    ended = crosswind_process(*words, **{variable: value})
    assert (ended.returncode, b"bug" in ended.stderr) == (status, False), ended.stderr
    assert (b"\nhint: unset " in ended.stderr) == (status == 2)


def test_a_limit_of_memory_is_said(made: Path) -> None:
    words = ["sh", "-c", 'ulimit -v 400000; exec "$@"', "sh", sys.executable, "-m", "crosswind", "report", str(made)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: the limit of virtual memory is 400000 kB, less than tables take: ")


FILES = {
    "trace": ("plan", "echo", "--network", "trace=FILE"),
    "series": ("plan", "echo", "--lose", "@FILE"),
    "deliveries": ("plan", "echo", "--delivery-trace", "@FILE"),
    "network": ("plan", "echo", "--network", "file=FILE"),
    "study": ("plan", "FILE"),
    "programs": ("exec", "--lose", "@FILE", "--", "true"),
    "token": ("reach", "127.0.0.1", "--token-file", "FILE"),
    "server's token": ("serve", "--token-file", "FILE"),
    "scheduler": ("run", "echo", "--transport", "udp", "--on", "FILE.json"),
    "wheel": ("kernel", "install", "FILE"),
    "run": ("report", "FILE"),
}
"""Every way to name a file that is read."""


ODDITIES = ("missing", "directory", "FIFO", "device", "huge", "not text", "dangling link")
ODD_FILES = {
    f"{file}-{what}": (words, what)
    for file, words in FILES.items()
    for what in ODDITIES
    if (file, what) != ("server's token", "missing")  # The server makes that file.
}


@pytest.mark.parametrize(("words", "what"), ODD_FILES.values(), ids=ODD_FILES.keys())
def test_a_file_that_is_none_is_a_mistake_at_once(
    crosswind: Crosswind, tmp_path: Path, words: tuple[str, ...], what: str
) -> None:
    requires_binary()
    is_token = "--token-file" in words
    file = tmp_path / ("file.json" if "FILE.json" in words else "file")
    if what == "directory":
        file.mkdir()
    elif what == "FIFO":
        os.mkfifo(file, 0o600)
    elif what in ("device", "dangling link"):
        file.symlink_to("/dev/zero" if what == "device" else "nowhere")
    elif what != "missing":
        file.write_bytes(b"\xff\xfe\n" * 30)
        file.chmod(0o600)
        os.truncate(file, 1 << 40 if what == "huge" and not is_token else 90)
    # A pipe that was waited for would never answer: the test's own deadline would end it.
    status, _, err = crosswind(*(word.replace("FILE.json", "FILE").replace("FILE", str(file)) for word in words))
    message, hint = err.splitlines()
    assert (status, message[:7], hint[:6]) == (2, "error: ", "hint: ")
    assert "bug" not in hint
    assert not (Path.cwd() / "crosswind-runs").exists()


def test_a_number_of_workers_of_any_length_is_a_mistake(crosswind: Crosswind) -> None:
    requires_binary()
    status, _, err = crosswind("run", "echo", "--transport", "udp", "--on", "slurm:" + "9" * 5000)
    assert (status, err.count("\n"), "hint: --on takes " in err) == (2, 2, True)


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_a_cluster_that_nobody_serves_is_said_before_anything_is_written(crosswind: Crosswind, scheme: str) -> None:
    requires_binary()
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        on = f"{scheme}://127.0.0.1:{unheard.getsockname()[1]}"
        status, _, err = crosswind("run", "echo", "--transport", "udp", "--on", on)
    assert (status, err) == (
        1, f"error: cannot reach the cluster {on}: Connection refused\nhint: is its scheduler running there?\n"
    )  # fmt: skip
    assert list(Path.cwd().iterdir()) == []


def test_one_link_to_itself_hides_no_run(crosswind: Crosswind, made: Path) -> None:
    root = Path("runs")
    shutil.copytree(made, root / "ran")
    (root / "loop").symlink_to("loop")
    status, out, _ = crosswind("runs", "runs")
    assert (status, "ran" in out) == (0, True)


def test_init_waits_for_no_pipe(crosswind: Crosswind) -> None:
    os.mkfifo("study.toml")
    status, _, err = crosswind("init", "study.toml", "--force", *ANSWERS)
    assert (status, err.partition("\n")[0]) == (2, "error: study.toml is not a regular file")


def test_an_interrupt_of_a_local_cluster_prints_no_traceback(use_cell: UseCell, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    use_cell("time.sleep(100)")
    words = [
        "run",
        "echo",
        "--transport",
        "udp",
        "--clock",
        "real",
        "--on",
        "local:2",
        "--output",
        str(tmp_path / "run"),
    ]
    # As a terminal does: every process of its foreground gets the signal.
    process = subprocess.Popen(
        [sys.executable, "-m", "crosswind", *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    assert "10 repetitions to run" in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=100)
    assert (process.returncode, [line.partition(":")[0] for line in err.splitlines()]) == (130, ["interrupted", "hint"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("init", "\udcff.toml", *ANSWERS), "is not UTF-8"),
        (("plan", "echo", "--lose", "[1]\nx = 5"), "is more than one value of TOML"),
    ],
)
def test_what_cannot_be_meant_is_not_taken(crosswind: Crosswind, words: tuple[str, ...], said: str) -> None:
    status, _, err = crosswind(*words)
    assert (status, said in err) == (2, True), err
    assert "\nhint: " in err
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "a", "b"),
        ("run", "echo", "--output", "x"),
        ("plan", "echo", "--lose", "@x"),
        ("live", "127.0.0.1", "--html", "x", "--duration", "200ms"),
    ],
)
def test_a_directory_that_was_removed_is_said(
    crosswind: Crosswind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    requires_binary()
    monkeypatch.chdir(tmp_path)
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    status, _, err = crosswind(*words)
    assert (status, err) == (2, "error: the current directory was removed\nhint: change to another one: cd\n")


LONG, DIGITS, DEEP = "a" * 300, "9" * 5000, "[" * 900 + "1" + "]" * 900
MISTAKES = [
    ("--lose", DEEP), ("--lose", f"[{DIGITS}]"), ("--lose", DIGITS), ("--messages", DIGITS), ("--delay", f"{DIGITS}ms"),
    ("--seed", DIGITS), ("--loss", DIGITS), ("--set", f"path.delay={DEEP}"), ("--set", f"{LONG}=1"),
]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("runs", LONG), ("clean", LONG), ("report", LONG), ("init", f"{LONG}.toml"), ("plan", f"{LONG}.toml"),
        ("verify", LONG), ("fit", LONG), ("export", LONG, "--ro-crate", "x.zip"), ("kernel", "install", LONG),
        *(("plan", "echo", option, value) for option, value in MISTAKES), ("predict", "--loss", DIGITS),
        ("live", "127.0.0.1", "--interval", f"{DIGITS}s"),
    ],
)  # fmt: skip
def test_a_value_of_any_length_or_depth_is_a_mistake_and_no_bug(crosswind: Crosswind, words: tuple[str, ...]) -> None:
    requires_binary()
    status, _, err = crosswind(*words)
    message, hint = err.splitlines()
    assert (status, message[:7], hint[:6]) == (2, "error: ", "hint: ")
    assert "bug" not in hint
    assert len(message) < 1000


def test_a_list_of_one_series_is_a_factor_with_one_level(crosswind: Crosswind) -> None:
    requires_binary()
    assert crosswind("plan", "echo", "--lose", "[[1]]")[0] == 0


def test_a_directory_that_nobody_may_enter_is_said(made: Path, tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir()
    shutil.move(made, tmp_path / "shut" / "inside")
    (tmp_path / "shut").chmod(0)
    # Root may enter what it must not, unless it gives that up.
    bounded = [requires("setpriv"), "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    for command in ("runs", "report", "clean"):
        words = [*bounded, sys.executable, "-m", "crosswind", command, str(tmp_path / "shut" / "inside")]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode, "Permission denied" in ended.stderr, "bug" in ended.stderr) == (2, True, False)
    (tmp_path / "shut").chmod(0o700)


@pytest.mark.parametrize(
    "text", [".a" * 100_000 + " = 1", "[" + '"a".' * 100_000 + "a]", "x = {" + "a." * 100_000 + "b = 1}"]
)
def test_a_key_of_very_many_parts_is_refused_at_once(text: str) -> None:
    began = time.process_time()
    with pytest.raises(StudyError, match=r"my.toml:2: a key of more than 16 parts"):
        study(f"\na{text}" if text.startswith(".") else f"\n{text}")
    # Reading it took minutes. A bound so far from both is no race.
    assert time.process_time() - began < 5


# What a browser lets a report do


class Inline(HTMLParser):
    """The scripts, styles and policy of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.attributes: set[str] = set()
        self.policy = ""
        self._inside: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.attributes |= given.keys()
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        self._inside = tag if tag in self.texts and given.get("type") != "application/json" else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside].append(data)


def page_with_charts() -> str:
    times = [20 * MS + number * MS for number in range(30)]
    made = record(*(run(cell, echoes(times), {"workload.transport": name}) for cell, name in enumerate(("tcp", "udp"))))
    return render(made, analyse(made))


def test_a_report_allows_its_own_scripts_and_styles_and_nothing_else() -> None:
    found = Inline(page_with_charts())
    directives = dict(directive.strip().split(" ", 1) for directive in found.policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert "unsafe" not in found.policy
    for kind, texts in found.texts.items():
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert directives[f"{kind}-src"] == " ".join(f"'sha256-{one}'" for one in hashes)
    assert len(found.texts["script"]) == 2
    assert not {name for name in found.attributes if name == "style" or name.startswith("on")}


def test_a_browser_draws_every_chart_within_the_policy(tmp_path: Path) -> None:
    program = os.environ.get("CROSSWIND_CHROMIUM") or shutil.which("chromium")
    if program is None:
        missing("Chromium is not installed: make browser")
    page = page_with_charts().replace("<details", "<details open")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"]
    ended = subprocess.run([program, *options, (tmp_path / "page.html").as_uri()], capture_output=True, check=True)
    said = [line for line in ended.stderr.decode().splitlines() if "CONSOLE" in line and "WARN" not in line]
    assert said == []
    drawn = re.findall('<svg [^>]*class="marks"', ended.stdout.decode())
    assert len(drawn) == page.count('class="chart"') > 0
