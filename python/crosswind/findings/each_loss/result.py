"""Results: the cost of each packet's loss."""

from typing import Literal

from pydantic import Field

from crosswind.decisions.model import ResultModel


class PacketLoss(ResultModel):
    """One repetition that loses one packet.

    `index` counts the direction's packets from 0. `cost_ns`: what all connections and exchanges took beyond those of
    the repetition without loss; null where an exchange failed, or the repetition did. `connect_ns`: the part of it of
    connections that exchanges share. `failed`: exchanges that failed.
    `cause`: the part of their time that grew most (docs/explain.md); null where nothing did, or none is known.
    `key`: the repetition.
    """

    direction: Literal["forward", "reverse"]
    index: int
    cost_ns: float | None
    connect_ns: float
    failed: int
    cause: str | None
    key: str


class EachLoss(ResultModel):
    """A cell's packets, and what losing each costs.

    `exchanges` of a repetition took `clean_ns` in all without loss, with the connections that they open for themselves.
    `connections` of a repetition are shared by exchanges; 0 where each opens its own. `packets`: what the hosts sent,
    by direction. `losses`: in order, direction by direction; all packets, or some, each of which stands for those up to
    its neighbours in the slopes. `slope_ns`: what losing each packet with probability p adds to an exchange's mean,
    over p, as p approaches 0; null where an exchange fails. `slope_failed`: the same of the share that fails;
    `slope_connect_ns`: of the mean time to set up a shared connection, 0 without any. `of_one_seed`: why costs are
    those of one seed alone; null where no chance but the loss has a part in them.
    """

    cell: int
    levels: dict[str, str]
    exchanges: int
    connections: int
    clean_ns: float
    packets: dict[str, int]
    losses: list[PacketLoss]
    slope_ns: float | None
    slope_connect_ns: float
    slope_failed: float
    of_one_seed: str | None
    note: str | None
    sentence: str = Field(default="")

    @property
    def count(self) -> int:
        """All packets of both directions."""
        return sum(self.packets.values())

    @property
    def mean_ns(self) -> float:
        """The mean of the exchanges without loss."""
        return self.clean_ns / max(self.exchanges, 1)
