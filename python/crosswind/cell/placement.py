"""Where a cell's threads run: the part `placement` of a cell's JSON (docs/cell-protocol.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Placement:
    """Processors of one cell. Without any, the cell chooses for itself.

    Attributes: watch: share of a processor's time that the emulator may spend watching the clock, None for a cell that
        runs alone. emulator_cpus, host_cpus: processors of the emulator and of both hosts.
    """

    watch: float | None = None
    emulator_cpus: tuple[int, ...] = ()
    host_cpus: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The object as the cell reads it; what is left to the cell is left out."""
        watch = {} if self.watch is None else {"watch": self.watch}
        processors = {"emulator_cpus": list(self.emulator_cpus), "host_cpus": list(self.host_cpus)}
        return watch | {key: numbers for key, numbers in processors.items() if numbers}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The placement that `as_json` gave."""
        return cls(data.get("watch"), tuple(data.get("emulator_cpus", ())), tuple(data.get("host_cpus", ())))
