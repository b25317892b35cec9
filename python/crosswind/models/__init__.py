"""Models of what a protocol should do on a path, each with its source and the range in which it holds.

One file a model: a function whose docstring gives units, and `valid`, which names the assumptions that a cell breaks.
`registry` reads a cell's parameters and sets a prediction beside the measurement.
"""

from crosswind.models.registry import MODELS, Prediction, model_named, predict, predict_situation, unknown_models
from crosswind.models.situation import Situation, situation

__all__ = [
    "MODELS",
    "Prediction",
    "Situation",
    "model_named",
    "predict",
    "predict_situation",
    "situation",
    "unknown_models",
]
