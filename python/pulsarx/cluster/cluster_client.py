"""A client of a Pulsar cluster: what `Client` makes for its URL."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.open_state import OpenState
from pulsarx.client import Client
from pulsarx.cluster import official
from pulsarx.cluster.cluster_consumer import ClusterConsumer
from pulsarx.cluster.cluster_producer import ClusterProducer
from pulsarx.cluster.cluster_reader import ClusterReader
from pulsarx.cluster.cluster_table_view import ClusterTableView
from pulsarx.enumerations import HashingScheme
from pulsarx.ground.attempt import attempt
from pulsarx.ground.client_owner import give_back, take_back
from pulsarx.options.service_url import ServiceUrl, parse_service_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin import Admin
    from pulsarx.options.base import ClientOptions
    from pulsarx.options.members import (
        ConsumerOptions,
        ProducerOptions,
        ReaderOptions,
        TableViewOptions,
    )
    from pulsarx.topic_name import TopicName


class ClusterClient(Client):
    """A Client whose brokers are a cluster's: the official client behind our names. Any thread may
    use it.

    Consumers and readers live as long as it, or until they are closed.
    """

    def __init__(self, service_url: str, *arguments: Any, **options: Any) -> None:
        """Arguments are Client's. ImportError: the package pulsar-client is missing.
        OperationNotSupported: an option that brokers of a cluster have, not clients."""
        scheme, _, place = service_url.partition(":")
        self._cluster = f"{scheme.lower()}:{place}"
        super().__init__("memory:", *arguments, **options)

    def _open(self, options: ClientOptions) -> None:
        official.refuse(
            "Client",
            {
                "clock": options.clock is not None,
                "randomness": options.randomness is not None,
                "durability": options.durability not in (None, "sync"),
                "flush_interval_ms": options.flush_interval_ms not in (None, 100),
                "broker_options": options.broker_options is not None,
                "read_only": options.read_only,
                "exclusive": options.exclusive,
            },
            "it is of a folder; a cluster has brokers of its own",
        )
        official.refuse(
            "Client",
            {
                "memory_limit_bytes": options.memory_limit_bytes != 0,
                "enable_busy_wait": options.enable_busy_wait,
            },
            "the official client has no such option",
        )
        self._url = ServiceUrl(self._cluster, None, None)
        self._state = OpenState("client")
        try:
            module = official.native()
        except errors.OperationNotSupported:
            parse_service_url(self._cluster)  # says that no route leads from it
            raise
        conf = official.client_configuration(options)
        self._native = official.call(self._cluster, module.Client, self._cluster, conf)

    def _create_producer(self, options: ProducerOptions) -> Any:
        official.refuse(
            "create_producer",
            {"hashing_scheme": options.hashing_scheme != HashingScheme.JavaStringHash},
            "the official client has no such option",
        )
        producer: Any = ClusterProducer(self._native, self._state, options)
        self._owner.adopt(producer)
        return producer

    def _subscribe(self, options: ConsumerOptions) -> Any:
        consumer: Any = ClusterConsumer(self._native, self._state, options, self._pool)
        return self._take_over(consumer, take_back)

    def _create_reader(self, options: ReaderOptions) -> Any:
        reader: Any = ClusterReader(self._native, self._state, options)
        return self._take_over(reader, give_back)

    def _create_table_view(self, options: TableViewOptions) -> Any:
        view: Any = ClusterTableView(self._native, self._state, options)
        self._owner.adopt(view)
        return view

    def _topic_partitions(self, name: TopicName) -> list[str]:
        asked = self._native.get_topic_partitions
        return list(official.call(self._cluster, asked, str(name)))

    @property
    def admin(self) -> Admin:
        """OperationNotSupported."""
        raise errors.OperationNotSupported(
            detail="Client.admin on a cluster: it speaks to folders; use pulsar-admin or its REST "
            "API"
        )

    def new_transaction(self, timeout_millis: int = 60_000) -> Any:
        """OperationNotSupported."""
        raise errors.OperationNotSupported(
            detail="Client.new_transaction on a cluster: the official client has none in Python"
        )

    def _take_leave(self) -> None:
        failure = self._close_members()
        failure = attempt(self._close_native) or failure
        self._pool.close()
        if failure is not None:
            raise failure

    def _close_native(self) -> None:
        native = getattr(self, "_native", None)  # None: it was not opened
        if native is not None:
            official.call(self._cluster, native.close)
