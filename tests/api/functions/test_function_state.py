"""Facts about what functions remember: counters and values, in a topic of the folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from topic_reading import whole_topic

import pulsarx
from pulsarx import InitialPosition, errors
from pulsarx.functions import Context, FunctionRunner
from pulsarx.functions.function_state import FunctionState, StateNotStored
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

TOPIC = "persistent://public/default/function-state-f"
OPTIONS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)


@pytest.fixture
def client(folder: Path) -> Iterator[pulsarx.Client]:
    made = pulsarx.Client(folder, durability="os", broker_options=OPTIONS)
    yield made
    made.shutdown()


def kept(client: pulsarx.Client) -> FunctionState:
    return FunctionState(client, TOPIC)


def test_counters_count_and_values_are_set(client: pulsarx.Client) -> None:
    state = kept(client)
    state.increment("a", 2)
    state.increment("a", -5)
    state.put("b", "text")
    state.put("c", b"")
    assert [state.counter(key) for key in "abcd"] == [-3, None, None, None]
    assert [state.value(key) for key in "abcd"] == [b"-3", b"text", b"", None]
    state.remove("b")
    state.remove("never")
    assert state.value("b") is None
    state.close()


def test_a_state_is_there_when_it_is_opened_again(client: pulsarx.Client) -> None:
    state = kept(client)
    for number in range(10):
        state.increment("count", 1)
        state.put(f"key-{number % 3}", b"%d" % number)
    state.put("empty", b"")
    state.remove("key-0")
    state.flush()
    state.close()
    again = kept(client)
    assert again.counter("count") == 10
    assert [again.value(f"key-{each}") for each in range(3)] == [None, b"7", b"8"]
    assert again.value("empty") == b""
    again.close()


def test_a_state_waits_for_the_transaction_of_the_runner_before(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed in the middle of a commit. What that wrote was missing, and overwritten."""
    kept(client).close()
    producer = client.create_producer(TOPIC)
    transaction = client.new_transaction()
    producer.send(b"+7", partition_key="n", transaction=transaction)
    producer.close()
    topics = type(client.admin.topics)
    seen: list[int] = []

    def looks(self: Any, topic: str) -> Any:
        found = stats(self, topic)
        seen.append(found["ongoing_txn_count"])
        if len(seen) == 2:
            transaction.commit()
        return found

    stats = topics.stats
    monkeypatch.setattr(topics, "stats", looks)
    state = kept(client)
    assert state.counter("n") == 7
    assert seen[:3] == [1, 1, 0]
    state.close()


def test_what_is_trimmed_is_in_the_compacted_ledger(client: pulsarx.Client) -> None:
    """Ledgers of three entries are full at once, and no subscription holds them."""
    state = kept(client)
    for number in range(40):
        state.put("old" if number == 0 else "new", b"%d" % number)
    state.flush()
    client.admin.topics.trigger_compaction(TOPIC)
    pause = threading.Event()
    while client.admin.topics.compaction_status(TOPIC)["status"] == "RUNNING":
        pause.wait(0.005)
    for number in range(40, 60):
        state.put("new", b"%d" % number)
    state.close()
    inspect(client).settle()
    again = kept(client)
    assert (again.value("old"), again.value("new")) == (b"0", b"59")
    assert b"=0" not in whole_topic(client, TOPIC), "trimmed where it is not compacted"
    again.close()


def test_a_state_of_keys_that_are_no_text_is_refused(client: pulsarx.Client) -> None:
    state = kept(client)
    for key in ("", 7, "\0"):
        with pytest.raises(ValueError, match="the key of a state"):
            state.put(key, b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bytes or str"):
        state.put("a", 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an int"):
        state.increment("a", 0.5)  # type: ignore[arg-type]
    state.put("a", b"x")
    with pytest.raises(ValueError, match="no counter"):
        state.increment("a", 1)
    assert state.value("a") == b"x"
    state.close()


def test_a_state_has_one_runner(client: pulsarx.Client) -> None:
    state = kept(client)
    with pytest.raises(errors.ProducerFenced):
        kept(client)
    state.close()
    kept(client).close()


def test_a_function_remembers_over_restarts(folder: Path) -> None:
    def count(word: str, context: Context) -> str:
        context.incr_counter(word, 1)
        context.put_state("last", word)
        if word == "stop":
            context.del_counter("one")
        return f"{word} {context.get_counter(word)} {context.get_state('last')!r}"

    found: list[bytes] = []
    for words in (("one", "two", "one"), ("two", "stop", "one")):
        with pulsarx.Client(folder) as client:
            out = client.subscribe("out", "check", initial_position=InitialPosition.Earliest)
            with FunctionRunner(client, count, inputs=["in"], output="out") as runner:
                producer = client.create_producer("in")
                for word in words:
                    producer.send(word.encode())
                    message = out.receive(60_000)
                    out.acknowledge(message)
                    found.append(message.data())
                assert runner.get_counter("two") == len(found) // 3
                assert runner.get_state("last") == words[-1].encode()
    counts = ["one 1", "two 1", "one 2", "two 2", "stop 1", "one 1"]
    assert [each.decode().rpartition(" ")[0] for each in found] == counts


def test_an_input_is_not_acknowledged_before_its_state_is_durable(folder: Path) -> None:
    """A function whose state cannot be stored ends, and its input stays."""
    plans: list[Any] = []

    def remember(word: str, context: Context) -> None:
        if word == "second":
            plans[0].fail("flush", sticky=True)
        context.put_state("last", word)

    client = pulsarx.Client(folder)
    with fault_plan() as plan:
        plans.append(plan)
        runner = FunctionRunner(client, remember, inputs=["in"], subs_position="Earliest")
        producer = client.create_producer("in")
        producer.send(b"first")
        producer.send(b"second")
        runner.start()
        assert runner.wait(60)
        with pytest.raises(StateNotStored):
            runner.stop()
        stats = client.admin.topics.stats("in")["subscriptions"]["public/default/remember"]
        assert stats["msg_backlog"] == 1
        with suppress(errors.StorageError):
            client.close()
