"""The reader of a partitioned topic: what `Client.create_reader` returns for one."""

from __future__ import annotations

import weakref

from pulsarx import errors
from pulsarx._pycore.consume.multi_consumer import MultiConsumerCore
from pulsarx._pycore.ground.locks import RLock
from pulsarx.broker.ledgers.compacted_view import positions_to_read
from pulsarx.consuming.partition_follower import PartitionFollower
from pulsarx.consuming.seek_position import (
    check_index_of_one,
    check_seek_target,
    reader_position,
    start_position,
)
from pulsarx.ground.attempt import attempt
from pulsarx.ground.owner import perform_for
from pulsarx.message_id import MessageId, MessageIndex
from pulsarx.options.members import decryption_of
from pulsarx.reader import Reader
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.non_persistent_reader import NonPersistentReader
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.broker.topics.read_only_partitions import ReadOnlyPartitions
    from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic
    from pulsarx.broker.topics.reader_cursor import ReaderCursor
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.members import ReaderOptions

    AnyCursor: TypeAlias = ReaderCursor | NonPersistentReader

_EVERYWHERE = (MessageId.earliest, MessageId.latest)


class PartitionedReader(Reader[T]):
    """A Reader made of one cursor a partition. Any thread may call.

    It takes from the partitions in turn, and keeps the order within each. Partitions that the topic
    gets while it is open are read from their beginning. To start at the id of a message each
    partition compares it with its own ledgers, as in Pulsar: newer ones are read, older ones not.
    """

    def __init__(self, name: str, options: ReaderOptions, pool: ListenerPool) -> None:
        """Its partitions are added by attach."""
        self._several = MultiConsumerCore()
        super().__init__(self._several, None, name, options, pool)
        self._growing = RLock()  # taken by calls of the control plane only
        self._left = False
        self._partitions: list[tuple[ConsumerCore, AnyCursor]] = []
        self._follower: PartitionFollower | None = None

    def attach(
        self, runtime: BrokerRuntime | None, topic: PartitionedTopic | ReadOnlyPartitions
    ) -> None:
        """Begin to read all partitions. TopicGone: the topic was deleted meanwhile. runtime: None,
        in a folder opened read-only, where nobody tells what comes. A call of the control plane."""
        options, reader = self._options, weakref.ref(self)  # which its topic does not keep
        queue_size = max(options.receiver_queue_size, 1)  # partitions are not asked one by one

        def attach_one(found: AnyTopic | ReadOnlyTopic, is_new: bool) -> None:
            start = MessageId.earliest if is_new else options.start_message_id
            inclusive, compacted = options.start_message_id_inclusive, options.is_read_compacted
            position = start_position(positions_to_read(found, compacted), start, inclusive)
            decryption = decryption_of(options)
            cursor = found.reader_cursor(
                options.schema, compacted, decryption, options.selector or ""
            )
            core = cursor.attach(position, queue_size)
            whole = reader()
            if whole is not None:
                whole._add(core, cursor)

        self._follower = PartitionFollower(topic, runtime, attach_one)
        self._follower.start()
        if runtime is None:
            self._several.find_more = self._follower.look

    def _add(self, core: ConsumerCore, cursor: AnyCursor) -> None:
        with self._growing:
            if self._left:
                _end(core, cursor)
                return
            self._partitions.append((core, cursor))
            self._several.add(core)

    def get_last_message_id(self) -> MessageId:
        self._core.require_open()
        raise errors.OperationNotSupported(
            detail=f"get_last_message_id of {len(self._partitions)} partitions; ask a reader of one"
        )

    def seek(self, messageid: MessageId | MessageIndex | int) -> None:
        self._core.require_open()
        check_seek_target(messageid)
        perform_for(self.owner, self._seek, (messageid,))

    def _seek(self, messageid: MessageId | MessageIndex | int) -> None:
        with self._growing:
            partitions = list(self._partitions)
        check_index_of_one(messageid, self._name, len(partitions))
        if isinstance(messageid, MessageId) and messageid not in _EVERYWHERE:
            partitions = [each for each in partitions if _is_of(messageid, each[1])]
            if not partitions:
                raise errors.OperationNotSupported(
                    detail=f"seek to {messageid}: it is of no partition of {self._name}; seek to a "
                    "time"
                )
        inclusive = self._options.start_message_id_inclusive
        self._with_each(
            partitions,
            lambda _, cursor: cursor.seek(reader_position(cursor.positions, messageid, inclusive)),
        )

    def _leave(self) -> None:
        with self._growing:
            self._left = True
            partitions = list(self._partitions)
        self._several.shut()
        self._several.silence()
        self._with_each(partitions, _end)

    def _with_each(
        self,
        partitions: list[tuple[ConsumerCore, AnyCursor]],
        step: Callable[[ConsumerCore, AnyCursor], object],
    ) -> None:
        """Take the step with all of them, also where one fails; then say so."""
        failure: Exception | None = None
        for core, cursor in partitions:
            failure = attempt(lambda: step(core, cursor)) or failure  # noqa: B023  # called at once
        if failure is not None:
            raise failure


def _end(core: ConsumerCore, cursor: AnyCursor) -> None:
    core.shut()
    cursor.end()  # what it has mapped is given back


def _is_of(message_id: MessageId, cursor: AnyCursor) -> bool:
    """Whether the id is of a partition, which may have trimmed its ledger."""
    topic: Any = cursor.topic
    ledger = topic.ledger
    if ledger.has_ledger(message_id.ledger_id()):
        return True
    return message_id.partition() == topic.tail.partition and bool(
        ledger.may_have_had(message_id.ledger_id())
    )
