"""The dead and retry letters of one consumer: made by subscribe, kept by the consumer."""

from __future__ import annotations

from pulsarx.broker.topics.partitioned_topic import partition_count_of
from pulsarx.enumerations import ConsumerType
from pulsarx.letters.dead_letter import DeadLetters
from pulsarx.letters.letter_rules import LetterRules
from pulsarx.letters.reconsuming import refuse_reconsuming
from pulsarx.letters.retry_letter import RetryLetters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.letters.retry_letter import Receiver
    from pulsarx.options.members import ConsumerOptions


class Letters:
    """The dead and the retry letters of one consumer. Calls of the control plane."""

    def __init__(
        self,
        owner: MemberOwner,
        runtime: BrokerRuntime,
        options: ConsumerOptions,
        consumer_name: str,
        topics: list[str],
    ) -> None:
        """topics: what the consumer subscribes to. InvalidTopicName, InvalidConfiguration: see
        LetterRules."""
        policy = options.dead_letter_policy
        rules = LetterRules(
            topics,
            options.subscription_name,
            None if policy is None else policy.policy(),
            options.retry_enable,
            lambda name: partition_count_of(runtime.catalogue.state, name) > 0,
        )
        self.rules: LetterRules = rules
        self._dead = DeadLetters(owner, runtime, rules, consumer_name)
        self._retry: RetryLetters | None = None
        if rules.retry_enable:
            self._retry = RetryLetters(owner, runtime, rules, self._dead)

    def retry_options(self, options: ConsumerOptions) -> ConsumerOptions:
        """Return the options to subscribe to the retry topic with, beside topics with these
        options: there a delay counts."""
        # Each of them was selected before, by times of which a letter has others.
        values = options.as_dict() | {"subscription_properties": None, "selector": None}
        if options.consumer_type != ConsumerType.KeyShared:
            values["consumer_type"] = ConsumerType.Shared
        return type(options)(**values)

    def attach(self, core: ConsumerCore) -> None:
        """Let what the core of one topic gives up go to the dead letter topic."""
        self._dead.attach(core)

    def reconsume_later(
        self, receiver: Receiver, message: Message, delay_ms: int, properties: dict[str, str] | None
    ) -> None:
        """receiver: the consumer of the message's own topic. The arguments were checked."""
        if self._retry is None:
            raise refuse_reconsuming()
        self._retry.reconsume_later(receiver, message, delay_ms, properties)

    def close(self) -> None:
        """Close the letter producers, before the consumer leaves its subscription. Idempotent."""
        try:
            self._dead.close()
        finally:
            if self._retry is not None:
                self._retry.close()
