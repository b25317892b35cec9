"""A run as an RO-Crate: one self-describing archive, to be published and cited.

RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) is a directory with a description in JSON-LD, in schema.org's terms; its
profile Process Run Crate (https://w3id.org/ro/wfrun/process/0.5) describes the program, time and inputs behind the
data. The archive holds the run as on the disk, its report, its estimates, and its study as TOML.
"""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from crosswind.analysis.result import Result
from crosswind.api.results import Analysed, write_page
from crosswind.errors import UsageError
from crosswind.files.inside import files_inside
from crosswind.files.temporary import temporary_directory
from crosswind.report.export import write_csv
from crosswind.report.files import whole_file, write_text
from crosswind.store.lock import LOCK
from crosswind.store.run import StoredRun
from crosswind.study.design import Study
from crosswind.text.units import shown
from crosswind.text.visible import hidden_in

METADATA = "ro-crate-metadata.json"
ZENODO = ".zenodo.json"

_ORCID = re.compile(r"[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X]")
_LICENCE = re.compile(r"https?://[^\s/?#<>\"]+[^\s<>\"]*|[A-Za-z0-9][A-Za-z0-9 .+()-]{0,199}")
_AUTHOR = '--author "Ada Example (0000-0002-1825-0097)", or the name alone'

_CRATE = "https://w3id.org/ro/crate/1.1"
_PROCESS = "https://w3id.org/ro/wfrun/process/0.5"
_TERMS = "https://w3id.org/ro/terms/workflow-run/context"
_CROSSWIND = "#crosswind"
_COMPRESSED = {".json", ".jsonl", ".toml", ".html", ".csv", ".out", ".err", ".sqlog", ".log", ".txt"}
_MADE = ("report.html", "result.json", "estimates.csv", "study.toml")
"""Files made for the archive, replacing the run's."""

_TOP = {
    "manifest.json": ("application/json", "The study in its canonical form, options, provenance and sessions"),
    "plan.jsonl": (
        "application/jsonl",
        "Every cell with its parameters, and the order in which its repetitions run, with their seeds",
    ),
    "report.html": ("text/html", "The report"),
    "result.json": ("application/json", "The report as data (schema crosswind.result/1)"),
    "estimates.csv": ("text/csv", "Every estimate with its interval, its number of samples and its method"),
    "study.toml": ("application/toml", "The study, to be run again by `crosswind run study.toml`"),
}


_CELLS = {"report-cells.html": ("text/html", "Every cell of a large run, beside the report")}

_FOLDERS = {
    "cells/": (
        "Repetitions",
        "A directory for each repetition: its result, and its tables as Parquet. Each result has the SHA-256 of every "
        "file beside it.",
    ),
    "partitions/": (
        "Packed repetitions",
        "Results and tables of a thousand repetitions each, as Parquet, with the SHA-256 of every file in an index.",
    ),
}


def write_crate(
    run: StoredRun, made: Analysed, path: Path, *, authors: Sequence[str], licence: str | None, zenodo: bool = False
) -> int:
    """Writes a run as an archive.

    Args: made: its analysis. authors: a name each, with an optional ORCID in brackets. licence: its address or SPDX
        name. zenodo: also a `.zenodo.json`, for Zenodo's form.
    Returns: the number of files. Raises: DiskError when it cannot be written.
    """
    cells = {} if made.overview is None else _CELLS
    check_people(authors, licence)
    describing = {METADATA: _json(_metadata(run, made.result, authors, licence, _TOP | cells))}
    if zenodo:
        describing[ZENODO] = _json(_zenodo(run, made.result, authors, licence))
    with whole_file(path) as part, temporary_directory() as scratch, zipfile.ZipFile(part, "w") as archive:
        for name, text in describing.items():
            archive.writestr(name, text, zipfile.ZIP_DEFLATED)
        _make(run, made, scratch)
        for name in (*_MADE, *cells):
            archive.write(scratch / name, name, zipfile.ZIP_DEFLATED)
        for name in _files(run.directory):
            kind = zipfile.ZIP_DEFLATED if PurePath(name).suffix in _COMPRESSED else zipfile.ZIP_STORED
            archive.write(run.directory / name, name, kind)
        return len(archive.namelist())


def _files(directory: Path) -> Iterator[str]:
    """The whole files in a run."""
    for name in files_inside(directory):
        parts = PurePath(name).parts
        if parts[-1] == LOCK or parts[-1][0] == "." or name in (*_MADE, *_CELLS):
            continue
        if not any(part.endswith(".part") for part in parts):
            yield name


def _make(run: StoredRun, made: Analysed, directory: Path) -> None:
    write_page(run, made, directory / "report.html")
    write_text(directory / "result.json", made.result.to_json() + "\n")
    write_csv(made.result, directory / "estimates.csv")
    write_text(directory / "study.toml", Study.from_canonical(made.record.study).to_toml())


