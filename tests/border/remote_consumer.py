"""The consumer of one topic whose broker is at the other end of a connection."""

from __future__ import annotations

import weakref
from collections import deque
from functools import partial

from remote_receiver import RemoteReceiver, not_over_a_connection, seek_fields

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.consumer import Consumer
from pulsarx.enumerations import ConsumerType, InitialPosition, KeySharedMode, SubscriptionMode
from pulsarx.message_id import MessageId
from pulsarx.options.redelivery_backoff import DELAY_MS_MAX, BoundedBackoff
from pulsarx.wire import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from client_connection import ClientConnection

    from pulsarx._pycore.ground.clock_core import Timer
    from pulsarx._pycore.message.message import Message
    from pulsarx.clock import Clock
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.members import ConsumerOptions
    from pulsarx.topic_name import TopicName

_TYPES = {
    ConsumerType.Exclusive: commands.EXCLUSIVE,
    ConsumerType.Shared: commands.SHARED,
    ConsumerType.Failover: commands.FAILOVER,
    ConsumerType.KeyShared: commands.KEY_SHARED,
}


class RemoteConsumer(RemoteReceiver, Consumer):
    """A Consumer of one topic, over a connection. Any thread may call.

    Delays of negative acknowledgements are kept here, by the clock of the client, as Pulsar's
    clients do. On Exclusive and Failover subscriptions one brings back everything that is not
    acknowledged.
    """

    def __init__(
        self,
        connection: ClientConnection,
        topic: TopicName,
        options: ConsumerOptions,
        name: str,
        pool: ListenerPool,
        clock: Clock,
    ) -> None:
        super().__init__(
            connection,
            topic,
            options.schema,
            options.receiver_queue_size,
            _subscribe_fields(options, name),
        )
        self._clock = clock
        self._nack_delay_ms = min(options.negative_ack_redelivery_delay_ms, DELAY_MS_MAX)
        self._nack_backoff = (
            None
            if options.nack_backoff is None
            else BoundedBackoff(options.nack_backoff, self._nack_delay_ms)
        )
        self._nacked: dict[int, dict[MessageId, None]] = {}  # due time: what is due then
        self._due_ms: dict[MessageId, int] = {}
        self._timers: dict[int, Timer] = {}
        self._activity: deque[bool] = deque()  # what the listener of events is still to be told
        self._is_active: bool | None = None
        self._prepare(options, name, pool)

    def topic(self) -> str:
        return str(self._topic_name)

    def _activity_changed(self, is_active: bool) -> None:
        # A consumer that subscribed again after a seek is told what it knows.
        if self._options.consumer_event_listener is not None and is_active != self._is_active:
            self._is_active = is_active
            self._activity.append(is_active)
            self._begin_work().due()

    def _step(self) -> bool:
        while self._activity:
            self._tell(self._activity.popleft(), self._topic_name.partition_index)
        return super()._step()

    # Acknowledging --------------------------------------------------------------------------------

    def acknowledge(self, message: Message | MessageId) -> None:
        super().acknowledge(message)
        self._forget_nack(self._id_of(message))

    def acknowledge_many(self, messages: Iterable[Message | MessageId] | Any) -> None:
        found = list(messages)
        super().acknowledge_many(found)
        for each in found:
            self._forget_nack(self._id_of(each))

    def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        super().acknowledge_cumulative(message)
        target = self._id_of(message)
        for each in [each for each in list(self._due_ms) if each <= target]:
            self._forget_nack(each)

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        self.require_open()
        target = self._id_of(message)
        delay_ms = self._nack_delay_ms
        if self._nack_backoff is not None:
            count = 0 if isinstance(message, MessageId) else message.redelivery_count()
            delay_ms = self._nack_backoff.next(count)
        if delay_ms <= 0:
            self._forget_nack(target)
            self.redeliver([target])
            return
        due_ms = self._clock.now_ms() + delay_ms
        self._forget_nack(target)
        with self._changed:
            is_first = due_ms not in self._nacked
            self._nacked.setdefault(due_ms, {})[target] = None
            self._due_ms[target] = due_ms
        if is_first:
            due = partial(_nacks_due, weakref.ref(self), due_ms)
            self._timers[due_ms] = self._clock.call_at(due_ms, due)

    def _forget_nack(self, target: MessageId) -> None:
        if not self._due_ms:
            return
        with self._changed:
            due_ms = self._due_ms.pop(target, None)
            if due_ms is not None:
                self._nacked[due_ms].pop(target, None)

    def _nacks_due(self, due_ms: int) -> None:
        with self._changed:
            self._timers.pop(due_ms, None)
            ids = list(self._nacked.pop(due_ms, ()))
            for each in ids:
                self._due_ms.pop(each, None)
        if ids and self.is_open:
            try:
                self.redeliver(ids)
            except (errors.AlreadyClosed, errors.ConnectError):
                pass  # closed meanwhile: they go to the next consumer

    def redeliver_unacknowledged_messages(self) -> None:
        self.require_open()
        with self._changed:
            self._due_ms.clear()
            for each in self._nacked.values():
                each.clear()
        self.redeliver([])

    def redeliver_at_once(self, message: Message | MessageId) -> None:
        """negative_acknowledge without a delay."""
        self.redeliver([self._id_of(message)])

    def reconsume_later(
        self, message: Message, delay_ms: int, properties: dict[str, str] | None = None
    ) -> None:
        self.require_open()
        raise not_over_a_connection("reconsume_later")

    def owns(self, message: Message) -> bool:
        """Tell whether the message is of this consumer's topic."""
        return message.topic_name() == self.topic()

    # The subscription -----------------------------------------------------------------------------

    def get_last_message_id(self) -> MessageId:
        return self.last_message_id()

    def seek(self, messageid: MessageId | int) -> None:
        self.require_open()
        if not isinstance(messageid, (MessageId, int)):
            raise ValueError(f"invalid seek_arg type {type(messageid)}")
        with self._changed:
            self._due_ms.clear()
            for each in self._nacked.values():
                each.clear()
        fields = seek_fields(messageid, self._options.start_message_id_inclusive)
        control_plane.perform(self.seek_to, (fields,))

    def _receiver_of(self, message: Message) -> RemoteConsumer | None:
        return self if self.owns(message) else None

    def _require_last(self) -> None:
        pass  # the broker does, when it is asked to unsubscribe

    def _remove_subscription(self) -> None:
        self.unsubscribe_there()

    def take_back(self) -> None:
        self.close_with_client()

    def _leave(self) -> None:
        for each in list(self._timers.values()):
            each.cancel()
        self.shut()


