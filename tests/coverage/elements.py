"""Every statistic of real repetitions, drawn from again: from how many on intervals hold and claims do not err.

    make coverage ONLY=elements
    make coverage ONLY=machine

Each cell has 300 repetitions in virtual time, or on the machine's clock: once with nothing beside it, once beside a
busy loop, where no fidelity budget ends it. Runs are kept in a directory and made once.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from coverage.resampled import Number, Outcomes, Pool, judged
from crosswind.api.runs import load

REPETITIONS = 300
DRAWS, PAIRS = 300, 100
UNITS = (3, 5, 6, 10, 15, 20, 30, 100)
STATISTICS = ("mean", "median", "p95", "p99")
DEADLINE_S = 1800
"""Of a run."""

_ECHO = "echo --transport tcp --delay 20ms --messages 100"
_TRANSFER = "transfer --transport tcp --delay 20ms --rate 20mbit --queue 50p --size 100kB --count 20"
_CONNECT = "connect --transport tcp --delay 20ms --count 100"
_SHARED = "--rate 20mbit --queue 50p"

VIRTUAL = {
    "echo, loss 1 %": f"{_ECHO} --loss 1%",
    "echo, loss 5 %": f"{_ECHO} --loss 5%",
    "echo, bursts of 4 packets": f"{_ECHO} --loss 1% --loss-burst 4",
    "echo, jitter": f"{_ECHO} --jitter 5ms",
    "echo, background": f"{_ECHO} {_SHARED} --background-rate 15mbit --background-arrivals poisson",
    "echo, background on and off": f"{_ECHO} {_SHARED} --background-rate 15mbit --background-arrivals on_off",
    "echo over QUIC": "echo --transport quic --delay 20ms --messages 100",
    "echo, another flow": f"{_ECHO} {_SHARED} --beside 'transfer --transport tcp --duration 10s --spread 3s'",
    "transfer, loss 1 %": f"{_TRANSFER} --loss 1%",
    "transfer, jitter": f"{_TRANSFER} --jitter 5ms",
    "transfer, background": f"{_TRANSFER} --background-rate 10mbit --background-arrivals poisson",
    "transfer, RED": f"{_TRANSFER} --discipline red --red-min 10p --red-max 40p",
    "transfer, CoDel": f"{_TRANSFER} --discipline codel --background-rate 5mbit --background-arrivals on_off",
    "transfer over QUIC": _TRANSFER.replace("tcp", "quic"),
    "transfer, another flow": f"{_TRANSFER} --beside 'transfer --transport tcp --duration 20s --spread 5s'",
    "connect, loss 1 %": f"{_CONNECT} --loss 1%",
    "connect, jitter": f"{_CONNECT} --jitter 5ms",
    "connect over QUIC": _CONNECT.replace("tcp", "quic"),
    "multiplex over QUIC, loss 1 %": "multiplex --transport quic --delay 20ms --messages 100 --loss 1%",
    "page, loss 1 %": "page --transport http2 --delay 20ms --count 5 --loss 1%",
    "page, jitter": "page --transport http2 --delay 20ms --count 5 --jitter 5ms",
}
MACHINE = {
    "echo": "echo --transport tcp --delay 10ms --messages 30",
    "echo, loss 1 %": "echo --transport tcp --delay 10ms --messages 30 --loss 1%",
    "transfer": "transfer --transport tcp --delay 10ms --rate 20mbit --queue 50p --size 1MB --count 1",
    "connect": "connect --transport tcp --delay 10ms --count 30",
}
METRICS = {
    "echo": ("rtt",), "transfer": ("goodput", "transfer_time"), "connect": ("connect",), "multiplex": ("response",),
    "page": ("page_load",),
}  # fmt: skip
_ANY_FIDELITY = " ".join(
    f"--set budget.{name}"
    for name in ("delay_error_p99=10s", "exchange_delay=10s", "starvation=100%", "probe_starvation=100%")
)
"""Beside a busy loop most repetitions would be invalid: what their values tell is asked all the same."""
COSTS = ("cpu_client", "cpu_server", "wire_bytes_forward")
"""Of the machine's clock, means alone."""


