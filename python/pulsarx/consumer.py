"""A consumer: what `Client.subscribe` returns. The hot calls are inherited from the core."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.consumer_arrow import ConsumerArrow
from pulsarx.clock import Deadline
from pulsarx.message_id import MessageId
from pulsarx.not_yet import refuse_call
from pulsarx.policies import BatchReceivePolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.message import Message
    from pulsarx._pycore.receiver import Receiver
    from pulsarx.broker.subscription import Subscription
    from pulsarx.options import ConsumerOptions


# Messages without limit, 10 MiB, 100 ms: the official client's default.
DEFAULT_BATCH_RECEIVE = BatchReceivePolicy(-1, 10 << 20, 100)


class Consumer(ConsumerArrow):
    """Receives the messages of one subscription. Any thread may call.

    `receive`, `acknowledge`, `acknowledge_cumulative`, `receive_many`, `acknowledge_many` and
    `receive_arrow` come
    from the core class. What is not acknowledged when the consumer closes goes to the next one of
    the subscription.
    """

    _is_unsubscribed = False
    _client: object = None  # kept alive by what it made

    def __init__(
        self,
        receiver: Receiver,
        subscription: Subscription,
        options: ConsumerOptions,
        name: str,
    ) -> None:
        super().__init__(receiver, subscription)
        self._subscription = subscription
        self._options = options
        self._name = name
        given = options.batch_receive_policy
        self._policy = DEFAULT_BATCH_RECEIVE if given is None else given.policy()

    def topic(self) -> str:
        """Full name of the topic."""
        return self._subscription.topic.name

    def subscription_name(self) -> str:
        return self._subscription.name

    def consumer_name(self) -> str:
        """The given name, or the generated one."""
        return self._name

    def is_connected(self) -> bool:
        """Whether it can still be used."""
        return bool(self.is_open)

    def batch_receive(self) -> list[Message]:
        """Messages until one bound of the batch receive policy is reached: number, bytes or time
        (real)."""
        policy = self._policy
        most = policy.getMaxNumMessages() if policy.getMaxNumMessages() > 0 else 1 << 31
        most_bytes = policy.getMaxNumBytes() if policy.getMaxNumBytes() > 0 else 1 << 62
        deadline = Deadline(policy.getTimeoutMs() if policy.getTimeoutMs() > 0 else None)
        found: list[Message] = []
        size = 0
        while len(found) < most and size < most_bytes:
            try:
                message = self.receive(deadline.remaining_ms())
            except errors.Timeout:
                break
            found.append(message)
            size += message.size()
        return found

    def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again that this consumer was given and did not acknowledge."""
        self.redeliver_unacknowledged()

    def get_last_message_id(self) -> MessageId:
        """Id of the last message of the topic; (-1,-1,-1,-1) when it has none."""
        self.require_open()
        return self._subscription.topic.ledger.last_message_id()

    def seek(self, messageid: MessageId | int) -> None:
        """Move the subscription: to behind a message id, or to the first message published at a
        time.

        messageid: a MessageId (`MessageId.earliest`, `MessageId.latest`; the message itself is
            delivered again only
        with `start_message_id_inclusive=True`), or milliseconds since 1970. Before the first
        message of the topic it
        is the first, beyond the last the end. Everything before counts as acknowledged from now on.
        Durable on return.
        """
        self.require_open()
        ledger = self._subscription.topic.ledger
        self._subscription.seek(
            seek_position(ledger, messageid, self._options.start_message_id_inclusive)
        )

    def unsubscribe(self) -> None:
        """Delete the subscription and close the consumer: its messages are no longer held.

        BrokerMetadataError: other consumers are attached to it; nothing changed.
        """
        self.require_open()
        self._subscription.unsubscribe(self.receiver)
        self._is_unsubscribed = True

    def close(self) -> None:
        """Leave the subscription; it keeps its position. A second call raises AlreadyClosed.

        After unsubscribe, which closed the consumer, it does nothing.
        """
        if self._is_unsubscribed:
            self._is_unsubscribed = False
            return
        self.require_open()
        if self.shut():
            self._subscription.detach(self.receiver)

    def tell_active(self, active: bool) -> None:
        """The dispatcher made this consumer the active one, or another."""

    def pause_message_listener(self) -> None:
        """Not there in this version."""
        raise refuse_call("pause_message_listener", "a message listener")

    def resume_message_listener(self) -> None:
        """Not there in this version."""
        raise refuse_call("resume_message_listener", "a message listener")

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_open:
            self.close()

    def __repr__(self) -> str:
        return (
            f"Consumer(topic={self.topic()!r}, subscription={self.subscription_name()!r}, "
            f"name={self._name!r}, open={self.is_connected()})"
        )


def seek_position(ledger: Any, target: MessageId | int, inclusive: bool) -> tuple[int, int]:
    """Where a seek to an id or a time goes."""
    if isinstance(target, MessageId):
        position: tuple[int, int] = ledger.position_of(target, inclusive)
        return position
    if isinstance(target, int):
        found: tuple[int, int] = ledger.position_at_time(target)
        return found
    raise ValueError(f"invalid seek_arg type {type(target)}")
