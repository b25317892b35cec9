"""Common ground for the protocol's types (docs/cell-protocol.md)."""

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict


class ProtocolObject(BaseModel):
    """An object of the protocol. Numbers and texts are taken as they are, never converted."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="allow", defer_build=True, populate_by_name=True, serialize_by_alias=True
    )


T = TypeVar("T")


class Ends(ProtocolObject, Generic[T]):
    """The same for client and server."""

    client: T
    server: T


class Directions(ProtocolObject, Generic[T]):
    """The same for each direction."""

    forward: T
    reverse: T
