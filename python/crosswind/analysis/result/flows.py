"""What flows that run at once got of their path, as a result has it."""

from crosswind.decisions.interval import Interval, ResultModel


class FlowOverTime(ResultModel):
    """Packets of a flow that left the path within an interval, in one direction; `queueing_ns` is a sum over them."""

    direction: str
    from_ns: int
    packets: int
    bytes: int
    dropped: int
    marked: int
    queueing_ns: int


class FlowResult(ResultModel):
    """The workload of a cell, or the flows of one name beside it, while all flows ran.

    `rate`: IP bits that the path delivered, all flows of the name together, in the `direction` in which they send more.
    `share`: of what all flows got in that direction. `dropped`, `marked`: of their packets. `queueing`: how
    long a packet waited. `over_time`: of the first repetition, from its beginning.
    """

    cell: int
    name: str
    count: int
    direction: str
    rate: Interval
    share: Interval
    dropped: Interval
    marked: Interval
    queueing: Interval
    over_time: list[FlowOverTime]
