"""Finds or makes a dead letter or retry letter topic: without partitions, and with its first
subscription if wanted. Calls of the control plane."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.policies.creation import check_subscription_creation, topic_creation
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.producing.producer_creation import ProducerCreation


def make_letter_topic(broker: Broker, topic: str) -> None:
    """Make a letter topic without partitions, whatever other new topics get."""
    name = TopicName.of(topic)
    if str(name) in broker.catalogue.state.topics:
        return
    if not topic_creation(broker.runtime, name).allowed:
        return  # if it may not be made, the producer that opens it raises
    try:
        broker.topics.create_non_partitioned_topic(name)
    except errors.NotAllowedError:
        pass  # another consumer was quicker


def subscribe_initially(broker: Broker, topic: str, subscription_name: str) -> None:
    """Make a subscription without a consumer, so that a consumer that subscribes meanwhile does not
    find it busy. SubscriptionNotFound: none may be made like this."""
    name = TopicName.of(topic)
    if broker.is_guest:
        guest: Any = broker
        check_subscription_creation(broker.runtime, name, subscription_name)
        made = {"topics": [topic], "name": subscription_name, "position": "earliest"}
        guest.perform("subscriptions.create", made)
        return
    count = partition_count_of(broker.catalogue.state, name)
    for each in partition_names(name, count) if count else [topic]:
        found = broker.topic(TopicName.of(each)).require_kept("subscribe initially")
        with found.lock:
            if subscription_name not in found.subscriptions:
                found.check_subscription_creation(subscription_name)
                found.create_subscription(subscription_name, found.ledger.first_position())


def letter_producer(
    broker: Broker, topic: str, producer_name: str | None, initial_subscription_name: str
) -> ProducerCreation:
    """See MemberOwner.create_letter_producer: the producer, whose steps are still to be taken."""
    from pulsarx.options.members import ProducerOptions
    from pulsarx.producing.producer_creation import ProducerCreation
    from pulsarx.producing.producer_steps import bare_producer_steps

    make_letter_topic(broker, topic)
    if initial_subscription_name:
        subscribe_initially(broker, topic, initial_subscription_name)
    name = TopicName.of(topic)
    options = ProducerOptions(
        topic=topic,
        producer_name=producer_name,
        chunking_enabled=name.persistent,
    )
    options.for_letters = True
    steps = bare_producer_steps(broker, options, name)  # each letter brings the schema it has
    return ProducerCreation(steps, broker.post)
