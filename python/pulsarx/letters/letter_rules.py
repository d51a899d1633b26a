"""Names the dead letter and retry letter topics of a subscription: for messages given up, and those
to be tried later.

  letter     a message goes there when                    topic, unless the policy names one
  dead       it was redelivered too often                 <topic>-<subscription>-DLQ
  retry      Consumer.reconsume_later asks for it         <topic>-<subscription>-RETRY

Names are made of the parent of a partition. The first topic names those of a consumer of several
topics with retry_enable; without it each topic has a dead letter topic of its own. With it a
partitioned topic <subscription>-DLQ or <subscription>-RETRY in the namespace of the first one is
taken instead, as Pulsar does: before 2.8 these were the names.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.options.consumer_policies import MAX_REDELIVER_COUNT_DEFAULT
from pulsarx.topic_name import TopicName, check_subscription_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pulsarx._pycore.message.message import Message
    from pulsarx.options.consumer_policies import DeadLetterPolicy

# Pulsar's names; the third is an old misspelling that other clients still look for.
REAL_TOPIC = "REAL_TOPIC"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
ORIGIN_MESSAGE_ID_LEGACY = "ORIGIN_MESSAGE_IDY_TIME"
REAL_SUBSCRIPTION = "REAL_SUBSCRIPTION"
RECONSUMETIMES = "RECONSUMETIMES"
DELAY_TIME = "DELAY_TIME"


class LetterRules:
    """Decides what one consumer does with letters. Immutable by custom; any thread may ask."""

    def __init__(
        self,
        topics: Sequence[str],
        subscription_name: str,
        policy: DeadLetterPolicy | None,
        retry_enable: bool = False,
        is_partitioned: Callable[[TopicName], bool] = lambda name: False,
    ) -> None:
        """topics: what the consumer subscribes to, the first one first; empty for a pattern that
            matches none yet.
        is_partitioned: whether there is a partitioned topic of a name.

        InvalidTopicName: the subscription's name makes no topic name and the policy gives none.
        InvalidConfiguration: a letter would come back to the topic it came from.
        """
        self.subscription_name = subscription_name
        self.retry_enable = retry_enable
        self.max_redeliver_count: int = (
            MAX_REDELIVER_COUNT_DEFAULT if policy is None else policy.getMaxRedeliverCount()
        )
        self.initial_subscription_name: str = (
            "" if policy is None else policy.getInitialSubscriptionName()
        )
        if self.initial_subscription_name:
            check_subscription_name(self.initial_subscription_name)
        first = parent_of(topics[0]) if topics else ""
        dead = "" if policy is None else policy.getDeadLetterTopic()
        retry = "" if policy is None else policy.getRetryLetterTopic()
        if retry_enable and not first and not retry:
            raise errors.InvalidConfiguration(
                detail="the pattern matches no topic yet that could name the topic of its retry "
                "letters: give ConsumerDeadLetterPolicy a retry_letter_topic"
            )
        self._dead_letter_topic = ""  # of the topic a message came from
        if dead:
            self._dead_letter_topic = str(TopicName.of(dead))
        elif retry_enable and first:
            old = self._named_before_2_8(first, "DLQ", is_partitioned)
            self._dead_letter_topic = old or self._named_after(first, "DLQ")
        self.retry_letter_topic: str = ""
        if retry_enable:
            old = "" if retry else self._named_before_2_8(first, "RETRY", is_partitioned)
            self.retry_letter_topic = (
                str(TopicName.of(retry)) if retry else old or self._named_after(first, "RETRY")
            )
        self._refuse_circles([parent_of(topic) for topic in topics])

    def dead_letter_topic(self, topic: str) -> str:
        """Return the topic that the dead letters of a topic or partition go to."""
        return self._dead_letter_topic or self._named_after(parent_of(topic), "DLQ")

    def letter_topics(self) -> tuple[str, ...]:
        """The letter topics shared by all topics of the consumer."""
        return tuple(each for each in (self._dead_letter_topic, self.retry_letter_topic) if each)

    def dead_letter_producer_name(self, topic: str, consumer_name: str) -> str:
        return f"{parent_of(topic)}-{self.subscription_name}-{consumer_name}-DLQ"

    def properties(self, message: Message) -> dict[str, str]:
        """The properties of a letter: those of the message, and where it first came from."""
        found = message.properties()
        place = message.message_id()
        origin = f"{place.ledger_id()}:{place.entry_id()}:{place.partition()}:{place.batch_index()}"
        # A letter of a letter keeps what the first one said.
        found.setdefault(REAL_TOPIC, parent_of(message.topic_name()))
        found.setdefault(ORIGIN_MESSAGE_ID, origin)
        found.setdefault(ORIGIN_MESSAGE_ID_LEGACY, origin)
        found.setdefault(REAL_SUBSCRIPTION, self.subscription_name)
        return found

    def _named_before_2_8(
        self, topic: str, ending: str, is_partitioned: Callable[[TopicName], bool]
    ) -> str:
        """The letter topic as Pulsar named it before 2.8, where there is one; else empty."""
        try:
            name = TopicName.of(f"{topic.rpartition('/')[0]}/{self.subscription_name}-{ending}")
        except errors.InvalidTopicName:
            return ""
        return str(name) if is_partitioned(name) else ""

    def _named_after(self, topic: str, ending: str) -> str:
        try:
            return str(TopicName.of(f"{topic}-{self.subscription_name}-{ending}"))
        except errors.InvalidTopicName as error:
            raise errors.InvalidTopicName(
                detail=f"subscription {self.subscription_name!r} cannot be part of the name of a "
                "topic for letters; name it in ConsumerDeadLetterPolicy "
                f"({errors.detail_of(error)})"
            ) from None

    def _refuse_circles(self, topics: list[str]) -> None:
        """A letter topic that the consumer subscribes to would feed itself."""
        if self.retry_enable and self.retry_letter_topic == self._dead_letter_topic:
            raise errors.InvalidConfiguration(
                detail=f"{self.retry_letter_topic} cannot be both retry letter topic and dead "
                "letter topic"
            )
        for topic in topics:
            if topic == self.dead_letter_topic(topic):
                raise errors.InvalidConfiguration(
                    detail=f"{topic} cannot be its own dead letter topic: what is given up would "
                    "come back"
                )
            if topic == self.retry_letter_topic:
                raise errors.InvalidConfiguration(
                    detail=f"{topic} is subscribed to and cannot be its own retry letter topic"
                )


def parent_of(topic: str) -> str:
    """Full name of a topic, or of the topic that a partition is of."""
    return TopicName.of(topic).partitioned_name
