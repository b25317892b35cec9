"""Where studies are found: in a file, on standard input, or among the built-in ones."""

import sys
from collections.abc import Sequence
from pathlib import Path

from crosswind.errors import StudyError, did_you_mean
from crosswind.files.regular_files import read_regular
from crosswind.study.design import Study
from crosswind.study.errors import decoded
from crosswind.text.units import shown

MAX_FILE_BYTES = 1_000_000
STANDARD_INPUT = "-"
_BUILTIN = Path(__file__).parents[1] / "studies"


def load_study(name_or_path: str, *, kinds: Sequence[str] = ()) -> Study:
    """The study in a file (`-` is standard input), else a built-in one.

    Args: kinds: possible alternatives for an error. Raises: StudyError with the closest names.
    """
    if name_or_path == STANDARD_INPUT:
        return Study.from_toml(_standard_input(), name="stdin", file="standard input")
    path = Path(name_or_path)
    if _is_file(path):
        return Study.from_toml(_read_text(path), name=path.stem, file=name_or_path)
    builtin = {entry.stem: entry for entry in _builtin_paths()}
    if name_or_path in builtin:
        return _builtin(builtin[name_or_path])
    if name_or_path and path.is_dir():
        raise StudyError(
            f"{shown(name_or_path)} is a directory, not a study", hint="name a .toml file or a built-in study"
        )
    what = (
        "no such file" if "/" in name_or_path or name_or_path.endswith(".toml") else "no study file or built-in study"
    )
    also = f"; kinds: {', '.join(kinds)}" if kinds else ""
    hint = did_you_mean(path.stem, [*builtin, *kinds])
    hint = hint if hint.startswith("did") else did_you_mean(path.stem, builtin)
    raise StudyError(f"{shown(name_or_path)}: {what}", hint=f"{hint} (`crosswind studies` lists them{also})")


def builtin_names() -> tuple[str, ...]:
    """The name of every built-in study, in order, without reading any."""
    return tuple(path.stem for path in _builtin_paths())


def builtin_studies() -> tuple[tuple[str, str], ...]:
    """Name and title of every built-in study, by name."""
    return tuple((path.stem, _builtin(path).title) for path in _builtin_paths())


def _builtin_paths() -> list[Path]:
    return sorted(_BUILTIN.glob("*.toml"))


def _builtin(path: Path) -> Study:
    return Study.from_toml(path.read_text(encoding="utf-8"), name=path.stem, file=path.name)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise StudyError(
            f"{shown(str(path))}: cannot be read: {error.strerror}", hint="is it the right name, and may you read it?"
        ) from error


def _read_text(path: Path) -> str:
    try:
        return decode(read_regular(path, MAX_FILE_BYTES), str(path))
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}", hint="a study is a short text") from error


def _standard_input() -> str:
    """Standard input. Raises: StudyError when empty."""
    hint = "crosswind run - < my-study.toml"
    if sys.stdin is None or sys.stdin.isatty():
        raise StudyError("standard input is a terminal, not a study", hint=hint)
    try:
        # One byte over the limit shows an overlong study.
        data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise StudyError(f"standard input: cannot be read: {error.strerror}") from error
    if not data.strip():
        raise StudyError("standard input: there is no study", hint=hint)
    return decode(data, "standard input")


def decode(data: bytes, file: str) -> str:
    """The text of a study file's bytes. Raises: StudyError when it is too long or not UTF-8."""
    if len(data) > MAX_FILE_BYTES:
        raise StudyError(f"{file}: more than {MAX_FILE_BYTES:,} bytes", hint="a study is a short text")
    return decoded(data, file)
