"""Makes two programs a one-cell study, for `crosswind exec` and test plugins.

study, is_virtual = study_of(Programs(client=["curl", "http://server:{port}/"], server=[...]), {"path.loss": "2%"})
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crosswind.cell.binary import find_binary, misspelt_placeholder
from crosswind.cell.clocks import clock_for
from crosswind.cell.others import is_other_file, unrunnable
from crosswind.errors import CrosswindError, UsageError
from crosswind.store.run import StoredRun
from crosswind.study.design import Study
from crosswind.study.edits import NOTHING_FURTHER, FurtherTables
from crosswind.text.units import format_duration, parse_duration

NOT_RUN, NOT_A_PROGRAM, NOT_FOUND, INTERRUPTED = 125, 126, 127, 130
"""Exit statuses for a client not run, as in timeout(1) and env(1)."""

PORT = 8000
"""The default for {port}. The server's host is new, so every port is free."""

LONGEST = "23h"
"""How long a client may take on the machine's clock unless a setting says so: as long as a cell may."""


@dataclass(frozen=True)
class Programs:
    """Argument lists with placeholders. Attributes: names: the client's and the server's in errors."""

    client: list[str]
    server: list[str] | None
    names: tuple[str, str] = ("client", "server")

    def wants_port(self, *texts: object) -> bool:
        """Whether {port} is in one of them, or in some settings beside."""
        return any("{port}" in str(word) for word in (*self.client, *(self.server or ()), *texts))

    def check(self) -> None:
        """Raises: NotRunError for a missing program, UsageError for an unknown placeholder."""
        for where, words in zip(self.names, (self.client, self.server), strict=True):
            if words is None:
                continue
            misspelt = misspelt_placeholder(words, find_binary(), has_port=True)
            if misspelt is not None:
                word, meant = misspelt
                hint = f"did you mean {meant}? A program that needs {word} itself can read it from a file"
                raise UsageError(f"{where} has {word}, which is not a placeholder", hint=hint)
        for words in filter(None, (self.client, self.server)):
            _check_program(words[0])


def _check_program(program: str) -> None:
    """Raises: NotRunError where it cannot be run. A placeholder is filled in later."""
    if (obstacle := unrunnable(program)) is not None:
        status = NOT_A_PROGRAM if is_other_file(program) else NOT_FOUND
        raise NotRunError(obstacle.problem, obstacle.hint, status)


class NotRunError(CrosswindError):
    """The client was not run. Args: status: the exit status for it."""

    def __init__(self, message: str, hint: str | None, status: int = NOT_RUN) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = status


def study_of(
    programs: Programs,
    given: Mapping[str, object],
    *,
    flags: Mapping[str, str],
    further: FurtherTables = NOTHING_FURTHER,
    repetitions: int = 1,
    seed: int | None = None,
    several: bool = False,
) -> tuple[Study, bool]:
    """The one-cell study, and whether it runs in virtual time.

    Args: given: settings by dotted key. flags: their names in errors. further: hops, changes and flows. seed: None for
        the default. several: whether it may have several cells.
    Raises: StudyError, EngineError, UsageError.
    """
    wanted = str(given.get("host.clock", "auto"))
    is_virtual = wanted in ("auto", "real", "virtual") and clock_for(wanted) == "virtual"
    settings: dict[str, Any] = {**given, "study.repetitions": repetitions, "workload.client": programs.client}
    if programs.server is not None:
        settings["workload.server"] = programs.server
    if programs.wants_port(*(given.get(f"workload.{key}") for key in ("ready", "env", "client_env", "server_env"))):
        settings.setdefault("workload.port", PORT)
    if not is_virtual:
        settings.setdefault("workload.timeout", LONGEST)
    if seed is not None:
        settings["study.seed"] = seed
    study = Study.adhoc("program", settings, flags=flags)
    if further:
        study = study.edited(further)
    if len(study) > 1 and not several:
        factors = ", ".join(f"{key} = {', '.join(texts)}" for key, texts in study.factors.items())
        raise UsageError(
            f"this is {len(study)} paths, not one: {factors}", hint="`crosswind run program` compares several"
        )
    return study, is_virtual


_FURTHER_DELAYS_NS = (10_000_000, 30_000_000, 100_000_000)
"""Additional delays, each way, for counting a client's round trips."""


@dataclass(frozen=True)
class ProgramRoundTrips:
    """A client's time as a line over its path's round trip.

    Attributes: trips: the slope. offset_ns: the rest. deviation_ns: the times' maximum distance from the line. delays:
        those run, each way.
    """

    trips: float
    offset_ns: float
    deviation_ns: float
    delays: list[str]

    def as_json(self) -> dict[str, Any]:
        """The object as summaries have it."""
        return asdict(self)


def refuse_other_delays(
    settings: Mapping[str, object], further: FurtherTables, *, name: Callable[[str], str], asked: str, delay: str
) -> None:
    """Raises: UsageError unless the delay is the same in both directions of one hop.

    Args: name: a key's name for the caller. asked: the option varying the delay. delay: path.delay's name for the
        caller.
    """
    others = [
        key for key in settings if key != "path.delay" and (key.endswith(("delay", ".network")) or ".hop." in key)
    ]
    if others or further.hops or further.changes:
        given = ", ".join([*map(name, others), *map(repr, (*further.hops, *further.changes))])
        raise UsageError(f"{asked} varies {delay}, and {given} sets another", hint=f"give {delay} alone")


def program_round_trips(
    programs: Programs,
    settings: Mapping[str, object],
    *,
    flags: Mapping[str, str],
    further: FurtherTables = NOTHING_FURTHER,
    seed: int | None,
    run: Callable[[Study], StoredRun],
) -> ProgramRoundTrips | None:
    """How many round trips the client takes; None where it did not end well over every delay.

    Args: settings, flags, further, seed: as of `study_of`. run: runs a study. Raises: CrosswindError as a run does.
    """
    # Statistics take a second to import.
    from crosswind.analysis.cells import collect
    from crosswind.analysis.round_trips import round_trips

    own_ns = parse_duration(str(settings.get("path.delay", "0ms")))
    delays = [format_duration(own_ns + more_ns) for more_ns in _FURTHER_DELAYS_NS]
    settings = {**settings, "path.delay": delays}
    study, _ = study_of(programs, settings, flags=flags, further=further, seed=seed, several=True)
    counted = round_trips(collect(run(study).record()), level=0.95)
    if not counted or counted[0].trips.value is None or counted[0].offset.value is None:
        return None
    return ProgramRoundTrips(counted[0].trips.value, counted[0].offset.value, counted[0].deviation, delays)
