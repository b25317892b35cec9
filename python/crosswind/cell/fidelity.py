"""How close the emulation of a cell came to what was asked: times, waiting for processors, and the budget for both."""

from crosswind.cell.protocol_object import ProtocolObject


class Times(ProtocolObject):
    """A distribution of `n` times, in nanoseconds."""

    n: int
    p50: int
    p99: int
    max: int


class DirectionTimes(ProtocolObject):
    """A distribution of times for each direction."""

    forward: Times
    reverse: Times


class Waiting(ProtocolObject):
    """How long a thread ran and how long it waited for a processor; `fraction` is the waiting's share of the time."""

    run_ns: int
    wait_ns: int
    elapsed_ns: int
    fraction: float


class HostsWaiting(ProtocolObject):
    """The waiting of each host's thread that waited most."""

    client: Waiting
    server: Waiting


class FidelityBudget(ProtocolObject):
    """What a cell may miss by and still be valid."""

    delay_error_p99_ns: int
    starvation: float
    probe_starvation: float
    exchange_delay_ns: int
    exchange_delay_share: float


class UsedProcessors(ProtocolObject):
    """Numbers of the processors that a cell ran on."""

    emulator: tuple[int, ...]
    hosts: tuple[int, ...]


class ExchangeDelay(ProtocolObject):
    """How much longer a mean exchange was because processors were busy with something else, beside the median one."""

    hosts_ns: int
    path_ns: int
    median_ns: int


class Fidelity(ProtocolObject):
    """How close the emulation came to what was asked."""

    delay_error_ns: Times
    starvation: Waiting | None
    probe_starvation: HostsWaiting | None
    exchange_delay: ExchangeDelay | None
    held_ns: int
    kernel_drops: int
    realtime: bool
    in_kernel: bool
    memory_locked: bool
    cpus: UsedProcessors
    budget: FidelityBudget
    within_budget: bool
