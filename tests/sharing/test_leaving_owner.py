"""What an owner refuses because it closes the folder is for the next owner."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from child_process import ChildProcess, run_program
from sharing_process import SharingProcess
from topic_reading import numbers, whole_topic

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx.processes.guest import connection as connection_module
from pulsarx.processes.guest.owner_connection import GuestConnection
from pulsarx.results import Result, result_of
from pulsarx.wire.commands import FAILOVER
from pulsarx.wire.frames import FrameReader, frame_encode


def _refuse(owner: socket.socket, then_leave: bool) -> None:
    reader = FrameReader(5 << 20)
    for _, values, _ in reader.feed(owner.recv(1 << 16)):
        refused = {"request_id": values["request_id"], "error": 6, "message": "it is closed"}
        owner.sendall(frame_encode("ERROR", refused))
    if then_leave:
        owner.close()


@pytest.mark.parametrize(
    "then_leaves, raised", [(True, errors.ConnectError), (False, errors.ServiceUnitNotReady)]
)
def test_a_refusal_of_an_owner_that_closes_is_for_the_next_one(
    then_leaves: bool, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to end the readers, and refuse the producers, of processes that would have gone on
    with the next owner a moment later."""
    if then_leaves:
        monkeypatch.setattr(connection_module, "_LEAVING_MS", 60_000)
    owner, guest = socket.socketpair()
    background = JobQueue("test-background")
    completions = CompletionQueue(Result.Ok, result_of)
    connection = GuestConnection(guest, 1, lambda: 30, completions, background)
    reading = threading.Thread(target=lambda: (connection.read(), connection.lost(_GONE)))
    answering = threading.Thread(target=_refuse, args=(owner, then_leaves))
    reading.start()
    answering.start()
    try:
        with pytest.raises(raised) as found:
            connection.request("PARTITIONED_METADATA", topic="orders")
        assert type(found.value) is raised
        assert connection.is_lost == then_leaves
    finally:
        owner.close()
        answering.join()
        reading.join()
        connection.let_go()
        completions.close()
        background.close()


def _fail(*_: object) -> Exception:
    raise MemoryError


