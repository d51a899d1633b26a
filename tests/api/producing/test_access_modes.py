"""Facts about producers that have a topic to themselves."""

from __future__ import annotations

import errno
import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program
from sleeping_thread import until_asleep
from support.waiting import wait_until
from topic_reading import OpenClient, Told, batched, whole_topic

import pulsarx
from pulsarx import ProducerAccessMode, Result, errors
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

Shared = ProducerAccessMode.Shared
Exclusive = ProducerAccessMode.Exclusive
Wait = ProducerAccessMode.WaitForExclusive
Fencing = ProducerAccessMode.ExclusiveWithFencing
PATIENCE_SECONDS = 60
STEPS = Path(__file__).parents[1]


class Waiter:
    """A producer that is made in a thread, where it may have to wait."""

    def __init__(self, client: pulsarx.Client, name: str = "w", topic: str = "t") -> None:
        self.producer: Any = None
        self.failure: Exception | None = None
        self._client = client
        # Each partition has a queue of its own.
        self._ahead = inspect(client).waiting_producers("t") if topic == "t" else None
        self._work = lambda: client.create_producer(topic, name, access_mode=Wait)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.producer = self._work()
        except Exception as error:
            self.failure = error

    def asleep(self) -> Waiter:
        if self._ahead is not None:
            wait_until(lambda: not self.thread.is_alive() or self._waits())
            self._ahead = None
        until_asleep(self.thread)
        assert self.thread.is_alive(), self.failure
        return self

    def _waits(self) -> bool:
        return inspect(self._client).waiting_producers("t") > (self._ahead or 0)

    def ended(self) -> Any:
        """The producer; raises what it failed with."""
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive(), "it still waits"
        if self.failure is not None:
            raise self.failure
        return self.producer


@contextmanager
def full_disk() -> Iterator[None]:
    with fault_plan() as plan:
        for operation in ("write", "allocate"):
            plan.fail(operation, error=errno.ENOSPC, sticky=True)
        yield


def statistics(client: pulsarx.Client, topic: str = "t") -> dict[str, Any]:
    return client.admin.topics.stats(topic)


# The table ---------------------------------------------------------------------------------------


def test_the_modes_have_the_numbers_of_the_official_client() -> None:
    assert [int(mode) for mode in (Shared, Exclusive, Wait, Fencing)] == [0, 1, 2, 3]
    assert issubclass(pulsarx.ProducerBusy, pulsarx.PulsarException)
    assert issubclass(pulsarx.ProducerFenced, pulsarx.PulsarException)


@pytest.mark.parametrize("mode", [Shared, Exclusive, Wait, Fencing])
def test_where_nobody_is_every_mode_gets_the_topic(
    memory_client: pulsarx.Client, mode: ProducerAccessMode
) -> None:
    producer = memory_client.create_producer("t", access_mode=mode)
    producer.send(b"x")
    assert whole_topic(memory_client) == [b"x"]
    (figures,) = statistics(memory_client)["publishers"]
    assert figures["access_mode"] == str(mode).removeprefix("ProducerAccessMode.")


@pytest.mark.parametrize("holder", [Exclusive, Wait, Fencing])
def test_beside_a_holder_shared_and_exclusive_are_refused(
    memory_client: pulsarx.Client, holder: ProducerAccessMode
) -> None:
    producer = memory_client.create_producer("t", "the holder", access_mode=holder)
    with pytest.raises(errors.ProducerBusy, match="the holder"):
        memory_client.create_producer("t")
    with pytest.raises(errors.ProducerFenced, match="the holder"):
        memory_client.create_producer("t", access_mode=Exclusive)
    assert producer.is_connected()
    producer.send(b"x")
    producer.close()
    memory_client.create_producer("t").close()


