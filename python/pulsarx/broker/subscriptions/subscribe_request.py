"""A consumer's request to the broker: values that go down from the API layer to a subscription."""

from __future__ import annotations

from pulsarx._pycore.dispatch.receiver import Receiver
from pulsarx.enumerations import ConsumerType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.policies.message_policies import MessagePolicies
    from pulsarx.options.consumer_policies import KeySharedPolicy


class ReceiverSettings:
    """How one consumer receives. A value; the core reads it once."""

    __slots__ = (
        "receiver_queue_size", "priority_level", "nack_delay_ms", "nack_backoff",
        "ack_timeout_ms", "ack_timeout_tick_ms", "ack_timeout_backoff", "properties",
        "chunked_pending_max", "acks_oldest_chunked", "chunked_expiry_ms",
    )  # fmt: skip

    def __init__(
        self,
        receiver_queue_size: int = 1000,
        priority_level: int = 0,
        nack_delay_ms: int = 60_000,
        nack_backoff: Any = None,
        ack_timeout_ms: int = 0,
        ack_timeout_tick_ms: int = 1000,
        ack_timeout_backoff: Any = None,
        properties: dict[str, str] | None = None,
        chunked_pending_max: int = 10,
        acks_oldest_chunked: bool = False,
        chunked_expiry_ms: int = 60_000,
    ) -> None:
        """backoffs: None, or an object with next(redelivery_count) -> ms."""
        self.receiver_queue_size: int = receiver_queue_size
        self.priority_level: int = priority_level
        self.nack_delay_ms: int = nack_delay_ms
        self.nack_backoff: Any = nack_backoff
        self.ack_timeout_ms: int = ack_timeout_ms
        self.ack_timeout_tick_ms: int = max(1, min(ack_timeout_tick_ms, ack_timeout_ms or 1))
        self.ack_timeout_backoff: Any = ack_timeout_backoff
        self.properties: dict[str, str] | None = properties
        self.chunked_pending_max: int = chunked_pending_max
        self.acks_oldest_chunked: bool = acks_oldest_chunked
        self.chunked_expiry_ms: int = chunked_expiry_ms


class SubscribeRequest:
    """The request of one consumer of one topic. A value."""

    __slots__ = (
        "subscription_name", "type", "durable", "start", "schema", "consumer_name", "settings",
        "key_shared", "made_subscription", "place", "sink", "read_compacted", "decryption",
        "subscription_properties", "takes_any_selector",
    )  # fmt: skip

    def __init__(
        self,
        subscription_name: str,
        type: ConsumerType,
        schema: object,
        consumer_name: str,
        start: Callable[[], Position],
        settings: ReceiverSettings | None = None,
        durable: bool = True,
        key_shared: KeySharedPolicy | None = None,
        sink: type[EntrySink] = Receiver,
        read_compacted: bool = False,
        decryption: object = None,
        place: int | None = None,
        subscription_properties: dict[str, str] | None = None,
        takes_any_selector: bool = False,
    ) -> None:
        """start: where a new subscription begins. key_shared: None for the defaults. sink: what the
        dispatcher hands entries to. decryption: a PayloadDecryption; None: what is encrypted is not
        delivered. place: its place among the consumers of the last owner; None: it is a new one.
        subscription_properties: of a subscription that has none yet. takes_any_selector: though it
        gives another than the subscription has."""
        self.subscription_name: str = subscription_name
        self.type: ConsumerType = type
        self.schema: object = schema
        self.consumer_name: str = consumer_name
        self.start: Callable[[], Position] = start
        self.settings: ReceiverSettings = settings or ReceiverSettings()
        self.durable: bool = durable
        self.key_shared: KeySharedPolicy | None = key_shared
        self.sink: Callable[..., Any] = sink
        self.read_compacted: bool = read_compacted
        self.decryption: object = decryption
        self.place: int | None = place  # set by the subscription, where it is None
        self.subscription_properties: dict[str, str] = subscription_properties or {}
        # It comes again, or may: what it gave the first time may have been changed since.
        self.takes_any_selector: bool = takes_any_selector
        self.made_subscription: bool = False  # set by the topic: the durable subscription is new

    @property
    def type_name(self) -> str:
        """The type's name in Pulsar's statistics."""
        return type_name(self.type)


def type_name(kind: ConsumerType) -> str:
    """The name of a type in Pulsar's statistics."""
    return "Key_Shared" if kind == ConsumerType.KeyShared else kind.name


class DispatchLimits:
    """The limits of dispatch by options and policies. A value; the core reads it once."""

    __slots__ = (
        "unacknowledged_per_consumer", "unacknowledged_per_subscription", "delayed_delivery",
        "early_ms", "look_ahead_per_consumer", "look_ahead_per_subscription",
    )  # fmt: skip

    def __init__(self, options: Any, policies: MessagePolicies) -> None:
        limits, delayed = policies.limits, policies.delayed_delivery
        self.unacknowledged_per_consumer: int = limits.max_unacked_messages_per_consumer
        self.unacknowledged_per_subscription: int = limits.max_unacked_messages_per_subscription
        self.look_ahead_per_consumer: Any = (
            options.key_shared_look_ahead_msg_in_replay_threshold_per_consumer
        )
        self.look_ahead_per_subscription: Any = (
            options.key_shared_look_ahead_msg_in_replay_threshold_per_subscription
        )
        self.delayed_delivery: bool = delayed.active
        self.early_ms: int = delayed.early_ms
