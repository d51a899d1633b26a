"""`Consumer.reconsume_later`: a message is published to the retry letter topic and acknowledged.

property         says                                          changed by a later retry
REAL_TOPIC       the topic it first came from, no partition    no
ORIGIN_MESSAGE_ID  where it is there                           no
RECONSUMETIMES   how often it was asked for, 1 at first        always
DELAY_TIME       how long it was to wait, milliseconds         always
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.message.message import Message
from pulsarx.letters.letter_producer import LetterProducer, letter_schema_version
from pulsarx.letters.letter_rules import DELAY_TIME, RECONSUMETIMES
from pulsarx.options.argument_check import INT64_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.letters.dead_letter import DeadLetters
    from pulsarx.letters.letter_rules import LetterRules

    class Receiver(Protocol):
        """The consumer that received the message, of one topic or of several."""

        def acknowledge(self, message: Message) -> Any: ...
        def redeliver_at_once(self, message: Message) -> Any: ...


class RetryLetters:
    """The retry letters of one consumer. Calls of the control plane."""

    def __init__(
        self,
        owner: MemberOwner,
        runtime: BrokerRuntime,
        rules: LetterRules,
        dead_letters: DeadLetters,
    ) -> None:
        self._rules = rules
        self._dead_letters = dead_letters
        self._producer = LetterProducer(
            rules.retry_letter_topic,
            runtime.clock,
            lambda: owner.create_letter_producer(rules.retry_letter_topic, None, ""),
            partial(letter_schema_version, runtime),
        )

    def reconsume_later(
        self, receiver: Receiver, message: Message, delay_ms: int, properties: dict[str, str] | None
    ) -> None:
        """See `Consumer.reconsume_later`. The arguments were checked, and whose message it is."""
        try:
            described = self._rules.properties(message)
            described.update(properties or {})
            times = reconsume_times(message) + 1
            described[RECONSUMETIMES] = str(times)
            described[DELAY_TIME] = str(delay_ms)
            if times > self._rules.max_redeliver_count:
                self._dead_letters.send(message, described)
            else:
                self._producer.send(message, described, delay_ms)
            receiver.acknowledge(message)
        except BaseException:
            try:
                receiver.redeliver_at_once(message)
            except errors.AlreadyClosed:
                pass  # its subscription delivers it again
            raise

    def close(self) -> None:
        self._producer.close()


def reconsume_times(message: Message) -> int:
    """Return how often a message was asked for later so far; a property that is no number counts as
    never."""
    text = message.properties().get(RECONSUMETIMES, "")
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(INT64_MAX)):
        return 0
    return int(text)
