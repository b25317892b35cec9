"""Fits models to a run's transfers: bounded, on logarithms of times, judged by left-out cells."""

from crosswind.models.fitting.compare import FormComparison, LeftOut, compare
from crosswind.models.fitting.fit import Fitted, fit
from crosswind.models.fitting.forms import FORMS, Cells, Coefficient, Form
from crosswind.models.fitting.measured import MeasuredCells

__all__ = [
    "FORMS",
    "Cells",
    "Coefficient",
    "Fitted",
    "Form",
    "FormComparison",
    "LeftOut",
    "MeasuredCells",
    "compare",
    "fit",
]
"""The interface for `crosswind fit`. It imports scipy, slowly."""
