"""Publishes what a consumer gave up to its dead letter topic, and only then acknowledges it.

The core of a consumer notices that a message was redelivered too often, holds it back and puts it
into the sink that the broker's background thread empties. Each goes one of three ways from there:

  published                                        acknowledged: it is in the dead letter topic only
  publishing failed, or the consumer closed first  revived: delivered again later
  the process was killed                           as any message that was not acknowledged

So it may be in the dead letter topic twice, and is never lost nor held back for ever.
"""

from __future__ import annotations

import weakref
from functools import partial

from pulsarx import errors
from pulsarx._pycore.dispatch.redelivery import DeadLetterSink
from pulsarx._pycore.ground.locks import RLock
from pulsarx.letters.letter_producer import LetterProducer, letter_schema_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.letters.letter_producer import AnyProducer
    from pulsarx.letters.letter_rules import LetterRules


class DeadLetters:
    """The dead letters of one consumer, of all its topics. Calls of the control plane, and jobs of
    the background."""

    def __init__(
        self, owner: MemberOwner, runtime: BrokerRuntime, rules: LetterRules, consumer_name: str
    ) -> None:
        self._owner = owner
        self._runtime = runtime
        self._rules = rules
        self._consumer_name = consumer_name
        self._lock = RLock()  # taken before any mutex of a core
        self._producers: dict[str, LetterProducer] = {}
        self._sinks: list[tuple[weakref.ref[ConsumerCore], DeadLetterSink]] = []
        self._closed = False

    def attach(self, core: ConsumerCore) -> None:
        """Have the core of one topic or partition hand over what was redelivered too often."""
        consumer = weakref.ref(core)  # the receiver refers to the sink
        sink: DeadLetterSink
        sink = DeadLetterSink(self._runtime.background, lambda: self._empty(consumer, sink))
        self._sinks.append((consumer, sink))
        core.set_dead_letters(self._rules.max_redeliver_count, sink)

    def send(self, message: Message, properties: dict[str, str]) -> None:
        """Publish one message to its dead letter topic; as durable on return as any send."""
        self._producer(message.topic_name()).send(message, properties)

    def close(self) -> None:
        """Wait for what is being published and revive what waits; called before the cores close."""
        with self._lock:
            self._closed = True
            for consumer, sink in self._sinks:
                self._empty(consumer, sink)
            for producer in self._producers.values():
                producer.close()

    def _empty(self, consumer: weakref.ref[ConsumerCore], sink: DeadLetterSink) -> None:
        """Publish, or revive, what waits in a sink."""
        with self._lock:
            while (waiting := sink.oldest()) is not None:
                receiver, messages = waiting
                core = consumer()
                failed: list[Message] = []
                failure: Exception | None = None
                for at, message in enumerate(messages):
                    if message is None:
                        continue  # settled before there was no memory for the next
                    if core is not None and not self._closed:
                        try:
                            letter = sink.open(message)
                            self.send(letter, self._rules.properties(letter))
                            core.acknowledge(letter)
                            messages[at] = None
                            continue
                        except Exception as error:
                            failure = error
                    failed.append(message)
                for at, message in enumerate(messages):
                    if message is not None:
                        try:
                            receiver.revive(message)
                        except MemoryError:
                            raise  # it stays here, and is looked at again
                        except Exception as error:
                            failure = error
                        messages[at] = None
                sink.drop_oldest()
                if failure is not None:
                    self._log(failed, failure)

    def _log(self, messages: list[Message], failure: BaseException) -> None:
        import logging

        logging.getLogger("pulsarx").error(
            "subscription %s of %s: %d messages could not be moved to the dead letter topic and "
            "are delivered again: %s",
            self._rules.subscription_name,
            messages[0].topic_name(),
            len(messages),
            errors.detail_of(failure),
        )

    def _producer(self, topic: str) -> LetterProducer:
        letter_topic = self._rules.dead_letter_topic(topic)
        with self._lock:
            found = self._producers.get(letter_topic)
            if found is None:
                name = self._rules.dead_letter_producer_name(topic, self._consumer_name)
                found = self._producers[letter_topic] = LetterProducer(
                    letter_topic,
                    self._runtime.clock,
                    lambda: self._make(letter_topic, name),
                    partial(letter_schema_version, self._runtime),
                )
            return found

    def _make(self, letter_topic: str, name: str) -> AnyProducer:
        """A producer on the dead letter topic, which exists with its first subscription then."""
        make, initial = self._owner.create_letter_producer, self._rules.initial_subscription_name
        try:
            found: AnyProducer = make(letter_topic, name, initial)
            return found
        except errors.ProducerBusy:
            # Consumers may share a name: then as later versions of Pulsar call it.
            token = self._runtime.randomness.token(5)
            other: AnyProducer = make(
                letter_topic, f"{name.removesuffix('-DLQ')}-{token}-DLQ", initial
            )
            return other