@dataclass(frozen=True)
class Element:
    """A cell. Attributes: options: of `crosswind run`. clock: "virtual" or "real". is_busy: beside a busy loop."""

    name: str
    options: str
    clock: str
    is_busy: bool = False

    @property
    def numbers(self) -> list[Number]:
        """What is judged."""
        times = list(product(METRICS[self.options.split()[0]], STATISTICS))
        return times if self.clock == "virtual" else times + [(name, "mean") for name in COSTS]

    def run(self, runs: Path) -> Path:
        """Its run, made unless it is there. Raises: CalledProcessError, TimeoutExpired."""
        place = runs / self.clock / ("busy" if self.is_busy else "idle") / "".join(filter(str.isalnum, self.name))
        if not place.exists():
            command = (
                f"{sys.executable} -m crosswind run {self.options} --repetitions {REPETITIONS} --clock {self.clock} "
                f"--jobs 1 --no-parts --no-report --output {place} {_ANY_FIDELITY if self.is_busy else ''}"
            )
            with _busy_loop() if self.is_busy else _nothing():
                done = subprocess.run(command, shell=True, timeout=DEADLINE_S, check=False)
            # An invalid repetition ends a run with 1.
            if done.returncode > 1 or not place.exists():
                raise subprocess.CalledProcessError(done.returncode, command)
        return place


Found = dict[tuple[Number, int], Outcomes]


def elements(table: str) -> list[Element]:
    """The cells of a table."""
    if table == "elements":
        return [Element(name, options, "virtual") for name, options in VIRTUAL.items()]
    return [Element(name, options, "real", busy) for busy, (name, options) in product((False, True), MACHINE.items())]


def tried(element: Element, runs: Path) -> tuple[Element, Found]:
    """What became of each of its numbers by repetitions."""
    pool = Pool(load(str(element.run(runs)))._data[0])
    return element, {
        (number, units): outcomes
        for units in UNITS
        for number, outcomes in judged(pool, element.numbers, units, draws=DRAWS, seed=1, pairs=PAIRS).items()
    }


def elements_text(found: Mapping[Element, Found]) -> str:
    """The table, in Markdown."""
    lines = [
        f"{DRAWS} draws a number and {PAIRS} pairs, of {REPETITIONS} repetitions, in %: coverage, the wrong limits of "
        "the worse side, equal pairs called no larger by 10 %. – : no interval, or no pairs; in brackets, the draws "
        "with one.\n",
        f"| cell, statistic | {' | '.join(map(str, UNITS))} |",
        "| --- " * (len(UNITS) + 1) + "|",
    ]
    for element, outcomes in found.items():
        beside = ", beside a busy loop" if element.is_busy else ""
        for number in element.numbers:
            if (number, UNITS[0]) in outcomes:
                cells = " | ".join(_shown(outcomes[number, units]) for units in UNITS)
                lines.append(f"| {element.name}{beside}, {number[1]}({number[0]}) | {cells} |")
    return "\n".join(lines) + "\n"


def _shown(of: Outcomes) -> str:
    coverage = "–" if of.coverage is None else f"{100 * of.coverage:.1f}"
    given = "" if of.given in (0, of.draws) else f" ({100 * of.given / of.draws:.0f})"
    equal = f"{100 * of.equal / of.compared:.0f}" if of.compared else "–"
    return f"{coverage}{given} {100 * of.error:.1f} {equal}"


@contextmanager
def _busy_loop() -> Iterator[None]:
    loop = subprocess.Popen(["timeout", str(DEADLINE_S), "sh", "-c", "while :; do :; done"])
    try:
        yield
    finally:
        loop.terminate()
        loop.wait(timeout=10)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
