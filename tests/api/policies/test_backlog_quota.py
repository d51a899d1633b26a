"""Facts about backlog quotas: what becomes of producers and messages above the limit."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import sleeping_thread
from child_process import run_program
from sleeping_thread import until_asleep
from support.topics import backlog
from topic_reading import OpenClient, Told, drain, numbers, payloads

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, Result, errors
from pulsarx.admin import Admin
from pulsarx.testing import inspect

NAMESPACE = "public/default"
KIB = bytes(1000)
HOLD, EXCEPTION = "producer_request_hold", "producer_exception"
EVICTION = "consumer_backlog_eviction"
CHECK = 60  # seconds


def filled(client: pulsarx.Client, *subscriptions: str, count: int = 20) -> Any:
    """A topic with a backlog of `count` KiB, and its producer."""
    for name in subscriptions:
        client.subscribe("t", name, ConsumerType.Shared).close()
    producer = client.create_producer("t")
    for number in range(count):
        producer.send(b"%d" % number + KIB)
    return producer


def take(client: pulsarx.Client, count: int, name: str = "s") -> None:
    consumer = client.subscribe("t", name, ConsumerType.Shared)
    for _ in range(count):
        consumer.acknowledge(consumer.receive(60_000))
    consumer.close()


def first(client: pulsarx.Client, name: str) -> int:
    consumer = client.subscribe("t", name, ConsumerType.Shared)
    try:
        return int(consumer.receive(1000).data()[: -len(KIB)])
    finally:
        consumer.close()


class Sender:
    """Sends one message in a thread, and waits by now."""

    def __init__(self, producer: Any, payload: bytes = b"late") -> None:
        self.outcome: Any = None
        self._thread = threading.Thread(target=self._send, args=(producer, payload))
        self._thread.start()
        until_asleep(self._thread)
        assert self._thread.is_alive()

    def _send(self, producer: Any, payload: bytes) -> None:
        try:
            self.outcome = producer.send(payload)
        except Exception as error:
            self.outcome = error

    def ends(self, clock: pulsarx.ManualClock, seconds: float) -> Any:
        """What it came to, while the time goes on."""
        while self._thread.is_alive():
            clock.advance(seconds)
            self._thread.join(0.01)
        return self.outcome


# Holding ----------------------------------------------------------------------------------------


def test_above_the_quota_sending_waits_until_there_is_room(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = filled(client, "s")
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        sender = Sender(producer)
        assert backlog(client) == 20
        with pytest.raises(errors.ProducerBlockedQuotaExceededError, match="10000"):
            client.create_producer("t")
        take(client, 15)
        sent = sender.ends(manual_clock, 1)
        assert isinstance(sent, pulsarx.MessageId)
        assert backlog(client) == 6
        producer.send(b"more")
        client.create_producer("t").send(b"more")
        assert backlog(client) == 8


def test_a_held_send_times_out(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.subscribe("t", "s").close()
        producer = client.create_producer("t", send_timeout_millis=5000, producer_name="p")
        producer.send(KIB * 20)
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        outcome = Sender(producer).ends(manual_clock, 5)
        assert isinstance(outcome, errors.Timeout)
        told = Told()
        producer.send_async(b"late", told)
        manual_clock.advance(4.999)
        assert told.results == []
        manual_clock.advance(0.001)
        client.admin.topics.remove_backlog_quota("t")
        producer.flush()
        assert [result for result, _ in told.results] == [Result.Timeout]
        assert producer.is_connected()
        producer.send(b"in time")
        assert len(drain(client.subscribe("t", "s"))) == 2  # nothing of what timed out


def test_what_send_async_took_goes_when_there_is_room(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = filled(client, "s")
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        told = Told()
        for _ in range(3):
            producer.send_async(b"more", told)
        assert told.results == []
        client.admin.topics.skip_all_messages("t", "s")
        manual_clock.advance(1)
        producer.flush()
        assert [result for result, _ in told.results] == [Result.Ok] * 3
        assert backlog(client) == 3


def test_the_check_finds_a_backlog_that_grew(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.admin.namespaces.set_backlog_quota(NAMESPACE, limit_size=10_000)
        producer = filled(client, "s")  # between two checks it may grow
        producer.send(b"more")
        manual_clock.advance(CHECK)
        sender = Sender(producer)
        with pytest.raises(errors.ProducerBlockedQuotaExceededError):
            client.create_producer("t")
        client.admin.topics.skip_all_messages("t", "s")
        assert isinstance(sender.ends(manual_clock, 1), pulsarx.MessageId)


def test_what_waits_for_company_goes_out_while_its_producer_is_held(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.subscribe("t", "s").close()
        producer = client.create_producer(
            "t", batching_enabled=True, batching_max_publish_delay_ms=1000
        )
        producer.send(KIB * 20)
        told = Told()
        producer.send_async(b"in a batch", told)
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        manual_clock.advance(1)
        assert [result for result, _ in told.results] == [Result.Ok]
        producer.flush()
        producer.close()  # neither waits


def test_closing_a_held_producer_tells_who_waits(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = filled(client, "s")
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        sender = Sender(producer)
        producer.close()
        assert isinstance(sender.ends(manual_clock, 0), errors.AlreadyClosed)


def test_deleting_the_topic_tells_who_waits(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = filled(client, "s")
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        sender = Sender(producer)
        client.admin.topics.delete("t", force=True)
        assert isinstance(sender.ends(manual_clock, 0), errors.AlreadyClosed)


def test_removing_the_quota_lets_producers_go_on(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = filled(client, "s")
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        sender = Sender(producer)
        client.admin.topics.remove_backlog_quota("t")
        assert isinstance(sender.ends(manual_clock, 0), pulsarx.MessageId)


def test_ctrl_c_ends_the_waiting_and_sends_nothing(folder: Path) -> None:
    program = """
