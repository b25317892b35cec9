"""Who the two ends of a cell were, where one of them was a peer."""

from typing import Literal

from crosswind.decisions.interval import ResultModel


class End(ResultModel):
    """One end: Crosswind's own (`native`) or a peer.

    `implementations` are the programs with their versions, as they call themselves. `clock` is that of a client's
    times, in steps of `resolution_ns`. `processor_wait_ns`: of a peer, how long its threads waited for a processor in
    the repetition in which they waited most; null where it was not measured.
    """

    end: Literal["client", "server"]
    name: str
    implementations: list[str]
    clock: str | None
    resolution_ns: int | None
    processor_wait_ns: int | None


class Ends(ResultModel):
    """Both ends of a cell.

    `verified_transport`: the transport of every connection in every repetition, as the client found it; null if it
    could not tell. `facts`: what else clients counted, by their names for it, over all repetitions.
    """

    client: End
    server: End
    verified_transport: str | None
    facts: dict[str, float]
