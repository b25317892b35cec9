"""How many round trips an exchange takes."""

from crosswind.decisions.interval import Interval, ResultModel


class RoundTrips(ResultModel):
    """A time over cells that differ in the delay of their path alone, as a line: `offset` + `trips` x round trip.

    Attributes:
        factor: the one by which the delay differs. fixed: the levels of the others. cells: their indexes.
        metric: the time. trips: how many round trips. offset: what it takes besides, ns.
        deviation: how far the mean of a cell is from the line at most, ns; 0 with two delays.
    """

    factor: str
    fixed: dict[str, str]
    cells: list[int]
    metric: str
    trips: Interval
    offset: Interval
    deviation: float
