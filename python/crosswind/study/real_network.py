"""A study over the network that is really there: what is left of its design where nothing is emulated.

    study, said = over_network(study, "192.0.2.7:9470")

Every setting goes that is about an emulated path, or that takes a network namespace; so do the parts and levels that
run programs, which one machine cannot start on the other. Parts whose cells are then the same are run once, and of what
the report shows stays what names nothing that went (`real_network_tables`).
"""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crosswind.catalog import catalog
from crosswind.errors import StudyError
from crosswind.study.cells import Cell, combinations_of
from crosswind.study.design import Study
from crosswind.study.document import read_document
from crosswind.study.keys import FLOW
from crosswind.study.parts import parts_of
from crosswind.study.real_network_tables import Gone, fitting_tables, title_over
from crosswind.study.selection import with_parts
from crosswind.study.server_address import server_address
from crosswind.study.toml_text import Location

KEPT_OF_HOSTS = frozenset(key.study for key in catalog().host.keys if key.on_sockets)
"""Settings of hosts that are kept."""

_AMOUNTS = ("messages", "count", "duration")
"""Settings of a workload that say how much of the same is measured."""
_ENDS = ("client", "server")
_NATIVE = "native"
_UDP_DOWNLOAD = {"workload.transport": "udp", "workload.direction": "download"}


def over_network(study: Study, server: str, *, family: str | None = None) -> tuple[Study, tuple[str, ...]]:
    """A study whose cells run between this machine and a server.

    Args:    server: as `server_address` takes it. family: "ipv4" or "ipv6" where the server's name has both.
    Returns: the study, and what was left out and why, in sentences that are notes of it.
    Raises:  UnitError for a server that is none; StudyError when nothing of the study is left.
    """
    server = server_address(server)
    running = [part.name for part in study.parts]
    document = copy.deepcopy(dict(study.document))
    document = with_parts(document, running) if study.table.study.parts else document
    said = [f"Nothing is emulated: cells run over the network that is there between this machine and {server}."]
    gone = Gone(study, keys=tuple(dict.fromkeys(_take_settings(document))))
    said += _about_settings(gone.keys)
    said += _leave_programs_out(document, study.name)
    wish = {} if family is None else {"family": family}
    document["path"] = {"backend": "network", "server": server, **wish}
    said += _leave_twins_out(document, study)
    kept, about_tables = fitting_tables(document, gone)
    report = {**kept.get("report", {}), "notes": [*said, *about_tables]}
    kept |= {"title": title_over(server, gone), "description": "", "report": report}
    labels: dict[Location, str] = {("path", "server"): f"--to {server}", ("exclude",): "--to"}
    origin = replace(study.origin, options={**study.origin.options, **labels})
    return Study.from_document(kept, name=study.name, origin=origin), (*said, *about_tables)


# Settings


def _take_settings(document: dict[str, Any]) -> Iterator[str]:
    """Takes out of a document what only an emulated path or a namespace can do. Yields: the dotted keys."""
    for table in _tables(document):
        yield from (f"path.{key}" for key in _dotted(table.pop("path", {})) if key not in ("backend", "server"))
        host = table.get("host", {})
        for key in [key for key in host if key not in KEPT_OF_HOSTS]:
            del host[key]
            yield f"host.{key}"
        for flow in _flows(table):
            for key in [key for key in flow if key.startswith("access_")]:
                del flow[key]
                yield f"{FLOW}.{flow['name']}.{key}"
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


def _about_settings(keys: Sequence[str]) -> Iterator[str]:
    reasons = {
        "as there is no emulated path": [key for key in keys if key.startswith(("path.", "budget.", f"{FLOW}."))],
        "as they take a network namespace, or a clock of their own": [key for key in keys if key.startswith("host.")],
        "as the processor time of the other machine is not sampled": [key for key in keys if key.startswith("study.")],
    }
    return (f"Left out, {reason}: {', '.join(own)}." for reason, own in reasons.items() if own)


# Programs in the place of the client or the server


def _leave_programs_out(document: dict[str, Any], name: str) -> Iterator[str]:
    """Takes out parts and levels that run programs. Yields: what to say of it. Raises: StudyError without a rest."""
    parts = {part["name"]: part for part in document.get("part", ())}
    unable = [part for part, table in parts.items() if _runs_programs_only(table, document)]
    if len(unable) == len(parts) and (parts or _runs_programs_only({}, document)):
        raise StudyError(
            f"{name}: no cell can run without an emulated path: all of them run programs or browsers",
            hint="run it without --to; `crosswind run echo --to HOST` measures the network that is there",
        )
    if unable:
        document["part"] = [table for part, table in parts.items() if part not in unable]
        _keep_parts(document, [part for part in parts if part not in unable])
        yield f"Left out, as a program cannot be started on the other machine: {_parts_text(unable)}."
    for table in _tables(document):
        unable = [str(flow["name"]) for flow in _flows(table) if _runs_programs_only({"workload": flow}, {})]
        if unable:
            table[FLOW] = [flow for flow in table[FLOW] if flow["name"] not in unable]
            flows = f"the flow{'' if len(unable) == 1 else 's'} {', '.join(unable)}"
            yield f"Left out, as a program cannot be started on the other machine: {flows}."
    peers = dict.fromkeys(peer for table in _tables(document) for peer in _take_peers(table))
    if peers:
        yield f"Left out, as a program cannot be started on the other machine: cells with {', '.join(peers)}."


