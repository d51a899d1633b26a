"""Facts about callers that wait for messages between processes: they are woken without another
thread in between, and what is left half done by one that is interrupted is done by others."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess
from sleeping_thread import until_asleep

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.clock import Deadline
from pulsarx.processes.guest.connection import Connection
from pulsarx.processes.owner.consumer import GuestConsumer

pytestmark = pytest.mark.standard

PATIENCE_MS = 60_000
COUNT = 20


def switches(thread: threading.Thread) -> int:
    """How often a thread has slept."""
    text = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
    return int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def thread_named(name: str) -> threading.Thread:
    (found,) = (each for each in threading.enumerate() if each.name == name)
    return found


@contextmanager
def waiting(*consumers: pulsarx.Consumer) -> Iterator[list[bytes | str]]:
    """Threads that wait for a message each, and what they got when the block ends."""
    found: list[bytes | str] = []

    def receive(consumer: pulsarx.Consumer) -> None:
        try:
            found.append(consumer.receive(PATIENCE_MS).data())
        except errors.PulsarException as error:
            found.append(type(error).__name__)

    threads = [threading.Thread(target=receive, args=(each,)) for each in consumers]
    for thread in threads:
        thread.start()
    for thread in threads:
        until_asleep(thread)
    yield found
    for thread in threads:
        thread.join()


@pytest.fixture
def owner(folder: Path, processes: list[SharingProcess]) -> SharingProcess:
    """The owner of the folder, with a producer."""
    made = SharingProcess(folder, durability="os")
    processes.append(made)
    made.run("producer = client.create_producer('t')")
    return made


@pytest.fixture
def client(owner: SharingProcess, folder: Path) -> Iterator[pulsarx.Client]:
    """Beside the owner."""
    with pulsarx.Client(folder) as made:
        yield made


def test_beside_the_owner_a_message_wakes_its_receiver_alone(
    client: pulsarx.Client, owner: SharingProcess
) -> None:
    """The thread that reads the connection was woken for it, and woke the receiver."""
    consumer = client.subscribe("t", "s")
    owner.run("producer.send(b'first')")
    consumer.receive(PATIENCE_MS)
    reading = thread_named("pulsarx-guest")
    before = switches(reading)
    for number in range(COUNT):
        with waiting(consumer) as found:
            owner.run(f"producer.send(b'{number}')")
        assert found == [b"%d" % number]
    assert switches(reading) - before < COUNT // 4


def test_the_owner_sends_a_message_to_another_process_in_the_thread_of_its_sender(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """The thread of the connection was woken for it."""
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")
        guest = SharingProcess(folder)
        processes.append(guest)
        guest.run("consumer = client.subscribe('t', 's')")
        producer.send(b"first")
        guest.run("consumer.receive(60000).data()")
        serving = thread_named("pulsarx-guests")
        before = switches(serving)
        for number in range(COUNT):
            producer.send(b"%d" % number)
            assert guest.run("consumer.receive(60000).data()") == b"%d" % number
        assert switches(serving) - before < COUNT // 4


@pytest.mark.parametrize("queue_size", [1000, 3])
def test_what_several_threads_send_comes_once_and_in_order(
    folder: Path, processes: list[SharingProcess], queue_size: int
) -> None:
    """Each may send what others published, and so may the thread of the connection."""
    senders, count = 4, 500
    with pulsarx.Client(folder, durability="os") as client:
        producers = [client.create_producer("t") for _ in range(senders)]
        guest = SharingProcess(folder)
        processes.append(guest)
        guest.run(f"consumer = client.subscribe('t', 's', receiver_queue_size={queue_size})")
        guest.ask(
            "[each.acknowledge(m) or m.message_id().entry_id() for each in [consumer] for m in"
            f" (each.receive(60000) for _ in range({senders * count}))]"
        )

        def send(producer: pulsarx.Producer) -> None:
            for number in range(count):
                producer.send(b"%d" % number)

        threads = [threading.Thread(target=send, args=(each,)) for each in producers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert guest.answer() == list(range(senders * count))


def test_what_was_sent_before_a_seek_does_not_come_behind_it(
    folder: Path, processes: list[SharingProcess]
) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")
        producer.send(b"first")
        guest = SharingProcess(folder)
        processes.append(guest)
        guest.run("consumer = client.subscribe('t', 's')")
        guest.run(
            "def first():\n"
            " consumer.seek(MessageId.earliest)\n"
            " return consumer.receive(60000).data()"
        )
        is_over = threading.Event()

        def send() -> None:
            while not is_over.is_set():
                producer.send(b"later")

        thread = threading.Thread(target=send)
        thread.start()
        try:
            assert guest.run(f"[first() for _ in range({COUNT})]") == [b"first"] * COUNT
        finally:
            is_over.set()
            thread.join()


def test_a_sender_does_not_send_what_a_seek_brought_back_before_its_consumer_knows_what_is_recorded(
    folder: Path, processes: list[SharingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer would take it for what it has just acknowledged."""
    acknowledge = GuestConsumer.acknowledge_run
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")

        def seek_and_send(consumer: GuestConsumer, ledger_id: int, first: int, count: int) -> None:
            acknowledge(consumer, ledger_id, first, count)
            if not producer.last_sequence_id():
                dispatcher: Any = consumer.subscription.dispatcher
                dispatcher.reset(ledger_id, 0)
                sender = threading.Thread(target=producer.send, args=(b"second",))
                sender.start()
                sender.join()

        monkeypatch.setattr(GuestConsumer, "acknowledge_run", seek_and_send)
        guest = SharingProcess(folder)
        processes.append(guest)
        guest.run("consumer = client.subscribe('t', 's')")
        producer.send(b"first")
        guest.run("consumer.acknowledge(consumer.receive(60000))")
        found = guest.run("[consumer.receive(60000).data() for _ in range(2)]")
    assert found == [b"first", b"second"]