def _metadata(
    run: StoredRun, result: Result, authors: Sequence[str], licence: str | None, top: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """Args: top: type and description for each file at the archive's top."""
    provenance = run.manifest.provenance
    people = [_person(author) for author in authors]
    graph: list[dict[str, Any]] = [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": [{"@id": _CRATE}],
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "conformsTo": [{"@id": _PROCESS}],
            "name": result.title,
            "description": _description(run, result),
            "datePublished": _date(provenance.get("ended") or run.manifest.started),
            "license": {"@id": licence} if licence and "://" in licence else licence or "not stated",
            "hasPart": [{"@id": name} for name in (*top, *_folders(run))],
            "mentions": [{"@id": "#run"}],
            "keywords": ["network emulation", "transport protocols", *sorted(_factors(result))],
            "variableMeasured": [{"@id": f"#factor-{key}"} for key in _factors(result)],
            **({"author": [{"@id": person["@id"]} for person in people]} if people else {}),
        },
        {"@id": _PROCESS, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        *(
            {"@id": name, "@type": "File", "encodingFormat": kind, "description": text}
            for name, (kind, text) in top.items()
        ),
        *(
            {"@id": name, "@type": "Dataset", "name": title, "description": text}
            for name, (title, text) in _folders(run).items()
        ),
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": f"Run of the study {result.study}",
            "description": " ".join(provenance.get("command", ())),
            "startTime": run.manifest.started,
            **({"endTime": provenance["ended"]} if "ended" in provenance else {}),
            "instrument": [{"@id": _CROSSWIND}],
            "object": [{"@id": "study.toml"}],
            "result": [{"@id": name} for name in (*_folders(run), "manifest.json", "plan.jsonl")],
            **({"agent": [{"@id": person["@id"]} for person in people]} if people else {}),
        },
        *_software(provenance),
        *people,
        *_variables(result),
    ]
    if licence and "://" in licence:
        graph.append({"@id": licence, "@type": "CreativeWork", "name": licence})
    return {"@context": [f"{_CRATE}/context", _TERMS], "@graph": graph}


def _folders(run: StoredRun) -> dict[str, tuple[str, str]]:
    return {name: said for name, said in _FOLDERS.items() if (run.directory / name).is_dir()}


def _software(provenance: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Crosswind, and the virtual-time kernels used."""
    versions = provenance.get("versions", {})
    kernels = [f"#kernel-{name}" for name in provenance.get("kernels", ())]
    yield {
        "@id": _CROSSWIND,
        "@type": "SoftwareApplication",
        "name": "Crosswind",
        "version": versions.get("crosswind"),
        "softwareRequirements": [{"@id": kernel} for kernel in kernels],
        "description": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
    }
    for kernel in kernels:
        yield {
            "@id": kernel,
            "@type": "SoftwareApplication",
            "name": "Linux for virtual time",
            "version": kernel.removeprefix("#kernel-"),
        }


def _variables(result: Result) -> Iterator[dict[str, Any]]:
    for key, levels in _factors(result).items():
        yield {"@id": f"#factor-{key}", "@type": "PropertyValue", "name": key, "value": levels}


def _factors(result: Result) -> dict[str, list[str]]:
    factors: dict[str, dict[str, None]] = {}
    for cell in result.cells:
        for key, level in cell.levels.items():
            factors.setdefault(key, {})[level] = None
    return {key: list(levels) for key, levels in factors.items()}


def check_people(authors: Sequence[str], licence: str | None) -> None:
    """Raises: UsageError for a nameless author, a malformed ORCID, a licence without name or address."""
    for author in authors:
        name, orcid = _name_and_orcid(author)
        if not name or hidden_in(author):
            raise UsageError(f"--author {shown(author)} has no name that can be shown", hint=_AUTHOR)
        if "(" in author and not (_ORCID.fullmatch(orcid) and _check_digit(orcid) == orcid[-1]):
            raise UsageError(f"--author {shown(author)}: {shown(orcid)} is not an ORCID", hint=_AUTHOR)
    if licence is not None and not _LICENCE.fullmatch(licence):
        hint = "a name as CC-BY-4.0, or an address as https://creativecommons.org/licenses/by/4.0/"
        raise UsageError(f"--licence {shown(licence)} is neither a name nor an address", hint=hint)


def _check_digit(orcid: str) -> str:
    """The last character of an ORCID, by those before it (ISO 7064, MOD 11-2)."""
    total = 0
    for digit in orcid[:-1].replace("-", ""):
        total = (total + int(digit)) * 2
    return "0123456789X"[(12 - total % 11) % 11]


def _name_and_orcid(author: str) -> tuple[str, str]:
    name, _, identifier = author.partition("(")
    return name.strip(), identifier.rstrip(") ").removeprefix("https://orcid.org/")


def _person(author: str) -> dict[str, Any]:
    name, orcid = _name_and_orcid(author)
    return {
        "@id": f"https://orcid.org/{orcid}" if orcid else f"#{'-'.join(name.split())}",
        "@type": "Person",
        "name": name,
    }


def _description(run: StoredRun, result: Result) -> str:
    exchanges = sum(cell.n for cell in result.cells)
    clocks = " and ".join(sorted({cell.clock for cell in result.cells}))
    about = str(run.manifest.presentation.get("description") or "").strip()
    measured = (
        f"{len(result.cells)} cells, {result.executed} of {result.planned} repetitions, {exchanges} exchanges, "
        f"on the {clocks} clock; seed {run.manifest.provenance.get('seed')}."
    )
    return f"{' '.join(about.split())} {measured}".strip()


def _zenodo(run: StoredRun, result: Result, authors: Sequence[str], licence: str | None) -> dict[str, Any]:
    creators = []
    for person in map(_person, authors):
        orcid = person["@id"].removeprefix("https://orcid.org/")
        creators.append({"name": person["name"], **({"orcid": orcid} if orcid != person["@id"] else {})})
    return {
        "upload_type": "dataset",
        "title": result.title,
        "description": _description(run, result),
        "creators": creators,
        "keywords": ["network emulation", "transport protocols", *sorted(_factors(result))],
        **({"license": licence} if licence and "://" not in licence else {}),
    }


def _date(stamp: str) -> str:
    return stamp[:10]


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
