"""A producer on a partitioned topic: what `Client.create_producer` returns for one. It has one
producer a partition and chooses among them."""

from __future__ import annotations

from contextlib import suppress

import pulsarx._pycore.publish.send_routed  # noqa: F401  # gives PartitionRouter its send_async
from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.signals import signals_raised
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.publish.partition_hash import partition_hash
from pulsarx._pycore.publish.partition_router import PartitionRouter
from pulsarx._pycore.publish.producer_arrow import send_arrow_routed
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.enumerations import PartitionsRoutingMode, ProducerAccessMode
from pulsarx.ground.attempt import attempt
from pulsarx.ground.closing import Closing
from pulsarx.ground.fork import at_fork
from pulsarx.ground.owner import client_is_closing, perform_for
from pulsarx.producer import Producer
from pulsarx.producing.inherited_producer import (
    become_inherited,
    refuse_waiting,
    reset_in_child,
)
from pulsarx.producing.producer_creation import come
from pulsarx.producing.producer_schema import give_schema, use_schema
from pulsarx.producing.topic_producer import TopicProducer, parents_own
from pulsarx.producing.user_router import UserRouter
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.message_id import MessageId
    from pulsarx.options.members import ProducerOptions
    from pulsarx.producing.producer_creation import Steps
    from pulsarx.schema.schema import Schema

    Element = TypeVar("Element")


