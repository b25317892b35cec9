"""A study over a real network: the rest of its design without emulation.

    study, said = over_network(study, "192.0.2.7:9470")

Settings for an emulated path or a network namespace go, with anything naming them. Cells with programs are absent,
since one machine cannot start them on the other, and so are parts equal to another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.catalog import catalog
from crosswind.catalog.metrics import metric_named
from crosswind.errors import StudyError
from crosswind.study.cells import Cell
from crosswind.study.circumstances import ENDS, Circumstance, text_in
from crosswind.study.declared import Declared, declarations, keys_named
from crosswind.study.design import Study
from crosswind.study.edits import Edit, Replaced, copied
from crosswind.study.keys import FLOW, table_of_key
from crosswind.study.server_address import server_address
from crosswind.study.titles import keys_named_in
from crosswind.study.toml_text import Location

KEPT_OF_HOSTS = frozenset(key.study for key in catalog().host.keys if key.on_sockets)
"""Host settings to keep."""

NETWORK_MODELS = ("mathis", "mathis-c1", "pftk", "pftk-goodput", "pftk-approximate", "cubic")
"""Models from loss and round-trip time: the kernel's TCP knows both on a real network."""

_ABOUT_CELLS = {
    "precision": ("precision", "precisions"),
    "repetitions": ("limit of repetitions", "limits of repetitions"),
    "exclude": ("exclusion", "exclusions"),
}
_AMOUNTS = ("messages", "count", "duration")
"""A workload's amounts."""
_NATIVE = "native"
_NO_PROGRAM = "a program cannot be started on the other machine"
_NO_ANSWER = "a server answers no UDP datagram with more bytes than it received"
_UDP_DOWNLOAD = {"workload.transport": "udp", "workload.direction": "download"}


def over_network(study: Study, server: str, *, family: str | None = None) -> tuple[Study, tuple[str, ...]]:
    """A study with cells between this machine and a server.

    Args:    server: for `server_address`. family: "ipv4" or "ipv6" for a server name with both.
    Returns: the study, and sentences about omissions; they are its notes.
    Raises:  UnitError for a malformed server; StudyError when nothing is left.
    """
    server = server_address(server)
    said = [f"Nothing is emulated: cells run over the network that is there between this machine and {server}."]
    tables = _tables(copied(study.document), [part.name for part in study.parts])
    keys = dict.fromkeys(key for table in tables for key in _taken(table))
    said += _about_settings([*keys, *_taken_of_study(copied(study.document))])
    made = study.edited(_OverNetwork(server, family, study.name))
    circumstances: list[Circumstance] = []
    cells = _without_programs(made, tables, circumstances, said)
    cells = _without_twins(cells, circumstances, said)
    _without_udp_downloads(cells, study.name, circumstances, said)
    made = made.given(*circumstances)
    said += [*_about_tables(study, made), *_about_report(study.document.get("report", {}))]
    return made.edited(Replaced(("report", "notes"), said)), tuple(said)


@dataclass(frozen=True)
class _OverNetwork(Edit):
    """`--to`: removes settings for emulated paths and namespaces. `name`: the study's."""

    server: str
    family: str | None
    name: str

    def applied(self, document: dict[str, Any]) -> dict[Location, str]:
        """See `Edit`."""
        tables = _tables(document)
        of_path = [key for table in tables for key in _taken(table) if key.startswith("path.")]
        list(_taken_of_study(document))
        for table in tables:
            table.pop("description", None)
            if FLOW in table:
                table[FLOW] = [flow for flow in table[FLOW] if not _is_program(flow)]
        wish = {} if self.family is None else {"family": self.family}
        document["path"] = {"backend": "network", "server": self.server, **wish}
        title = self.name if of_path or not document.get("title") else document["title"]
        document["title"] = f"{title} over the network to {self.server}"
        for kind in _ABOUT_CELLS:
            document[kind] = [table for table in document.get(kind, ()) if not _says_nothing(table)]
        for figure in document.get("figure", ()):
            figure.pop("models", None)
        report = document.setdefault("report", {})
        report["models"] = [name for name in report.get("models", ()) if _is_of_networks(name)]
        report.pop("notes", None)
        return {("path", "server"): f"--to {self.server}", ("exclude",): "--to"}

    def drops(self, finding: Declared) -> bool:
        """Whether it names an omission, or is about other networks' numbers, or an emulated path's model."""
        table = finding.table
        metric = getattr(finding, "metric", None) or getattr(table, "metric", None)
        of_levels = getattr(table, "factor", None) is not None and getattr(table, "scale", None) != "slope"
        return (
            any(map(is_emulated, (*keys_named(finding), *keys_named_in(getattr(table, "title", "")))))
            or _needs_packets(getattr(metric, "name", metric))
            or getattr(table, "model", None) is not None
            or (getattr(table, "source", None) is not None and not of_levels)
        )


