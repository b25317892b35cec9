"""Reading one key's values: a `ValueType`, in `Annotated[Values, ValueType(...)]` in a pydantic model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crosswind.study.levels import Level, Value, Values, text_of
from crosswind.text.units import UnitError, shown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

MAX_LEVELS = 10_000


@dataclass(frozen=True)
class ValueType:
    """How to read one value.

    Args: parse: raw TOML value to its meaning, raises UnitError. schema: one value's JSON Schema. example: as in a
        file. is_list: one value is a list (of arguments); a factor is a list of lists. can_vary: False refuses lists.
        is_peer: a value may name a peer. is_series: one value is several numbers. read: raw TOML to all values, if more
        than `parse` for each.
    """

    parse: Callable[[object], Value]
    schema: dict[str, Any] = field(hash=False)
    example: str
    is_list: bool = False
    can_vary: bool = True
    is_peer: bool = False
    is_series: bool = False
    read: Callable[[object], Values] | None = None

    def level(self, raw: object) -> Level:
        """One value, read. Raises: UnitError."""
        return Level(text_of(raw), self.parse(raw), raw)

    def values(self, raw: object) -> Values:
        """One value or a list of them, read; a list must have different levels. Raises: UnitError."""
        if self.read is not None:
            return self.read(raw)
        is_factor = isinstance(raw, list) and not (self.is_list and not any(isinstance(item, list) for item in raw))
        if not is_factor:
            return Values((self.level(raw),), raw=raw)
        assert isinstance(raw, list)
        if not self.can_vary:
            raise UnitError(f"{shown(raw)} is a list", hint="this key takes one value; use one [[part]] for each")
        if not raw:
            raise UnitError("the list is empty", hint="a list is a factor and needs at least one level")
        if len(raw) > MAX_LEVELS:
            raise UnitError(f"the list has {len(raw)} levels", hint=f"at most {MAX_LEVELS}")
        levels = tuple(self.level(item) for item in raw)
        seen: dict[Value, Level] = {}
        texts: set[str] = set()
        for level in levels:
            if level.value in seen:
                first = seen[level.value].text
                same = "twice" if first == level.text else f'and "{first}", which are the same'
                raise UnitError(f'the list has "{level.text}" {same}', hint="the levels of a factor must differ")
            if level.text in texts:
                message = f'the list has two levels that are called "{level.text}"'
                raise UnitError(message, hint="reports tell levels apart by their names: give one another")
            seen[level.value] = level
            texts.add(level.text)
        return Values(levels, is_factor=True, raw=raw)

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.values)

    def __get_pydantic_json_schema__(self, schema: "CoreSchema", handler: "GetJsonSchemaHandler") -> "JsonSchemaValue":
        if not self.can_vary:
            return dict(self.schema)
        return {"anyOf": [self.schema, {"type": "array", "items": self.schema, "minItems": 1, "uniqueItems": True}]}


def pattern_schema(pattern: str) -> dict[str, Any]:
    """The JSON Schema of texts, with spaces around them or not."""
    return {"type": "string", "pattern": rf"^\s*({pattern})\s*$"}
