"""A producer on a partitioned topic: what `Client.create_producer` returns for one. It has one
producer a partition and chooses among them."""

from __future__ import annotations

import threading

from pulsarx import errors
from pulsarx._pycore.publish.partition_hash import partition_hash
from pulsarx._pycore.publish.partition_router import PartitionRouter
from pulsarx._pycore.publish.producer_arrow import send_arrow_routed
from pulsarx.enumerations import PartitionsRoutingMode
from pulsarx.producer import Producer
from pulsarx.producing.routed_message import RoutedMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.client import Client
    from pulsarx.message_id import MessageId
    from pulsarx.options.base import ProducerOptions

    Element = TypeVar("Element")


class PartitionedProducer(PartitionRouter):
    """Publishes messages to the partitions of one topic. Any thread may call.

    `send` and `send_async` come from the core class.

    A message with a key goes to the partition of its key's hash. Others go round the partitions:
    to one until its batch is closed, or for one message when batching is off, then to the next; or
    all to one partition (UseSinglePartition). With a `message_router` all go where that says.
    Messages of one key are in the order they were sent, as long as the topic does not grow.
    """

    is_forgotten = False  # nobody refers to it any more; it will be closed in the background
    _client: Client | None = None  # kept alive by what it made

    def __init__(
        self, broker: Broker, topic: PartitionedTopic, options: ProducerOptions, name: str
    ) -> None:
        """ProducerBusy: the name is taken on a partition."""
        self._broker = broker
        self._topic = topic
        self._options = options
        self._name = name
        self._lock = threading.RLock()
        self._router: Callable[[Any, int], int] | None = None
        if options.message_routing_mode == PartitionsRoutingMode.CustomPartition:
            if options.message_router is None:
                raise errors.InvalidConfiguration(
                    "message_routing_mode CustomPartition needs a message_router"
                )
            self._router = options.message_router
        self._hashing_scheme = int(options.hashing_scheme)
        self._stays = options.message_routing_mode == PartitionsRoutingMode.UseSinglePartition
        count = topic.partition_count
        self._limited_for = count  # how many partitions share max_pending_messages
        self._turn = broker.randomness.integer(count)  # of the next message without a key
        super().__init__(topic, options, self._stays, self._router is not None)
        self.is_open = True
        try:
            lazy = options.lazy_start_partitioned_producers
            for index in (self._turn,) if lazy else range(count):
                self.producer_of(index)
        except BaseException:
            self.is_open = False
            for made in self._made():
                made.close()
            raise

    # Sending --------------------------------------------------------------------------------------

    def send_many(
        self,
        payloads: Iterable[Any],
        *,
        keys: Sequence[str | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_timestamps: Sequence[int | None] | None = None,
    ) -> list[MessageId]:
        """As Producer.send_many: the ids are in the order of the payloads. Messages without a key
        go round in runs of batching_max_messages. An error leaves published what other partitions
        took before."""
        contents = payloads if isinstance(payloads, list) else list(payloads)
        columns = {"keys": keys, "properties": properties, "event_timestamps": event_timestamps}
        for name, column in columns.items():
            if isinstance(column, str):
                raise ValueError(f"{name} is a str; give a list, one element a message")
            if column is not None and len(column) != len(contents):
                raise ValueError(f"{name} has {len(column)} elements and payloads {len(contents)}")
        places = self._places(contents, keys, properties, event_timestamps)
        ids: list[Any] = [None] * len(contents)
        published = 0
        for index, numbers in places.items():
            try:
                made = self.producer_of(index).send_many(
                    [contents[number] for number in numbers],
                    keys=_taken(keys, numbers),
                    properties=_taken(properties, numbers),
                    event_timestamps=_taken(event_timestamps, numbers),
                )
            except Exception as error:
                error.add_note(f"of partition {index}; other partitions took {published}")
                raise
            published += len(made)
            for number, message_id in zip(numbers, made, strict=True):
                ids[number] = message_id
        return ids

    def _places(
        self,
        contents: list[Any],
        keys: Sequence[str | None] | None,
        properties: Sequence[dict[str, str] | None] | None,
        event_timestamps: Sequence[int | None] | None,
    ) -> dict[int, list[int]]:
        """Which messages go to which partition."""
        places: dict[int, list[int]] = {}
        count = self._partition_count()
        run_size = self._options.batching_max_messages
        if keys is None and self._router is None:
            for at in range(0, len(contents), run_size):
                numbers = range(at, min(at + run_size, len(contents)))
                places.setdefault(self._next_turn(count), []).extend(numbers)
            return places
        run: list[int] = []  # of the messages without a key
        left = 0
        for number, content in enumerate(contents):
            key = None if keys is None else keys[number]
            if self._router is not None:
                message = RoutedMessage(
                    self._options.schema,
                    content,
                    None if properties is None else properties[number],
                    key,
                    None,
                    None if event_timestamps is None else event_timestamps[number],
                )
                places.setdefault(self._ask_router(message, count), []).append(number)
            elif key and isinstance(key, str):
                index = partition_hash(self._hashing_scheme, key) % count
                places.setdefault(index, []).append(number)
            else:
                if left == 0:
                    run = places.setdefault(self._next_turn(count), [])
                    left = run_size
                left -= 1
                run.append(number)
        return places

    def send_arrow(
        self,
        data: Any,
        value: str = "value",
        *,
        key: str | None = None,
        properties: str | None = None,
        event_time: str | None = None,
    ) -> MessageId | None:
        """As Producer.send_arrow; rows of one partition stay in order. Not there with a
        message_router."""
        if self._router is not None:
            raise errors.OperationNotSupported("send_arrow on a producer with a message_router")
        count = self._partition_count()

        def choose(row_key: str | None) -> int:
            if row_key:
                return partition_hash(self._hashing_scheme, row_key) % count
            return self._next_turn(count)

        producers = [self.producer_of(index) for index in range(count)]
        return send_arrow_routed(
            producers,
            choose,
            self._options.batching_max_messages,
            data,
            value,
            key,
            properties,
            event_time,
        )

    # Routing --------------------------------------------------------------------------------------

    def require_open(self) -> None:
        """AlreadyClosed, or ForkedError."""
        self._partition_count()

    def next_producer(self) -> Producer:
        """That of the partition whose turn it is for a message without a key."""
        self._broker.check_open()  # before the lock: in a forked child nobody would release it
        with self._lock:
            return self.producer_of(self._next_turn(self._partition_count()))

    def routed_producer(
        self,
        content: Any,
        properties: dict[str, str] | None,
        key: str | None,
        ordering_key: str | None,
        event_timestamp: int | None,
    ) -> Producer:
        """That of the partition which the message_router chooses."""
        message = RoutedMessage(
            self._options.schema, content, properties, key, ordering_key, event_timestamp
        )
        return self.producer_of(self._ask_router(message, self._partition_count()))

    def _next_turn(self, count: int) -> int:
        """Whose turn it is for a message, or a run of them, without a key."""
        turn = self._turn
        if not self._stays:
            self._turn = (turn + 1) % count
        return turn

    def _ask_router(self, message: RoutedMessage, count: int) -> int:
        assert self._router is not None
        index = int(self._router(message, count))
        if not 0 <= index < count:
            raise errors.InvalidConfiguration(
                f"the message_router of {self._topic.name} answered {index}; it has {count} "
                f"partitions, 0 to {count - 1}"
            )
        return index

    def _partition_count(self) -> int:
        self._broker.check_open()
        if not self.is_open:
            raise errors.AlreadyClosed(f"producer {self._name} on {self._topic.name}")
        return self._topic.partition_count

    def producer_of(self, index: int) -> Producer:
        """That of a partition, made on first use when the topic has grown or it was asked for."""
        producers = self.producers
        found = producers[index] if index < len(producers) else None
        if found is not None:
            return found
        self._broker.check_open()
        with self._lock:
            count = self._partition_count()
            producers.extend([None] * (count - len(producers)))
            found = producers[index]
            if found is None:
                topic = self._topic.partition(index)
                found = producers[index] = topic.add_producer(
                    self._name, lambda name: Producer(self._broker, topic, self._options, name)
                )
                # The share of those made before shrinks when the topic has grown meanwhile.
                limited = [found] if count == self._limited_for else self._made()
                self._limited_for = count
                for each in limited:
                    each.limit_pending(self._pending_max(count))
            return found

    def _pending_max(self, count: int) -> int:
        """How many messages may be on their way to one of so many partitions; 0: any number."""
        limit = self._options.max_pending_messages
        across = self._options.max_pending_messages_across_partitions
        if across:
            each = max(across // count, 1)
            return min(limit, each) if limit else each
        return limit

    def _made(self) -> list[Producer]:
        return [each for each in self.producers if each is not None]

    # The rest -------------------------------------------------------------------------------------

    def topic(self) -> str:
        """Full name of the partitioned topic."""
        return self._topic.name

    def producer_name(self) -> str:
        """The given name, or the generated one: the same on every partition."""
        return self._name

    def last_sequence_id(self) -> int:
        """The highest of all partitions, each of which counts for itself."""
        return max((each.last_sequence_id() for each in self._made()), default=-1)

    def is_connected(self) -> bool:
        """Whether it can still be used."""
        return self.is_open and self._broker.state == "OPEN"

    def flush(self) -> None:
        """As Producer.flush, of all partitions; raises what the first one failed with."""
        self._partition_count()
        self._each(lambda producer: producer.flush())

    def close(self) -> None:
        """As Producer.close, of all partitions."""
        self._partition_count()
        with self._lock:
            self._partition_count()
            self.is_open = False  # no producer is made from now on
        try:
            self._each(lambda producer: producer.close())
        finally:
            if self._client is not None:
                self._client._producer_closed(self)

    def _each(self, step: Callable[[Producer], None]) -> None:
        """Do it with all; raise the first error at the end."""
        failure: Exception | None = None
        for producer in self._made():
            if producer.is_connected():
                try:
                    step(producer)
                except Exception as error:
                    failure = failure or error
        if failure is not None:
            raise failure

    def __del__(self) -> None:
        # Not here: the collector may run in the middle of a call that holds a mutex this needs.
        if getattr(self, "is_open", False) and self._broker.state == "OPEN":
            self.is_forgotten = True
            for producer in self._made():
                producer.is_forgotten = True
            self._broker.background.put(self._close_forgotten)

    def _close_forgotten(self) -> None:
        if self.is_connected():
            self.close()

    def __enter__(self) -> PartitionedProducer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_connected():
            self.close()

    def __repr__(self) -> str:
        return (
            f"PartitionedProducer(topic={self._topic.name!r}, name={self._name!r}, "
            f"partitions={self._topic.partition_count}, open={self.is_connected()})"
        )


def _taken(column: Sequence[Element] | None, numbers: list[int]) -> list[Element] | None:
    """The elements of some messages."""
    return None if column is None else [column[number] for number in numbers]
