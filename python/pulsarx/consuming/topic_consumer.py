"""The consumer of one topic, and of one partition. The hot calls are inherited from the core."""

from __future__ import annotations

from pulsarx._pycore.consume.consumer_core import ConsumerCore
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.consumer import Consumer
from pulsarx.consuming.seek_position import check_seek_target, seek_position
from pulsarx.ground.owner import perform_for
from pulsarx.message_id import MessageId, MessageIndex
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx._pycore.dispatch.receiver import Receiver
    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.members import ConsumerOptions


class TopicConsumer(ConsumerCore, Consumer[T]):
    """A Consumer of one topic. Any thread may call.

    `receive`, `acknowledge`, `acknowledge_cumulative`, `receive_many`, `acknowledge_many` and
    `receive_arrow` come from the core class: no frame of Python in between.
    """

    made_subscription = False  # there was none before

    def __init__(
        self,
        receiver: Receiver,
        subscription: Subscription,
        options: ConsumerOptions,
        name: str,
        pool: ListenerPool,
    ) -> None:
        super().__init__(receiver, subscription.host)
        self._subscription = subscription
        self._prepare(options, name, pool)

    def topic(self) -> str:
        name: str = self.dispatcher.topic_name
        return name

    @property
    def is_of_deleted_topic(self) -> bool:
        """Whether its topic was deleted. Beside another process that may be known before its
        consumers are closed."""
        return bool(self._subscription.topic.is_gone)

    def redeliver_unacknowledged_messages(self) -> None:
        self.redeliver_unacknowledged()

    def get_last_message_id(self) -> MessageId:
        self.require_open()
        found: MessageId = perform_for(self.owner, self._last_message_id)
        return found

    def _last_message_id(self) -> MessageId:
        return self._subscription.positions.last_message_id()

    def seek(self, messageid: MessageId | MessageIndex | int) -> None:
        self.require_open()
        check_seek_target(messageid)
        perform_for(self.owner, self._seek, (messageid,))

    def _seek(self, messageid: MessageId | MessageIndex | int) -> None:
        positions = self._subscription.positions
        inclusive = self._options.start_message_id_inclusive
        self._subscription.seek(lambda: seek_position(positions, messageid, inclusive))

    def has_ledger(self, ledger_id: int) -> bool:
        """Whether a message id with this ledger id may be of this topic."""
        return control_plane.perform(self._subscription.topic.ledger.has_ledger, (ledger_id,))

    def may_have_had_ledger(self, ledger_id: int) -> bool:
        """Whether a message id with this ledger id may be of this topic, and be trimmed."""
        return control_plane.perform(self._subscription.topic.ledger.may_have_had, (ledger_id,))

    def _receiver_of(self, message: Message) -> TopicConsumer | None:
        return self if self.owns(message) else None

    def _require_last(self) -> None:
        self._subscription.require_last(self.receiver)

    def _remove_subscription(self) -> None:
        self._subscription.unsubscribe(self.receiver)

    def take_back(self) -> None:
        self.close_with_client()
        if self.made_subscription:
            self._subscription.topic.take_back(self._subscription)

    def _leave(self) -> None:
        if self.shut():
            self._subscription.detach(self.receiver)
