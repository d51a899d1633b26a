"""Facts about the ledger that is prepared before the open one is full: a publisher does not wait
for it, and nobody sees it before a publisher has gone on to it."""

from __future__ import annotations

import errno
import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest
from child_process import ChildProcess
from damaged_ledgers import data_of, receive_all
from staged_ledgers import stage
from support.waiting import wait_until
from topic_reading import OpenClient, numbers, whole_topic
from type_steps import publish, statistics

import pulsarx
from pulsarx import BrokerOptions, InitialPosition, MessageId, errors
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.scan.plan import Planner
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

pytestmark = pytest.mark.usefixtures("nothing_forgotten")

DURABILITIES = ["sync", "interval", "os"]
ONE_ENTRY = BrokerOptions(managed_ledger_max_entries_per_ledger=1)
TWO_ENTRIES = BrokerOptions(managed_ledger_max_entries_per_ledger=2)
FOUR_THOUSAND = BrokerOptions(managed_ledger_max_entries_per_ledger=4000)


def catalogue_states(client: pulsarx.Client, topic: str = "t") -> list[str]:
    """Of the ledgers as the catalogue has them."""
    name = inspect(client).topic(topic).name
    return [each.state for each in inspect(client).catalogue.state.topics[name].ledgers]


def files_of(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.rglob("*.ledger"))


def prepared(client: pulsarx.Client, topic: str = "t") -> bool:
    inspect(client).settle()
    return bool(inspect(client).ledger(topic).tail.has_prepared)


class PreparedAlone(ManagedLedger):
    """A publisher that asks for a ledger in the control plane fails."""

    __slots__ = ()

    def roll_over(self, *_: Any) -> NoReturn:
        raise AssertionError("a publisher waited for a ledger")

    open_writer = roll_over


def forbid_calls(client: pulsarx.Client, topic: str = "t") -> None:
    """From now on no publisher may ask for a ledger in the control plane."""
    inspect(client).ledger(topic).__class__ = PreparedAlone


BESIDE = """
import json, sys, pulsarx
from pulsarx.broker.scan.plan import Planner
from pulsarx.testing import inspect
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "stats":
            print(json.dumps(client.admin.topics.stats("t")), flush=True)
        elif verb == "latest":
            print(json.dumps(Planner(inspect(client).broker, "t").latest()), flush=True)
        elif verb == "has":
            print(reader.has_message_available(), flush=True)
        elif verb == "read":
            for _ in range(int(words[0])):
                try:
                    print(reader.read_next(int(words[1])).data().decode(), flush=True)
                except pulsarx.Timeout:
                    print("nothing", flush=True)
"""


class Beside(ChildProcess):
    """A client in another process, opened read_only: in this one it would share the owner's."""

    def __init__(self, folder: Path) -> None:
        super().__init__(BESIDE, folder)
        assert self.line() == "ready"

    def asks(self, what: str) -> Any:
        self.tell(what)
        return json.loads(self.line())

    def reads(self, count: int, timeout_ms: int = 8000) -> list[str]:
        self.tell(f"read {count} {timeout_ms}")
        return [self.line() for _ in range(count)]

    def ledgers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.asks("stats")["ledgers"]
        return found