def test_beside_shared_ones_exclusive_is_refused_and_shared_joins(
    memory_client: pulsarx.Client,
) -> None:
    first = memory_client.create_producer("t", "first")
    with pytest.raises(errors.ProducerFenced, match="first"):
        memory_client.create_producer("t", access_mode=Exclusive)
    second = memory_client.create_producer("t")
    first.close()
    with pytest.raises(errors.ProducerFenced):
        memory_client.create_producer("t", access_mode=Exclusive)
    second.close()
    memory_client.create_producer("t", access_mode=Exclusive)


def test_while_one_waits_nobody_joins(memory_client: pulsarx.Client) -> None:
    there = memory_client.create_producer("t")
    waiter = Waiter(memory_client, "patient").asleep()
    with pytest.raises(errors.ProducerBusy, match="patient"):
        memory_client.create_producer("t")
    with pytest.raises(errors.ProducerFenced, match="patient"):
        memory_client.create_producer("t", access_mode=Exclusive)
    there.send(b"still there")
    there.close()
    waiter.ended().send(b"now alone")
    assert whole_topic(memory_client) == [b"still there", b"now alone"]


def test_a_taken_name_is_told_behind_the_table(memory_client: pulsarx.Client) -> None:
    there = memory_client.create_producer("t", "me")
    with pytest.raises(errors.ProducerBusy, match="named me"):
        memory_client.create_producer("t", "me")
    with pytest.raises(errors.ProducerFenced):
        memory_client.create_producer("t", "me", access_mode=Exclusive)
    memory_client.create_producer("t", "me", access_mode=Fencing).send(b"x")
    with pytest.raises(errors.ProducerFenced):
        there.send(b"x")


# Waiting -----------------------------------------------------------------------------------------


def test_who_waits_longest_comes_next(memory_client: pulsarx.Client) -> None:
    producer: Any = memory_client.create_producer("t", access_mode=Exclusive)
    waiters = [Waiter(memory_client, f"w{number}").asleep() for number in range(4)]
    for number, waiter in enumerate(waiters):
        producer.send(b"%d" % number)
        producer.close()
        producer = waiter.ended()
        assert producer.producer_name() == f"w{number}"
        assert [each["producer_name"] for each in statistics(memory_client)["publishers"]] == [
            f"w{number}"
        ]
    assert whole_topic(memory_client) == [b"0", b"1", b"2", b"3"]


def leave_by_closing(client: pulsarx.Client, producer: list[Any]) -> None:
    producer.pop().close()


def leave_by_being_forgotten(client: pulsarx.Client, producer: list[Any]) -> None:
    producer.pop()
    gc.collect()


def leave_with_the_client(client: pulsarx.Client, producer: list[Any]) -> None:
    client.close()


@pytest.mark.parametrize(
    ("mode", "leave"),
    [
        (Shared, leave_by_closing),
        (Shared, leave_by_being_forgotten),
        (Shared, leave_with_the_client),
        (Exclusive, leave_by_closing),
        (Exclusive, leave_with_the_client),
    ],
)
def test_a_waiter_is_promoted_when_the_last_one_in_its_way_leaves(
    open_client: OpenClient, mode: ProducerAccessMode, leave: Callable[..., None]
) -> None:
    mine, other = open_client(), open_client()
    there = [other.create_producer("t", access_mode=mode, batching_enabled=True)]
    there[0].send_async(b"held back", None)
    waiter = Waiter(mine).asleep()
    leave(other, there)
    waiter.ended().send(b"promoted")
    assert whole_topic(mine) == [b"held back", b"promoted"]


@pytest.mark.border(left_out="several topics", of="*partition*")
@pytest.mark.parametrize("topic", ["t", "partitioned"])
@pytest.mark.parametrize("mode", [Exclusive, Wait, Fencing])
def test_one_that_nobody_refers_to_keeps_its_topic_until_its_client_closes(
    open_client: OpenClient, mode: ProducerAccessMode, topic: str
) -> None:
    """As a broker does, which knows nothing of a collector. It used to be closed, and whoever
    thought that the topic was his met another producer there."""
    client, other = open_client(), open_client()
    client.admin.topics.create_partitioned_topic("partitioned", 2)
    client.create_producer(topic, batching_enabled=True, access_mode=mode).send_async(b"0", None)
    gc.collect()
    with pytest.raises(errors.ProducerFenced):
        client.create_producer(topic, access_mode=Exclusive)
    with pytest.raises(errors.ProducerBusy):
        other.create_producer(topic)
    client.close()
    other.create_producer(topic, access_mode=Exclusive).send(b"1")
    assert sorted(whole_topic(other, topic)) == [b"0", b"1"]


