"""The policies a consumer asks for beyond single options. Immutable; user code makes them.

Each class of the official client wraps a native one, which `policy()` returns and whose getters
have C++ names; so it is here.
"""

from __future__ import annotations

from itertools import pairwise

from pulsarx.enumerations import KeySharedMode
from pulsarx.errors import shown
from pulsarx.options.argument_check import INT32_MAX, INT64_MAX, native_integer, native_type

STICKY_HASH_MAX = 65535
BATCH_BYTES_DEFAULT = 10 * 1024 * 1024
MAX_REDELIVER_COUNT_DEFAULT = 16  # of a consumer with retry_enable and no policy


class BatchReceivePolicy:
    """Says when a batch receive is complete: enough messages, enough bytes, or waited long
    enough."""

    __slots__ = ("_max_num_bytes", "_max_num_messages", "_timeout_ms")

    def __init__(self, max_num_messages: int, max_num_bytes: int, timeout_ms: int) -> None:
        """0 and less means without limit; one of the three must be limited."""
        messages = native_integer(max_num_messages, "max_num_messages", -INT32_MAX - 1, INT32_MAX)
        size = native_integer(max_num_bytes, "max_num_bytes", -INT32_MAX - 1, INT32_MAX)
        timeout = native_integer(timeout_ms, "timeout_ms", -INT64_MAX - 1, INT64_MAX)
        if messages <= 0 and size <= 0 and timeout <= 0:
            raise ValueError(
                "At least one of maxNumMessages, maxNumBytes and timeoutMs must be specified."
            )
        if messages <= 0 and size <= 0:
            # As the official client does: waiting alone would collect without any bound.
            messages, size = -1, BATCH_BYTES_DEFAULT
        self._max_num_messages = messages
        self._max_num_bytes = size
        self._timeout_ms = timeout

    def getMaxNumMessages(self) -> int:
        return self._max_num_messages

    def getMaxNumBytes(self) -> int:
        return self._max_num_bytes

    def getTimeoutMs(self) -> int:
        return self._timeout_ms


class ConsumerBatchReceivePolicy:
    """Limits of `Consumer.batch_receive`. `subscribe(batch_receive_policy=...)`."""

    __slots__ = ("_policy",)

    def __init__(self, max_num_message: int, max_num_bytes: int, timeout_ms: int) -> None:
        """Say when batch_receive returns. 0 and less is without limit; without one of messages and
        bytes it is 10 MiB.

        Args:
            max_num_message: Messages at most.
            max_num_bytes: Bytes of payloads at most; one message alone may have more.
            timeout_ms: Milliseconds of real time at most.

        Raises:
            ValueError: None of the three is limited.
            TypeError: An argument is no int, or too large.
        """
        self._policy = BatchReceivePolicy(max_num_message, max_num_bytes, timeout_ms)

    def policy(self) -> BatchReceivePolicy:
        """Return the native policy behind it, as in the official client."""
        return self._policy


class DeadLetterPolicy:
    """Says when a message is given up, and which topic it goes to then."""

    __slots__ = (
        "_dead_letter_topic",
        "_initial_subscription_name",
        "_max_redeliver_count",
        "_retry_letter_topic",
    )

    def __init__(
        self,
        max_redeliver_count: int = INT32_MAX,
        dead_letter_topic: str = "",
        initial_subscription_name: str = "",
        retry_letter_topic: str = "",
    ) -> None:
        self._max_redeliver_count = max_redeliver_count
        self._dead_letter_topic = dead_letter_topic
        self._initial_subscription_name = initial_subscription_name
        self._retry_letter_topic = retry_letter_topic

    def getMaxRedeliverCount(self) -> int:
        return self._max_redeliver_count

    def getDeadLetterTopic(self) -> str:
        return self._dead_letter_topic

    def getInitialSubscriptionName(self) -> str:
        return self._initial_subscription_name

    def getRetryLetterTopic(self) -> str:
        return self._retry_letter_topic


class ConsumerDeadLetterPolicy:
    """Says after how many redeliveries a message goes to a dead letter topic, and to which.

    Names that were not given read as empty: the topic is then `<topic>-<subscription>-DLQ`, that of
    `reconsume_later` `<topic>-<subscription>-RETRY`, and the dead letter topic keeps everything
    until a subscription is made on it. The official client has no retry_letter_topic.
    """

    __slots__ = ("_policy",)

    def __init__(
        self,
        max_redeliver_count: int,
        dead_letter_topic: str | None = None,
        initial_subscription_name: str | None = None,
        retry_letter_topic: str | None = None,
    ) -> None:
        """Say when a message becomes a dead letter.

        Args:
            max_redeliver_count: After how many redeliveries, from 1.
            dead_letter_topic: Where it goes; None: `<topic>-<subscription>-DLQ`.
            initial_subscription_name: A subscription that is made with the dead letter topic; None:
                none is.
            retry_letter_topic: Where reconsume_later sends; None: `<topic>-<subscription>-RETRY`.
                Not in the official client.

        Raises:
            ValueError: max_redeliver_count is None or below 1.
            TypeError: An argument is of the wrong type.
        """
        if max_redeliver_count is None:
            raise ValueError("max_redeliver_count must be given")
        count = native_integer(max_redeliver_count, "max_redeliver_count", -INT32_MAX, INT32_MAX)
        if count < 1:
            raise ValueError(f"max_redeliver_count must be above 0, not {shown(count)}")
        for name, text in (
            ("dead_letter_topic", dead_letter_topic),
            ("initial_subscription_name", initial_subscription_name),
            ("retry_letter_topic", retry_letter_topic),
        ):
            if text is not None:
                native_type(str, text, name)
        self._policy = DeadLetterPolicy(
            count,
            dead_letter_topic or "",
            initial_subscription_name or "",
            retry_letter_topic or "",
        )

    @property
    def dead_letter_topic(self) -> str:
        """The topic of dead letters; empty: `<topic>-<subscription>-DLQ`."""
        return self._policy.getDeadLetterTopic()

    @property
    def max_redeliver_count(self) -> int:
        """After how many redeliveries a message becomes a dead letter."""
        return self._policy.getMaxRedeliverCount()

    @property
    def initial_subscription_name(self) -> str:
        """The subscription that is made with the dead letter topic; empty: none."""
        return self._policy.getInitialSubscriptionName()

    @property
    def retry_letter_topic(self) -> str:
        """The topic of retry letters; empty: `<topic>-<subscription>-RETRY`."""
        return self._policy.getRetryLetterTopic()

    def policy(self) -> DeadLetterPolicy:
        """Return the native policy behind it, as in the official client."""
        return self._policy


