"""Models of what a protocol should do on a path, each with its source and the range in which it holds.

One file a model: a function on numbers or arrays, whose docstring gives units, and `MODEL`, which names its assumptions
and those that a cell breaks. `registry` lists them; `prediction` sets what one says beside a measurement.
"""

from crosswind.models.model import Model
from crosswind.models.prediction import Prediction, predict, predict_situation
from crosswind.models.registry import MODELS, model_named, unknown_models
from crosswind.models.situation import Situation, situation

__all__ = [
    "MODELS",
    "Model",
    "Prediction",
    "Situation",
    "model_named",
    "predict",
    "predict_situation",
    "situation",
    "unknown_models",
]
