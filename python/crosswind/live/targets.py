"""The probed host, found by name."""

import socket
from dataclasses import dataclass
from typing import Any

from crosswind.errors import UsageError

ADDRESS_FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


@dataclass(frozen=True)
class Target:
    """A host. name: as the user wrote it. family: AF_INET or AF_INET6. address: as `socket.connect` takes it."""

    name: str
    family: int
    address: tuple[Any, ...]

    @property
    def number(self) -> str:
        """Its address, as text."""
        return str(self.address[0])

    @property
    def family_name(self) -> str:
        """Its address family: "ipv4" or "ipv6"."""
        return next(name for name, family in ADDRESS_FAMILIES.items() if family == self.family)

    def __str__(self) -> str:
        return self.name if self.name == self.number else f"{self.name} ({self.number})"


def find_target(name: str, *, family: str | None = None, port: int = 0) -> Target:
    """Looks a host up. Args: family: "ipv4" or "ipv6"; None: the resolver's preference. Raises: UsageError."""
    wanted = ADDRESS_FAMILIES[family] if family else socket.AF_UNSPEC
    try:
        addresses = socket.getaddrinfo(name, port, wanted, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        kind = f" with {family}" if family else ""
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(
            f"there is no host {name}{kind}: {reason}", hint="a name or an address, as example.org or 192.0.2.1"
        ) from error
    chosen, _, _, _, address = addresses[0]
    return Target(name, chosen, address)