# Settings


def is_emulated(key: str) -> bool:
    """Whether a dotted key is idle over a real network."""
    section, _, name = key.partition(".")
    if section == "host":
        return name not in KEPT_OF_HOSTS
    return section in ("path", "budget") or ((table_of_key(key) or "").startswith(FLOW) and ".access_" in key)


def _taken(table: dict[str, Any]) -> Iterator[str]:
    """Takes such keys out of a study's or a part's tables. Yields: them."""
    yield from (f"path.{key}" for key in _dotted(table.pop("path", {})) if key not in ("backend", "server"))
    host = table.get("host", {})
    for key in [key for key in host if key not in KEPT_OF_HOSTS]:
        del host[key]
        yield f"host.{key}"
    for number, flow in enumerate(table.get(FLOW, ()), start=1):
        # Their default names stay when others go.
        flow.setdefault("name", str(number))
        for key in [key for key in flow if key.startswith("access_")]:
            del flow[key]
            yield f"{FLOW}.{flow['name']}.{key}"


def _taken_of_study(document: dict[str, Any]) -> Iterator[str]:
    yield from (f"budget.{key}" for key in document.pop("budget", {}))
    document.pop("quick", None)
    design = document.get("study", {})
    design.pop("optional_peers", None)
    if design.pop("profile", False):
        yield "study.profile"


