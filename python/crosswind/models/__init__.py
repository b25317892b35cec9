"""Models of protocols on a path, each with its source and its valid range.

One file a model: a function on numbers or arrays with units in its docstring, and `MODEL` with its assumptions and its
check for broken ones. `registry` lists them; `prediction` sets a prediction beside a measurement.
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
