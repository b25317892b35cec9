"""Common ground for the protocol's types (docs/cell-protocol.md)."""

from pydantic import BaseModel, ConfigDict


class ProtocolObject(BaseModel):
    """An object of the protocol. Numbers and texts are taken as they are, never converted."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="allow", defer_build=True, populate_by_name=True, serialize_by_alias=True
    )
