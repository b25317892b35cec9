"""A metric's values in a cell, by repetition and connection.

A repetition is the experimental unit: a block in time with one seed. Its parts are not independent: exchanges on a
connection share its timers, connections in a repetition share its losses and the machine's state. So every interval
and every test rests on differences between repetitions, not on the number of messages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crosswind.stats.arrays import Array
from crosswind.stats.estimate import Limits, TooFewSamples

Integers = npt.NDArray[np.int64]
RepetitionKey = tuple[int, int | None]


@dataclass(frozen=True, eq=False)
class Repetitions:
    """Values of one metric in one cell, in time order within each repetition.

    Attributes:
        values: float64, shape (n,), from successful exchanges; finite.
        member: int64, shape (n,), each value's unit: an index into `keys`, never falling.
        connections: int64, shape (n,), equal for values on one connection in one repetition.
        keys: each unit's repetition and seed (None: unknown). Units in two cells with the same key form a pair.
        censored: int64, shape (units,), exchanges given up at `limit`.
        limit: in the unit of the values; None without censored exchanges.
    """

    values: Array
    member: Integers
    connections: Integers
    keys: tuple[RepetitionKey, ...]
    censored: Integers
    limit: float | None = None

    @classmethod
    def of(
        cls,
        values: npt.ArrayLike,
        repetitions: npt.ArrayLike | None = None,
        *,
        connections: npt.ArrayLike | None = None,
        keys: Sequence[RepetitionKey] | None = None,
        censored: Sequence[int] | None = None,
        limit: float | None = None,
    ) -> "Repetitions":
        """Values with each one's repetition; None: each is its own repetition.

        Args:   keys: every repetition's, ascending; None: the repetitions with values, with unknown seeds.
                censored: for each of `keys`; None: 0.
        Raises: ValueError for non-finite values, and for mismatched arrays.
        """
        given = np.asarray(values, dtype=np.float64).ravel()
        if not np.isfinite(given).all():
            raise ValueError("a value is not a finite number")
        numbers = np.arange(given.size) if repetitions is None else np.asarray(repetitions, dtype=np.int64).ravel()
        lines = numbers if connections is None else np.asarray(connections, dtype=np.int64).ravel()
        if not given.shape == numbers.shape == lines.shape:
            raise ValueError("every value needs one repetition and one connection")
        if np.any(numbers[1:] < numbers[:-1]):
            order = np.argsort(numbers, kind="stable")
            given, numbers, lines = given[order], numbers[order], lines[order]
        distinct = np.append(numbers[:1], numbers[1:][numbers[1:] != numbers[:-1]])
        names = tuple(keys) if keys is not None else tuple((int(number), None) for number in distinct)
        known = np.array([repetition for repetition, _ in names], dtype=np.int64)
        if not np.isin(distinct, known).all():
            raise ValueError("a value is of a repetition that has no key")
        held = np.zeros(known.size, dtype=np.int64) if censored is None else np.asarray(censored, dtype=np.int64)
        return cls(given, np.searchsorted(known, numbers), lines, names, held, limit)

    @property
    def count(self) -> int:
        """How many units there are."""
        return len(self.keys)

    @cached_property
    def n(self) -> int:
        """The number of exchanges, successful or censored."""
        return self.values.size + int(self.censored.sum())

    @property
    def repetitions(self) -> Integers:
        """Each value's repetition, shape (n,)."""
        return np.array([repetition for repetition, _ in self.keys], dtype=np.int64)[self.member]

    @property
    def is_single(self) -> bool:
        """Whether every unit is one exchange, and so independent."""
        return self.n == self.count

    @cached_property
    def sizes(self) -> Array:
        """Each unit's values, counted, shape (units,)."""
        return np.bincount(self.member, minlength=self.count).astype(np.float64)

    @cached_property
    def sums(self) -> Array:
        """Each unit's sum of values, with `centre` subtracted from each, shape (units,)."""
        return np.bincount(self.member, weights=self.values - self.centre, minlength=self.count).astype(np.float64)

    @cached_property
    def centre(self) -> float:
        """The mean over all values, subtracted before any sum, so no digit is lost."""
        if not self.values.size:
            raise TooFewSamples("no exchange succeeded", needed=1)
        return float(self.values.mean())

    @cached_property
    def means(self) -> Array:
        """Means of units with values, shape (those units,)."""
        with_values = self.sizes > 0
        return np.asarray(self.centre + self.sums[with_values] / self.sizes[with_values])

    @cached_property
    def ordered(self) -> Array:
        """All values in ascending order, shape (n,). Sorted once, for every quantile."""
        return np.sort(self.values)

    def below(self, place: float) -> Array:
        """Each unit's number of values at or below a place, shape (units,)."""
        return np.bincount(self.member, weights=self.values <= place, minlength=self.count).astype(np.float64)

    def quantiles(self, q: float) -> Array:
        """Each unit's q-quantile (Hyndman & Fan type 7), over all its exchanges; infinite if censored."""
        if q not in self._quantiles:
            self._quantiles[q] = np.array([
                _quantile(values, held, q) for values, held in self.of_units() if values.size or held
            ])  # fmt: skip
        return self._quantiles[q]

    def of_units(self) -> Iterator[tuple[Array, int]]:
        """Each unit's values, and its censored exchanges' number."""
        for start, end, held in zip(self._starts, self._starts[1:], self.censored, strict=False):
            yield self.values[start:end], int(held)

    @cached_property
    def _quantiles(self) -> dict[float, Array]:
        """The units' quantiles requested so far: a cell is compared with many others."""
        return {}

    @cached_property
    def largest(self) -> float:
        """The largest absolute value; 0 without a value."""
        return float(max(self.values.max(), -self.values.min())) if self.values.size else 0.0

    def spread(self) -> Limits | None:
        """The smallest and the largest unit mean; None with a single unit."""
        means = self.means
        return (float(means.min()), float(means.max())) if means.size > 1 else None

    def chosen(self, keys: Sequence[RepetitionKey]) -> "Repetitions":
        """Some units, in the order of `keys`; with each one's values in their order."""
        if tuple(keys) == self.keys:
            return self
        place = {key: index for index, key in enumerate(self.keys)}
        units = [place[key] for key in keys]
        parts = [slice(self._starts[unit], self._starts[unit + 1]) for unit in units]
        return replace(
            self,
            values=np.concatenate([self.values[:0], *(self.values[part] for part in parts)]),
            member=np.repeat(np.arange(len(parts)), [part.stop - part.start for part in parts]),
            connections=np.concatenate([self.connections[:0], *(self.connections[part] for part in parts)]),
            keys=tuple(keys),
            censored=self.censored[units],
        )

    @cached_property
    def _starts(self) -> Integers:
        """The start of each unit's values, and the end of the last one's, shape (units + 1,)."""
        return np.searchsorted(self.member, np.arange(self.count + 1))


def _quantile(values: Array, censored: int, q: float) -> float:
    rank = (values.size + censored - 1) * q
    below = int(rank)
    last = min(below + (rank > below), values.size + censored - 1)
    if last >= values.size:
        return float("inf")
    ordered = np.partition(values, [below, last])
    return float(ordered[below] + (rank - below) * (ordered[last] - ordered[below]))
