"""Units for numbers in results, and those for reading and writing them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crosswind.text.units import NANOSECONDS


@dataclass(frozen=True)
class Unit:
    """A unit for numbers in results, with its scales for people.

    Attributes:
        name: in results. scales: each unit for writing a number, in multiples of `name`. shown: the scales in reports,
            the largest first; empty for `name` itself.
    """

    name: str
    scales: Mapping[str, float]
    shown: tuple[str, ...] = ()

    def scale_for(self, values: Iterable[float | None]) -> tuple[float, str]:
        """The scale best suited to some values' median.

        Returns: (divisor, label): values are divided by the divisor and followed by the label.
        """
        if not self.shown:
            return 1.0, self.name
        sizes = sorted(abs(value) for value in values if value)
        smallest = self.shown[-1]
        middle = sizes[len(sizes) // 2] if sizes else 0.0
        label = next((scale for scale in self.shown if middle >= self.scales[scale]), smallest)
        return self.scales[label], label

    def amount(self, number: str, unit: str) -> float | None:
        """A written number in `name`, without a unit "1"; None where this has no such unit. 0 is 0 in every unit."""
        if not unit and float(number) == 0:
            return 0.0
        return float(number) * self.scales[unit or "1"] if (unit or "1") in self.scales else None

    def change(self, number: str | float, unit: str) -> tuple[bool, float] | None:
        """A written change: whether it is relative, and its number, relative to 1 or in `name`.

        "%" is relative, but of a share percentage points. None where this has no such unit.
        """
        if (unit or "1") in self.scales:
            return False, float(number) * self.scales[unit or "1"]
        return (True, float(number) * 0.01) if unit == "%" else None

    def written_in(self, *more: str) -> str:
        """The allowed units, and `more`: "ms, s, %"."""
        return ", ".join(dict.fromkeys([*(scale for scale in self.scales if scale != "1"), *more]))


TIME = Unit(
    "ns", {scale: float(NANOSECONDS[scale]) for scale in ("ns", "us", "ms", "s", "µs")}, ("s", "ms", "µs", "ns")
)
RATE = Unit(
    "bit/s",
    {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    ("Gbit/s", "Mbit/s", "kbit/s", "bit/s"),
)
SIZE = Unit("bytes", {"bytes": 1, "kB": 1e3})
COUNT = Unit("packets", {"packets": 1})
RPM = Unit("RPM", {"RPM": 1})
SHARE = Unit("1", {"1": 1, "%": 0.01}, ("%",))

UNITS: dict[str, Unit] = {unit.name: unit for unit in (TIME, RATE, SIZE, COUNT, RPM, SHARE)}
"""Every unit by its name in results."""
