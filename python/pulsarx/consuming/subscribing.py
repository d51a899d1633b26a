"""Makes the consumer that `Client.subscribe` returns, of one topic or of several."""

from __future__ import annotations

import weakref
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.collector_paused import CollectorPaused
from pulsarx.broker.ledgers.compacted_view import CompactedView
from pulsarx.broker.policies.creation import (
    check_subscription_creation,
    check_subscription_type,
    topic_creation,
)
from pulsarx.broker.subscriptions.subscribe_request import (
    ReceiverSettings,
    SubscribeRequest,
    type_name,
)
from pulsarx.broker.subscriptions.subscription_changes import create_subscriptions
from pulsarx.broker.topics.partitioned_topic import has_partitions
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.consuming.multi_topics_consumer import MultiTopicsConsumer
from pulsarx.consuming.partition_follower import PartitionFollower
from pulsarx.consuming.topic_consumer import TopicConsumer
from pulsarx.enumerations import InitialPosition, RegexSubscriptionMode, SubscriptionMode
from pulsarx.ground.attempt import attempt
from pulsarx.options.members import decryption_of
from pulsarx.options.redelivery_backoff import DELAY_MS_MAX, BoundedBackoff
from pulsarx.topic_name import TopicName, check_is_for_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.consumer import Consumer
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.letters.letters import Letters
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.members import ConsumerOptions


def subscribe(
    owner: MemberOwner, broker: Broker, options: ConsumerOptions, name: str, pool: ListenerPool
) -> Consumer:
    """The consumer that the options ask for. When a topic refuses it, it is attached to none. A
    call of the control plane."""
    if not isinstance(options.topic, (str, list)):
        return _subscribe_pattern(owner, broker, options, name, pool, options.topic)
    given = options.topic if isinstance(options.topic, list) else [options.topic]
    topics = [check_is_for_users(TopicName.of(each)) for each in given]
    for each in topics:
        _check_new_topic(broker, options, each)
    with broker.topics.taking_back():
        return _subscribe_listed(owner, broker, options, name, pool, topics)


def _subscribe_listed(
    owner: MemberOwner,
    broker: Broker,
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
    topics: list[TopicName],
) -> Consumer:
    if options.schema_info is None:
        return _subscribe_named(owner, broker, options, name, pool, topics)
    from pulsarx.consuming.consumer_schema import ConsumerSchema

    schema = ConsumerSchema(broker, topics, options.schema_info)
    consumer = _subscribe_named(owner, broker, options, name, pool, topics)
    try:
        schema.register()
    except BaseException:
        consumer.take_back()
        raise
    return consumer


def _check_new_topic(broker: Broker, options: ConsumerOptions, name: TopicName) -> None:
    """Refuse what policies refuse before a topic is made for it."""
    broker.refresh()
    full, state = name.full, broker.catalogue.state
    if name.partitioned_name in state.topics or full in state.topics or full in broker.volatile:
        return
    runtime = broker.runtime
    if not topic_creation(runtime, name).allowed:
        return  # which is said first
    check_subscription_type(runtime, name, type_name(options.consumer_type))
    if name.persistent and options.subscription_mode == SubscriptionMode.Durable:
        check_subscription_creation(runtime, name, options.subscription_name)


def _subscribe_named(
    owner: MemberOwner,
    broker: Broker,
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
    topics: list[TopicName],
) -> Consumer:
    given = options.topic if isinstance(options.topic, list) else [str(options.topic)]
    letters = _letters(owner, broker, options, name, given)
    known = {each.full for each in topics}
    _check_priorities(options, ", ".join(sorted(known)), known.__contains__, letters)
    if isinstance(options.topic, str) and not options.retry_enable:
        consumer = _subscribe_whole(broker, topics[0], options, name, pool)
        if consumer is not None:
            if letters is not None:
                consumer.letters = letters
                letters.attach(consumer)
            return consumer
    names = list(dict.fromkeys(topics))  # a topic named twice is one topic
    whole = _consumer_of_several(",".join(map(str, names)), options, name, pool, letters)
    wanted = [broker.lookup(each) for each in names]
    several = _Several(broker, whole, options, name, pool)
    retries = _retry_topic(broker, letters)
    several.share(sum(map(_partition_count, [*wanted, *retries])))
    try:
        while wanted:  # those that went just after they were found are looked for again
            wanted = [broker.lookup(each) for each in several.attach_all(wanted)]
        _attach_retries(broker, several, letters, retries)
    except BaseException:
        several.take_back()
        raise
    return whole