import os, signal, sys, threading, pulsarx

sys.path.insert(0, sys.argv[2])
from sleeping_thread import until_asleep

client = pulsarx.Client(sys.argv[1], durability="os")
client.subscribe("t", "s").close()
producer = client.create_producer("t", send_timeout_millis=0)
producer.send(bytes(5000))
client.admin.topics.set_backlog_quota("t", limit_size=1000)


def strike():
    until_asleep(threading.main_thread())
    os.kill(os.getpid(), signal.SIGINT)


threading.Thread(target=strike).start()
try:
    producer.send(b"late")
except pulsarx.InterruptedByKeyboard:
    print("interrupted")
client.admin.topics.remove_backlog_quota("t")
producer.send(b"in time")
consumer = client.subscribe("t", "s")
print(len(consumer.receive(60_000).data()), consumer.receive(60_000).data().decode())
client.close()
"""
    helpers = Path(str(sleeping_thread.__file__)).parent
    assert run_program(program, folder, helpers) == ["interrupted", "5000 in time"]


def test_held_threads_lose_and_double_nothing(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        client.admin.topics.set_backlog_quota("t", limit_size=20_000)

        def send(producer: Any, begin: int) -> None:
            for number in range(begin, begin + 50):
                producer.send(b"%d" % number + KIB)

        producers = [
            client.create_producer("t", send_timeout_millis=0, batching_enabled=batching)
            for batching in (False, True)
        ]
        threads = [
            threading.Thread(target=send, args=(producers[at % 2], 50 * at)) for at in range(4)
        ]
        for thread in threads:
            thread.start()
        found: list[int] = []
        while len(found) < 200:
            manual_clock.advance(30)
            for message in drain(consumer)[:40]:
                found.append(int(message.data()[: -len(KIB)]))
                consumer.acknowledge(message)
            consumer.redeliver_unacknowledged_messages()
        for thread in threads:
            thread.join()
        assert sorted(found) == list(range(200))
        assert drain(consumer) == []


def test_a_producer_whose_turn_comes_while_others_are_held_is_held_too(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        there = filled(client, "s")
        made: list[Any] = []
        mode = pulsarx.ProducerAccessMode.WaitForExclusive
        waiter = threading.Thread(
            target=lambda: made.append(client.create_producer("t", access_mode=mode))
        )
        waiter.start()
        until_asleep(waiter)
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        there.close()
        waiter.join()
        sender = Sender(made[0])
        client.admin.topics.remove_backlog_quota("t")
        assert isinstance(sender.ends(manual_clock, 0), pulsarx.MessageId)


def test_many_at_once_wait_as_one(manual_clock: pulsarx.ManualClock) -> None:
    """Two of them, by key and held, left the producer without its max_pending_messages."""
    with pulsarx.Client("memory:x", clock=manual_clock, durability="os") as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        producer = client.create_producer(
            "t", batching_enabled=True, batching_type=pulsarx.BatchingType.KeyBased,
            max_pending_messages=3, send_timeout_millis=0, batching_max_publish_delay_ms=100_000,
        )  # fmt: skip
        producer.send(KIB * 20)
        client.admin.topics.set_backlog_quota("t", limit_size=10_000)
        threads = [
            threading.Thread(
                target=producer.send_many, args=(numbers(9, 9 * at),), kwargs={"keys": ["k"] * 9}
            )
            for at in range(3)
        ]
        for thread in threads:
            thread.start()
            until_asleep(thread)
            assert thread.is_alive()
        client.admin.topics.remove_backlog_quota("t")
        for thread in threads:
            thread.join()
        found = payloads(consumer)[1:]
        assert sorted(map(int, found)) == list(range(27))
        for at in range(3):  # each is together
            place = found.index(b"%d" % (9 * at))
            assert found[place : place + 9] == numbers(9, 9 * at)
        for number in range(10):
            producer.send_async(b"%d" % number, None, partition_key="k")
        assert len(drain(consumer)) >= 7  # of three that are pending the batch goes out


def test_partitions_are_held_one_by_one(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        consumer = client.subscribe("p", "s", ConsumerType.Shared)
        producer = client.create_producer(
            "p", message_router=lambda message, _: int(message.properties()["to"])
        )
        producer.send(KIB * 20, properties={"to": "0"})
        client.admin.topics.set_backlog_quota("p", limit_size=10_000)
        producer.send(b"room", properties={"to": "1"})
        thread = threading.Thread(
            target=producer.send, args=(b"late",), kwargs={"properties": {"to": "0"}}
        )
        thread.start()
        until_asleep(thread)
        found = drain(consumer)
        assert sorted(len(each.data()) for each in found) == [4, 20_000]
        for message in found:
            consumer.acknowledge(message)
        while thread.is_alive():
            manual_clock.advance(1)
            thread.join(0.01)
        assert payloads(consumer) == [b"late"]


# Refusing ---------------------------------------------------------------------------------------


def test_above_the_quota_producers_are_shut(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = filled(client, "s")
        client.admin.topics.set_backlog_quota("t", limit_size=10_000, policy=EXCEPTION)
        assert not producer.is_connected()
        with pytest.raises(errors.ProducerBlockedQuotaExceededException, match="10000"):
            producer.send(b"late")
        told = Told()
        producer.send_async(b"late", told)
        with pytest.raises(errors.ProducerBlockedQuotaExceededException):
            client.create_producer("t")
        producer.close()
        inspect(client).settle()
        assert told.results[0][0] == Result.ProducerBlockedQuotaExceededException
        take(client, 15)
        client.create_producer("t").send(b"room")
        assert backlog(client) == 6


def test_a_producer_that_was_shut_has_its_topic_to_itself_no_longer(
    manual_clock: pulsarx.ManualClock,
) -> None:
    """It had, until it was closed: nobody else could, and who waited waited on."""
    mode = pulsarx.ProducerAccessMode
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.subscribe("t", "s", ConsumerType.Shared).close()
        held = [client.create_producer("t", access_mode=mode.Exclusive)]
        for number in range(20):
            held[0].send(b"%d" % number + KIB)
        waiting = threading.Thread(
            target=lambda: held.append(
                client.create_producer("t", access_mode=mode.WaitForExclusive)
            )
        )
        waiting.start()
        until_asleep(waiting)
        client.admin.topics.set_backlog_quota("t", limit_size=10_000, policy=EXCEPTION)
        waiting.join(60)
        assert not waiting.is_alive()
        take(client, 15)
        held[1].send(b"of the next one")
        with pytest.raises(errors.ProducerFenced):
            client.create_producer("t", access_mode=mode.Exclusive)
        held[1].close()
        client.create_producer("t", access_mode=mode.Exclusive).send(b"room")
        held[0].close()
        assert backlog(client) == 7


def test_what_waited_for_company_is_refused_with_its_producer(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.subscribe("t", "s").close()
        producer = client.create_producer("t", batching_enabled=True)
        producer.send(KIB * 20)
        told = Told()
        producer.send_async(b"in a batch", told)
        client.admin.topics.set_backlog_quota("t", limit_size=10_000, policy=EXCEPTION)
        producer.close()
        assert [each for each, _ in told.results] == [Result.ProducerBlockedQuotaExceededException]
        assert len(drain(client.subscribe("t", "s"))) == 1


def test_a_quota_without_a_subscription_is_never_used_up(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = filled(client)
        client.admin.topics.set_backlog_quota("t", limit_size=10, policy=EXCEPTION)
        manual_clock.advance(CHECK)
        producer.send(b"more")


# Evicting ---------------------------------------------------------------------------------------


def test_above_the_quota_the_oldest_messages_are_acknowledged(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = filled(client, "slow", "slower")
        take(client, 5, "slow")
        client.admin.topics.set_backlog_quota("t", limit_size=10_000, policy=EVICTION)
        # Of 22 KB 9 are left.
        assert 11 <= first(client, "slower") <= 13
        assert first(client, "slow") == first(client, "slower")
        producer.send(b"more")
        client.create_producer("t").send(b"more")


def test_eviction_leaves_those_alone_that_are_not_slow(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        filled(client, "slow", "quick")
        take(client, 15, "quick")
        client.admin.topics.set_backlog_quota("t", limit_size=10_000, policy=EVICTION)
        assert (first(client, "quick"), backlog(client, "quick")) == (15, 5)
        assert first(client, "slow") > 10


def test_the_check_evicts_what_came_since(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(
        backlog_quota_default_limit_bytes=10_000,
        backlog_quota_default_retention_policy=EVICTION,
        managed_ledger_max_entries_per_ledger=5,
    )
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        producer = filled(client)
        assert len(consumer.receive_many(2)) == 2  # the others are in its queue
        manual_clock.advance(CHECK)
        found = payloads(consumer)
        assert 6 <= len(found) <= 9
        assert found[-1] == b"19" + KIB
        inspect(client).settle()
        assert client.admin.topics.stats("t")["entries"] <= 15  # and its ledgers go
        producer.send(b"more")


def test_an_age_evicts_whole_closed_ledgers(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=5)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.admin.topics.create_non_partitioned_topic("t")
        client.admin.topics.set_backlog_quota(
            "t", limit_time=100, policy=EVICTION, type="message_age"
        )
        filled(client, "s", count=12)
        inspect(client).settle()  # two ledgers are closed, two messages are in the third
        manual_clock.advance(60)
        assert backlog(client) == 12
        manual_clock.advance(60)
        assert (backlog(client), first(client, "s")) == (2, 10)
        manual_clock.advance(600)
        assert backlog(client) == 2


def test_an_age_is_precise_where_it_is_asked_for(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(precise_time_based_backlog_quota_check=True)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.subscribe("t", "s").close()
        producer = client.create_producer("t")
        client.admin.topics.set_backlog_quota(
            "t", limit_time=100, policy=EVICTION, type="message_age"
        )
        for payload in numbers(12):
            producer.send(payload)
            manual_clock.advance(10)
        # At 120 s those that are older than 90 have gone.
        assert payloads(client.subscribe("t", "s")) == numbers(9, 3)


@pytest.mark.parametrize("policy", [HOLD, EXCEPTION])
def test_an_age_stops_producers(manual_clock: pulsarx.ManualClock, policy: str) -> None:
    options = BrokerOptions(precise_time_based_backlog_quota_check=True)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        producer = filled(client, "s", count=1)
        client.admin.topics.set_backlog_quota(
            "t", limit_time=100, policy=policy, type="message_age"
        )
        manual_clock.advance(99)
        producer.send(b"young")
        manual_clock.advance(21)
        wanted = {
            HOLD: errors.ProducerBlockedQuotaExceededError,
            EXCEPTION: errors.ProducerBlockedQuotaExceededException,
        }
        with pytest.raises(wanted[policy]):
            client.create_producer("t")
        take(client, 1)
        client.create_producer("t").send(b"room")


# Levels -----------------------------------------------------------------------------------------


def test_the_topic_wins_over_its_namespace_and_that_over_the_options(
    manual_clock: pulsarx.ManualClock,
) -> None:
    options = BrokerOptions(
        backlog_quota_default_limit_bytes=10_000,
        backlog_quota_default_retention_policy=EXCEPTION,
    )
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        topics, namespaces = client.admin.topics, client.admin.namespaces
        filled(client, "s").close()

        def refused() -> bool:
            try:
                client.create_producer("t").close()
            except errors.ProducerBlockedQuotaExceededException:
                return True
            return False

        assert refused()
        namespaces.set_backlog_quota(NAMESPACE, limit_size=1_000_000, policy=EXCEPTION)
        assert not refused()
        topics.set_backlog_quota("t", limit_size=5000, policy=EXCEPTION)
        assert refused()
        topics.remove_backlog_quota("t")
        assert not refused()
        namespaces.remove_backlog_quota(NAMESPACE)
        assert refused()
        assert topics.get_backlog_quotas("t") == namespaces.get_backlog_quotas(NAMESPACE) == {}


def test_a_topic_has_one_quota_of_each_type(memory_client: pulsarx.Client) -> None:
    topics = memory_client.admin.topics
    memory_client.create_producer("t").close()
    topics.set_backlog_quota("t", limit_size=10)
    topics.set_backlog_quota("t", limit_time=20, policy=EVICTION, type="message_age")
    topics.set_backlog_quota("t", limit_size=30, policy=EXCEPTION)
    assert topics.get_backlog_quotas("t") == {
        "destination_storage": {"limit_size": 30, "limit_time": -1, "policy": EXCEPTION},
        "message_age": {"limit_size": -1, "limit_time": 20, "policy": EVICTION},
    }
    topics.remove_backlog_quota("t")
    assert list(topics.get_backlog_quotas("t")) == ["message_age"]


def test_nothing_is_looked_at_where_the_check_is_off(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(backlog_quota_check_enabled=False)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        producer = filled(client, "s")
        client.admin.topics.set_backlog_quota("t", limit_size=10, policy=EXCEPTION)
        manual_clock.advance(1000)
        producer.send(b"more")
        client.create_producer("t").send(b"more")


def test_a_quota_is_set_from_other_processes_and_kept(open_client: OpenClient, folder: Any) -> None:
    client = open_client()
    filled(client, "s")
    Admin.at(folder).topics.set_backlog_quota("t", limit_size=10_000, policy=EXCEPTION)
    beside = open_client(read_only=True)
    assert beside.admin.topics.get_backlog_quota("t")["limit_size"] == 10_000
    with pytest.raises(errors.OperationNotSupported):
        beside.admin.topics.remove_backlog_quota("t")
    client.close()
    client = open_client()
    with pytest.raises(errors.ProducerBlockedQuotaExceededException):
        client.create_producer("t")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"limit_size": 0},
        {"limit_size": -2},
        {"limit_size": 1.5},
        {"limit_time": 5},
        {"limit_size": 5, "policy": "drop"},
        {"limit_size": 5, "type": "topic"},
        {"limit_size": 5, "type": "message_age"},
    ],
)
def test_wrong_quotas_are_refused(memory_client: pulsarx.Client, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        memory_client.admin.namespaces.set_backlog_quota(NAMESPACE, **wrong)
    assert memory_client.admin.namespaces.get_backlog_quotas(NAMESPACE) == {}


def test_letters_do_not_wait_for_room(manual_clock: pulsarx.ManualClock) -> None:
    """The thread that publishes letters is the one that looks for room."""
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        policy = pulsarx.ConsumerDeadLetterPolicy(1, "letters")
        client.subscribe("letters", "s").close()
        consumer = client.subscribe(
            "t", "s", ConsumerType.Shared, dead_letter_policy=policy,
            negative_ack_redelivery_delay_ms=1000,
        )  # fmt: skip
        producer = client.create_producer("t")

        def give_up() -> None:
            producer.send(KIB * 20)
            for _ in range(2):
                consumer.negative_acknowledge(consumer.receive(60_000))
                manual_clock.advance(1)

        give_up()
        manual_clock.advance(1)
        letters = client.subscribe("letters", "s")
        assert len(drain(letters)) == 1
        client.admin.topics.set_backlog_quota("letters", limit_size=10_000)
        give_up()
        manual_clock.advance(CHECK)
        client.admin.topics.remove_backlog_quota("letters")
        assert drain(letters) == []
        for _ in range(2):
            assert drain(consumer) == []  # it is given up once more
            manual_clock.advance(1)
        assert len(drain(letters)) == 1


# The size ---------------------------------------------------------------------------------------


def test_the_size_of_a_backlog_is_counted_from_a_message(open_client: OpenClient) -> None:
    client = open_client(broker_options=BrokerOptions(managed_ledger_max_entries_per_ledger=4))
    filled(client, "s", count=10)
    consumer = client.subscribe("t", "s", ConsumerType.Shared)
    ids = [consumer.receive(60_000).message_id() for _ in range(10)]
    sizes = [client.admin.topics.get_backlog_size("t", each) for each in ids]
    assert sizes == sorted(sizes, reverse=True)
    assert 10_000 < sizes[0] < 12_000
    assert 1000 < sizes[-1] < 1200
    assert client.admin.topics.get_backlog_size("t") == sizes[0]
    assert client.admin.topics.get_backlog_size("t", pulsarx.MessageId.latest) == 0
    stats = client.admin.topics.stats("t")
    assert stats["subscriptions"]["s"]["backlog_size"] == sizes[0]
    beside = open_client(read_only=True)
    assert beside.admin.topics.get_backlog_size("t", ids[5]) == sizes[5]
    with pytest.raises(errors.TopicNotFound):
        client.admin.topics.get_backlog_size("nothing")