class Senders:
    """Threads that publish; what each of them got in the end."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.outcomes: dict[str, Any] = {}

    def send(self, client: pulsarx.Client, payload: str) -> None:
        producer = client.create_producer("t")

        def run() -> None:
            try:
                self.outcomes[payload] = producer.send(payload.encode())
            except Exception as error:
                self.outcomes[payload] = error

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


# Switching ------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_publisher_that_finds_a_ledger_ready_makes_no_call_of_the_control_plane(
    open_client: OpenClient, durability: str
) -> None:
    client = open_client(durability=durability, broker_options=ONE_ENTRY)
    producer = client.create_producer("t")
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    ids = [producer.send(b"0")]
    forbid_calls(client)
    for payload in numbers(19, 1):
        assert prepared(client)
        ids.append(producer.send(payload))
    assert [each.entry_id() for each in ids] == [0] * 20
    assert len({each.ledger_id() for each in ids}) == 20
    messages, told = receive_all(consumer)
    assert (data_of(messages), told) == ([str(number) for number in range(20)], [])
    consumer.acknowledge_many(messages)
    assert statistics(client)["msg_backlog"] == 0
    inspect(client).settle()
    assert catalogue_states(client)[-2:] == ["open", "prepared"]


def test_a_publisher_that_finds_nothing_ready_waits_for_a_ledger(open_client: OpenClient) -> None:
    client = open_client(broker_options=ONE_ENTRY)
    producer = client.create_producer("t")
    with fault_plan() as plan:
        plan.stall("make_directory", 2)  # of the ledger that is prepared
        producer.send(b"0")
        wait_until(lambda: plan.stalled() == 1)
        senders = Senders()
        senders.send(client, "1")
        assert whole_topic(client) == [b"0"]
        plan.release()
        senders.join()
    assert isinstance(senders.outcomes["1"], MessageId)
    assert whole_topic(client) == [b"0", b"1"]


def test_any_number_of_publishers_switch_once(open_client: OpenClient) -> None:
    client = open_client(durability="os", broker_options=TWO_ENTRIES)
    for turn in range(30):
        senders = Senders()
        for number in range(4):
            senders.send(client, f"{turn}-{number}")
        senders.join()
        assert all(isinstance(each, MessageId) for each in senders.outcomes.values())
    found = whole_topic(client)
    assert sorted(found) == sorted(b"%d-%d" % (turn, n) for turn in range(30) for n in range(4))
    inspect(client).settle()
    entries = [each["entries"] for each in client.admin.topics.stats("t")["ledgers"]]
    assert entries == [2] * 60


def test_a_topic_of_large_ledgers_prepares_when_half_is_filled(open_client: OpenClient) -> None:
    client = open_client(durability="os", broker_options=FOUR_THOUSAND)
    producer = client.create_producer("t")
    for number in range(2000):
        producer.send(b"%d" % number)
    assert not prepared(client)
    producer.send(b"2000")
    assert prepared(client)


def test_a_topic_prepares_when_the_bytes_of_a_ledger_are_half_used(
    open_client: OpenClient,
) -> None:
    options = BrokerOptions(managed_ledger_max_size_per_ledger_mbytes=20)
    client = open_client(durability="os", broker_options=options)
    producer = client.create_producer("t")
    for _ in range(10):
        producer.send(bytes(1 << 20))
    assert not prepared(client)
    producer.send(b"one more")
    assert prepared(client)


def test_a_topic_prepares_shortly_before_the_time_of_a_ledger_is_over(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    options = BrokerOptions(managed_ledger_max_ledger_rollover_time_minutes=10)
    client = open_client(clock=manual_clock, broker_options=options)
    producer = client.create_producer("t")
    first = producer.send(b"0")
    manual_clock.advance(8 * 60)
    producer.send(b"1")
    assert not prepared(client)
    manual_clock.advance(60)
    assert producer.send(b"2").ledger_id() == first.ledger_id()
    assert prepared(client)
    forbid_calls(client)
    manual_clock.advance(60)
    second = producer.send(b"3")
    assert second.ledger_id() > first.ledger_id()
    manual_clock.advance(10 * 60 - 1)
    assert producer.send(b"4").ledger_id() == second.ledger_id()


# Seeing ---------------------------------------------------------------------------------------


def test_a_plan_sees_what_is_in_a_prepared_ledger_before_the_catalogue_does(
    open_client: OpenClient,
) -> None:
    """`latest` was the end of the full ledger until the catalogue said that the next one is used: a
    batch job missed messages that were confirmed before it began."""
    client = open_client(durability="os", broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    planner = Planner(inspect(client).broker, "t")
    before = planner.latest()
    lane, held = inspect(client).ledger("t").runtime.roll_overs, threading.Event()
    lane.post(held.wait)
    try:
        publish(client, "1", "2")  # 2 is in the ledger that was prepared
        assert catalogue_states(client) == ["open", "prepared"]
        assert planner.latest() == Planner(inspect(client).broker, "t").latest() != before
        assert sum(each.message_count for each in planner.plan(before)) == 2
    finally:
        held.set()


@pytest.mark.standard
def test_nobody_sees_a_prepared_ledger(open_client: OpenClient, folder: Path) -> None:
    client = open_client(broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    assert catalogue_states(client) == ["open", "prepared"]
    stats = client.admin.topics.stats("t")
    assert [(each["state"], each["entries"]) for each in stats["ledgers"]] == [("open", 1)]
    ledger = inspect(client).ledger("t")
    assert len(ledger.ledgers()) == 1
    assert ledger.end_position() == (ledger.ledgers()[0].ledger_id, 1)
    with Beside(folder) as beside:
        told = beside.asks("stats")
        assert told["ledgers"] == stats["ledgers"]
        assert told["storage_size"] == stats["storage_size"]
        assert beside.asks("latest") == json.loads(
            json.dumps(Planner(inspect(client).broker, "t").latest())
        )
        assert beside.reads(1) == ["0"]
        beside.tell("has")
        assert beside.line() == "False"
        publish(client, "1", "2")  # 2 is in the ledger that was prepared
        assert beside.reads(2) == ["1", "2"]
        assert beside.ledgers()[-1]["state"] == "open"
    states = [each["state"] for each in client.admin.topics.stats("t")["ledgers"]]
    assert states[-1] == "open"


@pytest.mark.standard
@pytest.mark.parametrize("durability", DURABILITIES)
def test_readers_beside_go_on_to_a_ledger_of_which_the_catalogue_does_not_know_that_it_is_used(
    open_client: OpenClient, folder: Path, durability: str
) -> None:
    client = open_client(durability=durability, broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    sealing = threading.Event()
    inspect(client).post(sealing.wait)
    try:
        with Beside(folder) as beside, fault_plan() as plan:
            assert beside.reads(1) == ["0"]
            beside.tell("read 2 20000")
            plan.fail("make_directory", error=errno.ENOSPC, sticky=True)  # no other is prepared
            publish(client, "1", "2")
            assert [beside.line() for _ in "12"] == ["1", "2"]
            assert catalogue_states(client) == ["open", "prepared"]
            assert [each["state"] for each in beside.ledgers()] == ["open", "open"]
    finally:
        sealing.set()


def test_closing_removes_what_was_prepared_and_not_used(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    [first, _] = files_of(folder)
    client.close()
    assert files_of(folder) == [first]
    client = open_client(broker_options=TWO_ENTRIES)
    assert [each["state"] for each in client.admin.topics.stats("t")["ledgers"]] == ["sealed"]
    assert catalogue_states(client) == ["sealed"]


def test_a_subscription_made_while_a_ledger_is_prepared_acknowledges_in_it(
    open_client: OpenClient,
) -> None:
    client = open_client(broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    consumer = client.subscribe("t", "s")
    forbid_calls(client)
    publish(client, "1", "2")
    messages, told = receive_all(consumer)
    assert (data_of(messages), told) == (["1", "2"], [])
    for message in messages:
        consumer.acknowledge(message)
    assert statistics(client)["msg_backlog"] == 0


@pytest.mark.standard
def test_a_position_never_lies_in_a_ledger_that_was_prepared_in_vain(
    open_client: OpenClient, folder: Path
) -> None:
    """The cursor file, written while a ledger was prepared, names that ledger."""
    client = open_client(broker_options=TWO_ENTRIES)
    publish(client, "0", "1")
    assert prepared(client)
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    messages, _ = receive_all(consumer)
    consumer.acknowledge_cumulative(messages[-1])
    last = messages[-1].message_id()
    place = (last.ledger_id(), last.entry_id())
    with Beside(folder) as beside:
        told = beside.asks("stats")["subscriptions"]["s"]["mark_delete_position"]
        assert tuple(told) == place
    client.close()
    with pulsarx.Client(folder, read_only=True) as alone:
        assert statistics(alone)["mark_delete_position"] == place
    client = open_client()
    assert statistics(client)["mark_delete_position"] == place
    client.subscribe("t", "s").close()
    inspect(client).topic("t").trim()
    assert len(client.admin.topics.stats("t")["ledgers"]) == 1


# In order -------------------------------------------------------------------------------------


@pytest.mark.standard
def test_the_end_of_a_ledger_is_published_only_when_the_one_in_front_is_durable(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(durability="sync", broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    forbid_calls(client)
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    assert consumer.receive(0).data() == b"0"
    held = threading.Event()
    with Beside(folder) as beside:
        assert beside.reads(1) == ["0"]
        inspect(client).runtime.roll_overs.post(held.wait)  # so that nobody else wakes anybody
        with fault_plan() as plan:
            plan.stall("flush", sticky=True)
            senders = Senders()
            senders.send(client, "1")
            ledger = inspect(client).ledger("t")
            full = ledger.tail.writer
            wait_until(lambda: full.entry_count == 2)
            senders.send(client, "2")
            wait_until(lambda: ledger.tail.writer is not full)
            wait_until(lambda: ledger.tail.writer.entry_count == 1)
            assert [each["messages"] for each in client.admin.topics.stats("t")["ledgers"]] == [1]
            assert ledger.end_position() == (full.ledger_id, 1)
            assert receive_all(consumer) == ([], [])
            assert senders.outcomes == {}
            assert [each["messages"] for each in beside.ledgers()] == [1]
            assert beside.reads(1, 50) == ["nothing"]
            plan.release()
            senders.join()
        try:
            assert [consumer.receive(60_000).data() for _ in "12"] == [b"1", b"2"]
            assert beside.reads(2) == ["1", "2"]
        finally:
            held.set()


@pytest.mark.standard
def test_consumers_asleep_at_the_end_of_a_full_ledger_wake_when_it_is_durable(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(durability="sync", broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    got: list[bytes] = []
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)

    def receive() -> None:
        got.extend(consumer.receive(60_000).data() for _ in range(3))

    thread = threading.Thread(target=receive)
    thread.start()
    with Beside(folder) as beside:
        beside.tell("read 3 20000")
        assert beside.line() == "0"
        with fault_plan() as plan:
            plan.stall("flush", sticky=True)
            senders = Senders()
            senders.send(client, "1")
            ledger = inspect(client).ledger("t")
            full = ledger.tail.writer
            wait_until(lambda: full.entry_count == 2)
            senders.send(client, "2")
            wait_until(lambda: ledger.tail.writer is not full)
            wait_until(lambda: ledger.tail.writer.entry_count == 1)
            plan.release()
            senders.join()
        assert [beside.line() for _ in "12"] == ["1", "2"]
    thread.join(60)
    assert got == [b"0", b"1", b"2"]


def test_with_an_interval_publishers_are_told_when_a_full_ledger_cannot_be_flushed(
    open_client: OpenClient,
) -> None:
    """What is behind it is not flushed either, so that nothing is lost in the middle."""
    client = open_client(durability="interval", broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    ledger = inspect(client).ledger("t")
    producer = client.create_producer("t")
    with fault_plan() as plan:
        plan.fail("flush", sticky=True)
        producer.send(b"1")
        sent = numbers(2)
        with suppress(errors.LedgerPoisonedError):  # it is told so soon on a busy machine
            producer.send(b"2")
            sent = numbers(3)
        wait_until(lambda: ledger.tail.writer.state == "poisoned")
    with pytest.raises(errors.LedgerPoisonedError):
        producer.send(b"3")
    with pytest.raises(errors.StorageError):
        client.close()
    again = open_client()
    assert whole_topic(again) == sent  # the process lives, so the system still had them


# Discarding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_attach_discards_what_is_prepared(
    open_client: OpenClient, folder: Path, durability: str
) -> None:
    client = open_client(durability=durability, broker_options=TWO_ENTRIES)
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    publish(client, "0", "1", "2")  # 2 is behind the first ledger
    assert prepared(client)
    unused = files_of(folder)[-1]
    attach(folder, Transaction("query", 0), [stage(folder, "t", [b"3", b"4"])])
    inspect(client).settle()
    assert unused not in files_of(folder)
    publish(client, "5", "6", "7")
    assert whole_topic(client) == numbers(8)
    ids = [each["ledger_id"] for each in client.admin.topics.stats("t")["ledgers"]]
    assert ids == sorted(ids) and unused not in ids
    messages, _ = receive_all(consumer)
    consumer.acknowledge_cumulative(messages[-1])
    inspect(client).settle()
    assert statistics(client)["msg_backlog"] == 0
    assert consumer.close() is None
    assert len(client.admin.topics.stats("t")["ledgers"]) <= 1  # no place is held for it


def test_an_attach_comes_behind_a_ledger_of_which_the_catalogue_does_not_know_that_it_is_used(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    sealing = threading.Event()
    inspect(client).post(sealing.wait)
    try:
        with fault_plan() as plan:
            plan.fail("make_directory", error=errno.ENOSPC, sticky=True)  # no other is prepared
            publish(client, "1", "2")
            inspect(client).runtime.roll_overs.wait()
        assert catalogue_states(client) == ["open", "prepared"]
        attach(folder, Transaction("query", 0), [stage(folder, "t", [b"3"])])
        assert catalogue_states(client) == ["open", "open", "sealed"]
    finally:
        sealing.set()
    publish(client, "4")
    assert whole_topic(client) == numbers(5)


def test_what_cannot_be_discarded_is_discarded_before_the_next_ledger_comes(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=TWO_ENTRIES)
    publish(client, "0")
    assert prepared(client)
    file = stage(folder, "t", [b"1"])
    with fault_plan() as plan:
        plan.fail("link", error=errno.ENOSPC, sticky=True)
        with pytest.raises(errors.StorageError):
            attach(folder, Transaction("query", 0), [file])
    publish(client, "-")
    attach(folder, Transaction("query", 0), [file])
    publish(client, "2", "3", "4")
    assert whole_topic(client) == [b"0", b"-", b"1", b"2", b"3", b"4"]


def test_a_preparation_that_fails_is_tried_again_and_told_to_nobody(
    open_client: OpenClient, caplog: pytest.LogCaptureFixture
) -> None:
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=64)
    client = open_client(durability="os", broker_options=options)
    producer = client.create_producer("t")
    with fault_plan() as plan:
        plan.fail("make_directory", 2, error=errno.ENOSPC, sticky=True)
        for number in range(40):
            producer.send(b"%d" % number)
            inspect(client).settle()
        assert plan.calls("make_directory") == 3
        assert not prepared(client)
    for number in range(40, 64):
        producer.send(b"%d" % number)
    assert prepared(client)
    assert [each for each in caplog.records if each.levelname != "DEBUG"] == []
    forbid_calls(client)
    producer.send(b"64")
    assert whole_topic(client) == numbers(65)


def test_a_forked_child_leaves_what_its_parent_has_prepared(open_client: OpenClient) -> None:
    client = open_client(broker_options=ONE_ENTRY)
    producer = client.create_producer("t")
    producer.send(b"0")
    assert prepared(client)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            producer.close()
            client.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    forbid_calls(client)
    producer.send(b"1")
    assert whole_topic(client) == [b"0", b"1"]


def test_a_topic_in_memory_goes_on_to_what_is_prepared() -> None:
    with pulsarx.Client("memory:", broker_options=ONE_ENTRY) as client:
        producer = client.create_producer("t")
        producer.send(b"0")
        forbid_calls(client)
        for payload in numbers(9, 1):
            assert prepared(client)
            producer.send(payload)
        assert whole_topic(client) == numbers(10)


# Many of them ---------------------------------------------------------------------------------

READING = """
import sys, pulsarx
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    print("ready", flush=True)
    found = [reader.read_next(60_000).data().decode() for _ in range(int(sys.argv[2]))]
    print(*found)
