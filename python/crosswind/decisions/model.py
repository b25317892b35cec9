"""What the objects of results have in common."""

from pydantic import BaseModel, ConfigDict


class ResultModel(BaseModel):
    """An object of a result: never changed, and without fields that are not described."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)
