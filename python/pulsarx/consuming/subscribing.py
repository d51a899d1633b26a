"""Makes the consumer that `Client.subscribe` returns, of one topic or of several."""

from __future__ import annotations

import weakref

from pulsarx import errors
from pulsarx.broker.subscriptions.subscribe_request import ReceiverSettings, SubscribeRequest
from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
from pulsarx.consuming.multi_topics_consumer import MultiTopicsConsumer
from pulsarx.consuming.partition_follower import PartitionFollower
from pulsarx.consuming.topic_consumer import TopicConsumer
from pulsarx.enumerations import InitialPosition, SubscriptionMode
from pulsarx.options.redelivery_backoff import DELAY_MS_MAX, BoundedBackoff
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.consumer import Consumer
    from pulsarx.letters.letters import Letters
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.base import ConsumerOptions
    from pulsarx.owner import MemberOwner


def subscribe(
    owner: MemberOwner, broker: Broker, options: ConsumerOptions, name: str, pool: ListenerPool
) -> Consumer:
    """The consumer that the options ask for. When a topic refuses it, it is attached to none. A
    call of the control plane."""
    if options.schema_info is None:
        return _subscribe(owner, broker, options, name, pool)
    from pulsarx.consuming.consumer_schema import ConsumerSchema

    topics = options.topic if isinstance(options.topic, list) else [options.topic]
    schema = ConsumerSchema(broker, topics, options.schema_info)
    consumer = _subscribe(owner, broker, options, name, pool)
    try:
        schema.register()
    except BaseException:
        consumer.take_back()
        raise
    return consumer


def _subscribe(
    owner: MemberOwner, broker: Broker, options: ConsumerOptions, name: str, pool: ListenerPool
) -> Consumer:
    letters = None
    if options.dead_letter_policy is not None or options.retry_enable:
        from pulsarx.letters.letters import Letters

        letters = Letters(owner, broker.runtime, options, name)
    if isinstance(options.topic, str) and not options.retry_enable:
        topic = TopicName.of(options.topic)
        if not isinstance(broker.lookup(topic), PartitionedTopic):
            consumer = _attach(broker, topic, options, name, pool)
            if letters is not None:
                consumer.letters = letters
                letters.attach(consumer)
            return consumer
    return _subscribe_all(broker, options, name, pool, letters)


def _attach(
    broker: Broker,
    topic: TopicName,
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
    whole: MultiTopicsConsumer | None = None,
) -> TopicConsumer:
    """The consumer of one topic; whole: what it is a part of."""
    found = broker.topic(topic)

    def make(receiver: Any, subscription: Any) -> TopicConsumer:
        made = TopicConsumer(receiver, subscription, options, name, pool)
        # One of several: users know the whole only.
        events = made.events if whole is None else whole.events
        if events is not None:
            receiver.set_events(events, topic.partition_index)
        return made

    key_shared = options.key_shared_policy
    earliest = options.initial_position == InitialPosition.Earliest
    request = SubscribeRequest(
        options.subscription_name,
        options.consumer_type,
        options.schema,
        name,
        found.ledger.first_position if earliest else found.ledger.end_position,
        _receiver_settings(options),
        durable=bool(options.subscription_mode == SubscriptionMode.Durable),
        key_shared=None if key_shared is None else key_shared.policy(),
    )
    consumer = found.subscribe(request, make)
    assert isinstance(consumer, TopicConsumer)
    consumer.made_subscription = request.made_subscription
    return consumer


def _receiver_settings(options: ConsumerOptions) -> ReceiverSettings:
    nack_delay_ms = min(options.negative_ack_redelivery_delay_ms, DELAY_MS_MAX)
    nack, timeout = options.nack_backoff, options.ack_timeout_backoff
    return ReceiverSettings(
        options.receiver_queue_size,
        options.priority_level,
        nack_delay_ms,
        None if nack is None else BoundedBackoff(nack, nack_delay_ms),
        min(options.unacked_messages_timeout_ms or 0, DELAY_MS_MAX),
        options.ack_timeout_tick_ms,
        None if timeout is None else BoundedBackoff(timeout, 0),
        options.properties,
    )


def _subscribe_all(
    broker: Broker,
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
    letters: Letters | None,
) -> MultiTopicsConsumer:
    if options.receiver_queue_size == 0:
        raise errors.InvalidConfiguration(
            "a consumer of several topics or partitions needs a receiver queue; "
            "receiver_queue_size is 0"
        )
    # A topic named twice is one topic; names are checked before anything is made.
    topics = options.topic if isinstance(options.topic, list) else [options.topic]
    names = list(dict.fromkeys(str(TopicName.of(each)) for each in topics))
    consumer = MultiTopicsConsumer(",".join(names), options, name, pool)
    consumer.letters = letters
    wanted = [(broker.lookup(TopicName.of(each)), False) for each in names]
    if letters is not None and options.retry_enable:
        from pulsarx.letters.letter_topic import make_letter_topic

        make_letter_topic(broker, letters.rules.retry_letter_topic)
        wanted.append((broker.lookup(TopicName.of(letters.rules.retry_letter_topic)), True))
    sizes = [getattr(topic, "partition_count", 1) for topic, _ in wanted]
    part = options.part_of(sum(sizes))
    try:
        for topic, is_retry in wanted:
            part_options = letters.retry_options(part) if letters and is_retry else part
            attach = _member_maker(broker, consumer, part_options, name, pool)
            if isinstance(topic, PartitionedTopic):
                follower = PartitionFollower(topic, broker.runtime, attach)
                consumer.followers.append(follower)
                follower.start()
            else:
                attach(TopicName.of(topic.name), False)
    except BaseException:
        consumer.take_back()
        raise
    return consumer


def _member_maker(
    broker: Broker,
    consumer: MultiTopicsConsumer,
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
) -> Callable[[TopicName, bool], None]:
    """Attaches the consumer, as long as it is there, to one topic more."""
    reference = weakref.ref(consumer)

    def attach(topic: TopicName, is_new: bool) -> None:
        whole = reference()
        if whole is None or whole.has_left:
            return
        # What was sent to a partition before its consumer came is not missed.
        asked = options.from_the_start() if is_new else options
        member = _attach(broker, topic, asked, name, pool, whole)
        if whole.letters is not None:
            whole.letters.attach(member)
        whole.grow(member)

    return attach