def test_what_needs_the_reading_thread_comes_while_a_caller_reads(
    client: pulsarx.Client, owner: SharingProcess
) -> None:
    consumer = client.subscribe("t", "s")
    other = client.subscribe("t", "other")
    with waiting(consumer) as found:
        for number in range(COUNT):
            assert "s" in client.admin.topics.stats("t")["subscriptions"]
            client.create_producer(f"t{number}").send_async(b"x", None)
        client.admin.topics.create_subscription("t", "third", MessageId.earliest)
        owner.run("producer.send(b'1')")
    assert found == [b"1"]
    assert other.receive(PATIENCE_MS).data() == b"1"


def test_a_receiver_that_reads_is_given_what_a_seek_brings_back(
    client: pulsarx.Client, owner: SharingProcess
) -> None:
    consumer = client.subscribe("t", "s")
    owner.run("producer.send(b'1')")
    consumer.acknowledge(consumer.receive(PATIENCE_MS))
    with waiting(consumer) as found:
        consumer.seek(MessageId.earliest)
    assert found == [b"1"]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_each_of_several_receivers_gets_its_message(
    client: pulsarx.Client, owner: SharingProcess, order: str
) -> None:
    """One of them reads, and sleeps no more when it has its own."""
    consumers = [client.subscribe(each, "s") for each in "ab"]
    owner.run("producers = {each: client.create_producer(each) for each in 'ab'}")
    for _ in range(COUNT):
        with waiting(*consumers) as found:
            for each in order:
                owner.run(f"producers['{each}'].send(b'{each}')")
        assert sorted(found) == [b"a", b"b"]


def test_receivers_of_one_subscription_share_what_comes(
    client: pulsarx.Client, owner: SharingProcess
) -> None:
    shared = pulsarx.ConsumerType.Shared
    consumers = [client.subscribe("t", "s", shared, receiver_queue_size=1) for _ in range(3)]
    for _ in range(COUNT):
        with waiting(*consumers) as found:
            owner.run("[producer.send(b'%d' % number) for number in range(3)]")
        assert sorted(found) == [b"0", b"1", b"2"]


