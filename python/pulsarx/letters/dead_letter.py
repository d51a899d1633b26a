"""Publishes what a consumer gave up to its dead letter topic, and only then acknowledges it.

The core of a consumer notices that a message was redelivered too often, holds it back and calls the
handler with it, with no mutex held. Each goes one of three ways from there:

  published                                        acknowledged: it is in the dead letter topic only
  publishing failed, or the consumer closed first  revived: delivered again later
  the process was killed                           as any message that was not acknowledged

So it may be in the dead letter topic twice, and is never lost nor held back for ever.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque

from pulsarx import errors
from pulsarx.clock import SystemClock
from pulsarx.letters.letter_producer import LetterProducer, make_letter_topic
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.broker import Broker
    from pulsarx.client import Client
    from pulsarx.letters.letter_producer import AnyProducer
    from pulsarx.letters.letter_rules import LetterRules

    class Revives(Protocol):
        """The dispatcher's side of a consumer, which outlives it."""

        def revive(self, message: Message) -> Any: ...

    class Core(Protocol):
        """What is needed of a consumer of one topic."""

        @property
        def receiver(self) -> Revives: ...
        def acknowledge(self, message: Message) -> Any: ...
        def set_dead_letters(
            self, max_redeliver_count: int, handler: Callable[[list[Message]], object]
        ) -> Any: ...

    Batch = tuple[weakref.ref[Core], Revives, list[Message]]


class DeadLetters:
    """The dead letters of one consumer, of all its topics. Any thread may call."""

    def __init__(
        self, client: Client, broker: Broker, rules: LetterRules, consumer_name: str
    ) -> None:
        self._client = client
        self._broker = broker
        self._rules = rules
        self._consumer_name = consumer_name
        # Taken before any mutex of a core. Reentrant: an acknowledgement may call the handler.
        self._lock = threading.RLock()
        self._producers: dict[str, LetterProducer] = {}
        self._waiting: deque[Batch] = deque()
        self._closed = False

    def attach(self, core: Core) -> None:
        """Have the core of one topic or partition hand over what was redelivered too often."""
        consumer = weakref.ref(core)  # the receiver refers to the handler
        receiver = core.receiver

        def handle(messages: list[Message]) -> None:
            self._hand_over(consumer, receiver, messages)

        core.set_dead_letters(self._rules.max_redeliver_count, handle)

    def send(self, message: Message, properties: dict[str, str]) -> None:
        """Publish one message to its dead letter topic; as durable on return as any send."""
        self._producer(message.topic_name()).send(message, properties)

    def close(self) -> None:
        """Before the cores are: waits for what is being published; what waits is revived."""
        with self._lock:
            self._closed = True
            while self._move_next():
                pass
            for producer in self._producers.values():
                producer.close()

    def _hand_over(
        self, consumer: weakref.ref[Core], receiver: Revives, messages: list[Message]
    ) -> None:
        """Publishing waits for the disk, and timers must not; a clock that stands still waits."""
        self._waiting.append((consumer, receiver, messages))
        if isinstance(self._broker.clock, SystemClock):
            self._broker.background.put(self._move_next)
        else:
            self._move_next()

    def _move_next(self) -> bool:
        """Publish, or revive, the messages that have waited longest; False: none wait."""
        with self._lock:
            try:
                consumer, receiver, messages = self._waiting.popleft()
            except IndexError:
                return False
            core = consumer()
            failed: list[Message] = []
            failure: BaseException | None = None
            for message in messages:
                if core is not None and not self._closed and not _ends_the_work(failure):
                    try:
                        self.send(message, self._rules.properties(message))
                        core.acknowledge(message)
                        continue
                    except BaseException as error:
                        failure = error
                failed.append(message)
        for message in failed:
            receiver.revive(message)
        if failure is not None:
            self._log(failed, failure)
            if _ends_the_work(failure):
                raise failure
        return True

    def _log(self, messages: list[Message], failure: BaseException) -> None:
        import logging

        logging.getLogger("pulsarx").error(
            "subscription %s of %s: %d messages could not be moved to the dead letter topic and "
            "are delivered again: %s",
            self._rules.subscription_name,
            messages[0].topic_name(),
            len(messages),
            failure,
        )

    def _producer(self, topic: str) -> LetterProducer:
        letter_topic = self._rules.dead_letter_topic(topic)
        with self._lock:
            found = self._producers.get(letter_topic)
            if found is None:
                name = self._rules.dead_letter_producer_name(topic, self._consumer_name)
                found = self._producers[letter_topic] = LetterProducer(
                    letter_topic, self._broker.clock, lambda: self._make(letter_topic, name)
                )
            return found

    def _make(self, letter_topic: str, name: str) -> AnyProducer:
        """A producer on the dead letter topic, which exists with its first subscription then."""
        make_letter_topic(self._broker, letter_topic)
        if self._rules.initial_subscription_name:
            self._subscribe_initially(letter_topic, self._rules.initial_subscription_name)
        try:
            return self._client.create_producer(letter_topic, producer_name=name)
        except errors.ProducerBusy:
            # Consumers may share a name: then as later versions of Pulsar call it.
            token = self._broker.randomness.token(5)
            other = f"{name.removesuffix('-DLQ')}-{token}-DLQ"
            return self._client.create_producer(letter_topic, producer_name=other)

    def _subscribe_initially(self, letter_topic: str, name: str) -> None:
        """Without a consumer, so that nobody who subscribes meanwhile finds it busy."""
        for part in self._client.get_topic_partitions(letter_topic):
            topic = self._broker.topic(TopicName.of(part))
            with topic.lock:
                if name not in topic.subscriptions:
                    self._broker.check_subscription_creation(topic.name, name)
                    topic.create_subscription(name, topic.ledger.first_position())


def _ends_the_work(failure: BaseException | None) -> bool:
    """Whether it is the thread's, as Ctrl-C is, and not about one message."""
    if isinstance(failure, KeyboardInterrupt):
        return True
    return failure is not None and not isinstance(failure, Exception)
