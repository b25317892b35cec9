"""A cell's emulation fidelity: times, waits for processors, and the budget for both."""

from crosswind.cell.protocol_object import Ends, ProtocolObject


class Times(ProtocolObject):
    """A distribution of `n` times, in nanoseconds."""

    n: int
    p50: int
    p99: int
    max: int


class Waiting(ProtocolObject):
    """How long a thread ran and how long it waited for a processor; `fraction` is the waiting's share of the time."""

    run_ns: int
    wait_ns: int
    elapsed_ns: int
    fraction: float


class FidelityBudget(ProtocolObject):
    """Limits for a valid cell."""

    delay_error_p99_ns: int
    starvation: float
    probe_starvation: float
    exchange_delay_ns: int
    exchange_delay_share: float


class UsedProcessors(ProtocolObject):
    """The cell's processors."""

    emulator: tuple[int, ...]
    hosts: tuple[int, ...]


class ExchangeDelay(ProtocolObject):
    """How much longer a mean exchange was because processors were busy with something else, beside the median one."""

    hosts_ns: int
    path_ns: int
    median_ns: int


class Fidelity(ProtocolObject):
    """Measured fidelity."""

    delay_error_ns: Times
    starvation: Waiting | None
    probe_starvation: Ends[Waiting] | None
    exchange_delay: ExchangeDelay | None
    held_ns: int
    kernel_drops: int
    realtime: bool
    in_kernel: bool
    memory_locked: bool
    cpus: UsedProcessors
    budget: FidelityBudget
    within_budget: bool

    @property
    def missed_keys(self) -> dict[str, int | float]:
        """Missed keys in `[budget]`, with measured values: times in nanoseconds, shares out of 1."""
        measured: dict[str, int | float] = {"delay_error_p99": self.delay_error_ns.p99}
        allowed: dict[str, int | float] = {"delay_error_p99": self.budget.delay_error_p99_ns}
        if self.starvation is not None:
            measured["starvation"], allowed["starvation"] = self.starvation.fraction, self.budget.starvation
        if (probes := self.probe_starvation) is not None:
            measured["probe_starvation"] = max(probes.client.fraction, probes.server.fraction)
            allowed["probe_starvation"] = self.budget.probe_starvation
        if (delay := self.exchange_delay) is not None:
            share = self.budget.exchange_delay_share * delay.median_ns
            measured["exchange_delay"] = delay.hosts_ns + delay.path_ns
            allowed["exchange_delay"] = max(self.budget.exchange_delay_ns, share)
        return {key: value for key, value in measured.items() if value > allowed[key]}
