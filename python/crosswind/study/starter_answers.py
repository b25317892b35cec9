"""What somebody who begins wants to know, read from a few words: `crosswind init` asks for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crosswind.catalog import catalog
from crosswind.errors import StudyError, did_you_mean
from crosswind.study.keys import VALUE_TYPES
from crosswind.study.networks import NETWORKS
from crosswind.units import UnitError, parse_duration, parse_probability, parse_size

NO_COMPARISON = "nothing"
_CONGESTION_CONTROLS = ("reno", "cubic", "bbr")


@dataclass(frozen=True)
class Starter:
    """A workload that a study can begin with.

    Attributes: title: what is measured, for a title. asked: the same for somebody who chooses. compare: levels to
        compare unless something else is asked. bytes: what one exchange carries; of a transfer, at most.
    """

    title: str
    asked: str
    compare: str
    bytes: int


STARTERS: Mapping[str, Starter] = {
    "echo": Starter(
        "Messages and their answers", "messages that are answered, as of a game or an API", "tcp,quic", 1_000
    ),
    "transfer": Starter("Transfers", "files that are sent, each on a connection of its own", "tcp,quic", 1_000_000),
    "page": Starter("Page loads", "web pages with scripts and images", "http2,http3", 636_000),
    "connect": Starter("Connection set-up", "connections that are set up", "https1,http3", 10_000),
    "multiplex": Starter("Messages on several streams", "messages on streams side by side", "http2,http3", 200),
}
"""What can be measured without a program of one's own, by the kind of workload."""


@dataclass(frozen=True)
class Factor:
    """What is compared: a key of a study and its levels; without levels nothing is."""

    key: str = ""
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answers:
    """What somebody wants to know.

    Attributes: what: a kind of workload, of STARTERS. networks: by name. compare: the factor.
        target: of a precision, as "5%" or "2ms"; empty where `repetitions` says how often every cell is run. loss: of
        each direction, beside what is compared; empty for that of the networks.
    """

    what: str
    networks: tuple[str, ...]
    compare: Factor
    target: str = ""
    repetitions: int = 0
    loss: tuple[str, ...] = ()


def read_workload(text: str) -> str:
    """A kind of workload. Raises: StudyError."""
    if text in STARTERS:
        return text
    if text in catalog().workloads:
        message = "docs/study.md describes studies of your own programs; init cannot write them"
        raise StudyError(f"{text}: {message}", hint=f"one of {', '.join(STARTERS)}")
    raise StudyError(f'"{text}" is not a kind of workload', hint=did_you_mean(text, STARTERS))


def read_networks(text: str) -> tuple[str, ...]:
    """Networks by name, or "file=my-network.toml", with commas between. Raises: StudyError."""
    names = _levels(text)
    for name in names:
        if "=" in name:
            _check_levels("path.network", (name,))
        elif name not in NETWORKS:
            close = did_you_mean(name, NETWORKS)
            hint = f"{close} " if close.startswith("did you mean") else ""
            raise StudyError(f'there is no network "{name}"', hint=f"{hint}`crosswind networks` lists them")
    return names


def read_losses(text: str, compare: Factor) -> tuple[str, ...]:
    """Levels of loss, beside what is compared. Raises: StudyError."""
    if compare.key == "path.loss":
        raise StudyError(f"loss is compared already: {', '.join(compare.levels)}", hint="leave --loss away")
    levels = _levels(text)
    _check_levels("path.loss", levels)
    return levels


def read_factor(text: str) -> Factor:
    """What is compared: levels that say by themselves what they are, or KEY=LEVELS, or nothing. Raises: StudyError."""
    if text.strip() in {"", NO_COMPARISON}:
        return Factor()
    key, equals, levels_text = text.partition("=")
    if equals:
        return _factor(_key_of(key.strip()), _levels(levels_text))
    levels = _levels(text)
    taking = _key_that_takes(levels)
    if taking is None:
        raise StudyError(
            f'it is not clear what "{text.strip()}" is',
            hint="name transports, networks, congestion controls, loss as 0%,2%, delays or sizes; or KEY=LEVELS, as "
            "path.rate=5mbit,20mbit",
        )
    return _factor(taking, levels)


def _levels(text: str) -> tuple[str, ...]:
    levels = tuple(piece.strip() for piece in text.split(","))
    if "" in levels:
        raise StudyError(f'"{text.strip()}": a name is empty', hint="write names with one comma between")
    return tuple(dict.fromkeys(levels))


def _key_of(word: str) -> str:
    """A dotted key, or the only one that ends with a word."""
    matching = [key for key in VALUE_TYPES if key == word or key.split(".", 1)[1] == word]
    if len(matching) > 1:
        raise StudyError(f'"{word}" may be {" or ".join(matching)}', hint="name the key in full")
    if not matching and (named := next((key for key in (word, f"path.{word}") if key in VALUE_TYPES), None)):
        return named
    if not matching:
        known = dict.fromkeys([*(key.split(".", 1)[1] for key in VALUE_TYPES), *VALUE_TYPES])
        raise StudyError(f'there is no key "{word}"', hint=did_you_mean(word, known))
    return matching[0]


def _factor(key: str, levels: tuple[str, ...]) -> Factor:
    _check_levels(key, levels)
    if len(levels) < 2 and key != "path.network":
        raise StudyError(f"{key} = {', '.join(levels)}: one level compares nothing", hint="name two or more")
    return Factor(key, levels)


def _check_levels(key: str, levels: tuple[str, ...]) -> None:
    """Raises: StudyError for a level that the key does not take."""
    for level in levels:
        try:
            VALUE_TYPES[key].level(level)
        except UnitError as error:
            raise StudyError(f"{key}: {error.message}", hint=error.hint) from None


def _key_that_takes(levels: Sequence[str]) -> str | None:
    known = {
        "workload.transport": catalog().transports,
        "path.network": NETWORKS,
        "host.congestion_control": _CONGESTION_CONTROLS,
    }
    for key, names in known.items():
        if all(level in names for level in levels):
            return key
    for key, parse, mark in (
        ("path.loss", parse_probability, "%"),
        ("path.delay", parse_duration, "s"),
        ("workload.size", parse_size, "B"),
    ):
        if all(level.endswith(mark) and _reads(parse, level) for level in levels):
            return key
    return None


def _reads(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except UnitError:
        return False
    return True