def _subscribe_whole(
    broker: Broker, wanted: TopicName, options: ConsumerOptions, name: str, pool: ListenerPool
) -> TopicConsumer | None:
    """The consumer of a topic without partitions; None: it has some."""
    while True:
        topic = broker.lookup(wanted)
        if has_partitions(topic):
            return None
        try:
            return _attach(topic, options, name, pool)
        except TopicGone:
            pass  # it was found just before it went; look for it again


def _subscribe_pattern(
    owner: MemberOwner,
    broker: Broker,
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
    compiled: re.Pattern[str],
) -> MultiTopicsConsumer:
    """The consumer of all topics that match. It creates none of them but that of its retry
    letters."""
    from pulsarx.consuming.pattern_follower import PatternFollower
    from pulsarx.consuming.topics_pattern import TopicsPattern

    pattern = TopicsPattern(compiled, options.regex_subscription_mode)
    letters = None
    if options.dead_letter_policy is not None or options.retry_enable:
        mode = options.regex_subscription_mode
        _check_redelivers(mode == RegexSubscriptionMode.PersistentOnly, pattern.text)
        pattern.leave_out_letters_of(options.subscription_name)
        letters = _letters(owner, broker, options, name, list(map(str, pattern.topics_of(broker))))
        pattern.leave_out(letters.rules.letter_topics() if letters else ())
    _check_priorities(
        options, pattern.text, lambda each: pattern.matches(TopicName.of(each)), letters
    )
    whole = _consumer_of_several(pattern.text, options, name, pool, letters)
    whole.waits_for_topics = broker.state
    several = _Several(broker, whole, options, name, pool)
    retries = _retry_topic(broker, letters)
    follower = PatternFollower(
        pattern, broker, several.attach_checked, several.drop, options.pattern_auto_discovery_period
    )
    whole.followers.append(follower)
    try:
        with CollectorPaused():  # there may be thousands, and all of it stays
            follower.start()
        _attach_retries(broker, several, letters, retries)
    except BaseException:
        several.take_back()
        raise
    return whole


def _letters(
    owner: MemberOwner, broker: Broker, options: ConsumerOptions, name: str, topics: list[str]
) -> Letters | None:
    if options.dead_letter_policy is None and not options.retry_enable:
        return None
    for each in topics:
        _check_redelivers(TopicName.of(each).persistent, each)
    from pulsarx.letters.letters import Letters

    return Letters(owner, broker.runtime, options, name, topics)


def _check_priorities(
    options: ConsumerOptions,
    topics: str,
    receives_from: Callable[[str], bool],
    letters: Letters | None,
) -> None:
    """InvalidConfiguration: a topic has a priority that is none of the consumer's."""
    if options.topic_priorities is None:
        return
    retries = "" if letters is None else letters.rules.retry_letter_topic
    given = options.topic_priorities
    unknown = [each for each in given if each != retries and not receives_from(each)]
    if unknown:
        raise errors.InvalidConfiguration(
            detail=f"topic_priorities names {', '.join(unknown)}, which the consumer of "
            f"{topics} does not receive from; subscribe to it too, or leave it out"
        )


def _check_redelivers(is_persistent: bool, topic: str) -> None:
    """NotAllowedError: messages of non-persistent topics are not delivered again, so none is ever a
    dead letter, or comes again later."""
    if not is_persistent:
        raise errors.NotAllowedError(
            detail=f"subscribe to {topic} with a dead_letter_policy or retry_enable: messages of "
            "non-persistent topics are delivered once; leave both out"
        )


def _retry_topic(broker: Broker, letters: Letters | None) -> list[AnyTopic | PartitionedTopic]:
    """The topic of the consumer's retry letters, made when it is missing; none, where it has
    none."""
    if letters is None or not letters.rules.retry_enable:
        return []
    from pulsarx.letters.letter_topic import make_letter_topic

    make_letter_topic(broker, letters.rules.retry_letter_topic)
    return [broker.lookup(TopicName.of(letters.rules.retry_letter_topic))]


def _attach_retries(
    broker: Broker,
    several: _Several,
    letters: Letters | None,
    retries: list[AnyTopic | PartitionedTopic],
) -> None:
    while retries and several.attach_retries(retries):
        retries = _retry_topic(broker, letters)  # it went just after it was found


def _partitions_of(topic: PartitionedTopic) -> list[AnyTopic]:
    """None where it was deleted."""
    try:
        return [topic.partition(index) for index in range(topic.partition_count)]
    except TopicGone:
        return []


def _partition_count(topic: AnyTopic | PartitionedTopic) -> int:
    return topic.partition_count if has_partitions(topic) else 1


