"""Serves the topics of a client's folder over TCP, in Pulsar's binary protocol."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.when_forgotten import WhenForgotten
from pulsarx.access.service_settings import DEFAULT_PORT, ServiceSettings
from pulsarx.broker.broker import Broker
from pulsarx.server.network_service import NetworkService

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from pulsarx.access.access_settings import AccessSettings
    from pulsarx.access.tls_settings import TlsSettings
    from pulsarx.client import Client


def serve(
    client: Client,
    *,
    host: str = "127.0.0.1",
    port: int | None = DEFAULT_PORT,
    allow_anonymous: bool = False,
    access: AccessSettings | None = None,
    tls: TlsSettings | None = None,
    tls_port: int | None = None,
    advertised_address: str | None = None,
    advertised_listeners: Mapping[str, str | Iterable[str]] | None = None,
) -> BrokerService:
    """Let programs with any client of Pulsar use the folder of a client, until the service or the
    last client of the folder in this process is closed.

    host, port: where to listen; port 0 takes a free one, and with None only TLS is spoken. access:
    how clients prove who they are, who then may do what they were granted. allow_anonymous: listen
    on another address than loopback, where nobody is asked who he is. tls, tls_port: listen there
    too, 6651 unless told, with TLS. advertised_address: the name of this host that clients are led
    to; else the address that they have reached. advertised_listeners: URLs by name, one or two (one
    of them with TLS), to which clients are led that ask for the name (their listener_name).
    InvalidConfiguration: another address than loopback without access or allow_anonymous; settings
    that do not fit together; files that cannot be used. ConnectError: it cannot be listened to
    there. ImportError: a package is missing; the text says which.
    """
    settings = ServiceSettings(
        host,
        port,
        allow_anonymous=allow_anonymous,
        access=access,
        tls=tls,
        tls_port=tls_port,
        advertised_address=advertised_address,
        advertised_listeners=advertised_listeners,
    )
    return BrokerService(client, settings)


class BrokerService:
    """Listens from when it is made until it is closed, or forgotten. Any thread may call."""

    def __init__(self, client: Client, settings: ServiceSettings) -> None:
        """See serve."""
        client._require_writable("serve")
        broker: Any = client._broker
        if not isinstance(broker, Broker):
            raise errors.FolderOwnedError(
                detail=f"serve {broker.name}: process {broker.connection.owner_pid} owns the "
                "folder, and only its owner serves it",
                folder=broker.name,
                pid=broker.connection.owner_pid,
            )
        self._client = client  # which is closed when it is forgotten
        control_plane.perform(self._open, (broker, settings), lambda network: network.close())

    def _open(self, *arguments: Any) -> NetworkService:
        self._network = NetworkService(*arguments)
        self._forgotten = WhenForgotten(control_plane.post, self._network.close)
        return self._network

    @property
    def host(self) -> str:
        """The address that is listened to."""
        return self._network.host

    @property
    def port(self) -> int:
        """The one without TLS, where there is one."""
        found = self._network.port or self._network.tls_port
        assert found is not None
        return found

    @property
    def tls_port(self) -> int | None:
        """None: TLS is not spoken."""
        return self._network.tls_port

    @property
    def service_url(self) -> str:
        """The URL that a client of Pulsar opens, if the address is not one for all of a host's;
        with TLS where nothing else is spoken."""
        plain, secure = self._network.urls(self.host)
        found = plain or secure
        assert found is not None
        return found

    @property
    def service_url_tls(self) -> str | None:
        """The URL that a client opens to speak TLS; None: it is not spoken."""
        return self._network.urls(self.host)[1]

    def close(self) -> None:
        """Do what clients have asked for up to now, answer, and hang up. The folder stays open.
        Idempotent; in a forked child, which serves nobody, nothing."""
        control_plane.perform(self._network.close)

    def __enter__(self) -> BrokerService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
