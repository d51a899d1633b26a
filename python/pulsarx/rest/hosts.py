"""The host names under which a server may be asked.

Whoever owns a domain can have its name lead to any address, so that pages of it, in the browser of
somebody who reaches this server, may call it as their own (DNS rebinding). Where clients prove who
they are, such a page has nothing to prove that with.
"""

from __future__ import annotations

import ipaddress
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Of no domain that anybody can own: of the network the server is in.
_LOCAL_ENDS = (".local", ".localhost", ".internal", ".lan", ".home.arpa")


class Hosts:
    """A value."""

    __slots__ = ("_local_only", "_names")

    def __init__(self, *, local_only: bool, is_guarded: bool, advertised: Iterable[str]) -> None:
        """local_only: it listens on a loopback address, where no page of a browser that came from
        elsewhere has any business. is_guarded: clients prove who they are. advertised: the names
        that clients are led to."""
        self._local_only = local_only
        self._names: set[str] | None = None  # beside addresses; None: all
        if not is_guarded:
            names = (*advertised, os.uname().nodename)
            self._names = {each.lower().rstrip(".") for each in names}

    def flaw_of(self, host: str) -> str | None:
        """host: as a request has it. Why it is refused."""
        name = host_name(host).rstrip(".")
        if self._local_only:
            found = _is_loopback(name)
            return None if found else f"this server is a local one and not {host!r:.200}"
        if self._names is None or name in self._names or _is_of_no_domain(name):
            return None
        return (
            f"this server lets in who proves nothing, and is not known as {host!r:.200}; serve "
            "with that as the advertised address, or have clients prove who they are"
        )


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_of_no_domain(name: str) -> bool:
    """An address, or a name that nobody outside of the network can have."""
    if "." not in name or name.endswith(_LOCAL_ENDS):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
