"""The context that an instance passes to its function."""

from __future__ import annotations

import re

from pulsarx._pycore.ground.locks import Condition, Lock
from pulsarx.enumerations import CompressionType
from pulsarx.functions.context import Context
from pulsarx.functions.function_state import bytes_of, check_key, counter_in
from pulsarx.functions.input_effects import InputEffects, Publication
from pulsarx.functions.state_changes import checked_amount, checked_value, counter_of
from pulsarx.functions.user_code import name_of, serializer
from pulsarx.results import Result
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger
    from typing import Any

    from pulsarx.consumer import Consumer
    from pulsarx.functions.function_config import FunctionConfig
    from pulsarx.functions.host import Host
    from pulsarx.functions.input_transactions import InputTransactions
    from pulsarx.functions.state_changes import Change, Value
    from pulsarx.message import Message
    from pulsarx.message_id import MessageId

_PARTITION = re.compile(r"(.+)-partition-\d+")


class FunctionContext(Context):
    """The context of one function instance, which calls it from its thread while it processes a
    message. A function may keep it, and call from its own threads what does not need the current
    message."""

    def __init__(
        self,
        runner: Host,
        config: FunctionConfig,
        index: int,
        consumer: Consumer,
        transactions: InputTransactions | None,
    ) -> None:
        """transactions: None: what it does counts at once."""
        self._runner = runner
        self._config = config
        self._index = index
        self._consumer = consumer
        self._transactions = transactions
        self._message: Message | None = None
        self._effects: InputEffects | None = None  # of the input in hand, in a transaction
        self._producers: dict[str, Any] = {}
        self._serializers: dict[str, Any] = {}
        self._lock = Lock()  # of what follows
        self._unpublished = 0
        self._failed: list[str] = []
        self._published = Condition(self._lock)

    # The instance's side --------------------------------------------------------------------------

    def take(self, message: Message) -> InputEffects | None:
        """A message comes into hand. What is done with it, where that is a transaction."""
        self._message = message
        self._effects = None if self._transactions is None else InputEffects(message)
        return self._effects

    def let_go(self) -> None:
        """The function has returned."""
        effects, self._effects = self._effects, None
        if effects is not None:
            effects.close()

    def settle(self) -> list[str]:
        """Wait until what was published since the last call is durable; what failed."""
        if self._unpublished:
            for producer in list(self._producers.values()):
                producer.flush()
        with self._published:
            self._published.wait_for(lambda: self._unpublished == 0)
            failed, self._failed = self._failed, []
            return failed

    def close(self) -> None:
        for producer in self._producers.values():
            producer.close()

    # The message in hand --------------------------------------------------------------------------

    @property
    def _in_hand(self) -> Message:
        if self._message is None:
            raise RuntimeError("there is no message in hand")
        return self._message

    def get_message_id(self) -> MessageId:
        return self._in_hand.message_id()

    def get_message_key(self) -> str:
        return self._in_hand.partition_key()

    def get_message_eventtime(self) -> int:
        return self._in_hand.event_timestamp()

    def get_message_properties(self) -> dict[str, str]:
        return self._in_hand.properties()

    def get_current_message_topic_name(self) -> str:
        return self._in_hand.topic_name()

    def get_partition_key(self) -> str:
        return self._in_hand.partition_key()

    def get_ordering_key(self) -> str:
        return self._in_hand.ordering_key()

    # The function ---------------------------------------------------------------------------------

    def get_function_tenant(self) -> str:
        return self._config.tenant

    def get_function_namespace(self) -> str:
        return self._config.namespace

    def get_function_name(self) -> str:
        return self._config.name

    def get_function_id(self) -> str:
        return self._runner.function_id

    def get_instance_id(self) -> int:
        return self._index

    def get_function_version(self) -> str:
        return "0"

    def get_logger(self) -> Logger:
        return self._runner.logger

    def get_user_config_value(self, key: str) -> Any:
        return self._config.user_config.get(key)

    def get_user_config_map(self) -> dict[str, Any]:
        return self._config.user_config

    def get_secret(self, secret_name: str) -> Any:
        return self._config.secrets.get(secret_name)

    def get_input_topics(self) -> list[str]:
        return self._config.topics or [self._config.topics_pattern or ""]

    def get_output_topic(self) -> str | None:
        return self._config.output

    def get_output_serde_class_name(self) -> str | None:
        named = self._config.output_serde
        return named if named is None or isinstance(named, str) else name_of(named)

    # What it does ---------------------------------------------------------------------------------

    def record_metric(self, metric_name: str, metric_value: float) -> None:
        self._runner.figures.observe(metric_name, metric_value)

    def publish(
        self,
        topic_name: str,
        message: Any,
        serde_class_name: str = "serde.IdentitySerDe",
        properties: dict[str, str] | None = None,
        compression_type: CompressionType | None = None,
        callback: Callable[..., object] | None = None,
        message_conf: dict[str, Any] | None = None,
    ) -> None:
        topic, named = str(topic_name), str(serde_class_name)
        producer = self._producers.get(topic)
        if producer is None:
            producer = self._producers[topic] = self._runner.client.create_producer(
                topic,
                block_if_queue_full=True,
                compression_type=compression_type or CompressionType.NONE,
            )
        if named not in self._serializers:
            self._serializers[named] = serializer(named)
        payload = bytes(self._serializers[named].serialize(message))
        conf = dict(message_conf or {})
        if properties:
            conf["properties"] = properties
        effects = self._effects
        if effects is not None and effects.publish(
            Publication(
                topic, producer, payload, conf, callback, is_kept=TopicName.of(topic).persistent
            )
        ):
            return
        self._send(topic, producer, payload, callback, conf)

    def _send(
        self,
        topic: str,
        producer: Any,
        payload: bytes,
        callback: Callable[..., object] | None,
        conf: dict[str, Any],
    ) -> None:
        is_awaited = self._transactions is None and not self._config.at_most_once

        def sent(result: Result, message_id: MessageId) -> None:
            try:
                if callback is not None:
                    callback(result, message_id)
            finally:
                with self._published:
                    self._unpublished -= 1
                    if result != Result.Ok and is_awaited:
                        self._failed.append(f"publish to {topic}: {result}")
                    self._published.notify_all()
                if result != Result.Ok and not is_awaited:
                    self._runner.logger.error("publish to %s failed: %s", topic, result)

        with self._lock:
            self._unpublished += 1
        try:
            producer.send_async(payload, sent, **conf)
        except BaseException:
            with self._published:
                self._unpublished -= 1
                self._published.notify_all()
            raise

    def ack(self, msgid: MessageId, topic: str) -> None:
        known = self._config.topics
        partition = _PARTITION.fullmatch(topic)
        parent = partition.group(1) if partition else topic
        matches = self._config.pattern is not None and self._config.pattern.search(parent)
        names = {*known, *(str(TopicName.of(each)) for each in known)}
        if not matches and topic not in names and parent not in names:
            raise ValueError(f"Invalid topicname {topic}")
        if self._transactions is not None:
            return  # the input is acknowledged with what the function did
        held = self._message
        is_held = held is not None and held.message_id() == msgid
        self._consumer.acknowledge(held if is_held and held is not None else msgid)

    # Its state ------------------------------------------------------------------------------------

    def incr_counter(self, key: str, amount: int) -> None:
        if self._transactions is not None:
            counter_of(key, self._value(key))
        if not self._changes(key, (False, checked_amount(amount))):
            self._runner.state().increment(key, amount)

    def get_counter(self, key: str) -> int | None:
        return counter_in(self._value(key))

    def del_counter(self, key: str) -> None:
        if not self._changes(key, (True, None)):
            self._runner.state().remove(key)

    def put_state(self, key: str, value: bytes | str) -> None:
        if not self._changes(key, (True, checked_value(value))):
            self._runner.state().put(key, value)

    def get_state(self, key: str) -> bytes | None:
        return bytes_of(self._value(key))

    def _value(self, key: str) -> Value:
        if self._transactions is None:
            return self._runner.state().committed(key)
        return self._transactions.value(key, self._effects)

    def _changes(self, key: str, change: Change) -> bool:
        """Whether the input in hand took a change; else it counts at once."""
        effects = self._effects
        if effects is None:
            return False
        check_key(key)
        self._runner.state()  # opened by what is in the function, which it fails then
        return effects.change(key, change)
