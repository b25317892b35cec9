"""How many round trips a client of the user's takes: it runs over further delays, and a line goes through its times."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crosswind.errors import UsageError
from crosswind.programs import Programs, study_of
from crosswind.store.run import StoredRun
from crosswind.study.design import Study
from crosswind.units import format_duration, parse_duration

_FURTHER_DELAYS_NS = (10_000_000, 30_000_000, 100_000_000)
"""By how much longer the delays are, each way, over which a client's round trips are counted."""


@dataclass(frozen=True)
class ProgramRoundTrips:
    """A client's time as a line over the round trip of its path.

    Attributes: trips: how many. offset_ns: what it takes besides. deviation_ns: how far its times are from the line at
        most. delays: over which it ran, each way.
    """

    trips: float
    offset_ns: float
    deviation_ns: float
    delays: list[str]

    def as_json(self) -> dict[str, Any]:
        """The object as summaries have it."""
        return asdict(self)


def refuse_other_delays(settings: Mapping[str, object], *, name: Callable[[str], str], asked: str, delay: str) -> None:
    """Raises: UsageError where the delay is not that of both directions of one hop.

    Args: name: what the caller calls a key. asked: what varies the delay. delay: what the caller calls path.delay.
    """
    others = [
        key for key in settings if key != "path.delay" and (key.endswith(("delay", ".network")) or ".hop." in key)
    ]
    if others:
        given = ", ".join(map(name, others))
        raise UsageError(f"{asked} varies {delay}, and {given} sets another", hint=f"give {delay} alone")


def program_round_trips(
    programs: Programs,
    settings: Mapping[str, object],
    *,
    flags: Mapping[str, str],
    seed: int | None,
    run: Callable[[Study], StoredRun],
) -> ProgramRoundTrips | None:
    """How many round trips the client takes; None where it did not end well over every delay.

    Args: settings, flags, seed: as of `study_of`. run: runs a study. Raises: CrosswindError as a run does.
    """
    # Statistics take a second to import.
    from crosswind.analysis import collect
    from crosswind.analysis.round_trips import round_trips

    own_ns = parse_duration(str(settings.get("path.delay", "0ms")))
    delays = [format_duration(own_ns + more_ns) for more_ns in _FURTHER_DELAYS_NS]
    study, _ = study_of(programs, {**settings, "path.delay": delays}, flags=flags, seed=seed, several=True)
    found = round_trips(collect(run(study).record()), level=0.95)
    if not found or found[0].trips.value is None or found[0].offset.value is None:
        return None
    return ProgramRoundTrips(found[0].trips.value, found[0].offset.value, found[0].deviation, delays)
