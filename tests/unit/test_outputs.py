"""Where exports and printed results go: files, links, pipes, devices, and a standard output that takes nothing."""

import io
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT
from crosswind.errors import DiskError
from crosswind.report.files import write_text
from fixture_types import UseCell
from records import MS, echoes, finished, run
from runs import kept_run


def test_a_file_is_made_with_its_directory_and_replaced_whole(tmp_path: Path) -> None:
    place = tmp_path / "new" / "r.csv"
    write_text(place, "one")
    write_text(place, "two")
    assert place.read_text(encoding="utf-8") == "two"
    assert list(place.parent.iterdir()) == [place]


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    for target in ("there", "not-yet-there"):
        link = tmp_path / f"to-{target}"
        link.symlink_to(target)
    (tmp_path / "there").write_text("old", encoding="utf-8")
    for target in ("there", "not-yet-there"):
        write_text(tmp_path / f"to-{target}", "new")
        assert (tmp_path / f"to-{target}").is_symlink()
        assert (tmp_path / target).read_text(encoding="utf-8") == "new"


def test_a_link_to_standard_output_is_written_to(tmp_path: Path) -> None:
    """What was printed into that file before and after stays: a new file in its place would not have it."""
    link = tmp_path / "link"
    (tmp_path / "fd").symlink_to("/proc/self/fd")
    link.symlink_to("fd/1")
    write = "import sys; from pathlib import Path; from crosswind.report.files import write_text\n"
    write += "print('before', flush=True); write_text(Path(sys.argv[1]), 'text\\n'); print('after', flush=True)"
    printed = tmp_path / "printed"
    for name in ("/dev/stdout", "/proc/thread-self/fd/1", str(link)):
        with printed.open("ab") as stream:
            stream.truncate(0)
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
            subprocess.run([sys.executable, "-c", write, name], stdout=stream, env=environment, timeout=60, check=True)
        assert printed.read_text(encoding="utf-8") == "before\ntext\nafter\n"
    assert link.is_symlink()


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(DiskError, match="cannot write"):
        write_text(tmp_path / "a", "text")


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_text(pipe, "text")
    reader.join(timeout=30)
    assert read == ["text"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_device_is_written_to_and_stays() -> None:
    null = Path("/dev/null")
    before = null.stat()
    write_text(null, "text")
    assert null.stat().st_rdev == before.st_rdev
    with pytest.raises(DiskError, match="No space left on device"):
        write_text(Path("/dev/full"), "text")


def test_a_directory_is_an_error_and_stays(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="Is a directory"):
        write_text(tmp_path, "text")
    assert tmp_path.is_dir()


def command_line(*arguments: str, stdout: int | None = subprocess.PIPE, shell: str = "") -> tuple[int, bytes, str]:
    """A command line in a process of its own: exit status, standard output, standard error.

    Args: shell: redirections that a shell makes.
    """
    command = [sys.executable, "-m", "crosswind", *arguments]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "NO_COLOR": "1"}
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=environment, timeout=120, check=False)
    return done.returncode, done.stdout or b"", done.stderr.decode()


@pytest.fixture
def unread() -> Iterator[int]:
    """The end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def one_cell(directory: Path, *, valid: bool = True) -> Path:
    """A run of one cell with 60 echoes."""
    return kept_run(
        directory, [run(0, echoes([20 * MS] * 60), end=finished(valid=valid, reasons=[] if valid else ["late"]))]
    )


def test_a_dash_is_standard_output(tmp_path: Path) -> None:
    directory = one_cell(tmp_path / "run")
    status, out, err = command_line("report", str(directory), "--csv", "-")
    assert status == 0
    assert pl.read_csv(io.BytesIO(out))["cell"].unique().to_list() == [0]
    assert err == "wrote standard output\n"
    status, out, _ = command_line("report", str(directory), "--samples", "/dev/stdout")
    assert status == 0
    assert pl.read_parquet(io.BytesIO(out)).height == 60
    assert not Path("-").exists()


def test_standard_output_takes_one_thing(tmp_path: Path) -> None:
    directory = one_cell(tmp_path / "run")
    status, out, err = command_line("report", str(directory), "--csv", "-", "--json")
    assert (status, out) == (2, b"")
    assert err.startswith("error: standard output takes one thing at a time\nhint: ")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("how", ["--json", "--csv=-"])
def test_an_output_that_has_no_room_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    directory = one_cell(tmp_path / "run")
    with Path("/dev/full").open("wb") as full:
        status, _, err = command_line("report", str(directory), how, stdout=full.fileno())
    assert status == 1
    assert "cannot write" in err
    assert "standard output: No space left on device" in err
    assert "bug" not in err


def test_an_output_that_nobody_reads_or_that_is_closed_changes_no_exit_status(tmp_path: Path, unread: int) -> None:
    directory = one_cell(tmp_path / "run", valid=False)
    status, _, err = command_line("report", str(directory), stdout=unread)
    assert (status, err) == (1, "")
    status, _, err = command_line("report", str(directory), shell=">&-")
    assert (status, err) == (1, "")
    assert json.loads((directory / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("errors", ["2>&1", "2>/dev/full", "2>&-"])
@pytest.mark.parametrize(
    ("status", "arguments"),
    [
        (0, ("runs", "RUN")),
        (1, ("verify", "--files", "DAMAGED")),
        (1, ("report", "--json", "INVALID")),
        (2, ("report", "NONE")),
        (2, ("plan", "echo", "--loss", "101%")),
        (2, ("report", "--no-such-option")),
    ],
)
def test_a_reader_who_leaves_changes_no_exit_status(
    tmp_path: Path, unread: int, status: int, arguments: tuple[str, ...], errors: str
) -> None:
    one_cell(tmp_path / "RUN")
    one_cell(tmp_path / "INVALID", valid=False)
    next((one_cell(tmp_path / "DAMAGED") / "cells").glob("*/samples.parquet")).write_bytes(b"")
    words = [str(tmp_path / word) if word.isupper() else word for word in arguments]
    assert command_line(*words, stdout=unread, shell=errors)[0] == status


@pytest.mark.parametrize("errors", ["2>&1", "2>/dev/full"])
def test_a_run_goes_on_when_nobody_reads_what_it_says(
    use_cell: UseCell, tmp_path: Path, unread: int, errors: str
) -> None:
    use_cell("finish()")
    words = (
        "run",
        "echo",
        "--transport",
        "udp",
        "--repetitions",
        "3",
        "--no-report",
        "--output",
        str(tmp_path / "run"),
    )
    assert command_line(*words, stdout=unread, shell=errors)[0] == 0
    assert len(list((tmp_path / "run" / "cells").glob("*/result.json"))) == 3


def test_a_watch_without_an_end_ends_with_its_reader(unread: int) -> None:
    with socket.socket() as bound:  # Nobody listens: every probe is refused.
        bound.bind(("127.0.0.1", 0))
        watching = (
            "live",
            "127.0.0.1",
            "--tcp",
            str(bound.getsockname()[1]),
            "--interval",
            "10ms",
            "--json",
            "--probes",
        )
        assert command_line(*watching, "--fail-if", "refused > 1%", "--duration", "1s", stdout=unread)[0] == 3
        assert command_line(*watching, stdout=unread)[0] == 1
