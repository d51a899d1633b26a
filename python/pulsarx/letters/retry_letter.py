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
from pulsarx.options.argument_check import INT64_MAX, check_properties

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


# A century: what is beyond is a unit mixed up, and the sum with the time of day stays in bounds.
DELAY_MS_MAX = 100 * 366 * 86_400_000


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


def check_reconsume_arguments(message: object, delay_ms: object, properties: object) -> None:
    """TypeError: no Message. ValueError: no delay, or a negative one."""
    if not isinstance(message, Message):
        raise TypeError(
            "reconsume_later takes the received Message, whose content it publishes again, "
            f"not a {type(message).__name__}"
        )
    if not isinstance(delay_ms, int):
        raise ValueError(
            f"delay_ms must be int, not {type(delay_ms).__name__}: {errors.shown(delay_ms)}"
        )
    if delay_ms < 0:
        raise ValueError(f"delay_ms is {errors.shown(delay_ms)}; it must not be negative")
    if delay_ms > DELAY_MS_MAX:
        raise ValueError(
            f"delay_ms is {errors.shown(delay_ms)}; at most {DELAY_MS_MAX}, a hundred years"
        )
    check_properties(properties)


def reconsume_times(message: Message) -> int:
    """Return how often a message was asked for later so far; a property that is no number counts as
    never."""
    text = message.properties().get(RECONSUMETIMES, "")
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(INT64_MAX)):
        return 0
    return int(text)