def _nacks_due(reference: weakref.ref[RemoteConsumer], due_ms: int) -> None:
    """A timer's callback: only sends. It does not keep the consumer."""
    consumer = reference()
    if consumer is not None:
        consumer._nacks_due(due_ms)


def _subscribe_fields(options: ConsumerOptions, name: str) -> dict[str, Any]:
    earliest = options.initial_position == InitialPosition.Earliest
    found: dict[str, Any] = {
        "subscription": options.subscription_name,
        "type": _TYPES[options.consumer_type],
        "consumer_name": name,
        "priority_level": options.priority_level,
        "durable": bool(options.subscription_mode == SubscriptionMode.Durable),
        "metadata": [
            {"key": key, "value": value} for key, value in (options.properties or {}).items()
        ],
        "initial_position": commands.EARLIEST if earliest else commands.LATEST,
        "subscription_properties": [
            {"key": key, "value": value}
            for key, value in (options.subscription_properties or {}).items()
        ],
    }
    if options.key_shared_policy is not None:
        policy = options.key_shared_policy.policy()
        sticky = policy.get_key_shared_mode() == KeySharedMode.Sticky
        found["key_shared_meta"] = {
            "mode": commands.STICKY if sticky else commands.AUTO_SPLIT,
            "allow_out_of_order": policy.is_allow_out_of_order_delivery(),
            "ranges": [{"start": start, "end": end} for start, end in policy.get_sticky_ranges()],
        }
    return found
