"""Which addresses a service may have: those of the internet, and others only where the user allows them.

A name can mean one address when it is looked at and another when it is asked. So a request goes to an address that was
looked at; the name is only what the service is told, and what its certificate must be for.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlsplit

from stockade.core.errors import ModelError, NoAnswer

_PORTS = {"http": 80, "https": 443}
_SECRET = re.compile(r"key|token|secret|passw|signature|\bsig\b|auth", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a service is.

    Parameters
    ----------
    scheme, host, port
        How, whom and where to ask.
    target
        The path and the query of the URL.
    """

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, url: str) -> Endpoint:
        """The endpoint of a URL; one that holds a secret, or none at all, is a `ModelError` of one sentence."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ModelError(f"{_shown(url)} is no URL ({error}).") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ModelError(f"{_shown(url)} is no URL of a service, expected https://host/path.")
        if parts.username is not None or parts.password is not None:
            raise ModelError(
                f"The URL of {parts.hostname} has a user or password in it, which would be recorded. Put it into an "
                "environment variable, and name that in a header: --setting 'headers.Authorization=Basic ${NAME}'."
            )
        for name, value in parse_qsl(parts.query):
            if value and _SECRET.search(name):
                raise ModelError(
                    f'The URL of {parts.hostname} has a value for "{name}", which would be recorded. Put it into an '
                    "environment variable, and name that in a header: --setting 'headers.NAME=${NAME}'."
                )
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], _target(parts))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def authority(self) -> str:
        """The host as a service is told it: with the port, if that is an unusual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def at(self, address: str) -> str:
        """The URL with an address in place of the host."""
        host = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{host}:{self.port}{self.target}"

    def redirected(self, location: str) -> Endpoint | None:
        """The endpoint that an answer points to; None if it is another host, port or scheme."""
        try:
            parts = urlsplit(location)
            port = parts.port
        except ValueError:
            return None
        scheme = parts.scheme or self.scheme
        if scheme != self.scheme or (
            parts.hostname and (parts.hostname, port or _PORTS[scheme]) != (self.host, self.port)
        ):
            return None
        return Endpoint(self.scheme, self.host, self.port, _target(parts)) if parts.path.startswith("/") else None


def addresses_of(endpoint: Endpoint, *, allow_private: bool) -> list[str]:
    """The addresses of a service.

    Parameters
    ----------
    endpoint
        The service.
    allow_private
        Whether it may be this machine or in a private network.
    """
    try:
        entries = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"The host {endpoint.host} cannot be found ({error}).") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    private = [address for address in addresses if not is_public(address)]
    if private and not allow_private:
        raise ModelError(
            f"{endpoint.host} is {private[0]}, an address of this machine or of a private network, which is not asked "
            "unless you allow it: allow_private=True / --allow-private."
        )
    return addresses


def is_public(address: str) -> bool:
    """Whether an address is one of the internet.

    Parameters
    ----------
    address
        IPv4 or IPv6, the latter with or without a zone.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(parsed, "ipv4_mapped", None) or getattr(parsed, "sixtofour", None)
    return bool((inner or parsed).is_global and not (inner or parsed).is_multicast)


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _shown(url: str) -> str:
    """A URL for an error, without what may be a password."""
    return re.sub(r"//[^/@]*@", "//…@", url)[:120]
