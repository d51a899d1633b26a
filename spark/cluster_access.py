"""Reaches a Pulsar cluster: its brokers through the official client, and its admin REST API.

Of the driver and of tasks, which each connect by themselves.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.admin.http_channel import HttpChannel
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.client import Client
    from pulsarx.spark.cluster_credentials import ClusterCredentials
    from pulsarx.spark.options import Options


class ClusterAccess:
    """A value that pickles: it travels to the tasks, with what proves who we are."""

    __slots__ = ("service_url", "admin_url", "credentials")

    def __init__(self, service_url: str, admin_url: str, credentials: ClusterCredentials) -> None:
        self.service_url: str = service_url
        self.admin_url: str = admin_url
        self.credentials: ClusterCredentials = credentials

    @staticmethod
    def of(options: Options) -> ClusterAccess:
        return ClusterAccess(options.root, options.adminUrl, options.credentials)

    def __reduce__(self) -> tuple[Any, ...]:
        return ClusterAccess, tuple(getattr(self, name) for name in self.__slots__)

    def __repr__(self) -> str:
        return f"ClusterAccess({self.service_url!r}, {self.admin_url!r})"  # no secret

    def admin(self) -> HttpChannel:
        """InvalidConfiguration: a file of the credentials cannot be read on this host."""
        given = self.credentials
        return HttpChannel(
            self.admin_url, given.authentication(), given.trusted, **given.for_http()
        )

    def client(self) -> Client:
        """ImportError: the package pulsar-client is missing. InvalidConfiguration: as admin."""
        from pulsarx.cluster.cluster_client import ClusterClient
        from pulsarx.enumerations import LoggerLevel
        from pulsarx.options.loggers import ConsoleLogger

        return ClusterClient(
            self.service_url,
            logger=ConsoleLogger(LoggerLevel.Error),
            **self.credentials.for_client(),
        )


def topic_path(topic: str) -> str:
    """The path of a topic in the admin API."""
    from urllib.parse import quote_plus

    name = TopicName.of(topic)
    return f"/{name.domain}/{name.namespace_name}/{quote_plus(name.local_name)}"


def partition_count(admin: HttpChannel, topic: str) -> int | None:
    """0: it has none. None: there is no such topic."""
    try:
        found = admin.json(f"{topic_path(topic)}/partitions", checkAllowAutoCreation="false")
        count = int(found["partitions"])
        if not count:
            admin.json(f"{topic_path(topic)}/internalStats")
        return count
    except errors.TopicNotFound:
        return None