def test_a_receiver_that_reads_waits_no_longer_because_of_what_comes_for_others(
    client: pulsarx.Client,
) -> None:
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("other", block_if_queue_full=True)
    is_over = threading.Event()

    def send() -> None:
        deadline = Deadline(PATIENCE_MS)
        while not (is_over.is_set() or deadline.expired()):
            producer.send_async(b"x", None)

    thread = threading.Thread(target=send)
    thread.start()
    began = Deadline(PATIENCE_MS // 2)
    with pytest.raises(errors.Timeout):
        consumer.receive(200)
    assert not began.expired()
    is_over.set()
    thread.join()


CLOSINGS: dict[str, Callable[[pulsarx.Client, pulsarx.Consumer], object]] = {
    "consumer": lambda _, consumer: consumer.close(),
    "client": lambda client, _: client.close(),
}


@pytest.mark.parametrize("close", CLOSINGS.values(), ids=CLOSINGS)
def test_closing_wakes_a_receiver_that_reads(
    owner: SharingProcess,
    folder: Path,
    close: Callable[[pulsarx.Client, pulsarx.Consumer], object],
) -> None:
    with pulsarx.Client(folder) as client:
        consumers = [client.subscribe("t", each) for each in "ab"]
        with waiting(*consumers) as found:
            close(client, consumers[0])
            consumers[1].close()
        assert found == ["AlreadyClosed"] * 2


def test_a_receiver_that_reads_goes_on_with_the_next_owner(
    client: pulsarx.Client, owner: SharingProcess, folder: Path, processes: list[SharingProcess]
) -> None:
    other = SharingProcess(folder)
    processes.append(other)
    consumers = [client.subscribe("t", each) for each in "ab"]
    with waiting(*consumers) as found:
        owner.kill()
        other.run("client.create_producer('t').send(b'1')")
    assert found == [b"1"] * 2


def test_a_child_forked_beside_a_receiver_that_reads_is_another_process(
    owner: SharingProcess, folder: Path, processes: list[SharingProcess]
) -> None:
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("consumer, producer = client.subscribe('t', 's'), client.create_producer('t')")
    guest.run("found = []")
    guest.run("thread = threading.Thread(target=lambda: found.append(consumer.receive(60000)))")
    guest.run("thread.start()")
    guest.run("producer.send(b'parent')")
    guest.run("thread.join()")
    guest.run("thread = threading.Thread(target=lambda: found.append(consumer.receive(60000)))")
    guest.run("thread.start()")
    guest.run("child = os.fork()\nif child == 0:\n producer.send(b'child')\n os._exit(0)")
    guest.run("os.waitpid(child, 0)")
    guest.run("thread.join()")
    assert guest.run("[each.data() for each in found]") == [b"parent", b"child"]


INTERRUPTED = """
import signal

class Cut(BaseException): pass

may_cut = False

def cut(*_):
    global may_cut
    if may_cut:
        may_cut = False
        raise Cut

def receive_interrupted(last):
    global may_cut
    found, cuts = [], 0
    signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    while not found or found[-1] < last:
        try:
            may_cut = True
            found.append(int(consumer.receive().data()))
            may_cut = False
        except Cut:
            cuts += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    return found, cuts

consumer = client.subscribe("t", "s")
"""


def test_a_receiver_that_is_interrupted_while_it_reads_loses_nothing(
    owner: SharingProcess, folder: Path, processes: list[SharingProcess]
) -> None:
    """Bytes of half a frame, and frames that it had not done, are there for who reads next."""
    count = 3000
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run(INTERRUPTED)
    guest.ask(f"receive_interrupted({count - 1})")
    owner.run(f"for number in range({count}): producer.send(b'%d' % number)")
    found, cuts = guest.answer()
    assert found == sorted(set(found))
    assert cuts
    guest.run("consumer.redeliver_unacknowledged_messages()")
    again = guest.run(f"[int(consumer.receive(60000).data()) for _ in range({count})]")
    assert again == list(range(count))


@pytest.fixture
def one_processor() -> Iterator[None]:
    """For this thread and what it starts: who is woken then runs before its waker goes on."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def test_what_another_process_sends_wakes_a_receiver_of_the_owner_once(
    folder: Path, processes: list[SharingProcess], one_processor: None
) -> None:
    """It was woken while the thread of the connection had the interpreter's lock, slept once more
    for that, and again for the mutex of the lock."""
    count = 200
    with pulsarx.Client(folder, durability="os") as client:
        consumer = client.subscribe("t", "s")
        guest = SharingProcess(folder)
        processes.append(guest)
        guest.run("producer = client.create_producer('t')")
        found: list[bytes] = []

        def receive() -> None:
            for _ in range(count):
                found.append(consumer.receive(PATIENCE_MS).data())
            slept.append(switches(threading.current_thread()))

        slept: list[int] = []
        thread = threading.Thread(target=receive)
        thread.start()
        until_asleep(thread)
        guest.ask(f"for number in range({count}): producer.send(b'%d' % number)")
        thread.join()
        guest.answer()
    assert found == [b"%d" % number for number in range(count)]
    assert slept[0] < 2 * count


def test_closing_beside_a_stopped_owner_wakes_a_receiver_that_reads(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """Nothing comes over the connection, and closing waits for the owner: the receiver slept as
    long as that does."""
    owner = SharingProcess(folder, durability="os")
    processes.append(owner)
    owner.run("producer = client.create_producer('t')")
    with pulsarx.Client(folder, operation_timeout_seconds=2 * PATIENCE_MS // 1000) as client:
        consumer = client.subscribe("t", "s")
        owner.run("producer.send(b'0')")
        message = consumer.receive(PATIENCE_MS)
        found: list[str] = []

        def receive() -> None:
            try:
                consumer.receive()
            except errors.PulsarException as error:
                found.append(type(error).__name__)

        receiver = threading.Thread(target=receive)
        receiver.start()
        until_asleep(receiver)
        owner.signal(signal.SIGSTOP)
        try:
            consumer.acknowledge(message)
            closer = threading.Thread(target=consumer.close)
            closer.start()
            receiver.join(PATIENCE_MS // 1000)
            assert found == ["AlreadyClosed"]
            assert closer.is_alive()
        finally:
            owner.signal(signal.SIGCONT)
        closer.join()


class Lingering(pulsarx.schema.BytesSchema):
    """Takes long over one value, while its producer's mutex is held."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.goes_on = threading.Event(), threading.Event()
        self.was_in_time = False

    def encode(self, obj: bytes) -> bytes:
        if obj == b"long":
            self.began.set()
            self.was_in_time = self.goes_on.wait(PATIENCE_MS / 1000)
        return obj


class SeenReceipts:
    """What the receipts of a producer are told to, and in which threads."""

    def __init__(self, confirmed: Any) -> None:
        self.confirmed = confirmed
        self.__self__ = self
        self.asked_in: list[int] = []  # by who read one and waits for no mutex
        self.told = threading.Event()

    def is_busy(self) -> bool:
        self.asked_in.append(threading.get_ident())
        return bool(self.confirmed.__self__.is_busy())

    def __call__(self, *numbers: int) -> None:
        self.told.set()
        self.confirmed(*numbers)


@pytest.fixture
def receipts(monkeypatch: pytest.MonkeyPatch) -> list[SeenReceipts]:
    """Those of each producer that is made."""
    made: list[SeenReceipts] = []
    tell = Connection.tell_of_receipts

    def tell_of_seen(connection: Connection, number: int, confirmed: Any) -> None:
        made.append(SeenReceipts(confirmed))
        tell(connection, number, made[-1])

    monkeypatch.setattr(Connection, "tell_of_receipts", tell_of_seen)
    return made


def test_a_receiver_that_reads_is_interrupted_while_another_thread_sends(
    folder: Path, processes: list[SharingProcess], receipts: list[SeenReceipts]
) -> None:
    """It waited for the mutex of a producer, whose answer it had read, and heard no signal."""
    owner = SharingProcess(folder, durability="os")
    processes.append(owner)
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("elsewhere", "s")
        schema = Lingering()
        producer = client.create_producer("t", schema=schema)
        producer.send(b"first")
        (seen,) = receipts
        owner.signal(signal.SIGSTOP)
        producer.send_async(b"answered late", None)
        sender = threading.Thread(target=producer.send, args=(b"long",))
        sender.start()
        assert schema.began.wait(PATIENCE_MS / 1000)
        seen.asked_in.clear()
        seen.told.clear()
        main = threading.main_thread()

        def answer_and_interrupt() -> None:
            until_asleep(main)  # so it reads
            owner.signal(signal.SIGCONT)
            seen.told.wait(PATIENCE_MS / 1000)
            until_asleep(main)
            signal.pthread_kill(main.ident or 0, signal.SIGINT)

        interrupter = threading.Thread(target=answer_and_interrupt)
        interrupter.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                consumer.receive(PATIENCE_MS)
            assert sender.is_alive()
            assert seen.asked_in == [main.ident]
            assert seen.told.is_set()
        finally:
            schema.goes_on.set()
            interrupter.join()
            sender.join()
        assert schema.was_in_time
        producer.flush()
        reader = client.create_reader("t", MessageId.earliest)
        assert [each.data() for each in reader] == [b"first", b"answered late", b"long"]