@pytest.mark.border(left_out="forgotten consumers")
def test_one_that_nobody_refers_to_goes_with_a_client_that_nobody_refers_to(
    open_client: OpenClient, folder: Path
) -> None:
    other = open_client()
    client = pulsarx.Client(folder, durability="os")
    client.create_producer("t", batching_enabled=True, access_mode=Exclusive).send_async(b"0", None)
    del client
    gc.collect()
    other.create_producer("t", access_mode=Exclusive).send(b"1")
    assert whole_topic(other) == [b"0", b"1"]


@pytest.mark.border(left_out="fenced producers learn it late")
def test_closed_and_fenced_ones_are_not_kept(memory_client: pulsarx.Client) -> None:
    for _ in range(3):
        memory_client.create_producer("closed", access_mode=Exclusive).close()
        memory_client.create_producer("fenced", access_mode=Fencing)
    assert inspect(memory_client).kept_producers == 1


def test_the_operation_timeout_does_not_end_the_waiting(folder: Path) -> None:
    with pulsarx.Client(folder, operation_timeout_seconds=3) as client:
        producer = client.create_producer("t")
        waiter = Waiter(client).asleep()
        waiter.thread.join(4)
        waiter.asleep()
        producer.close()
        waiter.ended()


def test_closing_its_client_ends_the_waiting(open_client: OpenClient) -> None:
    mine, other = open_client(), open_client()
    there = other.create_producer("t")
    waiter = Waiter(mine).asleep()
    second = Waiter(other, "second").asleep()
    mine.close()
    with pytest.raises(errors.AlreadyClosed):
        waiter.ended()
    there.close()
    second.ended().send(b"x")


def test_ctrl_c_ends_the_waiting_and_leaves_the_queue(folder: Path) -> None:
    program = """
import os, signal, sys, threading, time, pulsarx
client = pulsarx.Client(sys.argv[1], durability="os")
mode = pulsarx.ProducerAccessMode
there = client.create_producer("t")
sys.path.append(sys.argv[2])
from sleeping_thread import until_asleep
def strike():
    until_asleep(threading.main_thread())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=strike).start()
try:
    client.create_producer("t", access_mode=mode.WaitForExclusive)
except pulsarx.InterruptedByKeyboard as error:
    assert isinstance(error, KeyboardInterrupt)
    print("interrupted")
client.create_producer("t").close()      # nobody waits any more
there.close()
client.create_producer("t", access_mode=mode.Exclusive).close()
client.close()
"""
    assert run_program(program, folder, STEPS) == ["interrupted"]


@pytest.mark.border(left_out="codes of errors")
def test_a_waiter_whose_turn_cannot_be_kept_lets_the_next_one_come(folder: Path) -> None:
    """The epoch is committed before it has the topic: where that fails, the topic is given back."""
    with pulsarx.Client(folder) as client:
        there = client.create_producer("t")
        first, second = Waiter(client, "first").asleep(), Waiter(client, "second").asleep()
        with fault_plan() as plan:
            plan.fail("write", error=errno.ENOSPC)
            there.close()
            with pytest.raises(errors.StorageFullError):
                first.ended()
            producer = second.ended()
        producer.send(b"x")
        assert statistics(client)["topic_epoch"] == 0