def _dotted(table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _tables(document: dict[str, Any], parts: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """A document and its parts. Args: parts: names to include; None for all."""
    return [document, *(part for part in document.get("part", ()) if parts is None or part["name"] in parts)]


def _about_settings(keys: Sequence[str]) -> Iterator[str]:
    reasons = {
        "as there is no emulated path": [key for key in keys if key.startswith(("path.", "budget.", f"{FLOW}."))],
        "as they take a network namespace, or a clock of their own": [key for key in keys if key.startswith("host.")],
        "as the processor time of the other machine is not sampled": [key for key in keys if key.startswith("study.")],
    }
    return (f"Left out, {reason}: {', '.join(own)}." for reason, own in reasons.items() if own)


# Impossible cells


def _is_program(workload: Mapping[str, Any]) -> bool:
    return workload.get("kind") == "program" or any(
        workload.get(key.partition(".")[2], _NATIVE) != _NATIVE for key in ENDS
    )


def _without_programs(
    study: Study, tables: Sequence[Mapping[str, Any]], circumstances: list[Circumstance], said: list[str]
) -> list[Cell]:
    """Cells without programs. Raises: StudyError without one."""
    cells = list(study.cells())
    native = [cell for cell in cells if cell.kind != "program" and all(_peer(cell, end) == _NATIVE for end in ENDS)]
    if not native:
        raise StudyError(
            f"{study.name}: no cell can run without an emulated path: all of them run programs or browsers",
            hint="run it without --to; `crosswind run echo --to HOST` measures the network that is there",
        )
    circumstances.append(Circumstance({"workload.kind": "program"}, _NO_PROGRAM))
    named = dict.fromkeys((end, _peer(cell, end)) for cell in cells for end in ENDS if _peer(cell, end) != _NATIVE)
    circumstances += [Circumstance({end: name}, _NO_PROGRAM) for end, name in named]
    kept = {cell.part for cell in native}
    flows = [str(flow["name"]) for table in tables for flow in table.get(FLOW, ()) if _is_program(flow)]
    peers = dict.fromkeys(_peer(cell, end) for cell in cells if cell.part in kept for end in ENDS)
    others = [name for name in peers if name != _NATIVE]
    for what, names in {
        "the part": list(dict.fromkeys(cell.part for cell in cells if cell.part not in kept)), "the flow": flows
    }.items():  # fmt: skip
        if names:
            said.append(f"Left out, as {_NO_PROGRAM}: {what}{'' if len(names) == 1 else 's'} {', '.join(names)}.")
    said += [f"Left out, as {_NO_PROGRAM}: cells with {', '.join(others)}."] if others else []
    return native


def _peer(cell: Cell, end: str) -> str:
    level = cell.settings.get(end)
    return _NATIVE if level is None else level.text


def _without_twins(cells: Sequence[Cell], circumstances: list[Circumstance], said: list[str]) -> list[Cell]:
    """Cells without the parts equal to another."""
    cells_of = {name: [cell for cell in cells if cell.part == name] for name in dict.fromkeys(c.part for c in cells)}
    kept = list(cells_of)
    for name in reversed(list(cells_of)):
        twin = next((other for other in kept if other != name and _has_all(cells_of[other], cells_of[name])), None)
        if twin is not None:
            kept.remove(name)
            circumstances.append(Circumstance({"part": name}, f"the part {twin} measures the same"))
            said.append(f"The part {name} is not run: without an emulated path, the part {twin} measures the same.")
    return [cell for cell in cells if cell.part in kept]


def _has_all(cells: Iterable[Cell], others: Iterable[Cell]) -> bool:
    """Whether each other cell is among some, or one there measures more."""
    amounts = dict(map(_identity, cells))
    return all(same in amounts and _is_no_more(amount, amounts[same]) for same, amount in map(_identity, others))


def _identity(cell: Cell) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """A cell's settings, and amounts."""
    host = [(key, level.value) for key, level in cell.settings.items() if key.startswith(("host.", f"{FLOW}."))]
    workload = [(key, value) for key, value in cell.workload.items() if key not in _AMOUNTS]
    return (tuple(sorted(host)), tuple(sorted(workload))), tuple(cell.workload.get(key) for key in _AMOUNTS)


def _is_no_more(amounts: Sequence[Any], others: Sequence[Any]) -> bool:
    pairs = list(zip(amounts, others, strict=True))
    return all((one is None) == (other is None) and (one is None or one <= other) for one, other in pairs)


def _without_udp_downloads(
    cells: Sequence[Cell], name: str, circumstances: list[Circumstance], said: list[str]
) -> None:
    """Leaves out UDP downloads: a server must not answer a datagram with more bytes. Raises: StudyError."""
    refused = [cell for cell in cells if all(text_in(cell, key) == text for key, text in _UDP_DOWNLOAD.items())]
    if not refused:
        return
    if len(refused) == len(cells):
        hint = "download over another transport, or upload: --direction upload"
        raise StudyError(f"{name}: no cell can run: {_NO_ANSWER}", hint=hint)
    circumstances.append(Circumstance(_UDP_DOWNLOAD, _NO_ANSWER))
    said.append(f"Left out, as {_NO_ANSWER}: downloads over udp.")


# Tables


def _says_nothing(table: Mapping[str, Any]) -> bool:
    where = table.get("where", {})
    of_peers = any(where.get(end, _NATIVE) != _NATIVE for end in ENDS)
    return of_peers or any(map(is_emulated, where)) or _needs_packets(table.get("metric"))


def _needs_packets(name: str | None) -> bool:
    metric = None if name is None else metric_named(name)
    return metric is not None and metric.needs_packets


def _about_tables(study: Study, left: Study) -> Iterator[str]:
    """Sentences about omitted tables. Args: left: the study without them."""
    went = []
    kinds = {kind: (declared.words, len(left.findings[kind])) for kind, declared in declarations().items()}
    about_cells = {"precision": left.precisions, "repetitions": left.limits, "exclude": left.exclusions}
    kinds |= {kind: (words, len(about_cells[kind])) for kind, words in _ABOUT_CELLS.items()}
    for kind, ((one, several), kept) in kinds.items():
        of = len(study.document.get(kind, ()))
        if of > kept:
            some = f"all {of} {several}" if kept == 0 else f"{of - kept} of {of} {several}"
            went.append(f"the {one}" if of == 1 else some)
    if went:
        reason = "as they name what is left out, or are about numbers of other networks"
        yield f"Left out, {reason}: {', '.join(went)}."


def _about_report(report: Mapping[str, Any]) -> Iterator[str]:
    others = [name for name in report.get("models", ()) if not _is_of_networks(name)]
    if others:
        yield f"Left out, as they predict from the settings of an emulated path: {', '.join(others)}."
    if report.get("notes"):
        yield "The study's own remarks are left out, as they are about its emulated path."


def _is_of_networks(model: str) -> bool:
    return model.replace("_", "-") in NETWORK_MODELS
