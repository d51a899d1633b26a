"""Making the producer that `create_producer` asks for, step by step, as it may have to wait for its
turn. Used by Client and ClientOwner; in the control plane."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.topics.partitioned_topic import has_partitions
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.ground.attempt import attempt
from pulsarx.producing.producer_creation import wait_for_turn
from pulsarx.producing.producer_schema import check_producer, give_schema
from pulsarx.producing.topic_producer import TopicProducer
from pulsarx.topic_name import TopicName, check_is_for_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.options.members import ProducerOptions
    from pulsarx.producing.producer_creation import Steps


def producer_steps(broker: Broker, options: ProducerOptions) -> Steps:
    """Make the producer that the options ask for. Calls of the control plane."""
    name, info = TopicName.of(options.topic), options.schema_info
    check_producer(broker, name, info)
    producer = yield from bare_producer_steps(broker, options, name)
    if info is not None:
        try:
            give_schema(broker, name, producer, options.schema, info)
        except BaseException:
            attempt(producer.close_with_client)
            raise
    return producer


def bare_producer_steps(broker: Broker, options: ProducerOptions, wanted: TopicName) -> Steps:
    """Like producer_steps, for a producer without a schema of its own. wanted: its topic."""
    check_is_for_users(wanted)
    if options.chunking_enabled and not wanted.persistent:
        raise errors.NotAllowedError(
            detail=f"{wanted} is non-persistent: chunking_enabled must be False"
        )
    while True:
        found = broker.lookup(wanted)
        if has_partitions(found):
            partitions: Any = found
            try:
                return (yield from _partitioned_producer_steps(broker, options, partitions))
            except TopicGone:
                continue  # it was found just before it went; look for it again
        topic = found
        topic.check_may_publish()

        def make(name: str, topic: AnyTopic = topic) -> TopicProducer:
            if options.interceptors is None:
                return TopicProducer(topic, options, name)
            from pulsarx.producing.intercepted_producer import InterceptedProducer

            intercepted: Any = InterceptedProducer(topic, options, name)
            intercepted.intercept(options.interceptors)
            whole: TopicProducer = intercepted
            return whole

        try:
            added = topic.producers.add(options.producer_name, make, int(options.access_mode))
        except TopicGone:
            continue
        return (yield from wait_for_turn(topic.producers, added, make))


def _partitioned_producer_steps(
    broker: Broker, options: ProducerOptions, topic: PartitionedTopic
) -> Steps:
    from pulsarx.producing.partitioned_producer import PartitionedProducer

    name = options.producer_name or broker.runtime.next_producer_name()
    if options.interceptors is None:
        made = PartitionedProducer(broker.runtime, topic, options, name)
    else:
        from pulsarx.producing.intercepted_producer import InterceptedPartitionedProducer

        made = InterceptedPartitionedProducer(broker.runtime, topic, options, name)
        made.intercept(options.interceptors)
    yield from made.open()
    return made
