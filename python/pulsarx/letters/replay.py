"""Publishes dead letters to the topic they came from again."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx.clock import system_clock
from pulsarx.letters import letter_rules
from pulsarx.letters.letter_producer import LetterProducer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.client import Client
    from pulsarx.consumer import Consumer
    from pulsarx.message import Message

SUBSCRIPTION = "replay-dlq"  # it knows which letters were published again


def dead_letters_of(topic: str, subscription: str) -> str:
    """The name of the dead letter topic, unless the policy of a consumer names another one."""
    return f"{letter_rules.parent_of(topic)}-{subscription}-DLQ"


def letter_consumer(client: Client, letter_topic: str) -> Consumer:
    """Gets the letters that were not replayed yet. TopicNotFound: there is no such topic.
    ConsumerBusy: another one replays them."""
    from pulsarx.enumerations import InitialPosition

    client.admin.topics.get_partitioned_topic_metadata(letter_topic)
    return client.subscribe(letter_topic, SUBSCRIPTION, initial_position=InitialPosition.Earliest)


class Replay:
    """Publishes letters as messages, each with the schema version it was written with. One
    thread. Its producers are the client's, who closes them."""

    def __init__(self, client: Client, check: Callable[[str], object] | None = None) -> None:
        """check: called with each topic before anything is published there; raises where that is
        not allowed."""
        self._client = client
        self._check = check
        self._producers: dict[str, LetterProducer] = {}

    def publish(self, letter: Message, topic: str) -> str:
        """The topic, which is that of its property, else the one that is given. TopicNotFound: it
        is gone."""
        properties = letter.properties()
        target = letter_rules.parent_of(properties.get(letter_rules.REAL_TOPIC, topic))
        if target == letter_rules.parent_of(letter.topic_name()):
            raise errors.NotAllowedError(
                detail=f"replay letters of {target} to itself: they would come again without end"
            )
        if self._check is not None:
            self._check(target)
        # What the new message says of itself when it becomes a letter.
        for name in (
            letter_rules.REAL_TOPIC,
            letter_rules.ORIGIN_MESSAGE_ID,
            letter_rules.ORIGIN_MESSAGE_ID_LEGACY,
            letter_rules.REAL_SUBSCRIPTION,
            letter_rules.RECONSUMETIMES,
            letter_rules.DELAY_TIME,
        ):
            properties.pop(name, None)
        self._producer(target).send(letter, properties)
        return target

    def close(self) -> None:
        """Close its producers. Idempotent."""
        for each in self._producers.values():
            each.close()
        self._producers.clear()

    def _producer(self, topic: str) -> LetterProducer:
        if topic not in self._producers:
            self._client.admin.topics.get_partitioned_topic_metadata(topic)  # it exists
            make: Any = partial(self._client.create_producer, topic)
            self._producers[topic] = LetterProducer(topic, system_clock(), make, self._version)
        return self._producers[topic]

    def _version(self, source: str, topic: str, version: int) -> int | None:
        """The version on a topic of a schema that has this one on another."""
        schemas = self._client.admin.schemas
        try:
            info = schemas.get_schema_info(source, version)
        except errors.TopicNotFound:
            return None
        return schemas.create_schema(topic, info)
