"""The routes of this process: which service URL of a cluster leads to which folder.

They are set by `pulsarx.install_as_pulsar` and asked by whatever opens a service URL. Two URLs are
of one cluster when their hosts are the same; localhost, 127.0.0.1 and [::1] are one host, and so
are the ports that a broker listens on when it is told nothing (6650, 6651, 8080, 8443).
"""

from __future__ import annotations

from pulsarx.errors import InvalidConfiguration, InvalidUrl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Place = tuple[str | None, str | None]  # an absolute folder, or the name of a broker in memory

LOCAL = frozenset(("localhost", "127.0.0.1", "[::1]"))
STANDARD_PORTS = frozenset(("", "6650", "6651", "8080", "8443"))

_places: dict[str, Place] = {}  # by cluster; replaced as a whole, never changed
_root: Place | None = None  # of every cluster that has no place of its own
_namespaces: tuple[str, ...] = ()  # which a client makes where it opens a cluster
_are_lasting = False


def cluster_of(service_url: str) -> str:
    """The name of the cluster that a URL leads to. InvalidUrl: no host, or a path behind it."""
    scheme, _, rest = service_url.partition("://")
    hosts, slash, path = rest.partition("/")
    if not hosts or path or "?" in hosts or "#" in hosts or "@" in hosts:
        raise InvalidUrl(
            detail=f"{service_url!r}: a cluster is written {scheme or 'pulsar'}://host:port"
        )
    return ",".join(_host(each, service_url) for each in hosts.split(","))


def _host(address: str, service_url: str) -> str:
    host, colon, port = address.rpartition(":")
    if not colon or port.endswith("]"):  # of an IPv6 address without a port
        host, port = address, ""
    if not host or (port and not (port.isascii() and port.isdigit())):
        raise InvalidUrl(detail=f"{service_url!r}: {address!r} is not host:port")
    host = host.lower()
    host = "localhost" if host in LOCAL else host
    return host if port in STANDARD_PORTS else f"{host}:{port}"


def add(places: Mapping[str, Place], root: Place | None, namespaces: tuple[str, ...] = ()) -> None:
    """Add routes, by service URL. InvalidConfiguration: one leads elsewhere already; nothing is
    added then."""
    global _namespaces, _places, _root
    found = dict(_places)
    for service_url, place in places.items():
        cluster = cluster_of(service_url)
        if found.setdefault(cluster, place) != place:
            raise InvalidConfiguration(
                detail=f"{service_url} leads to {shown(found[cluster])} already, and cannot lead "
                f"to {shown(place)} too; call pulsarx.uninstall_as_pulsar() before"
            )
    if root is not None and _root is not None and root != _root:
        raise InvalidConfiguration(
            detail=f"the root is {shown(_root)} already, and cannot be {shown(root)} too; "
            "call pulsarx.uninstall_as_pulsar() before"
        )
    _places, _root = found, root or _root
    _namespaces = tuple(dict.fromkeys((*_namespaces, *namespaces)))


def clear() -> None:
    global _are_lasting, _namespaces, _places, _root
    _places, _root, _namespaces, _are_lasting = {}, None, (), False


def last() -> None:
    """Have clusters in memory last from now on as long as the process, as a cluster outlives its
    clients."""
    global _are_lasting
    _are_lasting = True


def are_lasting() -> bool:
    return _are_lasting


def namespaces() -> tuple[str, ...]:
    """The namespaces that every cluster shall have."""
    return _namespaces


def folders() -> tuple[dict[str, str], str | None, tuple[str, ...]]:
    """The clusters that are folders, the root where that is one, and the namespaces."""
    places = {cluster: folder for cluster, (folder, _) in _places.items() if folder is not None}
    return places, None if _root is None else _root[0], _namespaces


def place_of(service_url: str) -> Place | None:
    """Return the place that a cluster's URL leads to in this process; None: no route is given."""
    cluster = cluster_of(service_url)
    place = _places.get(cluster)
    if place is not None or _root is None:
        return place
    name = "".join(each if each.isalnum() or each in "-." else "_" for each in cluster)
    folder, memory_name = _root
    if folder is not None:
        return f"{folder}/{name}", None
    return None, f"{memory_name}-{name}" if memory_name else name


def shown(place: Place) -> str:
    folder, memory_name = place
    return folder if folder is not None else f"memory:{memory_name}"
