"""The folder that a command line is about: how its commands reach it, with or without an owner."""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.cli.output import Output
from pulsarx.options.service_url import CLUSTER_SCHEMES, parse_service_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin import Admin
    from pulsarx.admin.http_channel import HttpChannel
    from pulsarx.client import Client
    from pulsarx.options.authentication import Authentication

VARIABLE = "PULSARX_URL"
_TOKEN_VARIABLE = "PULSARX_TOKEN"  # not an option: others see the command line
_AUTHORITIES_VARIABLE = "SSL_CERT_FILE"  # of OpenSSL, which the admin REST API heeds by itself


def given_authentication() -> Authentication | None:
    """At a URL."""
    token = os.environ.get(_TOKEN_VARIABLE)
    if not token:
        return None
    from pulsarx.options.authentication import AuthenticationToken

    return AuthenticationToken(token)


class Folder:
    """The folder that the command line names. It is made by `make` alone, and never owned for
    longer than a request or, for messages that are published or acknowledged, the work on those."""

    def __init__(self) -> None:
        self.url: str | None = None
        self.output: Output = Output()
        self.asked_topic = ""  # by a command whose arguments do not name it
        self.advice = ""  # the text of the error that ended the command, in words of the latter

    @property
    def place(self) -> str:
        """The folder or URL as it was given, or the current folder."""
        return self.url or os.environ.get(VARIABLE) or "."

    @property
    def is_http(self) -> bool:
        """Whether it is the URL of an admin REST API."""
        return self.place.partition("://")[0].lower() in ("http", "https")

    @property
    def path(self) -> str:
        """InvalidUrl: it can be no folder."""
        url = self.place
        if url.partition(":")[0].lower() in CLUSTER_SCHEMES:
            raise errors.InvalidUrl(
                detail=f"{url!r}: this command works on a folder; give --url FOLDER. On pulsar:// "
                "and http:// URLs work produce, consume, read and perf, and on http:// ones ls, "
                "stats, top, tail, peek, seek, skip, clear, replay-dlq, check, backup, topics, "
                "subscriptions, namespaces, tenants, schemas and transactions"
            )
        path = parse_service_url(url).folder
        if path is None:
            raise errors.InvalidUrl(
                detail=f"{url!r}: what is in the memory of a process cannot be reached from "
                "another one; give --url FOLDER"
            )
        return path

    def to_read(self) -> tuple[str, dict[str, Any]]:
        """Return what pulsarx.backups takes, and with which arguments: the folder, or the URL of
        the server that reads it. InvalidUrl: it can be neither."""
        if not self.is_http:
            return self.path, {}
        return self.place, {"authentication": given_authentication()}

    @property
    def is_cluster(self) -> bool:
        """Whether it is the URL of a cluster, which messages go to through the official client."""
        return self.place.partition("://")[0].lower() in CLUSTER_SCHEMES

    def connected(self, action: str) -> Client:
        """Open a client of a cluster, if this is the URL of one; else like owned."""
        if not self.is_cluster:
            return self.owned(action)
        from pulsarx.client import Client
        from pulsarx.enumerations import LoggerLevel
        from pulsarx.options.loggers import FileLogger

        # Without one the official client writes all it does to the standard output.
        return Client(
            self.place,
            authentication=given_authentication(),
            tls_trust_certs_file_path=os.environ.get(_AUTHORITIES_VARIABLE) or None,
            logger=FileLogger(LoggerLevel.Warn, "/dev/stderr"),
        )

    def admin(self) -> Admin:
        """Asks the owner; what only reads is read here where there is none. Or the REST API."""
        from pulsarx.admin import Admin

        if not self.is_http:
            return Admin.at(self.path)
        return Admin.at(self.place, authentication=given_authentication())

    def channel(self) -> HttpChannel:
        """Open the channel to the server at an http:// URL, for what is not in the API of
        Pulsar."""
        from pulsarx.admin.http_channel import HttpChannel

        return HttpChannel(self.place, given_authentication())

    def make(self) -> bool:
        """Make the folder. False: it is there already. FolderError: something else is there."""
        path = self.path
        if (os.path.isdir(path) and not os.listdir(path)) or not os.path.exists(path):
            from pulsarx.client import Client

            Client(path).close()
            return True
        self.read_only().close()  # refuses what is no data directory
        return False

    def read_only(self) -> Client:
        """Open a client that reads beside the owner."""
        from pulsarx.client import Client

        return Client(self.path, read_only=True)

    def reading(self) -> Client:
        """Open a client to read messages with: like read_only, or of a cluster, if this is the URL
        of one."""
        return self.connected("read") if self.is_cluster else self.read_only()

    def owned(self, action: str) -> Client:
        """Open a client that uses the folder through its owner or, while it has none, owns it.
        FolderOwnedError: another process is the owner, and shares it with nobody."""
        from pulsarx.client import Client

        class Visitor(Client):
            """Others come first, where the folder loses its owner meanwhile."""

            _may_own = False

        path = self.path
        self.read_only().close()  # refuses what is no data directory, which would become one
        try:
            return Visitor(path)
        except errors.FolderOwnedError as error:
            who = "another process" if error.pid is None else f"process {error.pid}"
            raise errors.FolderOwnedError(
                detail=f"{path} is owned by {who}, which cannot share it with `pulsarx {action}`: "
                f"{errors.detail_of(error)} Do it in {who}, or stop that and try again; ls, stats, "
                "top, check, tail, read, peek, seek, skip, clear, backup and the groups work "
                "beside it",
                folder=path,
                pid=error.pid,
            ) from None
