"""What a run says of a network that is really there: who the server was, the two clocks, and what TCP retransmitted."""

from crosswind.decisions.interval import Interval, ResultModel


class ServerClock(ResultModel):
    """The server's clock beside the client's: ahead by `offset_ns`, of the repetition that knows it worst.

    `one_way`: in how many repetitions both were close enough for delays of one direction, of `repetitions`.
    """

    offset_ns: float
    uncertainty_ns: float
    method: str
    one_way: int
    repetitions: int


class NetworkConditions(ResultModel):
    """The network between this machine and a server, to which cells were run.

    `round_trip_ns`: the shortest and the longest of the repetitions, each the shortest of its control connection.
    `client_versions` and `server_versions` are those of crosswind-cell, `server_kernels` of Linux there. `captured`:
    whether both ends kept what they sent and received.
    """

    server: str
    round_trip_ns: tuple[float, float]
    client_versions: list[str]
    server_versions: list[str]
    server_kernels: list[str]
    clock: ServerClock
    captured: bool = False


class Retransmitted(ResultModel):
    """TCP segments that one end sent in all repetitions, and those of them that it had sent before.

    `share` is what stands for the loss of that direction: more, where a segment was retransmitted without need.
    `shortest_round_trip_ns`: that the end's kernel saw. `busy_ns`: for how long something was in flight or to be sent,
    over all connections; of that, `receive_window_share` and `send_buffer_share` were held back by those. 0 where the
    kernel was not asked.
    """

    segments: int
    retransmitted: int
    share: Interval | None
    shortest_round_trip_ns: float | None
    busy_ns: float = 0
    receive_window_share: float = 0
    send_buffer_share: float = 0
