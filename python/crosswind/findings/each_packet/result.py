"""Results: the cost of each packet, lost or held back."""

from typing import Literal

from pydantic import Field

from crosswind.catalog.explained import Explained
from crosswind.decisions.model import ResultModel


class PacketCost(ResultModel):
    """One repetition with one packet lost or held back.

    `index` counts the direction's packets from 0. `at_ns`: when it was sent without disturbance, after the first
    packet; `carries`: "SYN", "SYN-ACK", or its bytes behind the headers; null where packets were not kept. `cost_ns`:
    what all connections and exchanges took beyond those of the clean repetition; null where an exchange failed, or the
    repetition did. `connect_ns`: the part of it of connections that exchanges share. `failed`, `delayed`: exchanges
    that failed, and that took longer or failed. `cause`: the part of their time that grew most (docs/explain.md); null
    where nothing did, or none is known. `key`: the repetition.
    """

    direction: Literal["forward", "reverse"]
    index: int
    at_ns: int | None
    carries: str | None = Field(default=None)
    cost_ns: float | None
    connect_ns: float
    failed: int
    delayed: int
    cause: str | None
    key: str


class CurvePoint(ResultModel):
    """An exchange's mean at an independent loss rate, with limits for repetitions with more losses."""

    rate: float
    mean_ns: float
    low_ns: float
    high_ns: float


class LossCurve(ResultModel):
    """The mean over the loss rate: repetitions without loss, with one, and with more, by their probability.

    `pairs` of all `all_pairs` pairs of packets were lost together; their mean cost is `pair_ns`. Where none was, two
    losses cost between one and four times as much as one. More than two cost between one and three times as much as a
    pair. `line_to`: up to this rate the slope alone is right within a tenth. `points` end where the limits are a tenth
    away from the mean's increase.
    """

    pairs: int
    all_pairs: int
    pair_ns: float | None
    line_to: float
    points: list[CurvePoint]


class ModelSlope(ResultModel):
    """A model's slope at zero loss, and the measured one, both without an exchange's own connection."""

    model: str
    title: str
    slope_ns: float
    measured_ns: float


class EachPacket(ResultModel):
    """A cell's packets, and what losing each costs, or holding it back by `hold_ns`.

    `exchanges` of a repetition took `clean_ns` in all undisturbed, with the connections that they open for themselves.
    `connections` of a repetition are shared by exchanges; 0 where each opens its own. `packets`: what the hosts sent,
    by direction. `costs`: in order, direction by direction; all packets, or some, each of which stands for those up to
    its neighbours in the slopes. `untried`: packets chosen, but without a result: then slopes are null; `failure`: why
    one has none, null if the run was not finished. `slope_ns`: what losing each packet with probability p adds to an
    exchange's mean, over p, as p approaches 0; null where an exchange fails, or packets are held. `slope_failed`,
    `slope_delayed`: the same of the shares that fail, and that take longer or fail; `slope_connect_ns`: of the mean
    time to set up a shared connection, 0 without any. `curve`: the mean over the rate; null without a slope. `models`:
    their slopes. `timelines`: for the costliest packets, one a cost, the exchange delayed most. `of_one_seed`: why
    costs are those of one seed alone; null where no chance but the loss has a part in them.
    """

    cell: int
    levels: dict[str, str]
    hold_ns: int | None
    exchanges: int
    connections: int
    clean_ns: float
    packets: dict[str, int]
    costs: list[PacketCost]
    untried: int = Field(default=0)
    failure: str | None = Field(default=None)
    slope_ns: float | None
    slope_connect_ns: float | None
    slope_failed: float | None
    slope_delayed: float | None
    curve: LossCurve | None
    models: list[ModelSlope]
    timelines: list[Explained]
    of_one_seed: str | None
    note: str | None
    sentence: str = Field(default="")

    @property
    def count(self) -> int:
        """All packets of both directions."""
        return sum(self.packets.values())

    @property
    def mean_ns(self) -> float:
        """The mean of the exchanges, undisturbed."""
        return self.clean_ns / max(self.exchanges, 1)
