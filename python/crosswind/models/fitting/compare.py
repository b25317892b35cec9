"""Errors of fits on left-out cells: tenths of the cells, and whole levels of a factor."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosswind.models.fitting.fit import Fitted, fit
from crosswind.models.fitting.forms import Form
from crosswind.models.fitting.measured import MeasuredCells
from crosswind.models.numbers import Array

FOLDS = 10


@dataclass(frozen=True)
class LeftOut:
    """One factor level's cells: relative errors under a fit to all cells, and under one to the other levels.

    cells: how many. held_out: None where too few cells are left to fit to.
    """

    factor: str
    level: str
    cells: int
    fitted: float
    held_out: float | None


@dataclass(frozen=True)
class FormComparison:
    """One form: its fit, and each cell's relative errors, fitted and left out, shape (n,)."""

    fitted: Fitted
    errors: Array
    held_out: Array
    levels: tuple[LeftOut, ...]


def compare(
    form: Form,
    measured: MeasuredCells,
    factors: Mapping[str, Sequence[str]],
    *,
    seed: int = 1,
    intervals: bool = True,
    alone: bool = False,
) -> FormComparison:
    """Fits a form, and again without each tenth of the cells and without each factor level.

    Args:   factors: for each factor each cell's level; a one-level factor is skipped. seed: for the tenths.
            alone: as for `fit`.
    Raises: ValueError for too few cells.
    """
    whole = fit(form, measured, intervals=intervals, alone=alone)
    errors = _relative(whole, measured)
    fold = np.random.default_rng(seed).permutation(len(measured)) % FOLDS
    held_out = np.empty(len(measured))
    for number in np.unique(fold):
        held_out[fold == number] = _left_out(form, measured, fold == number, alone)
    levels = [
        _level(whole, measured, np.array([cell_level == level for cell_level in owns]), (factor, level), alone)
        for factor, owns in factors.items()
        for level in sorted(set(owns), key=_magnitude)
        if len(set(owns)) > 1
    ]
    return FormComparison(whole, errors, held_out, tuple(levels))


def _magnitude(level: str) -> float:
    """The place of a level such as 64kB, 6mbit or 10% among its like; words come first."""
    number = re.match(r"[0-9.]+", level)
    scale = {"k": 1e3, "m": 1e6, "M": 1e6, "g": 1e9, "G": 1e9}.get(level[number.end() :][:1], 1.0) if number else 1.0
    return float(number[0]) * (1.0 if level.endswith("ms") else scale) if number else -1.0


def _level(
    whole: Fitted, measured: MeasuredCells, own: npt.NDArray[np.bool_], name: tuple[str, str], alone: bool
) -> LeftOut:
    fitted = float(np.median(np.abs(_relative(whole, measured)[own])))
    held_out = None
    with suppress(ValueError):  # too few cells are left
        held_out = float(np.median(np.abs(_left_out(whole.form, measured, own, alone))))
    return LeftOut(*name, int(own.sum()), fitted, held_out)


def _left_out(form: Form, measured: MeasuredCells, own: npt.NDArray[np.bool_], alone: bool) -> Array:
    """Some cells' errors under a fit to the others."""
    others = fit(form, measured.chosen(np.flatnonzero(~own)), intervals=False, alone=alone)
    return _relative(others, measured.chosen(np.flatnonzero(own)))


def _relative(fitted: Fitted, measured: MeasuredCells) -> Array:
    return np.asarray(fitted.times(measured.cells) / measured.means - 1)
