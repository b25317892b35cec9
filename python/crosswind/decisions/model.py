"""What the objects of results have in common."""

from pydantic import BaseModel, ConfigDict


class ResultModel(BaseModel):
    """An immutable object in a result, without undescribed fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)
