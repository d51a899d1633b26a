"""Facts about functions that run in process: what they are given, what they send, when an input is
acknowledged."""

from __future__ import annotations

import base64
import logging
import queue
import sys
import threading
from types import ModuleType
from typing import Any

import pytest
from support.topics import backlog
from topic_reading import whole_topic

import pulsarx
from pulsarx import InitialPosition, MessageId, OperationNotSupported, errors
from pulsarx.functions import Context, Function, FunctionRunner, PickleSerDe, SerDe

WAIT_MS = 30_000


def outputs(client: pulsarx.Client, topic: str = "out") -> Any:
    """A consumer of all that comes to a topic."""
    return client.subscribe(topic, "check", initial_position=InitialPosition.Earliest)


def take(consumer: Any) -> Any:
    message = consumer.receive(WAIT_MS)
    consumer.acknowledge(message)
    return message


class Exclamation(Function):
    def process(self, input: Any, context: Any) -> str:
        return f"{input}!"


class Forwards(SerDe):
    def serialize(self, input: Any) -> bytes:
        return f">{input}".encode()

    def deserialize(self, input_bytes: bytes) -> Any:
        return input_bytes.decode()[1:]


def test_each_input_has_its_output(client: pulsarx.Client) -> None:
    consumer, producer = outputs(client), client.create_producer("in")
    with FunctionRunner(client, Exclamation, inputs=["in"], output="out"):
        for text in (b"a", b"b", b"c"):
            producer.send(text)
        assert [take(consumer).data() for _ in range(3)] == [b"a!", b"b!", b"c!"]
    assert backlog(client, "public/default/Exclamation", "in") == 0


def test_a_handler_of_its_log_may_ask_for_the_state_when_it_fails(client: pulsarx.Client) -> None:
    """It waited for itself for ever: the error was logged with the lock held that guards the
    state."""
    found: list[object] = []

    class Asking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(runner.get_counter("count"))

    runner = FunctionRunner(client, lambda text: text, inputs=["in"])
    handler = Asking()
    runner.start()
    runner.logger.addHandler(handler)
    try:
        failing = threading.Thread(target=runner.fail, args=(LookupError("told"),), daemon=True)
        failing.start()
        failing.join(60)
        assert not failing.is_alive()
    finally:
        runner.logger.removeHandler(handler)
    with pytest.raises(LookupError, match="told"):
        runner.stop()
    assert len(found) == 1


def test_an_output_names_its_input(client: pulsarx.Client) -> None:
    consumer, producer = outputs(client), client.create_producer("in")
    with FunctionRunner(client, Exclamation, inputs=["in"], output="out"):
        sent = producer.send(b"a")
        properties = take(consumer).properties()
    assert properties["__pfn_input_topic__"] == "persistent://public/default/in"
    kept = base64.urlsafe_b64decode(properties["__pfn_input_msg_id__"])
    assert MessageId.deserialize(kept) == sent


def _native() -> ModuleType:
    module = ModuleType("native")
    module.process = lambda input: f"{input}!"  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(
    "function",
    [
        Exclamation,
        Exclamation(),
        lambda input: f"{input}!",
        lambda input, context: f"{input}!",
        _native(),
    ],
    ids=["class", "instance", "of one argument", "of two", "module"],
)
def test_all_kinds_of_functions_run(client: pulsarx.Client, function: Any) -> None:
    consumer, producer = outputs(client), client.create_producer("in")
    with FunctionRunner(client, function, inputs=["in"], output="out"):
        producer.send(b"x")
        assert take(consumer).data() == b"x!"


@pytest.mark.parametrize("function", [7, "no_such_module.Function", ModuleType("empty")])
def test_what_is_no_function_does_not_start(client: pulsarx.Client, function: Any) -> None:
    runner = FunctionRunner(client, function, inputs=["in"])
    with pytest.raises((ValueError, ImportError)):
        runner.start()
    assert runner.wait(0)
    runner.stop()


