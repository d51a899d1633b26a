"""How `Client.subscribe` makes a consumer: of one topic, or of several."""

from __future__ import annotations

import weakref

from pulsarx import errors
from pulsarx.broker.subscribe_request import ReceiverSettings, SubscribeRequest
from pulsarx.enumerations import InitialPosition, SubscriptionMode
from pulsarx.multi_topics_consumer import MultiTopicsConsumer
from pulsarx.topic_consumer import TopicConsumer
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.client import Client
    from pulsarx.consumer import Consumer
    from pulsarx.letters import Letters
    from pulsarx.listener_pool import ListenerPool
    from pulsarx.options import ConsumerOptions


def subscribe(
    client: Client, broker: Broker, options: ConsumerOptions, name: str, pool: ListenerPool
) -> Consumer:
    """The consumer that the options ask for. When a topic refuses it, it is attached to none."""
    letters = None
    if options.dead_letter_policy is not None or options.retry_enable:
        from pulsarx.letters import Letters

        letters = Letters(client, broker, options, name)
    if isinstance(options.topic, str) and not options.retry_enable:
        consumer = _attach(broker, TopicName.of(options.topic), options, name, pool)
        if letters is not None:
            consumer._letters = letters
            letters.attach(consumer)
        return consumer
    topics = options.topic if isinstance(options.topic, list) else [options.topic]
    return _subscribe_all(broker, topics, options, name, pool, letters)


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
        if whole is not None:
            made._whole = weakref.ref(whole)
        return made

    key_shared = options.key_shared_policy
    earliest = options.initial_position == InitialPosition.Earliest
    request = SubscribeRequest(
        options.subscription_name,
        options.consumer_type,
        options.schema,
        name,
        found.ledger.first_position if earliest else found.ledger.end_position,
        ReceiverSettings(
            options.receiver_queue_size,
            options.priority_level,
            options.negative_ack_redelivery_delay_ms,
            options.nack_backoff,
            options.unacked_messages_timeout_ms or 0,
            options.ack_timeout_tick_ms,
            options.ack_timeout_backoff,
            options.properties,
        ),
        durable=bool(options.subscription_mode == SubscriptionMode.Durable),
        key_shared=None if key_shared is None else key_shared.policy(),
    )
    consumer: TopicConsumer = found.subscribe(request, make)
    return consumer


def _subscribe_all(
    broker: Broker,
    topics: list[str],
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
    letters: Letters | None,
) -> MultiTopicsConsumer:
    # A topic named twice is one topic; names are checked before anything is made.
    names = list(dict.fromkeys(str(TopicName.of(each)) for each in topics))
    if options.receiver_queue_size == 0:
        raise errors.InvalidConfiguration(
            "a consumer of several topics needs a receiver queue; receiver_queue_size is 0"
        )
    consumer = MultiTopicsConsumer(",".join(names), options, name, pool)
    consumer._letters = letters
    part = options.part_of(len(names) + options.retry_enable)
    wanted = [(each, part) for each in names]
    if letters is not None and options.retry_enable:
        wanted.append((letters.rules.retry_letter_topic, letters.retry_options(part)))
    try:
        for each, part_options in wanted:
            member = _attach(broker, TopicName.of(each), part_options, name, pool, consumer)
            consumer.grow(member)
            if letters is not None:
                letters.attach(member)
    except BaseException:
        consumer._leave()
        raise
    return consumer
