"""One of the parallel instances of a function: a thread and its consumer."""

from __future__ import annotations

import base64
from concurrent.futures import CancelledError

from pulsarx import errors
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.clock import monotonic_ms, system_clock
from pulsarx.enumerations import ConsumerType
from pulsarx.functions.function_context import FunctionContext
from pulsarx.functions.function_state import StateNotStored
from pulsarx.functions.input_effects import Publication
from pulsarx.functions.input_transactions import InputTransactions
from pulsarx.functions.pending_sends import sentence_of
from pulsarx.functions.user_code import callable_of, serializer
from pulsarx.options.consumer_policies import ConsumerDeadLetterPolicy
from pulsarx.results import Result
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any

    from pulsarx.functions.function_config import FunctionConfig
    from pulsarx.functions.host import Host
    from pulsarx.functions.input_effects import InputEffects
    from pulsarx.functions.serde import SerDe
    from pulsarx.message import Message
    from pulsarx.message_id import MessageId

INPUT_TOPIC = "__pfn_input_topic__"
INPUT_MESSAGE_ID = "__pfn_input_msg_id__"


class FunctionInstance:
    """Receives, calls the function, sends, acknowledges. Made, started, stopped and closed by the
    runner."""

    def __init__(self, runner: Host, config: FunctionConfig, index: int) -> None:
        self._runner = runner
        self._config = config
        self._function = callable_of(runner.function)
        self._output_serializer = serializer(config.output_serde)
        self._serializers: dict[str, SerDe] = {
            str(TopicName.of(topic)): serializer(config.custom_serde_inputs.get(topic))
            for topic in config.topics
        }
        self._default_serializer = serializer(None)
        # A thread that sets one of these looks at the other one then, so no lock is needed.
        self._stopping = False
        self._called = False  # to look what there is to do
        self._waiting: Future[Message] | None = None
        self._consumer = self._subscribe(index)
        name = f"{config.full_name}-{index}"
        self._transactions: InputTransactions | None = None
        if config.effectively_once:
            self._transactions = InputTransactions(runner, name, self._consumer, self._look)
        self.context: FunctionContext = FunctionContext(
            runner, config, index, self._consumer, self._transactions
        )
        self._thread = OwnThread(self._run, name)

    def _subscribe(self, index: int) -> Any:
        config = self._config
        topics = config.topics
        policy = None
        if config.max_message_retries is not None:
            policy = ConsumerDeadLetterPolicy(config.max_message_retries, config.dead_letters)
        # An instance that took a thousand inputs would leave the others without work.
        shared = config.parallelism > 1 and config.consumer_type == ConsumerType.Shared
        return self._runner.client.subscribe(
            config.pattern or (topics if len(topics) > 1 else topics[0]),
            config.subscription,
            consumer_type=config.consumer_type,
            receiver_queue_size=1 if shared else 1000,
            initial_position=config.initial_position,
            unacked_messages_timeout_ms=config.timeout_ms,
            negative_ack_redelivery_delay_ms=config.negative_ack_redelivery_delay_ms,
            dead_letter_policy=policy,
            properties={
                "application": "pulsar-function",
                "id": config.full_name,
                "instance_id": str(index),
            },
        )

    def start(self) -> None:
        if self._transactions is not None:
            self._transactions.start()
        self._thread.start()

    def ask_to_stop(self) -> None:
        """The message in hand is finished, and no other one is begun."""
        self._stopping = True
        self._look()

    def _look(self) -> None:
        """Its thread waits no longer for an input, and looks what else there is to do."""
        self._called = True
        waiting = self._waiting
        if waiting is not None:
            waiting.cancel()

    def check_is_elsewhere(self) -> None:
        transactions = self._transactions
        if self._thread.runs_here() or (transactions is not None and transactions.runs_here()):
            raise RuntimeError("a function cannot wait for its own end: stop it from outside")

    def join(self) -> None:
        self._thread.join()
        if self._transactions is not None:
            self._transactions.finish()

    def close(self) -> None:
        """Close the consumer, when the thread has ended: what it had not begun goes back to the
        subscription."""
        self._consumer.close()

    # Its thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._called = False
                if self._transactions is not None:
                    self._transactions.start_again()
                message = self._next()
                if message is not None:
                    self._handle(message)
        except BaseException as error:
            self._runner.fail(error)

    def _next(self) -> Message | None:
        """The next message; None: look whether to stop. Cancelling a future loses nothing."""
        try:
            found = self._consumer.receive_many(1, timeout_millis=0)
            if found:
                message: Message = found[0]
                return message
            self._waiting = waiting = self._consumer.receive_async()
            if self._called or self._stopping:
                waiting.cancel()
            taken: Message = waiting.result()
            return taken
        except CancelledError:
            return None
        except errors.CorruptDataError as error:  # the next call goes on behind it
            self._runner.figures.system_exception(errors.detail_of(error))
            self._runner.logger.error(
                "an input is damaged and passed over: %s", errors.detail_of(error)
            )
            return None
        finally:
            self._waiting = None

    def _handle(self, message: Message) -> None:
        config, figures = self._config, self._runner.figures
        figures.received()
        if config.at_most_once and config.auto_ack:
            self._consumer.acknowledge(message)
        try:
            value = self._serializer_of(message).deserialize(message.data())
        except Exception as error:
            self._give_back(message, f"deserialize {message.message_id()}: {sentence_of(error)}")
            return
        effects = self.context.take(message)
        began_ms = monotonic_ms()
        figures.invoked(system_clock().now_ms())
        try:
            output = self._function(value, self.context)
        except Exception as error:
            figures.user_exception(error)
            if config.effectively_once:
                raise
            self._runner.logger.exception("Exception while executing user method")
            self._redeliver(message)
            return
        finally:
            self.context.let_go()
        if effects is not None:
            self._finish(output, effects, began_ms)
            return
        try:
            if not config.at_most_once:
                self._settle()
            self._emit(output, message)
        except StateNotStored:
            raise  # what the function remembers is not what is stored
        except Exception as error:
            self._give_back(message, f"output of {message.message_id()}: {sentence_of(error)}")
            return
        figures.processed(monotonic_ms() - began_ms)

    def _finish(self, output: Any, effects: InputEffects, began_ms: int) -> None:
        """Have what the function did be a transaction."""
        message = effects.message
        try:
            payload = self._payload_of(output)
        except Exception as error:
            self._give_back(message, f"output of {message.message_id()}: {sentence_of(error)}")
            return
        if payload is not None:
            topic = self._config.output or ""
            producer = self._runner.output_producer()
            options = {"properties": _origin_of(message)}
            effects.publications.append(Publication(topic, producer, payload, options))
            effects.byte_count += len(payload)
        effects.milliseconds = monotonic_ms() - began_ms
        assert self._transactions is not None
        self._transactions.put(effects)

    def _settle(self) -> None:
        """Wait until what the function published and remembers is durable."""
        failed = self.context.settle()
        if failed:
            raise errors.UnknownError(detail="; ".join(failed))
        self._runner.flush_state()

    def _serializer_of(self, message: Message) -> SerDe:
        name = message.topic_name()
        found = self._serializers.get(name)
        if found is None:
            found = self._serializers.get(TopicName.of(name).partitioned_name)
        return found or self._default_serializer

    def _emit(self, output: Any, message: Message) -> None:
        payload = self._payload_of(output)
        if payload is None:
            self._acknowledge(message)
            return
        producer = self._runner.output_producer()
        self._runner.outputs.begin()

        def sent(result: Result, _: MessageId) -> None:
            try:
                if result == Result.Ok:
                    self._acknowledge(message)
                else:
                    self._give_back(message, f"publish to {self._config.output}: {result}")
            except BaseException as error:
                self._runner.fail(error)
            finally:
                self._runner.outputs.end(Result.Ok, _)

        try:
            producer.send_async(payload, sent, properties=_origin_of(message))
        except BaseException as error:
            self._runner.outputs.fail(error)
            raise

    def _payload_of(self, output: Any) -> bytes | None:
        """None: nothing is sent."""
        if output is None or not self._config.output:
            return None
        payload: bytes = self._output_serializer.serialize(output)
        return payload

    def _acknowledge(self, message: Message) -> None:
        if self._config.auto_ack and not self._config.at_most_once:
            self._consumer.acknowledge(message)

    def _give_back(self, message: Message, what: str) -> None:
        """Have a message delivered again after a failure that is not the function's."""
        self._runner.figures.system_exception(what)
        if self._config.effectively_once:
            raise errors.UnknownError(detail=what)
        self._runner.logger.error("%s", what)
        self._redeliver(message)

    def _redeliver(self, message: Message) -> None:
        if not (self._config.at_most_once and self._config.auto_ack):
            self._consumer.negative_acknowledge(message)


def _origin_of(message: Message) -> dict[str, str]:
    """The properties of an output."""
    message_id = base64.urlsafe_b64encode(message.message_id().serialize()).decode()
    return {INPUT_TOPIC: message.topic_name(), INPUT_MESSAGE_ID: message_id}
