"""Publishes what a consumer gave up to its dead letter topic, and only then acknowledges it.

The core of a consumer notices that a message was redelivered too often, holds it back and calls the
handler with it, with no mutex held. It goes one of two ways from there:

  published                            acknowledged: it is in the dead letter topic only
  publishing failed, or a kill came    not acknowledged: revived, and tried again later

So it may be there twice after a kill, and is never lost.
"""

from __future__ import annotations

import threading
import weakref

from pulsarx import errors
from pulsarx.clock import SystemClock
from pulsarx.letter_producer import LetterProducer
from pulsarx.redelivery_backoff import MultiplierRedeliveryBackoff
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.message import Message
    from pulsarx.broker.broker import Broker
    from pulsarx.client import Client
    from pulsarx.clock import Timer
    from pulsarx.letter_rules import LetterRules
    from pulsarx.producer import Producer

    class Core(Protocol):
        """What is needed of a consumer of one topic."""

        def acknowledge(self, message: Message) -> Any: ...
        def revive(self, message: Message) -> Any: ...
        def set_dead_letters(
            self, max_redeliver_count: int, handler: Callable[[list[Message]], object]
        ) -> Any: ...


# How long what could not be published rests: the dead letter topic is not hammered while a disk is
# full.
FAILURE_BACKOFF = MultiplierRedeliveryBackoff(1000, 60_000, 2)


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
        self._resting: set[Timer] = set()
        self._failure_count = 0
        self._closed = False

    def attach(self, core: Core) -> None:
        """Have the core of one topic or partition hand over what was redelivered too often."""
        found = weakref.ref(core)  # the core refers to the handler

        def handle(messages: list[Message]) -> None:
            self._hand_over(found, messages)

        core.set_dead_letters(self._rules.max_redeliver_count, handle)

    def send(self, message: Message, properties: dict[str, str]) -> None:
        """Publish one message to its dead letter topic; as durable on return as any send."""
        self._producer(message.topic_name()).send(message, properties)

    def close(self) -> None:
        """Before the cores are: waits for what is being published, leaves the rest alone."""
        with self._lock:
            self._closed = True
            for timer in list(self._resting):
                timer.cancel()
            for producer in self._producers.values():
                producer.close()

    def _hand_over(self, core: weakref.ref[Core], messages: list[Message]) -> None:
        """Publishing waits for the disk, and timers must not; a clock that stands still waits."""
        if isinstance(self._broker.clock, SystemClock):
            self._broker.background.put(lambda: self._move(core, messages))
        else:
            self._move(core, messages)

    def _move(self, reference: weakref.ref[Core], messages: list[Message]) -> None:
        failed: list[Message] = []
        failure: BaseException | None = None
        with self._lock:
            core = reference()
            if core is None or self._closed:
                return  # its subscription delivers them again
            for message in messages:
                if failure is None or not _ends_the_work(failure):
                    try:
                        self.send(message, self._rules.properties(message))
                        core.acknowledge(message)
                        self._failure_count = 0
                        continue
                    except BaseException as error:
                        failure = error
                failed.append(message)
            if failed:
                self._rest(reference, failed, failure)
        if failure is not None and _ends_the_work(failure):
            raise failure

    def _rest(
        self,
        reference: weakref.ref[Core],
        messages: list[Message],
        failure: BaseException | None,
    ) -> None:
        """Revive messages after a while. The lock is held."""
        delay_ms = FAILURE_BACKOFF.next(self._failure_count)
        self._failure_count += 1
        timer: Timer | None = None

        def revive() -> None:
            if timer is not None:
                self._resting.discard(timer)
            core = reference()
            for message in messages if core is not None else ():
                try:
                    core.revive(message)  # type: ignore[union-attr]
                except errors.AlreadyClosed:
                    return  # its subscription delivers them again

        timer = self._broker.clock.call_after(delay_ms, revive)
        self._resting.add(timer)
        import logging

        logging.getLogger("pulsarx").error(
            "subscription %s of %s: %d messages could not be moved to the dead letter topic; they "
            "are delivered again in %d ms: %s",
            self._rules.subscription_name,
            messages[0].topic_name(),
            len(messages),
            delay_ms,
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

    def _make(self, letter_topic: str, name: str) -> Producer:
        """A producer on the dead letter topic, which exists with its first subscription then."""
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


def _ends_the_work(failure: BaseException) -> bool:
    """Whether it is the thread's, as Ctrl-C is, and not about one message."""
    return isinstance(failure, KeyboardInterrupt) or not isinstance(failure, Exception)
