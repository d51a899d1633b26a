"""The consumer of several topics: of a list, of a pattern, of the partitions of a topic, of a topic
and its retry letters."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.consume.multi_consumer import MultiConsumerCore
from pulsarx._pycore.ground.locks import RLock
from pulsarx.consumer import Consumer
from pulsarx.consuming.seek_position import check_index_of_one, check_seek_target
from pulsarx.ground.attempt import attempt
from pulsarx.ground.owner import perform_for
from pulsarx.message_id import MessageId, MessageIndex
from pulsarx.options.argument_check import INT64_MAX
from pulsarx.schema.schema import T
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx._pycore.message.message import Message
    from pulsarx.consuming.partition_follower import PartitionFollower
    from pulsarx.consuming.pattern_follower import PatternFollower
    from pulsarx.consuming.topic_consumer import TopicConsumer
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.members import ConsumerOptions


class MultiTopicsConsumer(MultiConsumerCore, Consumer[T]):
    """A Consumer made of one TopicConsumer a topic. Any thread may call.

    It takes from its topics in turn, or by their priority, and keeps the order within each. A
    message is acknowledged on its own topic; so is everything before it by
    acknowledge_cumulative.
    """

    _left = False

    def __init__(self, topic: str, options: ConsumerOptions, name: str, pool: ListenerPool) -> None:
        """topic: what it is called; its topics are added afterwards."""
        super().__init__()
        self._topic = topic
        self._growing = RLock()  # taken by calls of the control plane only
        # Of its partitioned topics, and of its pattern.
        self.followers: list[PartitionFollower | PatternFollower] = []
        self._prepare(options, name, pool)

    def topic(self) -> str:
        return self._topic

    @property
    def has_left(self) -> bool:
        """Whether it was closed, or unsubscribed by itself or by others: it gets no more topics."""
        return self._left or (bool(self.members()) and not self.is_open)

    def grow(self, member: TopicConsumer, priority: int | None) -> None:
        """Receive from one topic more; its consumer is closed when this one is by now. A call of
        the control plane. priority: as of MultiConsumerCore.add."""
        with self._growing:
            if self._left:
                member.close_with_client()
                return
            self.add(member, priority)

    def drop_topic(self, name: TopicName) -> bool:
        """Receive from a topic no more if it was deleted, or from its partitions. Whether it
        receives from one of that name that is there. A call of the control plane."""
        with self._growing:
            self.followers = [
                each for each in self.followers if each.follows() != name or not each.is_over
            ]
            members = self._members_of(name)
            for member in members:
                if member.is_open and member.is_of_deleted_topic:
                    attempt(member.close_with_client)  # before its owner says that it is closed
                if not member.is_open:
                    self.drop(member)
            return any(each.is_open for each in members)

    def leave_topic(self, name: TopicName) -> None:
        """Receive from a topic, or from its partitions, no more. A call of the control plane."""
        with self._growing:
            self.followers = [each for each in self.followers if each.follows() != name]
            for member in self._members_of(name):
                attempt(member.close_with_client)
                self.drop(member)

    def _members_of(self, name: TopicName) -> list[TopicConsumer]:
        """Return the consumers of a topic, or of its partitions."""
        return [
            each
            for each in self.members()
            if TopicName.of(each.topic()).partitioned_name == name.full
        ]

    def redeliver_unacknowledged_messages(self) -> None:
        if not self._left:
            self.require_open()
        with_each(self.members(), lambda member: member.redeliver_unacknowledged_messages())

    def get_last_message_id(self) -> MessageId:
        self.require_open()
        raise errors.OperationNotSupported(
            detail=f"get_last_message_id of {len(self.members())} topics; ask a consumer or reader "
            "of one"
        )

    def seek(self, messageid: MessageId | MessageIndex | int) -> None:
        self.require_open()
        check_seek_target(messageid)
        perform_for(self.owner, self._seek, (messageid,))

    def _seek(self, messageid: MessageId | MessageIndex | int) -> None:
        if isinstance(messageid, MessageId):
            ledger_id = messageid.ledger_id()
            if 0 <= ledger_id != INT64_MAX:  # neither end of a topic
                member = self.member_with_ledger(ledger_id)
                if member is None:
                    raise errors.OperationNotSupported(
                        detail=f"seek to {messageid}: ledger {ledger_id} belongs to no topic of "
                        "this consumer, or is removed; seek to a time"
                    )
                member.seek(messageid)
                return
        check_index_of_one(messageid, self.topic(), len(self.members()))
        with_each(self.members(), lambda member: member.seek(messageid))

    def _receiver_of(self, message: Message) -> TopicConsumer | None:
        return next((each for each in self.members() if each.owns(message)), None)

    def _require_last(self) -> None:
        for member in self.members():
            if member.is_open:
                member._require_last()

    def _remove_subscription(self) -> None:
        self._leave_with(lambda member: member.unsubscribe())

    def take_back(self) -> None:
        self._leave_with(lambda member: member.take_back())

    def _leave(self) -> None:
        self._leave_with(lambda member: member.close_with_client())

    def _leave_with(self, step: Callable[[TopicConsumer], object]) -> None:
        """Get no more topics, and take the step with those there are."""
        with self._growing:
            self._left = True
            if self.shut():
                self.silence()
                with_each(self.members(), step)


def with_each(members: list[TopicConsumer], step: Callable[[TopicConsumer], object]) -> None:
    """Do it on all topics that still have the consumer, even when one fails; then say so."""
    failure: Exception | None = None
    for member in members:
        if member.is_open:
            try:
                step(member)
            except Exception as error:
                failure = failure or error
    if failure is not None:
        raise failure
