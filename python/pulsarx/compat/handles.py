"""The native client, producer, consumer, reader and table view of `_pulsar`: what the classes of
`pulsar` wrap there. Here it is the other way round: each of these holds one of ours.

Their payloads are bytes, whatever schema is declared. The calls that take a callback are refused.
"""

from __future__ import annotations

from pulsarx import client as ours
from pulsarx.compat.builders import BuiltMessage
from pulsarx.compat.configurations import (
    ClientConfiguration,
    ConsumerConfiguration,
    ProducerConfiguration,
    ReaderConfiguration,
    TableViewConfiguration,
)
from pulsarx.errors import OperationNotSupported
from pulsarx.options.argument_check import native_type
from pulsarx.options.consumer_policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
)
from pulsarx.options.service_info import AutoClusterFailover, ServiceInfo
from pulsarx.schema.schema import BytesSchema, SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from pulsarx.message import Message
    from pulsarx.message_id import MessageId


class DeclaredSchema(BytesSchema):
    """Declares a schema to the topic, and leaves payloads as they are."""

    def __init__(self, info: SchemaInfo) -> None:
        super().__init__()
        self._schema_info = info


def _arguments(configuration: Any, kind: type) -> dict[str, Any]:
    native_type(kind, configuration, "configuration")
    found: dict[str, Any] = configuration.arguments()
    if "schema" in found:
        found["schema"] = DeclaredSchema(found["schema"])
    return found


class _Refused:
    """A call that takes a callback."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.__name__ = name
        self.__qualname__ = f"{owner.__name__}.{name}"

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise OperationNotSupported(
            detail=f"_pulsar.{self.__qualname__}: the calls of _pulsar that take a callback are "
            "not supported; use the classes of pulsar"
        )


class Client:
    """A native client."""

    def __init__(self, service_url: Any, configuration: ClientConfiguration) -> None:
        self._client = ours.Client(service_url, **_arguments(configuration, ClientConfiguration))

    @classmethod
    def of(cls, client: ours.Client) -> Client:
        """The one of a client that is open."""
        found = cls.__new__(cls)
        found._client = client
        return found

    @staticmethod
    def create_auto_cluster_failover(
        primary: ServiceInfo,
        secondary: Sequence[ServiceInfo],
        check_interval_ms: int,
        failover_threshold: int,
        switch_back_threshold: int,
        client_configuration: ClientConfiguration,
    ) -> Client:
        return Client(
            AutoClusterFailover(
                primary,
                list(secondary),
                check_interval_ms,
                failover_threshold,
                switch_back_threshold,
            ),
            client_configuration,
        )

    @staticmethod
    def create_service_info_provider(
        provider: Any, client_configuration: ClientConfiguration
    ) -> Client:
        return Client(provider, client_configuration)

    def create_producer(self, topic: str, configuration: ProducerConfiguration) -> Producer:
        arguments = _arguments(configuration, ProducerConfiguration)
        return Producer(self._client.create_producer(topic, **arguments))

    def subscribe(
        self, topic: str, subscription_name: str, configuration: ConsumerConfiguration
    ) -> Consumer:
        return self._subscribe(topic, subscription_name, configuration)

    def subscribe_topics(
        self, topics: Sequence[str], subscription_name: str, configuration: ConsumerConfiguration
    ) -> Consumer:
        return self._subscribe(list(topics), subscription_name, configuration)

    def subscribe_pattern(
        self, pattern: str, subscription_name: str, configuration: ConsumerConfiguration
    ) -> Consumer:
        import re

        return self._subscribe(re.compile(pattern), subscription_name, configuration)

    def _subscribe(
        self, topic: Any, subscription_name: str, configuration: ConsumerConfiguration
    ) -> Consumer:
        arguments = _arguments(configuration, ConsumerConfiguration)
        _wrap_policies(arguments)
        listener = arguments.get("message_listener")
        if listener is not None:
            arguments["message_listener"] = lambda consumer, message: listener(
                Consumer(consumer), message
            )
        return Consumer(self._client.subscribe(topic, subscription_name, **arguments))

    def create_reader(
        self, topic: str, start_message_id: MessageId, configuration: ReaderConfiguration
    ) -> Reader:
        arguments = _arguments(configuration, ReaderConfiguration)
        listener = arguments.get("reader_listener")
        if listener is not None:
            arguments["reader_listener"] = lambda reader, message: listener(Reader(reader), message)
        return Reader(self._client.create_reader(topic, start_message_id, **arguments))

    def create_table_view(self, topic: str, configuration: TableViewConfiguration) -> TableView:
        arguments = _arguments(configuration, TableViewConfiguration)
        return TableView(self._client.create_table_view(topic, **arguments))

    def get_topic_partitions(self, topic: str) -> list[str]:
        return self._client.get_topic_partitions(topic)

    def get_schema_info(self, topic: str, version: int) -> SchemaInfo:
        return self._client.admin.schemas.get_schema_info(topic, version)

    def get_service_info(self) -> ServiceInfo:
        return self._client.get_service_info()

    def close(self) -> None:
        self._client.close()

    def shutdown(self) -> None:
        self._client.shutdown()

    create_producer_async: _Refused = _Refused()
    create_producer_async_v2: _Refused = _Refused()
    subscribe_async: _Refused = _Refused()
    subscribe_async_v2: _Refused = _Refused()
    subscribe_async_topics: _Refused = _Refused()
    subscribe_async_pattern: _Refused = _Refused()
    create_reader_async: _Refused = _Refused()
    create_reader_async_v2: _Refused = _Refused()
    get_topic_partitions_async: _Refused = _Refused()
    close_async: _Refused = _Refused()


def _wrap_policies(arguments: dict[str, Any]) -> None:
    batch = arguments.get("batch_receive_policy")
    if batch is not None:
        arguments["batch_receive_policy"] = ConsumerBatchReceivePolicy(
            batch.getMaxNumMessages(), batch.getMaxNumBytes(), batch.getTimeoutMs()
        )
    shared = arguments.get("key_shared_policy")
    if shared is not None:
        arguments["key_shared_policy"] = ConsumerKeySharedPolicy(
            shared.get_key_shared_mode(),
            shared.is_allow_out_of_order_delivery(),
            shared.get_sticky_ranges() or None,
        )
    letters = arguments.get("dead_letter_policy")
    if letters is not None:
        arguments["dead_letter_policy"] = ConsumerDeadLetterPolicy(
            letters.getMaxRedeliverCount(),
            letters.getDeadLetterTopic() or None,
            letters.getInitialSubscriptionName() or None,
        )


class Producer:
    """A native producer."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def send(self, message: BuiltMessage) -> MessageId:
        """message: of a MessageBuilder."""
        native_type(BuiltMessage, message, "message")
        content = None if message.has_null_value() else message.data()
        found: MessageId = self._producer.send(content, **message.described)
        return found

    def send_async(self, message: BuiltMessage, callback: Callable[..., object]) -> None:
        """callback: called with the result and the id."""
        native_type(BuiltMessage, message, "message")
        content = None if message.has_null_value() else message.data()
        self._producer.send_async(content, callback, **message.described)

    def flush(self) -> None:
        self._producer.flush()

    def close(self) -> None:
        self._producer.close()

    def topic(self) -> str:
        return str(self._producer.topic())

    def producer_name(self) -> str:
        return str(self._producer.producer_name())

    def last_sequence_id(self) -> int:
        return int(self._producer.last_sequence_id())

    def is_connected(self) -> bool:
        return bool(self._producer.is_connected())

    flush_async: _Refused = _Refused()
    close_async: _Refused = _Refused()