class PartitionedProducer(PartitionRouter, Producer[T]):
    """Publishes messages to the partitions of one topic. Any thread may call.

    `send` and `send_async` come from the core class.

    A message with a key goes to the partition of its key's hash. Others go round the partitions:
    to one until its batch is closed, or for one message when batching is off, then to the next; or
    all to one partition (UseSinglePartition). With a `message_router` all go where that says.
    Messages of one key are in the order they were sent, as long as the topic does not grow.
    """

    def __init__(
        self, runtime: BrokerRuntime, topic: PartitionedTopic, options: ProducerOptions, name: str
    ) -> None:
        """ProducerBusy: the name is taken on a partition. A call of the control plane."""
        self._state = runtime.state
        self._runtime = runtime
        self._topic = topic
        self._options = options
        self._name = name
        self._closing = Closing()
        self._making = RLock()  # taken by calls of the control plane only
        self._encoding: tuple[Schema[Any], bool, bytes | None] | None = (
            None  # for partitions to come
        )
        self._router: UserRouter | None = None
        if options.message_routing_mode == PartitionsRoutingMode.CustomPartition:
            if options.message_router is None:
                raise errors.InvalidConfiguration(
                    detail="message_routing_mode CustomPartition needs a message_router"
                )
            self._router = UserRouter(options.message_router, topic, options.schema)
        self._hashing_scheme = int(options.hashing_scheme)
        stays = options.message_routing_mode == PartitionsRoutingMode.UseSinglePartition
        count = topic.partition_count
        self._limited_for = count  # how many partitions share max_pending_messages
        turn = runtime.randomness.integer(count)
        super().__init__(topic, options, stays, self._router, turn)
        self.is_open = True
        self._turn = turn
        _opened.add(self)
        self._reserved_from = count  # partitions from there on are kept for this producer

    def abandon(self) -> None:
        """In a forked child: the first call makes it one of the child's own."""
        become_inherited(self)

    def begin_again(self, broker: Any) -> None:
        """See InheritedProducer."""
        options = self._options
        topic = broker.lookup(self._topic.topic_name)
        if not topic.is_partitioned:
            raise errors.TopicNotFound(detail=f"{self._topic.name}: it has no partitions any more")
        parents_own.append((self._topic, self._runtime, list(self.producers)))
        name = options.producer_name or broker.runtime.next_producer_name()
        encoding = self._encoding
        self.become_itself()  # type: ignore[attr-defined]  # it is an InheritedProducer
        type(self).__init__(self, broker.runtime, topic, options, name)
        for _ in self.open():
            self.close_with_client()
            raise refuse_waiting(name, topic.name)
        if options.schema_info is not None:
            give_schema(broker, topic.topic_name, self, options.schema, options.schema_info)
        elif encoding is not None:
            self.encode_by(*encoding)

    def open(self) -> Steps:
        """Make the producers of the partitions: all of them or, where they are made lazily and
        others may publish beside them, one. What was made is given back when one is refused.
        TopicGone: the topic was deleted meanwhile."""
        mode = self._options.access_mode
        try:
            if mode == ProducerAccessMode.Shared:
                lazy = self._options.lazy_start_partitioned_producers
                for index in (self._turn,) if lazy else range(self._topic.partition_count):
                    self._make(index)
                return
            # In the order of the partitions, so that no two ever wait for each other.
            yield from self._take(0, mode)
            # First: what comes from here on is kept for this producer.
            index, self._reserved_from = 1, self._topic.partition_count
            self._topic.hold(self._name, self)
            while index < self._topic.partition_count:
                if index < self._reserved_from:
                    yield from self._take(index, mode)
                else:
                    self._make(index)
                index += 1
        except BaseException as error:
            self._closing.finish(self._take_leave, self.owner)
            if self._topic.is_deleted and isinstance(error, errors.AlreadyClosed):
                raise TopicGone(detail=f"{self._topic.name}: it was deleted") from error
            raise

    def _take(self, index: int, mode: ProducerAccessMode) -> Steps:
        while True:
            topic = self._topic.partition(index)
            topic.check_may_publish()
            try:
                made = yield from come(topic.producers, self._name, self._maker(topic), mode)
                break
            except TopicGone:
                pass  # found just before it was unloaded, or deleted, which the next look says
        with self._making:
            self._keep(index, made)

    def _maker(self, topic: AnyTopic) -> Callable[[str], TopicProducer]:
        return lambda name: TopicProducer(topic, self._options, name)

    def grown(self, partition_count: int) -> None:
        """Make the producers of new partitions, which are reserved for this one. Those that were
        there before are taken by `open`."""
        for index in range(self._reserved_from, partition_count):
            try:
                self._make(index)
            except errors.PulsarException as error:
                self._release(index)
                if not self.is_connected():
                    continue  # closed, or fenced
                import logging

                logging.getLogger("pulsarx").error(
                    "producer %s has not got the new partition %d of %s to itself: %s",
                    self._name, index, self._topic.name, errors.detail_of(error),
                )  # fmt: skip

    def _release(self, index: int) -> None:
        """Give up a partition that is reserved for this producer."""
        with suppress(errors.TopicNotFound):
            self._topic.partition(index).producers.release(self)

    # Sending --------------------------------------------------------------------------------------

    def send_many(
        self,
        payloads: Iterable[T | None],
        *,
        keys: Sequence[str | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_timestamps: Sequence[int | None] | None = None,
        transaction: Any = None,
    ) -> list[MessageId]:
        contents = payloads if isinstance(payloads, list) else list(payloads)
        columns = {"keys": keys, "properties": properties, "event_timestamps": event_timestamps}
        for name, column in columns.items():
            if isinstance(column, str):
                raise ValueError(f"{name} is a str; give a list, one element a message")
            if column is not None and len(column) != len(contents):
                raise ValueError(f"{name} has {len(column)} elements and payloads {len(contents)}")
        if keys is not None and self._router is None:
            self.require_open()
            parts: Any = self.split(contents, keys, self._options.batching_max_messages)
        else:
            places = self._places(contents, keys, properties, event_timestamps)
            parts = [
                (index, numbers, _taken(contents, numbers), _taken(keys, numbers))
                for index, numbers in places.items()
            ]
        ids: list[Any] = [None] * len(contents)
        published = 0
        for index, numbers, of_one, keys_of_one in parts:
            try:
                made = self.producer_of(index).send_many(
                    of_one,
                    keys=keys_of_one,
                    properties=_taken(properties, numbers),
                    event_timestamps=_taken(event_timestamps, numbers),
                    transaction=transaction,
                )
            except Exception as error:
                error.add_note(f"of partition {index}; other partitions took {published}")
                raise
            published += len(made)
            self.join(ids, numbers, made)
        return ids

    def _places(
        self,
        contents: list[Any],
        keys: Sequence[str | None] | None,
        properties: Sequence[dict[str, str] | None] | None,
        event_timestamps: Sequence[int | None] | None,
    ) -> dict[int, list[int]]:
        """Choose which messages go to which partition, where a router or nothing says so."""
        places: dict[int, list[int]] = {}
        self.require_open()
        run_size = self._options.batching_max_messages
        if self._router is None:
            for at in range(0, len(contents), run_size):
                numbers = range(at, min(at + run_size, len(contents)))
                places.setdefault(self.next_turn(), []).extend(numbers)
            return places
        for number, content in enumerate(contents):
            index = self._router(
                content,
                None if properties is None else properties[number],
                None if keys is None else keys[number],
                None,
                None if event_timestamps is None else event_timestamps[number],
            )
            places.setdefault(index, []).append(number)
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
        if self._router is not None:
            raise errors.OperationNotSupported(
                detail="send_arrow on a producer with a message_router"
            )
        count = self._partition_count()

        def choose(row_key: str | None) -> int:
            if row_key:
                return partition_hash(self._hashing_scheme, row_key) % count
            return self.next_turn() % count

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

    def send_columns(
        self, value: Any, *, key: Any = None, properties: Any = None, event_timestamp: Any = None
    ) -> MessageId | None:
        control_plane.load("pulsarx.producing.numpy_columns")
        from pulsarx.producing.numpy_columns import table_of

        table, named = table_of(value, key, properties, event_timestamp)
        return self.send_arrow(table, "value", **named)

    def use_schema(self, schema: Schema[Any]) -> None:
        use_schema(self, self._runtime, self._topic.topic_name, schema)

    def encode_by(self, schema: Schema[Any], is_bytes: bool, version: bytes | None) -> None:
        """Like encode_by of the core, for all partitions, made and to come. A call of the control
        plane."""
        with self._making:
            for each in self._made():
                each.flush()  # what fails leaves all of them with the schema they had
            self._encoding = (schema, is_bytes, version)
            for each in self._made():
                each.encode_by(schema, is_bytes, version)
            if self._router is not None:
                self._router.encode_by(schema)

    # Routing --------------------------------------------------------------------------------------

    def require_open(self) -> None:
        """AlreadyClosed, or ForkedError."""
        self._state.require_open()
        if not self.is_open or self._topic.is_deleted:
            raise errors.AlreadyClosed(detail=f"producer {self._name} on {self._topic.name}")

    def _partition_count(self) -> int:
        self.require_open()
        return self._topic.partition_count

    def producer_of(self, index: int) -> TopicProducer:
        """The producer of a partition, made on first use when the topic has grown or lazily."""
        producers = self.producers
        found: TopicProducer | None = producers[index] if index < len(producers) else None
        if found is not None:
            return found
        self.require_open()
        made: TopicProducer = perform_for(self.owner, self._make, (index,))
        return made

    def _make(self, index: int) -> TopicProducer:
        """A call of the control plane."""
        with self._making:
            self.require_open()
            producers = self.producers
            found: TopicProducer | None = producers[index] if index < len(producers) else None
            if found is not None:
                return found
            for each in self._made():
                if each.publisher.fenced is not None:
                    each.require_open()  # says so
            made = self._added(index)
            if self._encoding is not None:
                made.encode_by(*self._encoding)
            self._keep(index, made)
            return made

    def _added(self, index: int) -> TopicProducer:
        mode = int(self._options.access_mode)
        while True:
            topic = self._topic.partition(index)
            topic.check_may_publish()
            try:
                added: Any = topic.producers.add(self._name, self._maker(topic), mode, owner=self)
            except TopicGone:
                continue  # found just before it was unloaded, or deleted, which the next look says
            made: TopicProducer = added
            return made

    def _keep(self, index: int, made: TopicProducer) -> None:
        producers, count = self.producers, self._topic.partition_count
        producers.extend([None] * (count - len(producers)))
        # The share of those made before shrinks when the topic has grown meanwhile.
        limited = [made] if count == self._limited_for else [made, *self._made()]
        self._limited_for = count
        for each in limited:
            each.limit_pending(self._pending_max(count))
        producers[index] = made

    def _pending_max(self, count: int) -> int:
        """Return how many messages may be on their way to one of so many partitions; 0: any
        number."""
        limit = self._options.max_pending_messages
        across = self._options.max_pending_messages_across_partitions
        if across:
            each = max(across // count, 1)
            return min(limit, each) if limit else each
        return limit

    def _made(self) -> list[TopicProducer]:
        return [each for each in self.producers if each is not None]

    # The rest -------------------------------------------------------------------------------------

    def topic(self) -> str:
        return self._topic.name

    def producer_name(self) -> str:
        return self._name

    def last_sequence_id(self) -> int:
        return max((each.last_sequence_id() for each in self._made()), default=-1)

    def is_connected(self) -> bool:
        there = self._state.is_open and not self._topic.is_deleted
        return self.is_open and there and all(each.is_open for each in self._made())

    def flush(self) -> None:
        self.require_open()
        failure: Exception | None = None
        raised = signals_raised()
        for producer in self._made():
            if producer.is_open or producer.publisher.fenced is not None:
                try:
                    producer.flush()
                except Exception as error:
                    if signals_raised() != raised:
                        raise
                    failure = failure or error
        if failure is not None:
            raise failure

    def send_open(self) -> None:
        """Like send_open of the core, for all partitions."""
        for each in self._made():
            each.send_open()

    def close(self) -> None:
        if self._state.is_forked or (self._closing.told and not client_is_closing(self.owner)):
            self.require_open()
        self._closing.close(self._take_leave, self.owner)

    def close_with_client(self) -> None:
        self._closing.finish(self._take_leave, self.owner)

    def _take_leave(self) -> None:
        self.let_go()
        with self._making:
            self.is_open: bool = False  # no producer is made from now on
        failure: Exception | None = None
        for producer in self._made():
            failure = failure or attempt(producer.close_with_client)
        if self._options.access_mode != ProducerAccessMode.Shared:
            for index in range(self._reserved_from, self._topic.partition_count):
                self._release(index)
        if failure is not None:
            raise failure

    def __repr__(self) -> str:
        return (
            f"PartitionedProducer(topic={self._topic.name!r}, name={self._name!r}, "
            f"partitions={self._topic.partition_count}, open={self.is_connected()})"
        )


_opened = WeakList()


at_fork(__name__, reset_in_child, abandon=_opened)


def _taken(column: Sequence[Element] | None, numbers: list[int]) -> list[Element] | None:
    """The elements of some messages."""
    return None if column is None else [column[number] for number in numbers]
