"""Common ground for a study file's tables, as pydantic models."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

TomlValue = str | int | float | bool
WhereTable = dict[str, TomlValue]
BoundValue = str | int | float
StatisticName = Literal["mean", "trimmed_mean", "median", "p95", "p99"]


class TomlTable(BaseModel):
    """A table of the file: unknown keys are errors, and nothing is converted silently."""

    # Deferred: only the whole document's model is ever built, with the inner ones inside.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)