def _runs_programs_only(part: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    workload = {**document.get("workload", {}), **part.get("workload", {})}
    if workload.get("kind") == "program":
        return True
    ends = [workload.get(end, _NATIVE) for end in _ENDS]
    return any(_NATIVE not in (raw if isinstance(raw, list) else [raw]) for raw in ends)


def _take_peers(table: Mapping[str, Any]) -> Iterator[str]:
    """Takes them out of the levels of a workload's ends. Yields: their names."""
    workload = table.get("workload", {})
    for end in _ENDS:
        if isinstance(levels := workload.get(end), list) and _NATIVE in levels:
            workload[end] = [_NATIVE]
            others = [level for level in levels if level != _NATIVE]
            yield from (str(level["name"] if isinstance(level, Mapping) else level) for level in others)


# Parts and cells that come to the same


def _leave_twins_out(document: dict[str, Any], study: Study) -> Iterator[str]:
    """Takes out parts whose cells another part has too, and cells that the server refuses. Yields: what to say."""
    without = {key: value for key, value in document.items() if key in ("path", "host", "workload", FLOW, "part")}
    parts = parts_of(read_document(without, study.origin))
    cells = list(combinations_of(parts))
    cells_of = {part.name: [cell for cell in cells if cell.part == part.name] for part in parts}
    kept = list(cells_of)
    for name in reversed(list(cells_of)):
        twin = next((other for other in kept if other != name and _has_all(cells_of[other], cells_of[name])), None)
        if twin is None:
            continue
        kept.remove(name)
        yield f"The part {name} is not run: without an emulated path, the part {twin} measures the same."
    if len(kept) < len(cells_of):
        _keep_parts(document, kept)
    yield from _exclude_udp_downloads(document, [cell for name in kept for cell in cells_of[name]], study.name)


def _has_all(cells: Iterable[Cell], others: Iterable[Cell]) -> bool:
    """Whether each of the others is among some cells, or one of them measures more of the same."""
    amounts = dict(map(_identity, cells))
    return all(same in amounts and _is_no_more(amount, amounts[same]) for same, amount in map(_identity, others))


def _identity(cell: Cell) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What a cell does, and how much of it."""
    host = [(key, level.value) for key, level in cell.settings.items() if key.startswith(("host.", f"{FLOW}."))]
    workload = [(key, value) for key, value in cell.workload.items() if key not in _AMOUNTS]
    return (tuple(sorted(host)), tuple(sorted(workload))), tuple(cell.workload.get(key) for key in _AMOUNTS)


def _is_no_more(amounts: Sequence[Any], others: Sequence[Any]) -> bool:
    pairs = list(zip(amounts, others, strict=True))
    return all((one is None) == (other is None) and (one is None or one <= other) for one, other in pairs)


def _exclude_udp_downloads(document: dict[str, Any], cells: Sequence[Cell], name: str) -> Iterator[str]:
    """Excludes what would let a server answer a datagram with more than it was sent."""
    refused = [cell for cell in cells if _is_udp_download(cell)]
    if not refused:
        return
    if len(refused) == len(cells):
        raise StudyError(
            f"{name}: no cell can run: a server answers no UDP datagram with more bytes than it received",
            hint="download over another transport, or upload: --direction upload",
        )
    document["exclude"] = [*document.get("exclude", ()), {"where": dict(_UDP_DOWNLOAD)}]
    yield "Left out, as a server answers no UDP datagram with more bytes than it received: downloads over udp."


def _is_udp_download(cell: Cell) -> bool:
    return all(cell.workload.get(key.partition(".")[2]) == value for key, value in _UDP_DOWNLOAD.items())


def _keep_parts(document: dict[str, Any], kept: Collection[str]) -> None:
    narrowed = with_parts({**document, "study": document.get("study", {})}, kept)
    document.clear()
    document.update(narrowed)


def _tables(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [document, *document.get("part", ())]


def _flows(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The flows of a study or a part, by the names that they have without one."""
    for number, flow in enumerate(table.get(FLOW, ()), start=1):
        flow.setdefault("name", str(number))
    return list(table.get(FLOW, ()))


def _parts_text(names: Sequence[str]) -> str:
    return f"the part{'' if len(names) == 1 else 's'} {', '.join(names)}"
