"""Where processor time went: the profiles of a cell's repetitions put together."""

from collections.abc import Iterable, Sequence

from crosswind.analysis.result import CpuProfile, HostCpuProfile
from crosswind.cell.result import Finished
from crosswind.cell.result import HostCpuProfile as RecordedProfile


def profile_of(finished: Iterable[Finished]) -> CpuProfile | None:
    """The sum of the profiles of some repetitions; None where there are none."""
    profiles = [end.profile for end in finished if end.profile]
    if not profiles:
        return None
    return CpuProfile(
        client=_summed([profile.client for profile in profiles]),
        server=_summed([profile.server for profile in profiles]),
    )


def _summed(hosts: Sequence[RecordedProfile]) -> HostCpuProfile:
    parts: dict[str, int] = {}
    for host in hosts:
        for name, count in host.parts.items():
            parts[name] = parts.get(name, 0) + count
    return HostCpuProfile(
        samples=sum(host.samples for host in hosts), cpu_ns=sum(host.cpu_ns for host in hosts), parts=parts
    )
