"""Under which conditions a run measured: its path, its hosts, its clock, its extent, its machine."""

from typing import Literal

from pydantic import Field

from crosswind.analysis.result.estimates import ResultModel
from crosswind.analysis.result.network import NetworkConditions


class Condition(ResultModel):
    """A setting and the values that it had, as a study writes them: numbers by size, others in the order of the cells.

    `is_factor`: whether cells differ in it.
    """

    name: str
    values: list[str]
    is_factor: bool


class PathConditions(ResultModel):
    """One direction of the path, or both where they are alike: its elements, as far as they do anything."""

    direction: Literal["each way", "client to server", "server to client"]
    settings: list[Condition]


class Conditions(ResultModel):
    """What was the same in a run and what was varied. `hosts`: the settings of client and server that were set.

    `clocks`: "real", "virtual" or both. `kernels`: Linux's versions, of the hosts. `repetitions`: of the cells, the
    least and the most. `machine`: in words; what is not known of it is left out. `started`: in UTC. `ends`: the
    programs at both ends and the transports that clients found in use; empty where both ends were Crosswind's own.
    `network`: the one that is really there, of a run to another machine, which has no `path`.
    """

    path: list[PathConditions]
    hosts: list[Condition]
    workload: list[Condition]
    clocks: list[Literal["real", "virtual"]]
    kernels: list[str]
    repetitions: tuple[int, int]
    started: str | None
    machine: str | None
    ends: list[Condition] = Field(default=[])
    network: NetworkConditions | None = None
