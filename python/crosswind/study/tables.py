"""What the tables of a study file have in common, as pydantic models."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

TomlValue = str | int | float | bool
WhereTable = dict[str, TomlValue]
BoundValue = str | int | float
StatisticName = Literal["mean", "trimmed_mean", "median", "p95", "p99"]


class TomlTable(BaseModel):
    """A table of the file: unknown keys are errors, and nothing is converted silently."""

    # Deferred: only the model of the whole document is ever built, the inner ones as parts of it.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)
