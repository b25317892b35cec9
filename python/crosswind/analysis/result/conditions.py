"""Under which conditions a run measured: its path, its hosts, its clock, its extent, its machine."""

from typing import Literal

from pydantic import Field

from crosswind.analysis.result.network import NetworkConditions
from crosswind.decisions.interval import ResultModel


class SettingValues(ResultModel):
    """A setting and the values that it had, as a study writes them: numbers by size, others in the order of the cells.

    `is_factor`: whether cells differ in it.
    """

    name: str
    values: list[str]
    is_factor: bool


PathDirections = Literal["each way", "client to server", "server to client"]


class PathConditions(ResultModel):
    """One direction of a hop, or both where they are alike: its elements, as far as they do anything.

    `hop`: its name; empty where the path has only one.
    """

    direction: PathDirections
    settings: list[SettingValues]
    hop: str = ""


class ChangeConditions(ResultModel):
    """What of the path changes over time. `when`: from when on, for how long, how often. `direction`: of the values."""

    name: str
    when: list[SettingValues]
    direction: PathDirections
    settings: list[SettingValues]


class FlowConditions(ResultModel):
    """A flow beside the workload: its own settings, and those of what it does."""

    name: str
    settings: list[SettingValues]
    workload: list[SettingValues]


class Conditions(ResultModel):
    """What was the same in a run and what was varied. `hosts`: the settings of client and server that were set.

    `clocks`: "real", "virtual" or both. `kernels`: Linux's versions, of the hosts. `repetitions`: of the cells, the
    least and the most. `machine`: in words; what is not known of it is left out. `started`: in UTC. `ends`: the
    programs at both ends and the transports that clients found in use; empty where both ends were Crosswind's own.
    `network`: the one that is really there, of a run to another machine, which has no `path`.
    """

    path: list[PathConditions]
    changes: list[ChangeConditions] = Field(default=[])
    hosts: list[SettingValues]
    workload: list[SettingValues]
    flows: list[FlowConditions] = Field(default=[])
    clocks: list[Literal["real", "virtual"]]
    kernels: list[str]
    repetitions: tuple[int, int]
    started: str | None
    machine: str | None
    ends: list[SettingValues] = Field(default=[])
    network: NetworkConditions | None = None