def _consumer_of_several(
    title: str,
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
    letters: Letters | None,
) -> MultiTopicsConsumer:
    """A consumer that has no topic yet."""
    if options.receiver_queue_size == 0:
        from pulsarx.options.members import queue_missing

        several = "partitions" if not options.retry_enable else "a topic and its retry letters"
        raise errors.InvalidConfiguration(detail=queue_missing(several))
    if options.interceptors is None:
        whole = MultiTopicsConsumer(title, options, name, pool)
    else:
        from pulsarx.consuming.intercepted_consumer import InterceptedMultiTopicsConsumer

        whole = InterceptedMultiTopicsConsumer(title, options, name, pool)
        whole.intercept(options.interceptors)
    whole.letters = letters
    return whole


def _attach(
    topic: AnyTopic,
    options: ConsumerOptions,
    name: str,
    pool: ListenerPool,
    whole: MultiTopicsConsumer | None = None,
    settings: ReceiverSettings | None = None,
) -> TopicConsumer:
    """The consumer of one topic; whole: what it is a part of. settings: those of the options, where
    they are known already."""

    def make(receiver: Any, subscription: Any) -> TopicConsumer:
        if options.interceptors is None or whole is not None:
            made = TopicConsumer(receiver, subscription, options, name, pool)
        else:
            from pulsarx.consuming.intercepted_consumer import InterceptedTopicConsumer

            made = InterceptedTopicConsumer(receiver, subscription, options, name, pool)
            made.intercept(options.interceptors)
        # One of several: users know the whole only.
        events = made.events if whole is None else whole.events
        if events is not None:
            receiver.set_events(events, topic.topic_name.partition_index)
        return made

    key_shared = options.key_shared_policy
    request = SubscribeRequest(
        options.subscription_name,
        options.consumer_type,
        options.schema,
        name,
        _start(topic, options),
        settings or _receiver_settings(options),
        durable=bool(options.subscription_mode == SubscriptionMode.Durable),
        key_shared=None if key_shared is None else key_shared.policy(),
        read_compacted=options.is_read_compacted,
        decryption=decryption_of(options),
        subscription_properties=options.subscription_properties,
    )
    consumer = topic.subscribe(request, make)
    assert isinstance(consumer, TopicConsumer)
    consumer.made_subscription = request.made_subscription
    return consumer


def _start(topic: AnyTopic, options: ConsumerOptions) -> Callable[[], Position]:
    """Return the function that finds the position where a new subscription begins."""
    earliest = options.initial_position == InitialPosition.Earliest
    if earliest and options.is_read_compacted:
        return CompactedView(topic.ledger).first_position
    return topic.ledger.first_position if earliest else topic.ledger.end_position


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
        options.max_pending_chunked_message,
        options.auto_ack_oldest_chunked_message_on_queue_full,
        min(options.expire_time_of_incomplete_chunked_message_ms, DELAY_MS_MAX),
    )