class KeySharedPolicy:
    """Says which keys a Key_Shared consumer gets."""

    __slots__ = ("_allow_out_of_order_delivery", "_key_shared_mode", "_sticky_ranges")

    def __init__(
        self,
        key_shared_mode: KeySharedMode = KeySharedMode.AutoSplit,
        allow_out_of_order_delivery: bool = False,
        sticky_ranges: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self._key_shared_mode = key_shared_mode
        self._allow_out_of_order_delivery = allow_out_of_order_delivery
        self._sticky_ranges = sticky_ranges

    def get_key_shared_mode(self) -> KeySharedMode:
        return self._key_shared_mode

    def is_allow_out_of_order_delivery(self) -> bool:
        return self._allow_out_of_order_delivery

    def get_sticky_ranges(self) -> list[tuple[int, int]]:
        return list(self._sticky_ranges)


class ConsumerKeySharedPolicy:
    """The policy by which a Key_Shared consumer shares keys. `subscribe(key_shared_policy=...)`."""

    __slots__ = ("_policy",)

    def __init__(
        self,
        key_shared_mode: KeySharedMode = KeySharedMode.AutoSplit,
        allow_out_of_order_delivery: bool = False,
        sticky_ranges: list[tuple[int, int]] | None = None,
    ) -> None:
        """Say how a Key_Shared consumer gets its keys.

        Args:
            key_shared_mode: AutoSplit: the broker shares them; Sticky: the consumer names its
                hashes.
            allow_out_of_order_delivery: A key waits for no consumer that has messages of it, and so
                may come out of order. The consumers of a subscription must agree.
            sticky_ranges: Pairs of hashes from 0 to 65535, needed in sticky mode; both ends of a
                range belong to it.

        Raises:
            TypeError: An argument is of the wrong type.
            ValueError: Sticky mode without ranges; or a range runs backwards, is out of bounds, or
                overlaps another.
        """
        native_type(KeySharedMode, key_shared_mode, "key_shared_mode")
        if key_shared_mode == KeySharedMode.Sticky and sticky_ranges is None:
            raise ValueError("KeySharedMode.Sticky needs sticky_ranges")
        ranges = () if sticky_ranges is None else check_ranges(sticky_ranges)
        self._policy = KeySharedPolicy(key_shared_mode, bool(allow_out_of_order_delivery), ranges)

    @property
    def key_shared_mode(self) -> KeySharedMode:
        """The mode."""
        return self._policy.get_key_shared_mode()

    @property
    def allow_out_of_order_delivery(self) -> bool:
        """Whether keys may come out of order."""
        return self._policy.is_allow_out_of_order_delivery()

    @property
    def sticky_ranges(self) -> list[tuple[int, int]]:
        """The ranges, in a new list."""
        return self._policy.get_sticky_ranges()

    def policy(self) -> KeySharedPolicy:
        """Return the native policy behind it, as in the official client."""
        return self._policy


def check_ranges(sticky_ranges: object) -> tuple[tuple[int, int], ...]:
    """The ranges in the order given. Ranges that run backwards are refused, which the official
    client accepts."""
    if not isinstance(sticky_ranges, (list, tuple)):
        raise TypeError(f"sticky_ranges must be a list, not {type(sticky_ranges).__name__}")
    ranges: list[tuple[int, int]] = []
    for pair in sticky_ranges:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise TypeError(f"a sticky range must be a pair of int, not {shown(pair)}")
        first = native_integer(pair[0], "start of a sticky range", -INT32_MAX, INT32_MAX)
        last = native_integer(pair[1], "end of a sticky range", -INT32_MAX, INT32_MAX)
        if not 0 <= first <= last <= STICKY_HASH_MAX:
            raise ValueError(
                f"sticky range {shown(pair)} must run upwards within 0 .. {STICKY_HASH_MAX}"
            )
        ranges.append((first, last))
    if not ranges:
        raise ValueError("sticky_ranges must not be empty")
    ordered = sorted(ranges)
    for before, after in pairwise(ordered):
        if after[0] <= before[1]:
            raise ValueError(f"sticky ranges {before} and {after} overlap")
    return tuple(ranges)
