"""A folder that is forwarded to a centre, another folder or one behind Pulsar's protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.ports import port_to_come_back_to
from support.waiting import wait_until

import pulsarx
from pulsarx.rest import serve_http
from pulsarx.server import BrokerService, serve

TOPIC = "persistent://public/default/t"


class Centre:
    """A folder, which is served where it is reached as a cluster."""

    def __init__(self, folder: Path, is_cluster: bool, deduplicates: bool = True) -> None:
        self.folder = folder
        self.is_cluster = is_cluster
        self.client = pulsarx.Client(folder, durability="os")
        if deduplicates:
            self.client.admin.namespaces.set_deduplication("public/default", True)
        self.service: BrokerService | None = None
        self._http: Any = None
        self._port = port_to_come_back_to() if is_cluster else 0
        if is_cluster:
            self.serve()

    def serve(self) -> None:
        """Be there, always at the same port."""
        self.service = serve(self.client, port=self._port)

    def leave(self) -> None:
        """Be away."""
        assert self.service is not None
        self.service.close()
        self.service = None

    def cut(self) -> None:
        """End all connections, as a broken network would."""
        assert self.service is not None
        network = self.service._network
        for each in list(network.connections):
            network.loop.call_soon_threadsafe(each.abort)

    @property
    def place(self) -> Any:
        """What a forwarder is given."""
        return self.service.service_url if self.service is not None else self.client

    @property
    def admin_url(self) -> str:
        if self._http is None:
            assert self.service is not None
            self._http = serve_http(self.client, port=0, broker_port=self.service.port)
        return str(self._http.url)

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
        if self.service is not None:
            self.service.close()
        self.client.shutdown()


def arrived(client: pulsarx.Client, topic: str = TOPIC) -> list[Any]:
    """All messages of a topic, in order."""
    found = []
    with client.create_reader(topic, pulsarx.MessageId.earliest) as reader:
        while reader.has_message_available():
            found.append(reader.read_next())
    return found


def payloads(client: pulsarx.Client, topic: str = TOPIC) -> list[bytes]:
    return [each.data() for each in arrived(client, topic)]


def await_lag(forwarder: pulsarx.Forwarder, topic: str = TOPIC, lag: int = 0) -> dict[str, Any]:
    """Until so many messages are left at the source; the status then."""
    found: dict[str, Any] = {}

    def is_there() -> bool:
        found.update(forwarder.status().get(topic, {"lag": None}))
        return bool(found["lag"] == lag)

    wait_until(is_there, f"the lag is not {lag}: {forwarder.status()}")
    return found


def await_stopped(forwarder: pulsarx.Forwarder, topic: str = TOPIC) -> str:
    """Until a topic has stopped; its error."""
    wait_until(
        lambda: forwarder.status().get(topic, {}).get("state") == "stopped",
        f"it does not stop: {forwarder.status()}",
    )
    return str(forwarder.status()[topic]["last_error"])
