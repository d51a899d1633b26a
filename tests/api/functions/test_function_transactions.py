"""Facts about functions with EFFECTIVELY_ONCE: an input's acknowledgement, its output, what was
published and the state are one transaction."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.topics import backlog, filled
from support.waiting import wait_until
from topic_reading import whole_topic

import pulsarx
from pulsarx import MessageId, Result, errors
from pulsarx.functions import Context, FunctionRunner
from pulsarx.testing.faults import fault_plan

SUBSCRIPTION = "public/default/f"
WAIT_S = 30


def runner_of(client: Any, function: Any, **options: Any) -> FunctionRunner:
    given: dict[str, Any] = {"name": "f", "processing_guarantees": "EFFECTIVELY_ONCE"}
    given |= {"inputs": ["in"], "output": "out", "subs_position": "Earliest"}
    return FunctionRunner(client, function, **given | options)


def run_out(client: Any, function: Any, topic: str = "in", **options: Any) -> FunctionRunner:
    """Run until no input is left, and end."""
    with runner_of(client, function, **options) as runner:
        client.create_producer(topic).close()  # the statistics are those of an open topic
        wait_until(lambda: backlog(client, SUBSCRIPTION, topic) == 0 or runner.wait(0))
    return runner


def effects(client: Any) -> tuple[int, int, int, int]:
    """How many inputs have an output, were published, are in the state, are acknowledged."""
    with runner_of(client, lambda _: None, inputs=["nothing"], subs_name="look") as runner:
        seen = runner.get_counter("seen") or 0
    counts = [len(whole_topic(client, topic)) for topic in ("out", "audit")]
    return (
        counts[0],
        counts[1],
        seen,
        len(whole_topic(client, "in")) - backlog(client, SUBSCRIPTION, "in"),
    )


def count(value: int, context: Context) -> str:
    context.publish("audit", str(value))
    context.incr_counter("seen", 1)
    return f"{value} {context.get_counter('seen')}"


def test_all_of_an_input_counts(client: pulsarx.Client) -> None:
    filled(client, 50, "in")
    runner = run_out(client, count)
    assert whole_topic(client, "out") == [b"%d %d" % (each, each + 1) for each in range(50)]
    assert whole_topic(client, "audit") == [b"%d" % each for each in range(50)]
    assert effects(client) == (50, 50, 50, 50)
    assert runner.stats()["processedSuccessfullyTotal"] == 50


def test_the_state_is_there_when_the_output_is(client: pulsarx.Client) -> None:
    out, audit = client.subscribe("out", "check"), client.subscribe("audit", "check")
    with runner_of(client, count) as runner:
        filled(client, 20, "in")
        for number in range(20):
            seen = int(out.receive(60_000).data().split()[1])
            assert (runner.get_counter("seen") or 0) >= seen == number + 1
            assert audit.receive(0).data() == b"%d" % number


def test_of_an_input_that_fails_nothing_is_left(client: pulsarx.Client) -> None:
    """It published and counted before it failed. Those before it count."""

    def fails(value: int, context: Context) -> str:
        found = count(value, context)
        context.put_state("last", str(value))
        if value == 7:
            raise LookupError("no seven")
        return found

    filled(client, 10, "in")
    runner = runner_of(client, fails).start()
    assert runner.wait(WAIT_S)
    with pytest.raises(LookupError, match="no seven"):
        runner.stop()
    assert effects(client) == (7, 7, 7, 7)
    run_out(client, count)
    assert effects(client) == (10, 10, 10, 10)
    with runner_of(client, count, inputs=["nothing"], subs_name="look") as look:
        assert look.get_state("last") == b"6"


def test_what_cannot_be_sent_ends_the_function_at_its_input(client: pulsarx.Client) -> None:
    """Whatever was done behind it: those before count, and it and those behind do not."""
    calls: list[int] = []
    release = threading.Event()

    def publishes(value: int, context: Context) -> str:
        calls.append(value)
        if value == 0:
            assert release.wait(WAIT_S)
        found = count(value, context)
        if value == 7:
            context.publish("closed", str(value))
        return found

    client.create_producer("closed").send(b"last")
    filled(client, 10, "in")
    runner = runner_of(client, publishes).start()
    client.admin.topics.terminate("closed")
    release.set()
    assert runner.wait(WAIT_S)
    with pytest.raises(errors.PulsarException):
        runner.stop()
    assert effects(client) == (7, 7, 7, 7)
    assert calls == sorted(set(calls)), "no input was given to the function twice"


def test_a_function_reads_what_it_wrote(client: pulsarx.Client) -> None:
    found: list[Any] = []

    def reads(value: int, context: Context) -> None:
        found.append((context.get_state("kept"), context.get_counter("n")))
        context.put_state("kept", f"{value}")
        context.incr_counter("n", value)
        context.incr_counter("n", 1)
        assert context.get_state("kept") == b"%d" % value
        if value == 2:
            context.del_counter("n")
            assert context.get_counter("n") is None
        with pytest.raises(ValueError, match="no counter"):
            context.incr_counter("kept", 1)
        for key in ("", "\0"):
            with pytest.raises(ValueError, match="the key of a state"):
                context.put_state(key, b"")

    filled(client, 4, "in")
    run_out(client, reads)
    assert found == [(None, None), (b"0", 1), (b"1", 3), (b"2", None)]


def test_instances_add_to_one_counter(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("parts", 4)
    producer = client.create_producer("parts")
    for number in range(200):
        producer.send(b"%d" % number)

    def add(value: int, context: Context) -> str:
        context.incr_counter("seen", 1)
        return str(value)

    with runner_of(client, add, inputs=["parts"], parallelism=3) as runner:
        wait_until(lambda: runner.get_counter("seen") == 200 or runner.wait(0))
    found = sorted(whole_topic(client, "out"), key=int)
    assert found == [b"%d" % number for number in range(200)]


def test_an_output_topic_may_have_partitions(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("out", 3)
    filled(client, 9, "in")
    run_out(client, lambda value: str(value))
    found = [whole_topic(client, each) for each in client.get_topic_partitions("out")]
    assert sorted(each for part in found for each in part) == [b"%d" % each for each in range(9)]


def test_an_input_that_another_runner_takes_counts_once(client: pulsarx.Client) -> None:
    """The second one is made the active consumer while the first one has the inputs in hand."""
    first_has_it, release = threading.Event(), threading.Event()

    def waits(value: int, context: Context) -> str:
        first_has_it.set()
        assert release.wait(WAIT_S)
        context.publish("audit", str(value))
        return f"{value}"

    def other(value: int, context: Context) -> str:
        context.publish("audit", str(value))
        return f"{value}"

    filled(client, 5, "in")
    with runner_of(client, waits) as runner:
        assert first_has_it.wait(WAIT_S)
        client.admin.topics.reset_cursor("in", SUBSCRIPTION, MessageId.earliest)
        with runner_of(client, other, name="g", subs_name=SUBSCRIPTION):
            release.set()
            wait_until(lambda: backlog(client, SUBSCRIPTION, "in") == 0 or runner.wait(0))
    assert sorted(whole_topic(client, "out")) == [b"%d" % each for each in range(5)]
    assert sorted(whole_topic(client, "audit")) == [b"%d" % each for each in range(5)]


def test_a_transaction_that_others_abort_is_done_again(client: pulsarx.Client) -> None:
    aborted: list[int] = []
    new_transaction = client.new_transaction

    def aborts_first() -> Any:
        made = new_transaction()
        if not aborted:
            aborted.append(made.number)
            client.admin.transactions.abort_transaction(*made.txn_id())
        return made

    client.new_transaction = aborts_first  # type: ignore[method-assign, assignment]
    filled(client, 5, "in")
    run_out(client, count)
    assert aborted
    assert effects(client) == (5, 5, 5, 5)


def test_acknowledging_is_not_the_business_of_the_function(client: pulsarx.Client) -> None:
    """Its own acknowledgement would count without the output."""

    def acknowledges(value: int, context: Context) -> str:
        context.ack(context.get_message_id(), context.get_current_message_topic_name())
        if value == 1:
            raise LookupError
        return f"{value}"

    filled(client, 2, "in")
    runner = runner_of(client, acknowledges).start()
    assert runner.wait(WAIT_S)
    with pytest.raises(LookupError):
        runner.stop()
    assert whole_topic(client, "out") == [b"0"]
    assert backlog(client, SUBSCRIPTION, "in") == 1


def test_callbacks_come_when_it_counts(client: pulsarx.Client) -> None:
    told: list[Any] = []

    def publishes(value: int, context: Context) -> None:
        def sent(result: Result, message_id: MessageId) -> None:
            told.append((result, message_id, whole_topic(client, "audit")))
            raise LookupError("of a callback")

        context.publish("audit", str(value), callback=sent)

    filled(client, 1, "in")
    runner = run_out(client, publishes)
    ((result, message_id, seen),) = told
    assert (result, seen) == (Result.Ok, [b"0"])
    reader = client.create_reader("audit", MessageId.earliest)
    assert reader.read_next(60_000).message_id() == message_id
    assert runner.stats()["systemExceptionsTotal"] == 1


def test_a_callback_cannot_wait_for_the_end_of_its_function(client: pulsarx.Client) -> None:
    """It would wait for itself."""
    told: list[str] = []

    def publishes(value: int, context: Context) -> None:
        context.publish("audit", str(value), callback=stops)

    def stops(*_: Any) -> None:
        try:
            runner.stop()
        except RuntimeError as error:
            told.append(str(error))

    filled(client, 1, "in")
    runner = runner_of(client, publishes)
    with runner:
        wait_until(lambda: told)
    assert told == ["a function cannot wait for its own end: stop it from outside"]


def test_what_no_transaction_takes_comes_when_it_counts(client: pulsarx.Client) -> None:
    """A topic that keeps no messages, published to, and read from."""
    name = "non-persistent://public/default/"
    passing = client.subscribe(name + "told", "check")

    def tells(value: int, context: Context) -> str:
        context.publish(name + "told", str(value))
        if value == 1:
            raise LookupError
        return f"{value}"

    runner = runner_of(client, tells, inputs=[name + "in"]).start()
    producer = client.create_producer(name + "in")
    producer.send(b"0")
    assert passing.receive(60_000).data() == b"0"
    assert whole_topic(client, "out") == [b"0"]
    producer.send(b"1")
    assert runner.wait(WAIT_S)
    with pytest.raises(LookupError):
        runner.stop()
    with pytest.raises(pulsarx.Timeout):
        passing.receive(50)


def test_inputs_are_taken_anew_after_a_seek(client: pulsarx.Client) -> None:
    """With all that follows from them: an output of each was left out, and the state counted it."""
    filled(client, 5, "in")
    run_out(client, count)
    client.admin.topics.reset_cursor("in", SUBSCRIPTION, MessageId.earliest)
    run_out(client, count)
    assert effects(client) == (10, 10, 10, 5)


def test_a_slow_function_does_not_hold_back_what_was_done(client: pulsarx.Client) -> None:
    release = threading.Event()

    def slow(value: int) -> str:
        if value == 1:
            assert release.wait(WAIT_S)
        return f"{value}"

    out = client.subscribe("out", "check")
    with runner_of(client, slow):
        filled(client, 2, "in")
        assert out.receive(60_000).data() == b"0"
        assert client.admin.transactions.get_transactions() == []
        release.set()
        assert out.receive(60_000).data() == b"1"


def test_what_is_not_committed_is_bounded(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function waits while as much is done as is kept in memory."""
    module = "pulsarx.functions.input_transactions"
    monkeypatch.setattr(f"{module}.INPUTS_MAX", 3)
    release, calls = threading.Event(), []
    new_transaction = client.new_transaction

    def waits() -> Any:
        assert release.wait(WAIT_S)
        return new_transaction()

    client.new_transaction = waits  # type: ignore[method-assign, assignment]
    filled(client, 20, "in")

    def call(value: int) -> str:
        calls.append(value)
        return f"{value}"

    with runner_of(client, call):
        wait_until(lambda: len(calls) >= 5)
        assert len(calls) <= 1 + 3 + 3
        release.set()
        wait_until(lambda: len(calls) == 20)
    assert len(whole_topic(client, "out")) == 20


def test_a_disk_that_fails_ends_the_function(folder: Any) -> None:
    """Its inputs stay, and nothing of them is seen when the folder is opened again."""
    client = pulsarx.Client(folder)
    out = client.subscribe("out", "check")
    with fault_plan() as plan:
        runner = runner_of(client, count).start()
        producer = client.create_producer("in")
        producer.send(b"0")
        out.acknowledge(out.receive(60_000))
        producer.send(b"1")
        assert out.receive(60_000).data() == b"1 2"
        plan.fail("flush", sticky=True)
        with pytest.raises(errors.StorageError):
            producer.send(b"2")
        runner.ask_to_stop()
        try:
            runner.stop()
        except errors.PulsarException:
            pass
        try:
            client.close()
        except errors.PulsarException:
            pass
    with pulsarx.Client(folder) as client:
        found = effects(client)
        assert len(set(found[:3])) == 1 and found[0] >= 2