@pytest.mark.parametrize("where", ["answer", "member"])
def test_whoever_waits_on_a_connection_is_told_where_memory_runs_out(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call waited for its whole timeout, and members for ever, for what was told to nobody."""
    owner, guest = socket.socketpair()
    background = JobQueue("test-background")
    completions = CompletionQueue(Result.Ok, result_of)
    connection = GuestConnection(guest, 1, lambda: 3600, completions, background)
    told = threading.Event()
    if where == "answer":
        monkeypatch.setattr(connection_module, "error_of", _fail)
    else:
        connection.add_producer(SimpleNamespace(lost=_fail))
        connection.add_producer(SimpleNamespace(lost=lambda _: told.set()))
    reading = threading.Thread(target=lambda: (connection.read(), connection.lost(_GONE)))
    answering = threading.Thread(target=_refuse, args=(owner, where == "member"))
    reading.start()
    answering.start()
    try:
        with pytest.raises(errors.ConnectError):
            connection.request("PARTITIONED_METADATA", topic="orders")
        assert where == "answer" or told.wait(60)
    finally:
        owner.close()
        answering.join()
        reading.join()
        connection.let_go()
        completions.close()
        background.close()


_CALLS: dict[str, tuple[str, Callable[[pulsarx.Client, pulsarx.Consumer[bytes]], object]]] = {
    "producer": ("PRODUCER", lambda client, _: client.create_producer("t").send(b"2")),
    "topic": ("PARTITIONED_METADATA", lambda client, _: client.create_producer("u").send(b"2")),
    "consumer": ("VERB", lambda client, _: client.subscribe("t", "other")),
    "seek": ("VERB", lambda _, consumer: consumer.seek(pulsarx.MessageId.earliest)),
    "unsubscribe": ("VERB", lambda _, consumer: consumer.unsubscribe()),
}


@pytest.mark.standard
@pytest.mark.parametrize("call", list(_CALLS))
def test_what_comes_while_an_owner_closes_is_for_the_next_one_however_long_that_takes(
    folder: Path, processes: list[SharingProcess], call: str
) -> None:
    """Where the owner took more than a second to hang up, as with many topics on a slow disk, it
    raised AlreadyClosed."""
    command, act = _CALLS[call]
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("from pulsarx.sessions.session import Session")
    owner.run("gate, came, init = threading.Event(), [], Session.__init__")
    owner.run(
        "def note(session, *arguments, **options):\n"
        "    init(session, *arguments, **options)\n"
        "    for name, handle in list(session._handlers.items()):\n"
        "        def handled(values, name=name, handle=handle):\n"
        "            handle(values)\n"
        "            came.append(name)\n"
        "        session._handlers[name] = handled\n"
        "Session.__init__ = note"
    )
    owner.run("client.create_producer('t').send(b'1') and None")
    failures: list[BaseException] = []
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        owner.run("client._broker.on_close.insert(0, gate.wait)")
        owner.run("threading.Thread(target=client.close).start()")
        owner.run("while client._state.is_open: pass")
        owner.run("came.clear()")

        def try_it() -> None:
            try:
                act(client, consumer)
            except BaseException as error:
                failures.append(error)

        calling = threading.Thread(target=try_it)
        calling.start()
        while calling.is_alive() and command not in owner.run("came"):
            pass
        calling.join(1.5)  # longer than an owner was waited for that refuses
        assert not failures
        owner.run("gate.set()")
        calling.join(60)
        assert not failures and not calling.is_alive()


# sure: how many lie in its queue, which may come late on a busy machine.
_RECEIVE = """
def received(consumer, sure):
    found = []
    try:
        while True:
            message = consumer.receive(timeout_millis=500 if len(found) >= sure else 30_000)
            found.append(message.data())
            consumer.acknowledge(message)
    except errors.Timeout:
        return found
"""


def with_full_queues(
    folder: Path, processes: list[SharingProcess], kind: str
) -> tuple[SharingProcess, dict[SharingProcess, int]]:
    """An owner, and two others whose consumers have 40 messages in their queues: how many each."""
    owner, *guests = (SharingProcess(folder) for _ in range(3))
    processes.extend([owner, *guests])
    for number, guest in enumerate(guests):
        guest.run(_RECEIVE)
        guest.run(
            f"consumer = client.subscribe('t', 's', consumer_name='c{number}',"
            f" consumer_type=pulsarx.ConsumerType.{kind})"
        )
    owner.run(
        "with client.create_producer('t') as producer:\n"
        "    for number in range(40):\n"
        "        producer.send(b'%d' % number, partition_key=f'{number}') and None"
    )
    sent = "sum(each['unacked_messages'] for each in found['consumers'])"
    owner.run(
        "found = {'consumers': []}\n"
        f"while {sent} < 40:\n"
        "    found = client.admin.topics.stats('t')['subscriptions']['s']"
    )
    lie = owner.run(
        "{each['consumer_name']: each['unacked_messages'] for each in found['consumers']}"
    )
    return owner, {guest: lie[f"c{number}"] for number, guest in enumerate(guests)}


@pytest.mark.standard
@pytest.mark.parametrize("kind", ["Failover", "Shared", "KeyShared"])
@pytest.mark.parametrize("first", [0, 1])
def test_what_lies_in_queues_goes_to_nobody_else_while_an_owner_closes(
    folder: Path, processes: list[SharingProcess], kind: str, first: int
) -> None:
    """What a consumer had in hand went to another one for a moment, when the owner had hung up on
    its process and not yet on the other: both handed it out, though both had acknowledged it."""
    owner, guests = with_full_queues(folder, processes, kind)
    owner.run("import threading")
    owner.run("from pulsarx.processes.owner.service import ServedGuest")
    owner.run("end, service = ServedGuest.end, client._broker.guest_service")
    pid = list(guests)[first].pid
    owner.run(f"soon = next(each for each, pid in service._pids.items() if pid == {pid})")
    owner.run(
        "def end_later(guest):\n"
        "    if guest is not soon:\n"
        "        end(soon)\n"
        "        waits = threading.Thread(target=soon.thread.join, daemon=True)\n"
        "        waits.start()\n"
        "        waits.join(1)\n"
        "    end(guest)\n"
        "ServedGuest.end = end_later"
    )
    owner.run("client.close()")
    for guest, count in guests.items():
        guest.ask(f"received(consumer, {count})")
    found = [payload for guest in guests for payload in guest.answer()]
    assert sorted(found) == sorted(b"%d" % number for number in range(40))


@pytest.mark.standard
@pytest.mark.parametrize("kind", ["Failover", "Shared"])
def test_what_lies_in_queues_goes_to_nobody_who_was_busy_when_an_owner_closed(
    folder: Path, processes: list[SharingProcess], kind: str
) -> None:
    """An owner waits for so long that they are done with what they asked for, and hangs up on the
    others then."""
    owner, guests = with_full_queues(folder, processes, kind)
    owner.run("from pulsarx.processes.owner import service as guest_service")
    owner.run("from pulsarx.sessions.session import Session")
    owner.run("guest_service._PARTING_MS, service = 100, client._broker.guest_service")
    busy = list(guests)[1]
    pid = busy.pid
    owner.run(
        f"busy = next(each for each, pid in service._pids.items() if pid == {pid})\n"
        "other = next(each for each in service._pids if each is not busy)\n"
        "came, received = threading.Event(), Session.received"
    )
    owner.run(
        "def received_slowly(session, data):\n"
        "    if session is busy._session:\n"
        "        came.set()\n"
        "        other.thread.join()\n"
        "    return received(session, data)\n"
        "Session.received = received_slowly"
    )
    busy.run("threading.Thread(target=client.create_producer, args=('u',), daemon=True).start()")
    owner.run("came.wait()")
    owner.run("client.close()")
    for guest, count in guests.items():
        guest.ask(f"received(consumer, {count})")
    found = [payload for guest in guests for payload in guest.answer()]
    assert sorted(found) == sorted(b"%d" % number for number in range(40))


@pytest.mark.standard
def test_what_lies_in_queues_does_not_go_to_clients_of_the_network_while_an_owner_closes(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """Where the folder was shared before it was served, other processes were hung up on first."""
    owner, guest = (SharingProcess(folder) for _ in range(2))
    processes.extend([owner, guest])
    guest.run(_RECEIVE)
    guest.run(
        "consumer = client.subscribe('t', 's', consumer_name='c0',"
        " consumer_type=pulsarx.ConsumerType.Failover)"
    )
    owner.run("from pulsarx.server import serve")
    owner.run("service = serve(client, port=0)")
    with socket.create_connection((owner.run("service.host"), owner.run("service.port"))) as peer:
        peer.sendall(frame_encode("CONNECT", {"client_version": "test", "protocol_version": 20}))
        subscribed = {"topic": "t", "subscription": "s", "type": FAILOVER, "consumer_name": "c1"}
        peer.sendall(frame_encode("SUBSCRIBE", {**subscribed, "consumer_id": 0, "request_id": 1}))
        peer.sendall(frame_encode("FLOW", {"consumer_id": 0, "permits": 100}))
        owner.run(
            "with client.create_producer('t') as producer:\n"
            "    for number in range(40):\n"
            "        producer.send(b'%d' % number) and None"
        )
        owner.run(
            "found = []\n"
            "while [each['available_permits'] for each in found if each['consumer_name'] == 'c1']"
            " != [100] or not any(each['unacked_messages'] == 40 for each in found):\n"
            "    found = client.admin.topics.stats('t')['subscriptions']['s']['consumers']"
        )
        owner.run("client.close()")
        reader = FrameReader(5 << 20)
        told: list[str] = []
        while data := peer.recv(1 << 16):
            told += [name for name, _, _ in reader.feed(data)]
        assert "SUCCESS" in told and "MESSAGE" not in told
    assert guest.run("received(consumer, 40)") == [b"%d" % number for number in range(40)]


_GONE = errors.ConnectError(detail="it has left")


DROPS = """
import sys, threading, pulsarx
from pulsarx.ground.process_end import at_end
from pulsarx.processes.guest.producers import GuestProducer
from pulsarx.testing import inspect
shut, begun = GuestProducer.shut, threading.Event()
def begin_to_shut(self):
    begun.set()
    shut(self)
GuestProducer.shut = begin_to_shut
def produce():
    client = pulsarx.Client(sys.argv[1])
    if sys.argv[2] == "after":
        inspect(client).post(begun.wait)  # in the background comes behind it what is dropped
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=10**6
    )
    for number in range(5):
        producer.send_async(b"%d" % number, None)
    print("sent", flush=True)
    sys.stdin.readline()
