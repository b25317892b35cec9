"""Where processor time went: the profiles of a cell's repetitions put together."""

from collections.abc import Mapping, Sequence
from typing import Any

from crosswind.analysis.result import HostProfile, Profile


def profile_of(finished: Sequence[Mapping[str, Any]]) -> Profile | None:
    """The sum of the profiles in some `finished` events; None where there are none."""
    kept = [one["profile"] for one in finished if one.get("profile")]
    if not kept:
        return None
    return Profile(
        client=_summed([one.get("client") or {} for one in kept]),
        server=_summed([one.get("server") or {} for one in kept]),
    )


def _summed(hosts: Sequence[Mapping[str, Any]]) -> HostProfile:
    parts: dict[str, int] = {}
    for one in hosts:
        for name, count in (one.get("parts") or {}).items():
            parts[name] = parts.get(name, 0) + int(count)
    return HostProfile(
        samples=sum(int(one.get("samples") or 0) for one in hosts),
        cpu_ns=sum(int(one.get("cpu_ns") or 0) for one in hosts),
        parts=parts,
    )