"""
PUBLISHERS = 3


@pytest.mark.standard
@pytest.mark.parametrize("entries", [1, 3])
@pytest.mark.parametrize("durability", DURABILITIES)
def test_readers_here_and_in_another_process_miss_nothing_of_many_ledgers(
    open_client: OpenClient, folder: Path, durability: str, entries: int
) -> None:
    count = 150
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=entries)
    client = open_client(durability=durability, broker_options=options)
    publish(client, "9-0")
    total = PUBLISHERS * count + 1
    found: dict[str, list[str]] = {}

    def receive() -> None:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        found["consumer"] = [consumer.receive(60_000).data().decode() for _ in range(total)]

    def send(who: int) -> None:
        producer = client.create_producer("t")
        for number in range(count):
            producer.send(b"%d-%d" % (who, number))

    with ChildProcess(READING, folder, total) as beside:
        assert beside.line() == "ready"
        threads = [threading.Thread(target=receive)]
        threads += [threading.Thread(target=send, args=[who]) for who in range(PUBLISHERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        found["beside"] = beside.end()[0].split()
    kept = [each.decode() for each in whole_topic(client)]
    for who in range(PUBLISHERS):
        wanted = [f"{who}-{number}" for number in range(count)]
        assert [each for each in kept if each.startswith(f"{who}-")] == wanted
    assert found == {"consumer": kept, "beside": kept}
