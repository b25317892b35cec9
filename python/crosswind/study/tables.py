"""Common ground for a study file's tables, as pydantic models."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from crosswind.catalog.metrics import SHARE_STATISTIC, STATISTICS

TomlValue = str | int | float | bool
WhereTable = dict[str, TomlValue]
BoundValue = str | int | float
# Means first: the order in messages and schemas.
_NAMES = tuple(sorted(STATISTICS, key=lambda name: STATISTICS[name].quantile is not None))
if TYPE_CHECKING:
    StatisticName: TypeAlias = str
    BesideMean: TypeAlias = str
    OrShare: TypeAlias = str
else:
    StatisticName = Literal[_NAMES]
    BesideMean = Literal[tuple(name for name in _NAMES if not STATISTICS[name].is_mean)]
    OrShare = Literal[*_NAMES, SHARE_STATISTIC]


class TomlTable(BaseModel):
    """A table of the file: unknown keys are errors, and nothing is converted silently."""

    # Deferred: only the whole document's model is ever built, with the inner ones inside.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)