def test_inputs_are_read_as_the_default_serializer_does(client: pulsarx.Client) -> None:
    seen: list[Any] = []
    consumer, producer = outputs(client), client.create_producer("in")
    with FunctionRunner(client, lambda value: seen.append(value) or 1, inputs=["in"], output="out"):
        for payload in (b"7", b"2.5", b"text", b"\xff"):
            producer.send(payload)
            take(consumer)
    assert seen == [7, 2.5, "text", b"\xff"]


def test_serializers_are_those_of_the_topics(client: pulsarx.Client) -> None:
    seen: list[Any] = []

    def keep(value: Any) -> Any:
        seen.append(value)
        return {"found": value}

    consumer = outputs(client)
    options: dict[str, Any] = {"custom_serde_inputs": {"marked": Forwards}, "inputs": ["plain"]}
    options["output_serde"] = "serde.PickleSerDe"
    with FunctionRunner(client, keep, output="out", **options):
        for topic, payload in (("marked", b">a"), ("plain", b">b")):
            client.create_producer(topic).send(payload)
            found = PickleSerDe().deserialize(take(consumer).data())
            assert found == {"found": seen[-1]}
    assert seen == ["a", ">b"]


def test_a_partitioned_topic_has_the_serializer_of_its_name(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("parts", 2)
    consumer = outputs(client)
    options: dict[str, Any] = {"custom_serde_inputs": {"parts": Forwards}}
    with FunctionRunner(client, lambda value: value, output="out", **options):
        producer = client.create_producer("parts")
        for number in range(4):
            producer.send(b">%d" % number)
        found = sorted(take(consumer).data() for _ in range(4))
    assert found == [b"0", b"1", b"2", b"3"]


def test_a_pattern_takes_topics_that_come_later(client: pulsarx.Client) -> None:
    consumer = outputs(client, "all")
    options: dict[str, Any] = {"topics_pattern": "persistent://public/default/log-.*"}
    with FunctionRunner(client, lambda x: x, subs_position="Earliest", output="all", **options):
        for name in ("log-a", "log-b"):
            client.create_producer(name).send(name.encode())
            assert take(consumer).data() == name.encode()


def test_the_context_tells_of_the_message_and_the_function(client: pulsarx.Client) -> None:
    seen: list[Any] = []

    def look(value: Any, context: Context) -> int:
        assert isinstance(context, Context)
        seen.extend(
            [
                context.get_message_id() == sent[0],
                context.get_message_key(),
                context.get_partition_key(),
                context.get_ordering_key(),
                context.get_message_eventtime(),
                context.get_message_properties(),
                context.get_current_message_topic_name(),
                context.get_function_tenant(),
                context.get_function_namespace(),
                context.get_function_name(),
                context.get_instance_id(),
                context.get_input_topics(),
                context.get_output_topic(),
                context.get_output_serde_class_name(),
                context.get_user_config_value("mark"),
                context.get_user_config_value("nothing"),
                context.get_user_config_map(),
                context.get_secret("password"),
                context.get_secret("nothing"),
            ]
        )
        return 1

    sent: list[MessageId] = []
    consumer, producer = outputs(client), client.create_producer("in")
    release = threading.Event()

    def gated(value: Any, context: Context) -> int:
        assert release.wait(30)
        return look(value, context)

    options: dict[str, Any] = {"user_config": {"mark": "?"}, "secrets": {"password": "sesame"}}
    with FunctionRunner(client, gated, name="f", inputs=["in"], output="out", **options):
        sent.append(
            producer.send(
                b"x",
                properties={"a": "b"},
                partition_key="k",
                ordering_key="o",
                event_timestamp=9,
            )
        )
        release.set()
        take(consumer)
    expected: list[Any] = [True, "k", "k", "o", 9, {"a": "b"}, "persistent://public/default/in"]
    expected += ["public", "default", "f", 0, ["in"], "out", None]
    assert seen == [*expected, "?", None, {"mark": "?"}, "sesame", None]


def test_what_cannot_be_published_is_said_where_nobody_waits_for_it(
    client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """With ATMOST_ONCE nobody was told."""

    published: queue.SimpleQueue[str] = queue.SimpleQueue()

    def pass_on(text: str, context: Context) -> None:
        context.publish("words", text)
        published.put(text)

    words = outputs(client, "words")
    with FunctionRunner(client, pass_on, inputs=["in"], processing_guarantees="ATMOST_ONCE"):
        client.create_producer("in").send(b"one")
        assert take(words).data() == b"one"
        client.admin.topics.terminate("words")
        client.create_producer("in").send(b"two")
        assert [published.get(timeout=60) for _ in range(2)] == ["one", "two"]
    assert "publish to words failed" in caplog.text


def test_what_a_function_publishes_arrives(client: pulsarx.Client) -> None:
    told: list[Any] = []

    def split(text: str, context: Context) -> None:
        conf = {"partition_key": "k", "properties": {"lost": "1"}}
        for word in text.split():
            context.publish(
                "words",
                word,
                properties={"from": "split"},
                callback=lambda result, _: told.append(result),
                message_conf=conf,
            )

    words = outputs(client, "words")
    with FunctionRunner(client, split, inputs=["in"]):
        client.create_producer("in").send(b"two words")
        found = [take(words) for _ in range(2)]
    assert [each.data() for each in found] == [b"two", b"words"]
    assert {each.partition_key() for each in found} == {"k"}
    assert [each.properties() for each in found] == [{"from": "split"}] * 2
    assert told == [pulsarx.Result.Ok] * 2
    assert backlog(client, "public/default/split", "in") == 0


def test_a_failed_publication_gives_the_input_back(
    clocked_client: pulsarx.Client, manual_clock: Any
) -> None:
    """The function is called again, with the same message, after the delay."""
    calls: list[str] = []
    called = threading.Semaphore(0)

    def forward(text: str, context: Context) -> None:
        calls.append(text)
        called.release()
        context.publish("persistent://nobody/here/x", text)

    with FunctionRunner(clocked_client, forward, inputs=["in"]) as runner:
        clocked_client.create_producer("in").send(b"x")
        assert called.acquire(timeout=30)
        advance_until(manual_clock, lambda: called.acquire(blocking=False))
    assert calls[:2] == ["x", "x"]
    assert runner.stats()["userExceptionsTotal"] >= 1


def test_an_exception_has_the_input_come_again_after_the_delay(
    clocked_client: pulsarx.Client, manual_clock: Any
) -> None:
    failed = threading.Event()

    def fails_once(text: str) -> str:
        if not failed.is_set():
            failed.set()
            raise LookupError("not yet")
        return text

    consumer = outputs(clocked_client)
    options: dict[str, Any] = {"negative_ack_redelivery_delay_ms": 5000}
    runner = FunctionRunner(clocked_client, fails_once, inputs=["in"], output="out", **options)
    with runner:
        clocked_client.create_producer("in").send(b"x")
        assert failed.wait(30)
        with pytest.raises(pulsarx.Timeout):
            consumer.receive(20)
        advance_until(manual_clock, lambda: runner.stats()["processedSuccessfullyTotal"] == 1)
        assert take(consumer).data() == b"x"
        stats = runner.stats()
    assert (stats["receivedTotal"], stats["userExceptionsTotal"]) == (2, 1)
    assert "LookupError: not yet" in stats["latestUserExceptions"][0]


def advance_until(clock: Any, true: Any) -> None:
    """The thread of the function may not have given its input back yet when time goes on."""
    pause = threading.Event()
    while not true():
        clock.advance(seconds=60)
        pause.wait(0.005)


def test_at_most_once_an_input_is_gone_before_the_function_is_called(
    client: pulsarx.Client,
) -> None:
    seen: list[int] = []
    called = threading.Event()

    def fails(text: str) -> None:
        seen.append(backlog(client, "public/default/fails", "in"))
        called.set()
        raise LookupError("lost")

    options: dict[str, Any] = {"processing_guarantees": "ATMOST_ONCE"}
    with FunctionRunner(client, fails, inputs=["in"], **options):
        client.create_producer("in").send(b"x")
        assert called.wait(30)
    assert seen == [0]
    assert backlog(client, "public/default/fails", "in") == 0


@pytest.mark.parametrize("option", [{"processing_guarantees": "MANUAL"}, {"auto_ack": False}])
def test_without_auto_ack_the_function_acknowledges(
    client: pulsarx.Client, option: dict[str, Any]
) -> None:
    def choose(text: str, context: Context) -> str:
        with pytest.raises(ValueError, match="Invalid topicname other"):
            context.ack(context.get_message_id(), "other")
        if text == "yes":
            context.ack(context.get_message_id(), context.get_current_message_topic_name())
        return text

    consumer, producer = outputs(client), client.create_producer("in")
    with FunctionRunner(client, choose, inputs=["in"], output="out", **option):
        for text in (b"no", b"yes", b"no"):
            producer.send(text)
            take(consumer)
    assert backlog(client, "public/default/choose", "in") == 2


def test_a_message_that_fails_too_often_goes_to_the_dead_letters(
    clocked_client: pulsarx.Client, manual_clock: Any
) -> None:
    def fails(text: str) -> None:
        raise LookupError(text)

    letters = outputs(clocked_client, "fails-DLQ")
    options: dict[str, Any] = {"max_message_retries": 1}
    with FunctionRunner(clocked_client, fails, inputs=["in"], **options) as runner:
        clocked_client.create_producer("in").send(b"x")
        advance_until(manual_clock, lambda: runner.stats()["userExceptionsTotal"] == 2)
        advance_until(manual_clock, letters.has_message)
        assert take(letters).data() == b"x"
    assert runner.stats()["receivedTotal"] == 2


def test_what_a_function_logs_goes_to_its_log_topic(client: pulsarx.Client) -> None:
    def talk(text: str, context: Context) -> None:
        context.get_logger().warning("met %s", text)
        context.get_logger().debug("not told")

    log = outputs(client, "log")
    with FunctionRunner(client, talk, inputs=["in"], log_topic="log"):
        client.create_producer("in").send(b"x")
        message = take(log)
    assert message.data().endswith(b"[WARNING]: met x")
    assert message.properties() == {"loglevel": "WARNING", "fqn": "public/default/talk"}
    assert logging.getLogger("pulsarx.functions.public/default/talk").handlers == []


def test_metrics_are_summed_up(client: pulsarx.Client) -> None:
    def measure(value: int, context: Context) -> int:
        context.record_metric("size", value)
        return value

    consumer, producer = outputs(client), client.create_producer("in")
    with FunctionRunner(client, measure, inputs=["in"], output="out") as runner:
        for value in (4, 1, 7):
            producer.send(b"%d" % value)
            take(consumer)
    stats = runner.stats()
    assert stats["userMetrics"] == {"size": {"sum": 12, "count": 3, "min": 1, "max": 7}}
    assert (stats["receivedTotal"], stats["processedSuccessfullyTotal"]) == (3, 3)


def test_instances_work_at_the_same_time(client: pulsarx.Client) -> None:
    together = threading.Event()
    numbers: set[int] = set()

    def meet(value: int, context: Context) -> int:
        numbers.add(context.get_instance_id())
        if len(numbers) == 3:
            together.set()
        assert together.wait(30)
        return value

    consumer = outputs(client)
    with FunctionRunner(client, meet, inputs=["a", "b", "c"], output="out", parallelism=3):
        producers = [client.create_producer(topic) for topic in ("a", "b", "c")]
        for producer in producers:
            for number in range(4):
                producer.send(b"%d" % number)
        for _ in range(12):
            take(consumer)
    assert numbers == {0, 1, 2}


def test_a_stopped_function_leaves_what_it_did_not_begin(client: pulsarx.Client) -> None:
    began, release = threading.Event(), threading.Event()

    def slow(value: int) -> int:
        began.set()
        assert release.wait(30)
        return value

    producer = client.create_producer("in")
    runner = FunctionRunner(client, slow, inputs=["in"], output="out").start()
    for number in range(5):
        producer.send(b"%d" % number)
    assert began.wait(30)
    runner.ask_to_stop()
    release.set()
    runner.stop()
    assert whole_topic(client, "out") == [b"0"]
    assert backlog(client, "public/default/slow", "in") == 4
    with FunctionRunner(client, slow, inputs=["in"], output="out") as runner:
        consumer = outputs(client)
        assert [take(consumer).data() for _ in range(5)] == [b"%d" % n for n in range(5)]


def test_a_runner_starts_once(client: pulsarx.Client) -> None:
    runner = FunctionRunner(client, Exclamation, inputs=["in"])
    with runner:
        pass
    runner.stop()
    with pytest.raises(errors.NotAllowedError, match="started before"):
        runner.start()


def test_asking_for_the_state_before_the_start_does_not_end_the_function(
    client: pulsarx.Client,
) -> None:
    """It was taken for a failure of the function, which ended when it was started."""
    runner = FunctionRunner(client, Exclamation, inputs=["in"], output="out")
    for ask in (runner.get_counter, runner.get_state):
        with pytest.raises(errors.NotAllowedError):
            ask("n")
    assert runner.error is None
    with runner:
        client.create_producer("in").send(b"a")
        assert take(outputs(client)).data() == b"a!"


def test_a_runner_that_was_stopped_before_its_start_does_not_start(client: pulsarx.Client) -> None:
    """It started, and no stop ended it."""
    runner = FunctionRunner(client, Exclamation, inputs=["in"])
    runner.stop()
    with pytest.raises(errors.NotAllowedError, match="started before, or stopped"):
        runner.start()


def test_a_signal_handler_may_ask_to_stop_at_every_line_of_a_wait(client: pulsarx.Client) -> None:
    """It hung where wait held the lock of a threading.Event."""

    def interrupted_at(number: int) -> bool:
        runner = FunctionRunner(client, Exclamation, inputs=["in"])
        left = number

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal left
            if event == "line":
                left -= 1
                if left == 0:
                    runner.ask_to_stop()
            return trace

        def wait() -> None:
            sys.settrace(trace)
            try:
                runner.wait(0.001)
            finally:
                sys.settrace(None)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive(), f"it hangs at line {number} of the wait"
        return left <= 0

    number = 1
    while interrupted_at(number):
        number += 1
    assert number > 1


def test_a_closed_client_ends_the_function(client: pulsarx.Client) -> None:
    runner = FunctionRunner(client, Exclamation, inputs=["in"]).start()
    client.close()
    assert runner.wait(30)
    with pytest.raises(errors.AlreadyClosed):
        runner.stop()


def test_a_runner_of_a_folder_opens_and_closes_it(folder: Any) -> None:
    with FunctionRunner(folder, Exclamation, inputs=["in"]) as runner:
        opened = runner.client
    with pytest.raises(errors.AlreadyClosed):
        opened.create_producer("in")


# Effectively once ---------------------------------------------------------------------------------


def test_effectively_once_an_exception_ends_the_function_at_its_message(
    client: pulsarx.Client,
) -> None:
    def fails(value: int) -> int:
        if value == 2:
            raise LookupError("no two")
        return value

    producer = client.create_producer("in")
    options: dict[str, Any] = {"processing_guarantees": "EFFECTIVELY_ONCE"}
    runner = FunctionRunner(client, fails, inputs=["in"], output="out", **options).start()
    for number in range(4):
        producer.send(b"%d" % number)
    assert runner.wait(30)
    with pytest.raises(LookupError, match="no two"):
        runner.stop()
    assert whole_topic(client, "out") == [b"0", b"1"]
    assert backlog(client, "public/default/fails", "in") == 2


def test_effectively_once_a_topic_that_keeps_nothing_is_refused(client: pulsarx.Client) -> None:
    options: dict[str, Any] = {"processing_guarantees": "EFFECTIVELY_ONCE"}
    options["output"] = "non-persistent://public/default/n"
    with pytest.raises(OperationNotSupported, match="keeps no messages"):
        FunctionRunner(client, Exclamation, inputs=["in"], **options).start()
