"""Where a `crosswind serve` is reached: a name or an address, and the port of its control connections."""

import ipaddress
import re

from crosswind.study.value_type import ValueType
from crosswind.text.units import UnitError, shown

DEFAULT_PORT = 9470
EXAMPLE = "192.0.2.7:9470"

_HINT = "write HOST or HOST:PORT, as example.org, 192.0.2.7:9470 or [2001:db8::7]:9470"
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9._])?")
_IN_BRACKETS = re.compile(r"\[(?P<host>[^\]]*)\](:(?P<port>.*))?")


def server_address(text: object) -> str:
    """Host and port from a user's text: "example.org" is "example.org:9470", "::1" is "[::1]:9470".

    Raises: UnitError.
    """
    if not isinstance(text, str):
        raise UnitError(f"{shown(text)} is not the address of a server", hint=_HINT)
    host, port = _parted(text.strip())
    is_ipv6 = _is_ipv6(host)
    if not is_ipv6 and not _NAME.fullmatch(host):
        raise UnitError(f"{shown(text)} is not the address of a server", hint=_HINT)
    if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise UnitError(f"{shown(text)} has {shown(port)} where its port should be", hint="a port is from 1 to 65535")
    return f"[{host}]:{int(port)}" if is_ipv6 else f"{host}:{int(port)}"


def host_of(server: str) -> str:
    """The host of a `server_address`, without brackets."""
    return server.rpartition(":")[0].strip("[]")


def _parted(text: str) -> tuple[str, str]:
    """Host and port. A text with several colons is an address of IPv6 by itself."""
    if match := _IN_BRACKETS.fullmatch(text):
        host = match["host"]
        return (host if _is_ipv6(host) else ""), str(DEFAULT_PORT) if match["port"] is None else match["port"]
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host, port
    return text, str(DEFAULT_PORT)


def _is_ipv6(host: str) -> bool:
    try:
        # The zone of a link-local address, as fe80::1%eth0, is kept as it is.
        return isinstance(ipaddress.ip_address(host), ipaddress.IPv6Address)
    except ValueError:
        return False


SERVER = ValueType(server_address, {"type": "string"}, f'"{EXAMPLE}"', can_vary=False)
"""How `path.server` is read."""