class Consumer:
    """A native consumer."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def receive(self, timeout_millis: int | None = None) -> Message[bytes]:
        found: Message[bytes] = self._consumer.receive(timeout_millis)
        return found

    def batch_receive(self) -> list[Message[bytes]]:
        return list(self._consumer.batch_receive())

    def acknowledge(self, message: Message | MessageId) -> None:
        self._consumer.acknowledge(message)

    def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        self._consumer.acknowledge_cumulative(message)

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        self._consumer.negative_acknowledge(message)

    def redeliver_unacknowledged_messages(self) -> None:
        self._consumer.redeliver_unacknowledged_messages()

    def pause_message_listener(self) -> None:
        self._consumer.pause_message_listener()

    def resume_message_listener(self) -> None:
        self._consumer.resume_message_listener()

    def seek(self, position: MessageId | int) -> None:
        self._consumer.seek(position)

    def get_last_message_id(self) -> MessageId:
        found: MessageId = self._consumer.get_last_message_id()
        return found

    def topic(self) -> str:
        return str(self._consumer.topic())

    def subscription_name(self) -> str:
        return str(self._consumer.subscription_name())

    def consumer_name(self) -> str:
        return str(self._consumer.consumer_name())

    def is_connected(self) -> bool:
        return bool(self._consumer.is_connected())

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close()

    receive_async: _Refused = _Refused()
    acknowledge_async: _Refused = _Refused()
    acknowledge_cumulative_async: _Refused = _Refused()
    negative_acknowledge_async: _Refused = _Refused()
    seek_async: _Refused = _Refused()
    get_last_message_id_async: _Refused = _Refused()
    unsubscribe_async: _Refused = _Refused()
    close_async: _Refused = _Refused()


class Reader:
    """A native reader."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def read_next(self, timeout_millis: int | None = None) -> Message[bytes]:
        found: Message[bytes] = self._reader.read_next(timeout_millis)
        return found

    def has_message_available(self) -> bool:
        return bool(self._reader.has_message_available())

    def seek(self, position: MessageId | int) -> None:
        self._reader.seek(position)

    def topic(self) -> str:
        return str(self._reader.topic())

    def is_connected(self) -> bool:
        return bool(self._reader.is_connected())

    def close(self) -> None:
        self._reader.close()

    read_next_async: _Refused = _Refused()
    has_message_available_async: _Refused = _Refused()
    seek_async: _Refused = _Refused()
    close_async: _Refused = _Refused()


class TableView:
    """A native table view, of payloads."""

    def __init__(self, table_view: Any) -> None:
        self._table_view = table_view

    def get(self, key: str) -> tuple[bool, bytes]:
        """Whether the table has the key, and its value."""
        found = self._table_view.get(key)
        return found is not None, b"" if found is None else found

    def size(self) -> int:
        return len(self._table_view)

    def for_each(self, callback: Callable[[str, bytes], object]) -> None:
        self._table_view.for_each(callback)

    def for_each_and_listen(self, callback: Callable[[str, bytes], object]) -> None:
        self._table_view.for_each_and_listen(callback)

    def close(self) -> None:
        self._table_view.close()