# Fencing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Shared, Exclusive, Wait, Fencing])
def test_a_fenced_producer_is_of_no_use_any_more(
    memory_client: pulsarx.Client, mode: ProducerAccessMode
) -> None:
    old = memory_client.create_producer("t", "old", access_mode=mode)
    old.send(b"before")
    new = memory_client.create_producer("t", "new", access_mode=Fencing)
    for call in (
        lambda: old.send(b"x"),
        lambda: old.send_many([b"x"]),
        lambda: old.send_async(b"x", None),
        old.flush,
    ):
        with pytest.raises(errors.ProducerFenced, match="new"):
            call()
    assert not old.is_connected()
    told = Told()
    old.send_async(b"x", told)
    new.send(b"after")
    old.close()
    with pytest.raises(errors.AlreadyClosed):
        old.close()
    assert whole_topic(memory_client) == [b"before", b"after"]
    assert [result for result, _ in told.results] == [Result.ProducerFenced]
    with pytest.raises(errors.ProducerBusy):
        memory_client.create_producer("t")


@pytest.mark.border(left_out="fenced producers learn it late")
def test_it_is_not_connected_from_then_on(memory_client: pulsarx.Client) -> None:
    old = memory_client.create_producer("t")
    new = memory_client.create_producer("t", access_mode=Fencing)
    assert (old.is_connected(), new.is_connected()) == (False, True)


@pytest.mark.parametrize(
    "batching_type", [pulsarx.BatchingType.Default, pulsarx.BatchingType.KeyBased]
)
def test_what_was_not_stored_fails_and_never_is(
    memory_client: pulsarx.Client, batching_type: pulsarx.BatchingType
) -> None:
    told = Told()
    old = batched(memory_client, batching_type=batching_type)
    for number in range(5):
        old.send_async(b"%d" % number, told, partition_key=f"{number % 2}")
    new = memory_client.create_producer("t", access_mode=Fencing)
    new.send(b"new")
    old.close()
    assert [result for result, _ in told.results] == [Result.ProducerFenced] * 5
    assert whole_topic(memory_client) == [b"new"]


def test_a_producer_that_waits_for_room_is_fenced_when_it_wakes(folder: Path) -> None:
    """Only what was stored before the new producer came is confirmed."""
    with pulsarx.Client(folder) as client:
        old = client.create_producer("t", max_pending_messages=1, block_if_queue_full=True)
        told = Told()

        def work() -> None:
            """Send until a callback tells that it failed."""
            number = 0
            while not told.results or told.results[-1][0] == Result.Ok:
                old.send_async(b"%d" % number, told)
                number += 1

        thread = threading.Thread(target=work)
        thread.start()
        while len(told.results) < 3:
            os.sched_yield()
        new = client.create_producer("t", access_mode=Fencing)
        new.send(b"new")
        thread.join(PATIENCE_SECONDS)
        old.close()
        assert not thread.is_alive()
        found = whole_topic(client)
        assert found.index(b"new") == len(found) - 1
        confirmed = [result for result, _ in told.results if result == Result.Ok]
        assert len(confirmed) == len(found) - 1


def test_fencing_ends_the_waiting_of_others(memory_client: pulsarx.Client) -> None:
    old = memory_client.create_producer("t", "old", access_mode=Exclusive)
    waiters = [Waiter(memory_client, f"w{number}").asleep() for number in range(3)]
    new = memory_client.create_producer("t", "new", access_mode=Fencing)
    for waiter in waiters:
        with pytest.raises(errors.ProducerFenced, match="new"):
            waiter.ended()
    with pytest.raises(errors.ProducerFenced, match="new"):
        old.send(b"x")
    new.close()
    memory_client.create_producer("t").send(b"x")


