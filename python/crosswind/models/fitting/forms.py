"""Formulas to fit to transfer times, each with its coefficients and their bounds."""

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from crosswind.models import transfer
from crosswind.models.numbers import Array
from crosswind.models.pftk import backoff, expected_window, timeout_share
from crosswind.models.situation import Situation


@dataclass(frozen=True)
class Coefficient:
    """One coefficient: where its search starts, and its bounds."""

    name: str
    start: float
    low: float
    high: float


@dataclass(frozen=True)
class Form:
    """A formula for transfer times.

    Attributes: times: cells' mean times, s, shape (n,), from coefficients, shape (k,). expected: the coefficients in
        each cell by simulation, shape (n, k); None if unknown.
    """

    name: str
    title: str
    formula: str
    coefficients: tuple[Coefficient, ...]
    times: Callable[["Cells", Array], Array]
    expected: Callable[["Cells"], Array] | None = None

    @property
    def starts(self) -> Array:
        """Where the search for each coefficient starts, shape (k,)."""
        return np.array([coefficient.start for coefficient in self.coefficients])

    @property
    def lows(self) -> Array:
        """Each coefficient's lower bound, shape (k,)."""
        return np.array([coefficient.low for coefficient in self.coefficients])

    @property
    def highs(self) -> Array:
        """Each coefficient's upper bound, shape (k,)."""
        return np.array([coefficient.high for coefficient in self.coefficients])


@dataclass(frozen=True)
class Cells:
    """Sized transfers as arrays, shape (n,): size in bytes, rate in bit/s, the rest as `transfer.Columns`.

    simulated: the `transfer` formula's coefficients under each cell's congestion control, shape (n, 4).
    """

    size: Array
    rate: Array
    path: transfer.Columns
    simulated: Array

    @classmethod
    def of(cls, situations: list[Situation]) -> "Cells":
        """From sized transfers over rate-limited links."""
        size = np.array([float(cell.size_bytes or 0) for cell in situations])
        rate = np.array([float(cell.rate_bps or np.inf) for cell in situations])
        simulated = np.array([astuple(transfer.coefficients_of(cell)) for cell in situations]).reshape(-1, 4)
        return cls(size, rate, transfer.Columns.of(situations), simulated)

    def chosen(self, index: npt.NDArray[np.int64]) -> "Cells":
        """Some cells."""
        return Cells(self.size[index], self.rate[index], self.path.chosen(index), self.simulated[index])


def _transfer(cells: Cells, values: Array) -> Array:
    return transfer.transfer_time(cells.path, transfer.Coefficients(*(float(value) for value in values)))


def _pftk(cells: Cells, values: Array) -> Array:
    """PFTK's window and timeouts, their share times kappa, after slow start (b = 1)."""
    path, p = cells.path, cells.path.loss
    window = np.minimum(np.asarray(expected_window(p)), path.window)
    share = np.minimum(1.0, values[0] * np.asarray(timeout_share(p, window)))
    left = (path.begun.chance * path.begun.left).sum(axis=1)
    rest = left * np.maximum(path.serialisation, path.rtt * np.sqrt(2 * p / 3))
    waited = share * path.timeout * backoff(p) / (1 - p) + (1 - share) * path.rtt
    return np.asarray(path.begun.seconds + rest + path.segments * p * waited)


def _exponential(cells: Cells, values: Array) -> Array:
    """The CAIA curve, with b and c as its equations 3 and 4 have them."""
    b = values[0] + values[1] * cells.size / 1e6
    c = values[2] + values[3] * np.log(cells.size / 1e3)
    return np.asarray(8 * cells.size / cells.rate + b * np.expm1(c * cells.path.loss))


def _power(cells: Cells, values: Array) -> Array:
    path = cells.path
    logs = (np.log(path.segments), np.log(path.serialisation), np.log(path.rtt + path.serialisation), np.log(path.loss))
    return np.asarray(np.exp(values[0] + sum(value * log for value, log in zip(values[1:], logs, strict=True))))


_ALL = (
    Form(
        name="transfer",
        title="one formula",
        formula=transfer.FORMULA,
        coefficients=(
            Coefficient("growth", 0.5, 0.02, 5.0),
            Coefficient("timeout_window", 2.0, 0.1, 20.0),
            Coefficient("timeout_power", 3.0, 0.3, 8.0),
            Coefficient("tail", 0.8, 0.0, 3.0),
        ),
        times=_transfer,
        expected=lambda cells: cells.simulated,
    ),
    Form(
        name="pftk-kappa",
        title="PFTK with fewer timeouts",
        formula="T = S + R·max(L, RTT·√(2p/3)) + d·p·(q·T0·G/(1−p) + (1−q)·RTT), q = kappa·Q(W)",
        coefficients=(Coefficient("kappa", 0.5, 0.0, 2.0),),
        times=_pftk,
    ),
    Form(
        name="exponential",
        title="CAIA exponential",
        formula="T = size/rate + b·(e^(c·p) − 1), b = b0 + b1·size/MB, c = c0 + c1·ln(size/kB)",
        coefficients=(
            Coefficient("b0", 0.02, 1e-4, 10.0),
            Coefficient("b1", 0.35, 1e-4, 50.0),
            Coefficient("c0", 20.0, 0.0, 80.0),
            Coefficient("c1", 1.2, -5.0, 10.0),
        ),
        times=_exponential,
    ),
    Form(
        name="power-law",
        title="power law",
        formula="T = k·d^segments·L^serialisation·r^round_trip·p^loss",
        coefficients=(
            Coefficient("ln k", 0.0, -20.0, 20.0),
            Coefficient("segments", 1.0, -3.0, 3.0),
            Coefficient("serialisation", 0.3, -3.0, 3.0),
            Coefficient("round_trip", 0.3, -3.0, 3.0),
            Coefficient("loss", 0.5, -3.0, 3.0),
        ),
        times=_power,
    ),
)

FORMS: Mapping[str, Form] = {form.name: form for form in _ALL}
"""Every formula for fitting, by name."""
