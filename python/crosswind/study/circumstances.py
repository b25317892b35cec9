"""Circumstances: why some cells do not run here. They do not change the design.

An absent cell keeps its index and key, and is in no plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crosswind.errors import StudyError
from crosswind.peers.registry import PEERS, Obstacle
from crosswind.study.cells import Cell

ENDS = ("workload.client", "workload.server")


@dataclass(frozen=True)
class Circumstance:
    """A reason for absent cells.

    Attributes: where: their common texts by dotted key (or part). why: a clause. said: the report's sentence; may be
        empty.
    """

    where: Mapping[str, str]
    why: str
    said: str = field(default="", compare=False)

    def concerns(self, cell: Cell) -> bool:
        """Whether a cell is one of these."""
        return all(text_in(cell, key) == text for key, text in self.where.items())


def text_in(cell: Cell, key: str) -> str:
    """A cell's text at a dotted key (or part), written or by default."""
    if key == "part":
        return cell.part
    level = cell.settings.get(key)
    return str(cell.workload.get(key.removeprefix("workload."))) if level is None else level.text


def missing_peers(missing: Mapping[str, Obstacle]) -> tuple[Circumstance, ...]:
    """For peers missing here, by name."""
    names = {why: [name for name, other in missing.items() if other == why] for why in missing.values()}
    said = {why: f"No cells with {' and '.join(of)}: {why.problem} ({why.hint})." for why, of in names.items()}
    return tuple(Circumstance({end: name}, why.problem, said[why]) for name, why in missing.items() for end in ENDS)


def blocked_transports(blocked: Mapping[str, str]) -> tuple[Circumstance, ...]:
    """For transports blocked on the way to the server. Args: blocked: clauses, as "UDP 9471 gets no answer"."""
    return tuple(
        Circumstance({"workload.transport": name}, why, f"No cells over {name}, which is blocked: {why}.")
        for name, why in blocked.items()
    )


def peers_missing_here(optional: Sequence[str], cells: Sequence[Cell]) -> tuple[Circumstance, ...]:
    """For some cells' optional peers missing here."""
    used = {
        (name, str(cell.workload.get("transport")))
        for cell in cells
        for end in ENDS
        if (name := text_in(cell, end)) in optional
    }
    obstacles = ((name, PEERS[name].missing(transport)) for name, transport in sorted(used))
    return missing_peers({name: obstacle for name, obstacle in obstacles if obstacle is not None})


def refuse_all_blocked(name: str, cells: Sequence[Cell], blocked: Mapping[str, str]) -> None:
    """Raises: StudyError when no transport of a study reaches the server."""
    used = {text_in(cell, "workload.transport") for cell in cells}
    if used <= blocked.keys():
        listed = "; ".join(f"{transport}: {why}" for transport, why in blocked.items() if transport in used)
        hint = "`crosswind serve` says which ports have to be open; `crosswind reach HOST` tries every transport"
        raise StudyError(f"{name}: none of its transports reaches the server ({listed})", hint=hint)
