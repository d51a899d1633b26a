"""Facts about what processes bring to the next owner of their folder, and what that waits for."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from child_process import ChildProcess
from sharing_process import Refused, SharingProcess
from support.waiting import wait_until

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, ProducerAccessMode, errors
from pulsarx.broker.topics import producer_registry
from pulsarx.broker.topics.waiting_producer import WaitingProducer
from pulsarx.clock import Deadline
from pulsarx.processes.guest import attached_consumer
from pulsarx.processes.guest import broker as guest_broker
from pulsarx.processes.guest import connection as guest_connection
from pulsarx.processes.guest import producers as guest_producers
from pulsarx.processes.guest.connection import Connection, Refusals
from pulsarx.processes.guest.producers import GuestProducer
from pulsarx.processes.owner import arrivals
from pulsarx.processes.owner.arrivals import Arrivals
from pulsarx.processes.owner.consumer import GuestConsumer
from pulsarx.sessions.consumers import SessionConsumers
from pulsarx.testing import inspect

PATIENCE_MS = 60_000
SOON_MS = 60_000  # for what comes at once
SHORT_SECONDS = 0.3  # for what does not happen, however long one waits

# Does what it is told with a consumer of the type it is given. An owner waits for others as long as
# a slow machine may need.
CONSUMER = """
import sys, threading, pulsarx
from pulsarx.processes.owner import arrivals
arrivals.COMING_MS = arrivals.BUSY_MS = 60_000
folder, kind = sys.argv[1:3]
client = pulsarx.Client(folder, operation_timeout_seconds=120)
def subscribe():
    try:
        return client.subscribe(
            "t", "s", getattr(pulsarx.ConsumerType, kind), receiver_queue_size=1,
            initial_position=pulsarx.InitialPosition.Earliest)
    except pulsarx.ConsumerBusy:
        print("busy", flush=True)
print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "subscribe":
        consumer = subscribe()
        if consumer is not None:
            print("attached", flush=True)
    elif word == "receive":
        message = consumer.receive(60000)
        print(message.data().decode(), flush=True)
    elif word == "close":
        consumer.close()
        print("closed", flush=True)
    elif word == "close late":  # when this process has brought all it has to the next owner
        from pulsarx.processes.guest.connection import Connection
        from pulsarx.processes.guest.subscription import GuestSubscription
        arrived, perform = threading.Event(), Connection.perform
        have_recorded = GuestSubscription._have_recorded
        def noticed(self, verb, *arguments, **options):
            answer = perform(self, verb, *arguments, **options)
            if verb == "guest.arrived":
                arrived.set()
            return answer
        def late(self):
            print("closing", flush=True)
            assert arrived.wait(60)
            print("arrived", flush=True)
            sys.stdin.readline()
            have_recorded(self)
        Connection.perform, GuestSubscription._have_recorded = noticed, late
        consumer.close()
        print("closed", flush=True)
    elif word == "acknowledge":
        consumer.acknowledge(message)
        print("done", flush=True)
