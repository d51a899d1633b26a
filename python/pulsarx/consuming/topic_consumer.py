"""The consumer of one topic, and of one partition. The hot calls are inherited from the core."""

from __future__ import annotations

from pulsarx._pycore.consume.consumer_arrow import ConsumerArrow
from pulsarx.consumer import Consumer
from pulsarx.message_id import MessageId
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    import weakref
    from typing import Any

    from pulsarx._pycore.dispatch.receiver import Receiver
    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.base import ConsumerOptions


TIME_MS_MAX = (1 << 63) - 1


class TopicConsumer(ConsumerArrow, Consumer):
    """A Consumer of one topic. Any thread may call.

    `receive`, `acknowledge`, `acknowledge_cumulative`, `receive_many`, `acknowledge_many` and
    `receive_arrow` come from the core class: no frame of Python in between.
    """

    made_subscription = False  # there was none before
    _whole: weakref.ref[Consumer] | None = None  # the consumer of several topics it is a part of

    def __init__(
        self,
        receiver: Receiver,
        subscription: Subscription,
        options: ConsumerOptions,
        name: str,
        pool: ListenerPool,
    ) -> None:
        super().__init__(receiver, subscription)
        self._subscription = subscription
        self._prepare(options, name, pool)

    def topic(self) -> str:
        return self._subscription.topic.name

    def redeliver_unacknowledged_messages(self) -> None:
        self.redeliver_unacknowledged()

    def get_last_message_id(self) -> MessageId:
        self.require_open()
        return self._subscription.topic.ledger.last_message_id()

    def seek(self, messageid: MessageId | int) -> None:
        self.require_open()
        ledger = self._subscription.topic.ledger
        inclusive = self._options.start_message_id_inclusive
        self._subscription.seek(lambda: seek_position(ledger, messageid, inclusive))

    def has_ledger(self, ledger_id: int) -> bool:
        """Whether a message id with this ledger id may be of this topic."""
        return any(
            each.ledger_id == ledger_id for each in self._subscription.topic.ledger.ledgers()
        )

    def may_have_had_ledger(self, ledger_id: int) -> bool:
        """Whether a message id with this ledger id may be of this topic, and be trimmed."""
        return self._subscription.topic.ledger.may_have_had(ledger_id)

    def tell_active(self, active: bool, partition: int = -1) -> None:
        # One of several: users know the whole only.
        whole: Consumer | None = self if self._whole is None else self._whole()
        if whole is not None:
            Consumer.tell_active(whole, active, TopicName.of(self.topic()).partition_index)

    def _receiver_of(self, message: Message) -> TopicConsumer | None:
        return self if self.owns(message) else None

    def _require_last(self) -> None:
        self._subscription.require_last(self.receiver)

    def _remove_subscription(self) -> None:
        self._subscription.unsubscribe(self.receiver)

    def take_back(self) -> None:
        """Close it without a trace: it is part of a consumer that is refused on another topic."""
        self.close()
        if self.made_subscription:
            self._subscription.topic.take_back(self._subscription)

    def _leave(self) -> None:
        if self.shut():
            self._subscription.detach(self.receiver)


def seek_position(ledger: Any, target: MessageId | int, inclusive: bool) -> tuple[int, int]:
    """Where a seek to an id or a time goes."""
    if isinstance(target, MessageId):
        position: tuple[int, int] = ledger.position_of(target, inclusive)
        return position
    if isinstance(target, int):
        found: tuple[int, int] = ledger.position_at_time(max(0, min(target, TIME_MS_MAX)))
        return found
    raise ValueError(f"invalid seek_arg type {type(target)}")
