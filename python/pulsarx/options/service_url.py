"""Reads a client's URL: a folder, a broker in memory, or a cluster. For the client.

some/folder  ./x  /x  ~/x  Path("x")     a folder; relative to where the process is now
file:x  file:/x  file:///x               a folder, with %20 and the like decoded
memory:  memory:name                     a broker of this process
pulsar://  pulsar+ssl://  http(s)://     a cluster: the folder that a route leads to, or none
s3://  gs://  abfs://  hdfs:// ...       an object store; no folder (`leads_to_store`)
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.errors import InvalidUrl

CLUSTER_SCHEMES = ("pulsar", "pulsar+ssl", "http", "https")
# Of object stores, of which the history is read; s3a and s3n as programs of Hadoop write s3.
STORE_SCHEMES = (
    "s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "wasbs", "hdfs", "viewfs", "oss",
)  # fmt: skip
HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")


class ServiceUrl:
    """A parsed URL: either a folder or the name of a broker in memory. Immutable."""

    __slots__ = ("folder", "is_lasting", "memory_name", "namespaces", "text")

    folder: str | None
    """Absolute path, or None."""
    memory_name: str | None
    """Name of the broker in memory, '' for the unnamed one, or None."""
    text: str
    """The given text, for errors."""
    namespaces: tuple[str, ...]
    """The namespaces that a client makes where it opens this, if they are not there."""
    is_lasting: bool
    """Whether this is a broker in memory that lasts as long as the process."""

    def __init__(
        self,
        text: str,
        folder: str | None,
        memory_name: str | None,
        namespaces: tuple[str, ...] = (),
        is_lasting: bool = False,
    ) -> None:
        self.is_lasting = is_lasting
        self.namespaces = namespaces
        self.text = text
        self.folder = folder
        self.memory_name = memory_name

    def __eq__(self, other: object) -> bool:
        """Tell whether both lead to the same place, however they are written."""
        if not isinstance(other, ServiceUrl):
            return NotImplemented
        return (self.folder, self.memory_name) == (other.folder, other.memory_name)

    def __hash__(self) -> int:
        return hash((self.folder, self.memory_name))

    def __repr__(self) -> str:
        return f"<ServiceUrl {self.text}>"


def parse_service_url(service_url: str | os.PathLike[str]) -> ServiceUrl:
    """ValueError for another type, InvalidUrl for what cannot be understood."""
    if isinstance(service_url, os.PathLike):
        path = os.fspath(service_url)
        if not isinstance(path, str):
            raise ValueError(f"service_url must be a path of str, not of {type(path).__name__}")
        return ServiceUrl(path, _absolute(path, path), None)
    if not isinstance(service_url, str):
        raise ValueError(
            "Argument service_url is expected to be of type 'str', 'AutoClusterFailover' or "
            "'ServiceInfoProvider'"
        )
    name, colon, rest = service_url.partition(":")
    scheme = name.lower()
    if not colon or not _is_scheme(scheme):
        return ServiceUrl(service_url, _absolute(service_url, service_url), None)
    if scheme == "file":
        return ServiceUrl(service_url, _absolute(_file_path(service_url, rest), service_url), None)
    if scheme == "memory":
        if not all(character.isalnum() or character in "-=._" for character in rest):
            raise InvalidUrl(
                detail=f"{service_url!r}: the name of a broker in memory has letters, digits and - "
                "= . _"
            )
        return ServiceUrl(service_url, None, rest)
    if scheme in CLUSTER_SCHEMES:
        return _routed(service_url)
    raise InvalidUrl(
        detail=f"{service_url!r}: unknown scheme {name!r}; give a folder, file:..., memory: or "
        f"memory:name (for a folder of that name write ./{service_url})"
    )


def leads_to_cluster(service_url: str) -> bool:
    """Whether a URL is of a cluster and no route leads from it to a folder."""
    if service_url.partition(":")[0].lower() not in CLUSTER_SCHEMES:
        return False
    try:
        parse_service_url(service_url)
    except errors.OperationNotSupported:
        return True
    except InvalidUrl:
        pass  # said by whoever opens it
    return False


def leads_to_store(service_url: str) -> bool:
    """Whether a URL is of an object store."""
    scheme, mark, _ = service_url.strip().partition("://")
    return bool(mark) and scheme.lower() in STORE_SCHEMES


def refuse_cluster(service_url: object, what: str) -> None:
    """OperationNotSupported when the URL is of a cluster, which `what` does not work with."""
    if isinstance(service_url, str) and leads_to_cluster(service_url):
        raise errors.OperationNotSupported(
            detail=f"{what} with {service_url!r}: no route leads from it to a folder, and on a "
            "cluster only pulsarx.Client works"
        )


def _routed(service_url: str) -> ServiceUrl:
    from pulsarx.options import routes

    place = routes.place_of(service_url)
    if place is None:
        raise errors.OperationNotSupported(
            detail=f"{service_url!r}: no route leads from it to a folder; name one with "
            f"pulsarx.install_as_pulsar(routes={{{service_url!r}: 'folder'}}), or all with "
            "python -m pulsarx run --root folder; for a cluster use the package pulsar-client"
        )
    return ServiceUrl(service_url, *place, routes.namespaces(), routes.are_lasting())


def _is_scheme(name: str) -> bool:
    letters = name.replace("+", "").replace("-", "").replace(".", "")
    return name[:1].isalpha() and name.isascii() and letters.isalnum()


def _absolute(path: str, given: str) -> str:
    if not path.strip():
        raise InvalidUrl(detail=f"{given!r}: the path of a folder is missing")
    if "\0" in path:
        raise InvalidUrl(detail=f"{given!r}: a path holds no zero byte")
    return os.path.abspath(os.path.expanduser(path))


def _file_path(given: str, rest: str) -> str:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost") or not slash:
            raise InvalidUrl(detail=f"{given!r}: a file URL names no host; write file:///folder")
        rest = slash + path
    if "?" in rest or "#" in rest:
        raise InvalidUrl(
            detail=f"{given!r}: a file URL has no query or fragment; write %3F and %23"
        )
    first, *escaped = rest.encode("utf-8", "surrogateescape").split(b"%")
    raw = bytearray(first)
    for part in escaped:
        if len(part) < 2 or not HEX_DIGITS.issuperset(part[:2]):
            raise InvalidUrl(detail=f"{given!r}: % must be followed by two hexadecimal digits")
        raw.append(int(part[:2], 16))
        raw += part[2:]
    return os.fsdecode(bytes(raw))