produce()
at_end(lambda: print("ends", flush=True))
"""


@pytest.mark.parametrize("closed", ["before", "after"])
def test_what_was_dropped_by_a_process_that_ends_is_sent_when_the_owner_ends_too(
    folder: Path, processes: list[SharingProcess], closed: str
) -> None:
    """The connection was closed under the producer that was closed in the background. That waited
    half a minute for another owner, and logged a send that failed. So it was, and the messages were
    lost, where the background came to it after the end of the process had begun to send them: the
    producer had left by then, and nobody sent for it to the next owner."""
    owner = SharingProcess(folder)
    processes.append(owner)
    with ChildProcess(DROPS, folder, closed) as leaving:
        assert leaving.line() == "sent"
        owner.signal(signal.SIGSTOP)
        leaving.tell()
        assert leaving.line() == "ends"
        run_program("")  # so long it has been closing
        owner.kill()
        leaving.end()  # nothing was logged
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == numbers(5)


LEAVES = """
import sys, pulsarx
def produce():
    client = pulsarx.Client(sys.argv[1])
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=10**6
    )
    for _ in range(5):
        producer.send_async(sys.argv[2].encode(), None)
    return client, producer
produce()
held = produce()
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.standard
def test_processes_that_end_together_store_what_their_producers_hold(folder: Path) -> None:
    """They stalled for half a minute, and logged failed sends of messages that were stored."""
    with ExitStack() as stack:
        leaving = [stack.enter_context(ChildProcess(LEAVES, folder, number)) for number in range(4)]
        for each in leaving:
            assert each.line() == "ready"
        for each in leaving:
            each.tell()
        for each in leaving:
            each.end()  # nothing was logged
    with pulsarx.Client(folder) as client:
        assert sorted(whole_topic(client)) == sorted(numbers(4) * 10)