class _Several:
    """Attaches a consumer of several topics to them, as long as it is there. Calls of the control
    plane."""

    def __init__(
        self,
        broker: Broker,
        whole: MultiTopicsConsumer,
        options: ConsumerOptions,
        name: str,
        pool: ListenerPool,
    ) -> None:
        self._broker = broker
        self._whole = weakref.ref(whole)
        self._options = options
        self._name = name
        self._pool = pool
        self._priorities = options.topic_priorities or {}
        # Made for the consumer, which is not attached to them yet; by the names of their topics.
        self._created: dict[str, Subscription] = {}
        self.share(1)

    def share(self, topic_count: int) -> None:
        """Each of so many topics gets a part of the queue."""
        self._part = self._options.part_of(topic_count)
        self._settings = (self._part, _receiver_settings(self._part))  # shared by its consumers

    def attach_all(
        self, topics: list[AnyTopic | PartitionedTopic], is_new: bool = False
    ) -> list[TopicName]:
        """Attach to the topics, which are held by nobody; their subscriptions are made in one
        commit. is_new: they came after the consumer, which is to miss nothing of them; it stays
        attached to none of them when one refuses it.

        The names of those that went since they were found.
        """
        whole = self._whole()
        if whole is None or whole.has_left:
            return []
        if is_new:
            self.share(len(whole.members()) + sum(map(_partition_count, topics)))
        part = self._part.from_the_start() if is_new else self._part
        try:
            self._create_missing(topics, part)
            return [each for topic in topics for each in self._attach(whole, topic, part)]
        except BaseException:
            if is_new:
                self._leave(topics)
            raise

    def attach_checked(
        self, topics: list[AnyTopic | PartitionedTopic], is_new: bool = False
    ) -> list[TopicName]:
        """Like attach_all, for topics that a pattern has found: their schemas are compared with the
        consumer's."""
        if self._options.schema_info is None:
            return self.attach_all(topics, is_new)
        from pulsarx.consuming.consumer_schema import ConsumerSchema

        names = [each.topic_name for each in topics]
        schema = ConsumerSchema(self._broker, names, self._options.schema_info)
        gone = self.attach_all(topics, is_new)
        try:
            schema.register()
        except errors.TopicNotFound:
            self._leave(topics)
            return names
        except BaseException:
            if is_new:
                self._leave(topics)
            raise
        return gone

    def drop(self, name: TopicName) -> bool:
        """A topic was deleted. Whether the consumer has another one that has its name by now."""
        whole = self._whole()
        return whole is not None and whole.drop_topic(name)

    def attach_retries(self, topics: list[AnyTopic | PartitionedTopic]) -> list[TopicName]:
        """Attach to the topic of the retry letters; as attach_all."""
        whole = self._whole()
        if whole is None or whole.letters is None:
            return []
        part = whole.letters.retry_options(self._part)
        return [each for topic in topics for each in self._attach(whole, topic, part)]

    def take_back(self) -> None:
        """A topic refused the consumer: leave all, and delete the subscriptions made for it."""
        whole = self._whole()
        if whole is not None:
            whole.take_back()
        for each in self._created.values():
            attempt(partial(each.topic.take_back, each))

    def _leave(self, topics: list[AnyTopic | PartitionedTopic]) -> None:
        whole = self._whole()
        if whole is not None:
            for topic in topics:
                whole.leave_topic(topic.topic_name)

    def _attach(
        self, whole: MultiTopicsConsumer, topic: AnyTopic | PartitionedTopic, part: ConsumerOptions
    ) -> list[TopicName]:
        """The name of the topic, if it went since it was found; nothing is attached then."""
        try:
            self._attach_topic(whole, topic, part)
            return []
        except errors.TopicNotFound:  # also as the owner answers a guest
            self._leave([topic])
            return [topic.topic_name]

    def _attach_topic(
        self, whole: MultiTopicsConsumer, topic: AnyTopic | PartitionedTopic, part: ConsumerOptions
    ) -> None:
        priority = self._priorities.get(topic.topic_name.full)
        if has_partitions(topic):
            attach = partial(self._attach_partition, part, priority)
            follower = PartitionFollower(topic, self._broker.runtime, attach)
            whole.followers.append(follower)
            follower.start()
        else:
            self._attach_one(whole, topic, part, priority)

    def _attach_partition(
        self, part: ConsumerOptions, priority: int | None, partition: AnyTopic, is_new: bool
    ) -> None:
        whole = self._whole()
        if whole is not None and not whole.has_left:
            # What was sent to a partition before its consumer came is not missed.
            asked = part.from_the_start() if is_new else part
            self._attach_one(whole, partition, asked, priority)

    def _attach_one(
        self,
        whole: MultiTopicsConsumer,
        topic: AnyTopic,
        part: ConsumerOptions,
        priority: int | None,
    ) -> None:
        of, settings = self._settings
        if of is not part:
            settings = _receiver_settings(part)
            self._settings = (part, settings)
        member = _attach(topic, part, self._name, self._pool, whole, settings)
        if self._created.pop(topic.name, None) is not None:
            member.made_subscription = True
        if whole.letters is not None:
            whole.letters.attach(member)
        whole.grow(member, priority)

    def _create_missing(
        self, topics: list[AnyTopic | PartitionedTopic], part: ConsumerOptions
    ) -> None:
        """Make the subscription on all topics that have it not, which one commit is enough for;
        those that went meanwhile are passed over."""
        if self._broker.is_guest:
            return  # another process makes them, one by one
        whole_topics: list[Topic] = []
        for topic in topics:
            if not topic.topic_name.persistent:
                continue  # its subscription is not kept
            parts: list[AnyTopic] = []
            if has_partitions(topic):
                parts += _partitions_of(topic)
            else:
                parts.append(topic)
            whole_topics += [each.require_kept("subscribe") for each in parts]
        name = part.subscription_name
        if len(whole_topics) < 2 or part.subscription_mode != SubscriptionMode.Durable:
            return
        whole_topics.sort(key=lambda topic: topic.name)  # the order of their locks
        taken: list[Topic] = []
        try:
            for topic in whole_topics:
                topic.lock.acquire()
                taken.append(topic)
            missing = [
                each for each in whole_topics if name not in each.subscriptions and not each.is_gone
            ]
            for topic in missing:
                check_subscription_type(
                    topic.runtime, topic.topic_name, type_name(part.consumer_type)
                )
                topic.check_subscription_creation(name)
            places = [(each, _start(each, part)()) for each in missing]
            if places:
                catalogue = self._broker.runtime.catalogue
                kind = type_name(part.consumer_type)
                given = part.subscription_properties
                for each in create_subscriptions(catalogue, places, name, kind, given):
                    self._created[each.topic.name] = each
        finally:
            for topic in taken:
                topic.lock.release()
