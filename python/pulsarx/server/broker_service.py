"""Serves the topics of a client's folder over TCP, in Pulsar's binary protocol."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.when_forgotten import WhenForgotten
from pulsarx.broker.broker import Broker
from pulsarx.server.network_service import NetworkService

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.client import Client

DEFAULT_PORT = 6650


def serve(
    client: Client,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    allow_anonymous: bool = False,
) -> BrokerService:
    """Let programs with any client of Pulsar use the folder of a client, until the service or the
    last client of the folder in this process is closed.

    host, port: where to listen; port 0 takes a free one. allow_anonymous: listen on another address
    than loopback, where nobody is asked who he is.
    InvalidConfiguration: such an address without it. ConnectError: it cannot be listened to there.
    """
    return BrokerService(client, host, port, allow_anonymous=allow_anonymous)


class BrokerService:
    """Listens from when it is made until it is closed, or forgotten. Any thread may call."""

    def __init__(
        self,
        client: Client,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        *,
        allow_anonymous: bool = False,
    ) -> None:
        """See serve."""
        client._require_writable("serve")
        broker: Any = client._broker
        if not isinstance(broker, Broker):
            raise errors.OperationNotSupported("serve: the client has no folder of its own")
        self._client = client  # which is closed when it is forgotten
        arguments = (broker, host, port, allow_anonymous)
        control_plane.perform(self._open, arguments, lambda network: network.close())

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
        return self._network.port

    @property
    def service_url(self) -> str:
        """What a client of Pulsar opens, where the address is not one for all of a host's."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"pulsar://{host}:{self.port}"

    def close(self) -> None:
        """Do what clients have asked for up to now, answer, and hang up. The folder stays open.
        Idempotent; in a forked child, which serves nobody, nothing."""
        control_plane.perform(self._network.close)

    def __enter__(self) -> BrokerService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