"""


class Consumer(ChildProcess):
    def __init__(self, folder: Path, kind: str) -> None:
        super().__init__(CONSUMER, folder, kind)
        assert self.line() == "ready"

    def ask(self, what: str) -> str:
        self.tell(what)
        return self.line()

    def stop(self) -> None:
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)


def lock_text(folder: Path) -> str:
    return (folder / "LOCK").read_text()


def owner_of(folder: Path) -> int:
    return int(lock_text(folder).split()[1])


def wait_for_owner(folder: Path, pid: int) -> None:
    pause = threading.Event()
    while owner_of(folder) != pid or "control_socket control.sock" not in lock_text(folder):
        pause.wait(0.01)


@pytest.mark.parametrize("kind", ["Shared", "KeyShared", "Failover"])
def test_what_was_acknowledged_while_the_owner_died_comes_to_nobody(
    folder: Path, processes: list[Any], kind: str
) -> None:
    """Another process, which was faster to come to the next owner, got it: the acknowledgement had
    been with the dead one."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("p = client.create_producer('t')")
    acting, other = Consumer(folder, kind), Consumer(folder, kind)
    processes += [acting, other]
    assert acting.ask("subscribe") == "attached"
    owner.run("[p.send(b'%d' % n, partition_key='k') and None for n in range(2)] and None")
    assert acting.ask("receive") == "0"
    assert other.ask("subscribe") == "attached"
    os.kill(owner.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    assert acting.ask("acknowledge") == "done"
    acting.stop()
    owner.kill()
    wait_for_owner(folder, other.pid)
    acting.signal(signal.SIGCONT)
    assert acting.ask("close") == "closed"
    assert other.ask("receive") == "1"


def test_what_a_closing_consumer_had_acknowledged_is_known_before_others_get_messages(
    folder: Path, processes: list[Any]
) -> None:
    """Its process had arrived at the next owner, and it had not told it yet."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("p = client.create_producer('t')")
    acting, other = Consumer(folder, "Failover"), Consumer(folder, "Failover")
    processes += [acting, other]
    assert acting.ask("subscribe") == "attached"
    owner.run("[p.send(b'%d' % n) and None for n in range(2)] and None")
    assert acting.ask("receive") == "0"
    assert other.ask("subscribe") == "attached"
    os.kill(owner.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    assert acting.ask("acknowledge") == "done"
    assert acting.ask("close late") == "closing"
    owner.kill()
    assert acting.line() == "arrived"
    assert other.ask("receive") == "1"
    assert acting.ask("go on") == "closed"


def test_nobody_takes_the_place_of_an_exclusive_consumer_when_the_owner_dies(
    folder: Path, processes: list[Any]
) -> None:
    """One that was faster to come to the next owner got its subscription."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("p = client.create_producer('t')")
    owner.run("[p.send(b'%d' % n) and None for n in range(2)] and None")
    holding, other = Consumer(folder, "Exclusive"), Consumer(folder, "Exclusive")
    processes += [holding, other]
    assert holding.ask("subscribe") == "attached"
    assert holding.ask("receive") == "0"
    holding.stop()
    owner.kill()
    wait_for_owner(folder, other.pid)
    other.tell("subscribe")
    threading.Event().wait(SHORT_SECONDS)
    holding.signal(signal.SIGCONT)
    assert other.line() == "busy"
    assert holding.ask("acknowledge") == "done"
    assert holding.ask("receive") == "1"


def test_a_process_that_opens_the_folder_next_waits_for_those_that_used_it(
    folder: Path, processes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "COMING_MS", 60_000)
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.create_producer('t').send(b'0') and None")
    holding = Consumer(folder, "Shared")
    processes.append(holding)
    assert holding.ask("subscribe") == "attached"
    assert holding.ask("receive") == "0"
    os.kill(owner.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    assert holding.ask("acknowledge") == "done"
    holding.stop()
    owner.kill()
    with pulsarx.Client(folder) as client:
        assert owner_of(folder) == os.getpid()
        holding.signal(signal.SIGCONT)
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        producer = client.create_producer("t")
        for number in range(1, 4):
            producer.send(b"%d" % number)
        assert consumer.receive(PATIENCE_MS).data() != b"0"


def test_processes_that_have_ended_are_not_awaited(
    folder: Path, processes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.create_producer('t').send(b'0') and None")
    guest = Consumer(folder, "Shared")
    processes.append(guest)
    os.kill(owner.pid, signal.SIGSTOP)  # so that it does not see the guest leave
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    guest.kill()
    owner.kill()
    assert f"guests {guest.pid}" in lock_text(folder)
    monkeypatch.setattr(arrivals, "COMING_MS", 10**9)
    monkeypatch.setattr(arrivals, "BUSY_MS", 10**9)
    with pulsarx.Client(folder) as client:
        client.subscribe("t", "s")


def test_a_process_that_is_stopped_is_awaited_for_a_while(
    folder: Path, processes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.create_producer('t').send(b'0') and None")
    guest = Consumer(folder, "Shared")
    processes.append(guest)
    guest.stop()
    owner.kill()
    with pulsarx.Client(folder) as client:
        start = InitialPosition.Earliest
        consumer = client.subscribe("t", "s", ConsumerType.Shared, initial_position=start)
        assert consumer.receive(PATIENCE_MS).data() == b"0"
        guest.signal(signal.SIGCONT)


def test_a_consumer_that_came_too_late_for_its_caller_does_not_stay(
    folder: Path, processes: list[Any]
) -> None:
    """The owner attached it when it went on, and the subscription had a consumer that nobody
    knew."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.create_producer('t').send(b'0') and None")
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("p = client.create_producer('t')")
    guest.run("hasty = pulsarx.Client(sys.argv[1], operation_timeout_seconds=4)")
    os.kill(owner.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    with pytest.raises(Refused) as refused:
        guest.run("c = hasty.subscribe('t', 's')")
    assert refused.value.kind == "Timeout"
    assert f"process {owner.pid}" in refused.value.detail
    assert "may have done it" in refused.value.detail
    os.kill(owner.pid, signal.SIGCONT)
    found = guest.run("client.admin.topics.stats('t')['subscriptions']['s']['consumers']")
    assert found == []


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_what_was_acknowledged_counts_when_its_consumer_is_closed_before_the_next_owner_comes(
    folder: Path, processes: list[Any], kind: str
) -> None:
    """It was known to the dead owner's socket alone."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("p = client.create_producer('t')")
    owner.run("[p.send(b'%d' % n) and None for n in range(2)] and None")
    with pulsarx.Client(folder) as client:
        start = InitialPosition.Earliest
        consumer = client.subscribe("t", "s", getattr(ConsumerType, kind), initial_position=start)
        message = consumer.receive(PATIENCE_MS)
        os.kill(owner.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
        consumer.acknowledge(message)
        owner.kill()
        consumer.close()
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 1


def test_a_producer_whose_topic_has_no_room_at_the_next_owner_goes_on_when_it_has(
    folder: Path, processes: list[Any]
) -> None:
    """It was tried once more with the owner that had gone, and never again."""
    owner = SharingProcess(folder, durability="os")
    processes.append(owner)
    owner.run("topics = client.admin.topics")
    owner.run("topics.create_non_partitioned_topic('t')")
    owner.run("topics.create_subscription('t', 's', MessageId.earliest)")
    owner.run("client.create_producer('t').send(bytes(2000)) and None")
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        owner.run("topics.set_backlog_quota('t', limit_size=1000)")
        owner.kill()
        told: list[Any] = []
        producer.send_async(b"1", lambda result, _: told.append(result))
        with pytest.raises(errors.ProducerBlockedQuotaExceededError):
            client.create_producer("t")
        client.admin.topics.set_backlog_quota("t", limit_size=1 << 30)
        producer.flush()
        assert told == [pulsarx.Result.Ok]


@pytest.mark.parametrize("deduplicates", [False, True])
@pytest.mark.parametrize("step", ["_stored", "_come"])
@pytest.mark.parametrize(
    "error", [errors.StorageError("Input/output error", errno=errno.EIO), MemoryError()]
)
def test_a_named_producer_goes_on_where_a_step_behind_its_registration_fails(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    step: str,
    deduplicates: bool,
) -> None:
    """It had its name itself, at the next owner, and was lost."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.admin.topics.create_non_partitioned_topic('t')")
    owner.run(f"client.admin.topics.set_deduplication('t', {deduplicates})")
    monkeypatch.setattr(guest_producers, "AGAIN_MS", 1)
    with pulsarx.Client(folder, operation_timeout_seconds=60) as client:
        producer = client.create_producer("t", "p")
        producer.send(b"0")
        failures, work = [error], getattr(GuestProducer, step)

        def fail(self: GuestProducer, *arguments: Any) -> Any:
            if failures:
                raise failures.pop()
            return work(self, *arguments)

        monkeypatch.setattr(GuestProducer, step, fail)
        owner.kill()
        producer.send(b"1")
        assert not failures
        with client.create_reader("t", MessageId.earliest) as reader:
            assert [reader.read_next(PATIENCE_MS).data() for _ in range(2)] == [b"0", b"1"]
        (found,) = client.admin.topics.stats("t")["publishers"]
        assert found["producer_name"] == "p"


def test_statistics_of_the_next_owner_say_what_a_producer_published_before(
    folder: Path, processes: list[Any]
) -> None:
    owner = SharingProcess(folder, durability="os")
    processes.append(owner)
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        for _ in range(4):
            producer.send(b"x")
        owner.kill()
        client.create_producer("other").send(b"x")  # there is a next owner

        def found() -> list[int]:
            publishers = client.admin.topics.stats("t")["publishers"]
            return [each["last_sequence_id"] for each in publishers]

        pause = threading.Event()
        while not found():  # it comes there in a thread of its own
            pause.wait(0.01)
        assert found() == [3]
        producer.send(b"x")
        assert found() == [4]


def test_a_producer_that_was_fenced_out_does_not_come_to_the_next_owner(
    folder: Path, processes: list[Any]
) -> None:
    """It came, and nobody else had the topic to himself as long as it was not closed."""
    owner = SharingProcess(folder, durability="os")
    processes.append(owner)
    with pulsarx.Client(folder) as client:
        old = client.create_producer("t")
        old.send(b"x")
        fencing = {"access_mode": pulsarx.ProducerAccessMode.ExclusiveWithFencing}
        client.create_producer("t", **fencing).close()
        with pytest.raises(errors.ProducerFenced):
            old.send(b"late")
        owner.kill()
        client.create_producer("other").send(b"x")  # there is a next owner
        exclusive = {"access_mode": pulsarx.ProducerAccessMode.Exclusive}
        client.create_producer("t", **exclusive).send(b"y")
        with pytest.raises(errors.ProducerFenced):
            old.send(b"late")
        old.close()


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_producer_without_a_send_timeout_closes_beside_a_stopped_owner(
    folder: Path, processes: list[Any], domain: str
) -> None:
    """It waited without end."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("p = client.create_producer('t')")
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("impatient = pulsarx.Client(sys.argv[1], operation_timeout_seconds=5)")
    guest.run(
        f"p = impatient.create_producer('{domain}://public/default/t', send_timeout_millis=0)\n"
        "told = []"
    )
    os.kill(owner.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
    guest.run("p.send_async(b'x', lambda result, _: told.append(result.name))")
    with pytest.raises(Refused) as refused:
        guest.run("p.close()")
    assert refused.value.kind == "Timeout"
    assert guest.run("told") == ["Timeout"]
    os.kill(owner.pid, signal.SIGCONT)


# Producers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode", ["Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"]
)
@pytest.mark.parametrize("how", ["closes", "is killed"])
@pytest.mark.parametrize("waits_first", [True, False])
def test_who_waits_for_a_topic_does_not_take_it_from_who_publishes_when_owners_change(
    folder: Path, processes: list[SharingProcess], mode: str, how: str, waits_first: bool
) -> None:
    """It came to the next owner first, or while the last one hung up on the others: the producer
    that had the topic was fenced, or shut, though it lived."""
    owner, first, second = (SharingProcess(folder) for _ in range(3))
    processes.extend([owner, first, second])
    for each in (first, second):
        each.run("from pulsarx.processes.owner import arrivals")
        each.run(f"arrivals.COMING_MS = arrivals.BUSY_MS = {PATIENCE_MS}")
    publishes, waits = (second, first) if waits_first else (first, second)
    publishes.run(f"producer = client.create_producer('t', access_mode=ProducerAccessMode.{mode})")
    publishes.run("producer.send(b'0') and None")
    waits.run(
        "came = threading.Event()\n"
        "def wait():\n"
        "    global mine\n"
        "    mine = client.create_producer('t', access_mode=ProducerAccessMode.WaitForExclusive)\n"
        "    came.set()\n"
        "threading.Thread(target=wait, daemon=True).start()"
    )
    owner.run("from pulsarx.topic_name import TopicName")
    owner.run("topic = client._broker.topic(TopicName.of('t'))")
    owner.run("while not topic.producers._waiting: pass")
    owner.run("del topic")
    if how == "closes":
        owner.run("client.close()")
    else:
        owner.kill()
    publishes.run("producer.send(b'1') and None")
    assert waits.run("contents('t')") == [b"0", b"1"]
    publishes.run("producer.send(b'2') and None")
    assert not waits.run("came.is_set()")
    publishes.run("producer.close()")
    assert waits.run("came.wait(60)")
    waits.run("mine.send(b'3') and None")
    assert waits.run("contents('t')") == [b"0", b"1", b"2", b"3"]


def test_who_waits_has_its_turn_where_the_last_process_comes_just_then(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came between two looks whether somebody is awaited: nobody told who waits, and Shared
    producers were refused because of it, until the folder was opened again."""
    with pulsarx.Client(folder) as client:
        client.create_producer("t").close()
        runtime = inspect(client).broker.runtime
        awaited = Arrivals([os.getpid()])
        monkeypatch.setattr(runtime, "_arrivals", awaited)

        def wait_and_come(*arguments: Any) -> WaitingProducer:
            made = WaitingProducer(*arguments)
            awaited.has_arrived(os.getpid())
            return made

        monkeypatch.setattr(producer_registry, "WaitingProducer", wait_and_come)
        came = threading.Event()

        def wait() -> None:
            client.create_producer("t", access_mode=ProducerAccessMode.WaitForExclusive).close()
            came.set()

        threading.Thread(target=wait, daemon=True).start()
        assert came.wait(PATIENCE_MS / 1000)


def test_who_waits_for_others_is_told_where_memory_runs_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that looks for them ended, and consumers waited for ever."""
    failures, told = [MemoryError(), MemoryError()], threading.Event()

    def is_running(_: int) -> bool:
        if failures:
            raise failures.pop()
        return False

    awaited = Arrivals([os.getpid()])
    monkeypatch.setattr(arrivals, "is_running", is_running)

    def fail() -> None:
        raise MemoryError

    with awaited._changed:  # so that it begins when both are to be told
        awaited.tell(fail)
        awaited.tell(told.set)
    assert told.wait(PATIENCE_MS / 1000)


@pytest.mark.parametrize("place", ["GuestConnection", "JobQueue.post"])
def test_a_process_comes_to_the_next_owner_where_memory_runs_out(
    folder: Path, processes: list[SharingProcess], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that reads its connections ended, and all calls timed out from then on."""
    owner = SharingProcess(folder)
    processes.append(owner)
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        producer.send(b"1")
        failures, connection = [MemoryError(), MemoryError()], guest_broker.GuestConnection

        def connect(*arguments: Any) -> Any:
            if failures and place == "GuestConnection":
                raise failures.pop()
            return connection(*arguments)

        class Resuming:
            """As the queue of what is brought to the next owner, without memory at first."""

            def __init__(self, queue: Any) -> None:
                self._queue = queue

            def __getattr__(self, name: str) -> Any:
                return getattr(self._queue, name)

            def post(self, job: Any) -> None:
                if failures and place == "JobQueue.post":
                    raise failures.pop()
                self._queue.post(job)

        monkeypatch.setattr(guest_broker, "GuestConnection", connect)
        broker: Any = inspect(client).broker
        monkeypatch.setattr(broker, "_resuming", Resuming(broker._resuming))
        owner.kill()
        producer.send(b"2")
        assert not failures


def test_a_producer_that_cannot_await_the_others_leaves_its_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no thread could be had for it, it kept its place, and nobody could publish any more;
    and nobody awaited the others for those that came behind it."""
    mode = ProducerAccessMode.WaitForExclusive
    with pulsarx.Client(folder) as client:
        client.create_producer("t").close()
        runtime = inspect(client).broker.runtime
        monkeypatch.setattr(arrivals, "COMING_MS", 10**9)
        awaited = Arrivals([os.getpid()])
        monkeypatch.setattr(runtime, "_arrivals", awaited)

        def refuse(*_: object) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(arrivals, "OwnThread", refuse)
            with pytest.raises(RuntimeError, match="thread"):
                client.create_producer("t", access_mode=mode)
        client.create_producer("t").close()
        awaited._coming = Deadline(0)  # it is late
        came = threading.Event()

        def wait() -> None:
            client.create_producer("t", access_mode=mode).close()
            came.set()

        threading.Thread(target=wait, daemon=True).start()
        assert came.wait(PATIENCE_MS / 1000)


# An owner that cannot take what comes to it -------------------------------------------------------

KEYS = 8  # of which a consumer that nobody knows would have some


class OnceFailing:
    """A function that fails once, behind its work or before."""

    def __init__(self, patch: pytest.MonkeyPatch, of: Any, name: str, error: Exception) -> None:
        self.has_failed = False
        work = getattr(of, name)

        def fail(*arguments: Any, **named: Any) -> Any:
            concerns = name != "dumps" or "made_subscription" in str(arguments)
            fails, self.has_failed = not self.has_failed and concerns, self.has_failed or concerns
            if fails and name == "_attach":
                raise error
            done = work(*arguments, **named)
            if fails:
                raise error
            return done

        patch.setattr(of, name, fail)


STEPS: dict[str, tuple[Any, Exception]] = {
    "add": (SessionConsumers, MemoryError()),
    "marking": (SessionConsumers, MemoryError()),
    "open_to": (GuestConsumer, MemoryError()),
    "tell": (Arrivals, RuntimeError("can't start new thread")),
    "dumps": (json, MemoryError()),
}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Connections of which it was asked whether they had left, for which others wait."""
    asked: list[Any] = []

    def has_left(self: Connection) -> bool:
        asked.append(self)
        return self.is_lost

    monkeypatch.setattr(Connection, "has_left", has_left)
    monkeypatch.setattr(attached_consumer, "AGAIN_MS", 1)
    return asked


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "KeyShared"])
def test_a_consumer_that_the_next_owner_attached_in_part_is_not_in_its_own_way(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    patient: list[Any],
    kind: str,
    step: str,
) -> None:
    """The owner kept the one that its process did not know any more: it was shut, or got some of
    the messages, or none. And all that came behind it waited a second for it."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.create_producer('t').close()")
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s", getattr(ConsumerType, kind))
        failing = OnceFailing(monkeypatch, STEPS[step][0], step, STEPS[step][1])
        owner.kill()
        with client.create_producer("t") as producer:
            for number in range(KEYS):
                producer.send(b"%d" % number, partition_key=str(number))
        found = {consumer.receive(SOON_MS).data() for _ in range(KEYS)}
        assert failing.has_failed and found == {b"%d" % number for number in range(KEYS)}
        assert len(client.admin.topics.stats("t")["subscriptions"]["s"]["consumers"]) == 1
        assert not patient


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "KeyShared"])
def test_a_non_persistent_consumer_that_the_next_owner_refuses_once_comes_again(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    patient: list[Any],
    kind: str,
) -> None:
    """And all that came behind it waited a second for it."""
    topic = "non-persistent://public/default/t"
    owner = SharingProcess(folder)
    processes.append(owner)
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe(topic, "s", getattr(ConsumerType, kind))
        failing = OnceFailing(monkeypatch, SessionConsumers, "_attach", MemoryError())
        owner.kill()
        with client.create_producer(topic) as producer:

            def arrives() -> bool:
                producer.send(b"0")
                return consumer.has_message()

            wait_until(arrives)
        assert failing.has_failed and not patient


# What an owner answers, and how often a member comes to it because of that.
REFUSALS = [
    (errors.UnknownError(detail="RuntimeError: it is broken"), 3),
    (errors.BrokerMetadataError(detail="it is broken"), 3),
    (errors.InternalError(detail="it is broken"), 1),
    (errors.CatalogueError(detail="it is broken"), 1),
    (errors.DataLossError(detail="it is broken"), 1),
]


@pytest.mark.parametrize(("error", "count"), REFUSALS)
def test_a_consumer_is_shut_that_the_next_owner_refuses_for_good(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    patient: list[Any],
    error: Exception,
    count: int,
) -> None:
    """It came again for ever, and whoever received waited."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.create_producer('t').close()")
    monkeypatch.setattr(guest_connection, "UNCLEAR_MAX", 3)
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        came: list[Any] = []

        def refuse(*arguments: Any) -> None:
            came.append(arguments)
            raise error

        monkeypatch.setattr(SessionConsumers, "add", refuse)
        owner.kill()
        with pytest.raises(errors.AlreadyClosed):
            consumer.receive(PATIENCE_MS)
        assert len(came) == count
        wait_until(lambda: caplog.text.count("it is broken") == count)


@pytest.mark.parametrize(("error", "count"), REFUSALS)
def test_a_producer_ends_that_cannot_come_to_the_next_owner_for_good(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    count: int,
) -> None:
    """It came again for ever, and sends waited until they timed out."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.create_producer('t').close()")
    monkeypatch.setattr(guest_connection, "UNCLEAR_MAX", 3)
    monkeypatch.setattr(guest_producers, "AGAIN_MS", 1)
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        came: list[Any] = []

        def refuse(*arguments: Any) -> None:
            came.append(arguments)
            raise error

        monkeypatch.setattr(GuestProducer, "_register_again", refuse)
        owner.kill()
        with pytest.raises(type(error), match=r".*") as told:
            producer.send(b"1")
        assert "it is broken" in errors.detail_of(told.value)
        assert len(came) == count


def test_an_owner_without_room_is_asked_for_as_long_as_it_has_none() -> None:
    refusals, connection = Refusals(), cast(Connection, object())
    passing = [
        errors.StorageFullError("", errno=errno.ENOSPC),
        errors.StorageError("", errno=errno.EIO),
        MemoryError(),
        errors.ConnectError(detail=""),
    ]
    for each in 100 * passing:
        assert refusals.passes(each, connection)
    for _ in range(guest_connection.UNCLEAR_MAX - 1):
        assert refusals.passes(errors.UnknownError(detail=""), connection)
    assert not refusals.passes(errors.UnknownError(detail=""), connection)
    # The next owner is another one, and whoever was taken begins anew.
    assert refusals.passes(errors.UnknownError(detail=""), cast(Connection, object()))
    refusals.end()
    assert refusals.passes(errors.UnknownError(detail=""), connection)