@pytest.mark.border(left_out="codes of errors")
def test_a_take_over_that_cannot_be_committed_changes_nothing(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        old = client.create_producer("t", access_mode=Exclusive)
        with full_disk(), pytest.raises(errors.StorageFullError):
            client.create_producer("t", access_mode=Fencing)
        old.send(b"still mine")
        assert statistics(client)["topic_epoch"] == 0
        old.close()
        with full_disk(), pytest.raises(errors.StorageFullError):
            client.create_producer("t", access_mode=Exclusive)
        client.create_producer("t").send(b"anybody's")


@pytest.mark.standard
def test_leaders_that_take_over_from_each_other_never_write_between_each_other(
    open_client: OpenClient,
) -> None:
    """Leader election: whoever takes the topic writes until it learns that it is fenced. In the
    topic the messages of each reign stand together."""
    clients = [open_client() for _ in range(4)]
    reigns = threading.Lock()
    count = 0
    failures: list[BaseException] = []
    confirmed: set[bytes] = set()

    def lead(client: pulsarx.Client) -> None:
        nonlocal count
        try:
            for _ in range(15):
                producer = client.create_producer("t", access_mode=Fencing, batching_enabled=True)
                with reigns:
                    count += 1
                    reign = count
                try:
                    for number in range(200):
                        data = b"%d:%d" % (reign, number)
                        producer.send(data)
                        confirmed.add(data)
                except errors.ProducerFenced:
                    pass
                producer.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=lead, args=[each]) for each in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failures, failures
    found = whole_topic(clients[0])
    assert confirmed <= set(found)
    order = [int(each.split(b":")[0]) for each in found]
    changes = [reign for at, reign in enumerate(order) if at == 0 or order[at - 1] != reign]
    assert len(changes) == len(set(changes)), "a leader wrote when it had been fenced"
    assert statistics(clients[0])["topic_epoch"] == 59


@pytest.mark.standard
def test_leaders_that_wait_for_each_other_reign_one_at_a_time(open_client: OpenClient) -> None:
    clients = [open_client() for _ in range(4)]
    reigning: list[int] = []
    most: list[int] = []
    failures: list[BaseException] = []

    def lead(number: int) -> None:
        try:
            for _ in range(20):
                producer = clients[number].create_producer("t", access_mode=Wait)
                reigning.append(number)
                most.append(len(reigning))
                producer.send(b"%d" % number)
                reigning.remove(number)
                producer.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=lead, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failures, failures
    assert max(most) == 1
    assert len(whole_topic(clients[0])) == 80
    assert statistics(clients[0])["topic_epoch"] == 79


# Epochs ------------------------------------------------------------------------------------------


