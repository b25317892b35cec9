"""Two texts about hosts: the sizes of TCP's buffers, as their sysctls have them, and who resolves names."""

import ipaddress
import re

from crosswind.study.kind import Kind
from crosswind.units import UnitError, shown

_SIZES = re.compile(r"\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*", re.ASCII)
_PLACEHOLDERS = ("{server}", "{address}", "{client}")


def _sizes(raw: object) -> str:
    found = _SIZES.fullmatch(raw) if isinstance(raw, str) else None
    sizes = [int(size) for size in found.groups()] if found else []
    if not sizes or not 1 <= sizes[0] <= sizes[1] <= sizes[2] < 1 << 31:
        hint = 'the least, the first and the greatest, in bytes, as in "4096 131072 6291456"'
        raise UnitError(f"{shown(raw)} is not three sizes", hint=hint)
    return " ".join(map(str, sizes))


def _resolver(raw: object) -> str:
    try:
        if isinstance(raw, str) and (raw in _PLACEHOLDERS or ipaddress.ip_address(raw)):
            return raw
    except ValueError:
        pass
    raise UnitError(
        f"{shown(raw)} is not an address", hint="{address} is that of the server, which may run a resolver on port 53"
    )


_BUFFERS = Kind(_sizes, {"type": "string"}, '"4096 131072 6291456"')

TEXTS = {
    "tcp_rmem": _BUFFERS,
    "tcp_wmem": _BUFFERS,
    "resolver": Kind(_resolver, {"type": "string"}, '"{address}"'),
}
"""How these keys are read, whose texts are more than a name."""