def test_the_epoch_counts_take_overs_and_outlives_restarts(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        client.create_producer("t").close()
        assert statistics(client)["topic_epoch"] is None
        client.create_producer("t", access_mode=Exclusive).close()
        assert statistics(client)["topic_epoch"] == 0
        client.create_producer("t", access_mode=Wait)
        client.create_producer("t", access_mode=Fencing)
    with pulsarx.Client(folder) as client:
        assert statistics(client)["topic_epoch"] == 2
        client.create_producer("t").close()  # exclusivity does not outlive its producer
        client.create_producer("t", access_mode=Exclusive)
        assert statistics(client)["topic_epoch"] == 3
        with pulsarx.Client(folder, read_only=True) as other:
            assert statistics(other)["topic_epoch"] == 3


def test_the_epoch_stays_in_a_checkpoint_of_the_catalogue(folder: Path) -> None:
    for _ in range(12):
        with pulsarx.Client(folder) as client:
            for _ in range(12):
                client.create_producer("t", access_mode=Exclusive).close()
            client.create_producer("other").close()
    with pulsarx.Client(folder) as client:
        assert statistics(client)["topic_epoch"] == 143
        assert statistics(client, "other")["topic_epoch"] is None


@pytest.mark.standard
def test_the_death_of_a_process_ends_exclusivity_and_not_the_epoch(folder: Path) -> None:
    program = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t", access_mode=pulsarx.ProducerAccessMode.Exclusive)
producer.send(b"x")
print("held", flush=True)
sys.stdin.readline()
"""
    for number in range(3):
        with ChildProcess(program, folder) as child:
            assert child.line() == "held"
            child.kill()
        with pulsarx.Client(folder) as client:
            assert statistics(client)["topic_epoch"] == 2 * number
            client.create_producer("t").close()
            client.create_producer("t", access_mode=Exclusive).close()


def test_a_forked_child_that_waits_gets_an_error(folder: Path) -> None:
    """A handler forks in the middle of the waiting: the child has no queue to wait in."""
    program = """
import os, signal, sys, threading, pulsarx
client = pulsarx.Client(sys.argv[1])
there = client.create_producer("t")
children = []
def fork(number, frame):
    child = os.fork()
    if child:
        children.append(child)
signal.signal(signal.SIGUSR1, fork)
parent = os.getpid()
sys.path.append(sys.argv[2])
from sleeping_thread import until_asleep
def strike():
    until_asleep(threading.main_thread())
    os.kill(parent, signal.SIGUSR1)
    while not children:
        os.sched_yield()
    there.close()
threading.Thread(target=strike).start()
try:
    producer = client.create_producer(
        "t", access_mode=pulsarx.ProducerAccessMode.WaitForExclusive
    )
except pulsarx.errors.ForkedError:
    os._exit(7)
assert os.getpid() == parent
_, status = os.waitpid(children[0], 0)
print(os.waitstatus_to_exitcode(status))
producer.send(b"x")
client.close()
"""
    assert run_program(program, folder, STEPS) == ["7"]


# Partitions --------------------------------------------------------------------------------------


@pytest.mark.border(left_out="several topics")
def test_on_a_partitioned_topic_the_mode_holds_on_each_partition(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.admin.topics.create_partitioned_topic("x", 3)
    producer = memory_client.create_producer(
        "x", "p", access_mode=Exclusive, lazy_start_partitioned_producers=True
    )
    for index in range(3):
        with pytest.raises(errors.ProducerBusy, match="p"):
            memory_client.create_producer(f"x-partition-{index}")
    with pytest.raises(errors.ProducerBusy):
        memory_client.create_producer("x")
    figures = memory_client.admin.topics.partitioned_stats("x")
    assert [each["access_mode"] for each in figures["publishers"]] == ["Exclusive"]
    producer.close()
    memory_client.create_producer("x").close()


@pytest.mark.border(left_out="several topics")
def test_of_a_partitioned_topic_all_is_taken_or_nothing(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("x", 3)
    other = memory_client.create_producer("x-partition-2", "other")
    with pytest.raises(errors.ProducerFenced, match="other"):
        memory_client.create_producer("x", access_mode=Exclusive)
    for index in range(3):
        memory_client.create_producer(f"x-partition-{index}").close()
    other.close()
    memory_client.create_producer("x", access_mode=Exclusive).send(b"x")


@pytest.mark.border(left_out="several topics")
def test_a_partitioned_waiter_comes_when_all_partitions_are_free(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.admin.topics.create_partitioned_topic("x", 3)
    first = memory_client.create_producer("x-partition-2")
    second = memory_client.create_producer("x-partition-0")
    waiter = Waiter(memory_client, topic="x").asleep()
    second.close()
    waiter.asleep()
    first.close()
    waiter.ended().send(b"x")


@pytest.mark.border(left_out="several topics")
def test_a_partitioned_waiter_that_leaves_gives_back_what_it_had(open_client: OpenClient) -> None:
    mine, other = open_client(), open_client()
    mine.admin.topics.create_partitioned_topic("x", 3)
    there = other.create_producer("x-partition-2")
    waiter = Waiter(mine, topic="x").asleep()
    with pytest.raises(errors.ProducerBusy):
        other.create_producer("x-partition-0")
    mine.close()
    with pytest.raises(errors.AlreadyClosed):
        waiter.ended()
    there.close()
    other.create_producer("x", access_mode=Exclusive).send(b"x")


@pytest.mark.border(left_out="several topics")
def test_a_partitioned_producer_is_fenced_on_all_partitions(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("x", 3)
    old = memory_client.create_producer("x", lazy_start_partitioned_producers=True)
    new = memory_client.create_producer("x", access_mode=Fencing)
    assert new.is_connected() and not old.is_connected()
    for _ in range(3):
        with pytest.raises(errors.ProducerFenced):
            old.send(b"x")
    with pytest.raises(errors.ProducerFenced):
        old.flush()
    old.close()


@pytest.mark.border(left_out="several topics")
def test_new_partitions_are_the_holder_s_before_anybody_else_comes(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.admin.topics.create_partitioned_topic("x", 2)
    producer = memory_client.create_producer("x", "holder", access_mode=Exclusive)
    memory_client.admin.topics.update_partitioned_topic("x", 5)
    for index in range(5):
        with pytest.raises(errors.ProducerBusy, match="holder"):
            memory_client.create_producer(f"x-partition-{index}")
        assert statistics(memory_client, f"x-partition-{index}")["topic_epoch"] == 0
    for number in range(20):
        producer.send(b"%d" % number, partition_key=f"{number}")
    producer.close()
    for index in range(5):
        memory_client.create_producer(f"x-partition-{index}").close()


@pytest.mark.border(left_out="several topics")
@pytest.mark.standard
def test_while_a_topic_grows_nobody_comes_before_its_holder(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("x", 1)
    holder = memory_client.create_producer("x", "holder", access_mode=Exclusive)
    came: list[str] = []
    over = threading.Event()

    def intrude() -> None:
        while not over.is_set():
            for name in memory_client.get_topic_partitions("x"):
                try:
                    memory_client.create_producer(name).close()
                    came.append(name)
                except errors.ProducerBusy:
                    pass

    thread = threading.Thread(target=intrude)
    thread.start()
    for count in range(2, 40):
        memory_client.admin.topics.update_partitioned_topic("x", count)
    over.set()
    thread.join(PATIENCE_SECONDS)
    assert came == []
    holder.close()


@pytest.mark.border(left_out="several topics")
@pytest.mark.parametrize("mode", [Exclusive, Wait, Fencing])
def test_a_topic_may_grow_while_its_holder_comes(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, mode: ProducerAccessMode
) -> None:
    """Right after it had the first partition, the holder took partitions that were kept for it by
    then as if they were another's: it was refused, or waited for itself."""
    topics = memory_client.admin.topics
    topics.create_partitioned_topic("x", 1)
    topic: Any = inspect(memory_client).partitioned_topic("x")
    hold = topic.hold

    def hold_and_grow(*arguments: Any) -> None:
        hold(*arguments)
        topics.update_partitioned_topic("x", 3)

    monkeypatch.setattr(topic, "hold", hold_and_grow)
    if mode == Wait:
        producer = Waiter(memory_client, topic="x").ended()
    else:
        producer = memory_client.create_producer("x", access_mode=mode)
    for number in range(20):
        producer.send(b"%d" % number, partition_key=f"{number}")
    producer.close()
    for index in range(3):
        memory_client.create_producer(f"x-partition-{index}").close()


@pytest.mark.border(left_out="several topics")
def test_a_topic_may_grow_while_its_next_holder_waits(
    memory_client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """It tried to make the producers of old partitions too, and said an error for each."""
    memory_client.admin.topics.create_partitioned_topic("x", 2)
    first = memory_client.create_producer("x-partition-1")
    waiter = Waiter(memory_client, topic="x").asleep()
    memory_client.admin.topics.update_partitioned_topic("x", 4)
    waiter.asleep()
    first.close()
    producer = waiter.ended()
    for number in range(20):
        producer.send(b"%d" % number, partition_key=f"{number}")
    producer.close()
    memory_client.admin.topics.update_partitioned_topic("x", 5)  # nobody's any more
    memory_client.create_producer("x-partition-4").close()
    assert caplog.text == ""


@pytest.mark.border(left_out="several topics")
def test_the_holder_of_a_deleted_topic_that_had_grown_is_closed(
    memory_client: pulsarx.Client,
) -> None:
    """Closing it raised TopicNotFound, and so did closing the client."""
    memory_client.admin.topics.create_partitioned_topic("x", 1)
    producer = memory_client.create_producer("x", access_mode=Exclusive)
    memory_client.admin.topics.update_partitioned_topic("x", 3)
    memory_client.admin.topics.delete_partitioned_topic("x", force=True)
    producer.close()
