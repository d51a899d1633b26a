"""What calls do to a folder while something fails, and what must be true of the folder afterwards:
one description for sweeps of all kinds of failures (failing_sweep).

A scene is told in one process. `begin` opens what it needs, `act` makes the calls during which
something fails, by `attempt`; `go_on` uses the same clients when nothing fails any more; `prove`
opens the folder anew.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pulsarx import (
    AlreadyClosed,
    BrokerOptions,
    Client,
    ConsumerType,
    InitialPosition,
    MessageId,
    PulsarException,
    Result,
)
from pulsarx.backups import backup, check, restore, salvage
from pulsarx.backups.contents import Contents
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.errors import InvalidTxnStatusError, TransactionHasOperationFailed
from pulsarx.testing import inspect
from pulsarx.transaction import TransactionState

sys.path.append(str(Path(__file__).resolve().parent.parent / "server"))  # of its peer

WAIT_MS = 30_000
TIMEOUT_MS = 3000  # of a message while nobody can become the owner
ENTRIES = 4  # of a ledger, so that few messages fill several
OPTIONS: dict[str, Any] = {"managed_ledger_max_entries_per_ledger": ENTRIES}
EARLIEST = InitialPosition.Earliest
A_DAY_MS = 86_400_000
OPEN_AGAIN = "lose the client and open it again"


class Failures(Protocol):
    """What makes calls fail."""

    def is_poisoned(self, error: Exception) -> bool:
        """Whether an error says that the folder has to be opened anew, as it may."""

    def attempt(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What a call returns, or None where it raised what is documented of such failures."""

    def end(self) -> None:
        """From now on nothing fails."""


class Truth:
    """What was confirmed of one topic, and what one subscription was told. Contents differ."""

    def __init__(self) -> None:
        self.confirmed: list[bytes] = []
        self.attempted: set[bytes] = set()
        self.acknowledged: set[bytes] = set()
        self.in_doubt: set[bytes] = set()

    def check(self, found: list[bytes]) -> None:
        """All that was confirmed is there, in order; nothing else but what was tried, and nothing
        twice."""
        there = [each for each in found if each in set(self.confirmed)]
        assert there == self.confirmed, f"confirmed {self.confirmed}, there is {found}"
        assert len(set(found)) == len(found), f"twice: {found}"
        strange = set(found) - self.attempted - set(self.confirmed)
        assert not strange, f"nobody sent {strange}"

    def check_received(self, found: list[bytes], received: list[bytes]) -> None:
        """A subscription gets what is there and not acknowledged, and nothing else."""
        assert len(set(received)) == len(received), f"received twice: {received}"
        again = set(received) & self.acknowledged
        assert not again, f"came again, and was acknowledged: {again}"
        missing = set(found) - set(received) - self.acknowledged - self.in_doubt
        assert not missing, f"nobody got {missing}, there is {found}"
        assert set(received) <= set(found), f"received {received} of {found}"


class Scene:
    """The base of all: a folder with the topic t, which has the subscription s."""

    options: dict[str, Any] = OPTIONS
    durability = "sync"

    def __init__(self, folder: Path, failures: Failures) -> None:
        self.folder = folder
        self.failures = failures
        self.truth = Truth()
        self.client: Any = None

    # The parts of a scene -------------------------------------------------------------------------

    @classmethod
    def prepare(cls, folder: Path) -> None:
        """Once, in a process of its own. Each scene gets a copy."""

    def begin(self) -> None:
        """Nothing fails yet."""

    def act(self) -> None:
        raise NotImplementedError

    def go_on(self) -> None:
        """Nothing fails any more."""

    def prove_all(self, client: Client) -> None:
        """The topic holds what it must, its subscription gets that, and both go on."""
        found = self.read(client)
        self.truth.check(found)
        received = [each.data() for each in self.drain(client.subscribe("t", "s"))]
        self.truth.check_received(found, received)
        self.works(client)

    def prove(self) -> None:
        with self.opened() as client:
            found = self.read(client)
            self.truth.check(found)
            self.works(client)

    def whole(self) -> Iterable[Path]:
        """The folders in which no damage is found afterwards."""
        return [self.folder]

    # What they are made of ------------------------------------------------------------------------

    @classmethod
    def open(cls, folder: Path) -> Client:
        return Client(
            folder, durability=cls.durability, broker_options=BrokerOptions(**cls.options)
        )

    def opened(self) -> Client:
        return self.open(self.folder)

    def attempt(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return self.failures.attempt(call, *arguments, **named)

    def did(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
        """Whether a call that returns None returned."""

        def done() -> bool:
            call(*arguments, **named)
            return True

        return bool(self.attempt(done))

    def close(self) -> None:
        """A folder that is poisoned says so once more."""
        if self.client is None:
            return
        with self.unless_poisoned():
            self.client.close()

    @contextmanager
    def unless_poisoned(self) -> Iterator[None]:
        """Nothing fails any more, so that it works, unless the folder has to be opened anew."""
        try:
            yield
        except PulsarException as error:
            if not self.failures.is_poisoned(error):
                raise

    def send(self, producer: Any, content: bytes, **named: Any) -> bool:
        self.truth.attempted.add(content)
        if self.attempt(producer.send, content, **named) is None:
            return False
        self.truth.confirmed.append(content)
        return True

    def send_again(self, producer: Any, content: bytes) -> None:
        self.truth.attempted.add(content)
        with self.unless_poisoned():
            producer.send(content)
            self.truth.confirmed.append(content)

    def again(self, work: Callable[[], Any]) -> None:
        """What an administrator does until it succeeds."""
        status = work()
        if OPEN_AGAIN in status["last_error"]:
            self.close()
            self.client = self.opened()
            status = work()
        assert status["status"] == "SUCCESS", status

    @staticmethod
    def read(client: Client, topic: str = "t") -> list[bytes]:
        found = []
        with client.create_reader(topic, MessageId.earliest) as reader:
            while reader.has_message_available():
                found.append(reader.read_next(WAIT_MS).data())
        return found

    @staticmethod
    def drain(consumer: Any) -> list[Any]:
        found: list[Any] = []
        while messages := consumer.receive_many(1000, 0):
            found += messages
        return found

    @classmethod
    def works(cls, client: Client) -> None:
        """What is opened anew takes a message and delivers it."""
        with client.create_producer("t") as producer:
            producer.send(b"last")
        assert cls.read(client)[-1] == b"last"

    @staticmethod
    def fill(client: Client, contents: Iterable[bytes], **options: Any) -> None:
        with client.create_producer("t", **options) as producer:
            for content in contents:
                producer.send(content)

    @staticmethod
    def is_whole(folder: Path) -> None:
        found: Contents = check(folder)
        assert not found.damage, [each.text for each in found.damage]


def numbered(count: int, prefix: str = "m") -> list[bytes]:
    return [b"%s%d" % (prefix.encode(), number) for number in range(count)]


def killed_owner(folder: Path, work: Callable[[Path], object]) -> None:
    """What a process leaves that is killed behind its work."""
    child = os.fork()
    if child == 0:
        try:
            work(folder)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == -signal.SIGKILL, status


# Publishing -----------------------------------------------------------------------------------


class Opening(Scene):
    """A new folder, a topic, a subscription, the first message."""

    def act(self) -> None:
        self.client = self.attempt(self.opened)
        if self.client is None:
            return
        producer = self.attempt(self.client.create_producer, "t")
        self.attempt(self.client.subscribe, "t", "s", initial_position=EARLIEST)
        if producer is not None:
            self.send(producer, b"first")

    def go_on(self) -> None:
        self.client = self.client or self.opened()
        with self.unless_poisoned():
            producer = self.client.create_producer("t")
            self.send_again(producer, b"then")


class Publishing(Scene):
    """Single messages, each durable when its call returns."""

    producer_options: ClassVar[dict[str, Any]] = {}

    def begin(self) -> None:
        self.client = self.opened()
        self.producer = self.client.create_producer("t", **self.producer_options)
        self.producer.send(b"before")
        self.truth.confirmed.append(b"before")

    def act(self) -> None:
        for content in numbered(2 * ENTRIES + 1):
            self.send(self.producer, content)

    def go_on(self) -> None:
        for content in numbered(2, "then"):
            self.send_again(self.producer, content)


class PublishingBatches(Publishing):
    """Batches, whose messages are confirmed by their callbacks."""

    producer_options: ClassVar[dict[str, Any]] = {
        "batching_enabled": True,
        "batching_max_publish_delay_ms": A_DAY_MS,
    }

    def begin(self) -> None:
        super().begin()
        self.told: dict[bytes, Any] = {}

    def act(self) -> None:
        taken = 0
        for number, content in enumerate(numbered(24)):
            self.truth.attempted.add(content)
            taken += self.did(self.producer.send_async, content, Told(self, content))
            if number % 4 == 3:
                self.attempt(self.producer.flush)
        self.failures.end()
        with self.unless_poisoned():
            self.producer.flush()
        assert len(self.told) >= taken, f"{taken} were taken, {len(self.told)} callbacks called"
        self.truth.confirmed += [each for each, result in self.told.items() if result == Result.Ok]


class Told:
    """A callback, which needs no memory."""

    def __init__(self, scene: PublishingBatches, content: bytes) -> None:
        self.scene = scene
        self.content = content
        scene.told[content] = None
        del scene.told[content]

    def __call__(self, result: Any, message_id: Any) -> None:
        assert self.content not in self.scene.told, f"{self.content!r} was answered twice"
        self.scene.told[self.content] = result


class PublishingChunks(Publishing):
    """Messages that are larger than an entry may be."""

    options = OPTIONS | {"max_message_size": 4000}
    producer_options: ClassVar[dict[str, Any]] = {"chunking_enabled": True}

    def act(self) -> None:
        for content in numbered(3, "large"):
            self.send(self.producer, content.ljust(9000, b"."))


class PublishingOnce(Publishing):
    """With deduplication what failed is sent again, and is there once."""

    options = OPTIONS | {
        "broker_deduplication_enabled": True,
        "broker_deduplication_entries_interval": 3,
    }
    producer_options: ClassVar[dict[str, Any]] = {"producer_name": "p"}
    contents = numbered(9)

    def begin(self) -> None:
        self.client = self.opened()
        self.producer = self.client.create_producer("t", **self.producer_options)
        self.next = 0

    def act(self) -> None:
        while self.next < len(self.contents) and self.one(self.producer.send):
            pass

    def one(self, send: Callable[..., Any]) -> bool:
        content = self.contents[self.next]
        if self.attempt(send, content, sequence_id=self.next) is None:
            return False
        self.next += 1
        return True

    def go_on(self) -> None:
        with self.unless_poisoned():
            while self.next < len(self.contents) - 1:
                self.producer.send(self.contents[self.next], sequence_id=self.next)
                self.next += 1

    def prove(self) -> None:
        with self.opened() as client:
            found = self.read(client)
            assert found[: self.next] == self.contents[: self.next], (self.next, found)
            with client.create_producer("t", **self.producer_options) as producer:
                for number, content in enumerate(self.contents):
                    if number >= self.next - 2:
                        producer.send(content, sequence_id=number)
            assert self.read(client) == self.contents, (self.next, self.read(client))


# Consuming ------------------------------------------------------------------------------------


class Receiving(Scene):
    """Sealed ledgers and the open one are read."""

    contents = numbered(2 * ENTRIES + 2)

    @classmethod
    def prepare(cls, folder: Path) -> None:
        with cls.open(folder) as client:
            client.subscribe("t", "s", initial_position=EARLIEST).close()
            cls.fill(client, cls.contents)

    def begin(self) -> None:
        self.truth.confirmed += self.contents
        self.client = self.opened()

    def act(self) -> None:
        self.received: list[bytes] = []
        self.consumer = self.attempt(self.client.subscribe, "t", "s")
        if self.consumer is None:
            return
        for _ in self.contents:
            self.take(self.attempt(self.consumer.receive, 100))
        reader = self.attempt(self.client.create_reader, "t", MessageId.earliest)
        read = self.attempt(reader.read_next, 100) if reader else None
        assert read is None or read.data() == self.contents[0]

    def take(self, message: Any) -> None:
        if message is not None:
            self.received.append(message.data())

    def go_on(self) -> None:
        self.consumer = self.consumer or self.client.subscribe("t", "s")
        while len(self.received) < len(self.contents):
            self.take(self.consumer.receive(WAIT_MS))
        assert self.received == self.contents, self.received

    def prove(self) -> None:
        with self.opened() as client:
            self.prove_all(client)


class Acknowledging(Scene):
    """One by one, parts of batches, several, and all up to one; then what all subscriptions have
    acknowledged is trimmed."""

    batch = 20
    contents = numbered(8 * batch, "b") + numbered(2 * ENTRIES, "s")

    @classmethod
    def prepare(cls, folder: Path) -> None:
        with cls.open(folder) as client:
            for name in ("s", "c"):
                client.subscribe("t", name, ConsumerType.Shared, initial_position=EARLIEST).close()
            with client.create_producer(
                "t", batching_enabled=True, batching_max_messages=cls.batch
            ) as batches:
                for content in cls.contents[: 8 * cls.batch]:
                    batches.send_async(content, None)
            cls.fill(client, cls.contents[8 * cls.batch :])

    def begin(self) -> None:
        self.truth.confirmed += self.contents
        self.cumulative = Truth()
        self.client = self.opened()
        self.consumers = [self.client.subscribe("t", "s", ConsumerType.Shared),
                          self.client.subscribe("t", "c")]  # fmt: skip
        self.messages = [[each.receive(WAIT_MS) for _ in self.contents] for each in self.consumers]

    def act(self) -> None:
        single, cumulative = self.consumers
        ones, upto = self.messages
        last = 0
        for end in (self.batch + 3, 4 * self.batch, 8 * self.batch + 2):
            done = self.did(cumulative.acknowledge_cumulative, upto[end - 1])
            self.note(self.cumulative, done, self.contents[last:end])
            last = end if done else last
        many = slice(4 * self.batch, 6 * self.batch)
        done = self.did(single.acknowledge_many, ones[many])
        self.note(self.truth, done, self.contents[many])
        # The records of so many do not fit behind each other, so that the cursor is written anew.
        for at in [*range(4 * self.batch), *range(6 * self.batch, len(self.contents), 3)]:
            done = self.did(single.acknowledge, ones[at])
            self.note(self.truth, done, self.contents[at : at + 1])
        self.attempt(inspect(self.client).settle)

    @staticmethod
    def note(truth: Truth, done: bool, contents: list[bytes]) -> None:
        (truth.acknowledged if done else truth.in_doubt).update(contents)
        truth.in_doubt -= truth.acknowledged

    def go_on(self) -> None:
        self.consumers[0].acknowledge(self.messages[0][-1])
        self.truth.acknowledged.add(self.contents[-1])
        stats = self.client.admin.topics.stats("t")["subscriptions"]["s"]
        least = len(self.contents) - len(self.truth.acknowledged) - len(self.truth.in_doubt)
        assert least <= stats["msg_backlog"] <= least + len(self.truth.in_doubt), stats

    def prove(self) -> None:
        with self.opened() as client:
            for truth, name in ((self.truth, "s"), (self.cumulative, "c")):
                consumer = client.subscribe("t", name, ConsumerType.Shared)
                received = [each.data() for each in self.drain(consumer)]
                truth.check_received(self.contents, received)
            self.works(client)


# Owners ---------------------------------------------------------------------------------------


class Recovering(Scene):
    """The folder of an owner that was killed is opened. What its producer sends again is there
    once."""

    options = PublishingOnce.options
    contents = numbered(2 * ENTRIES + 2)

    @classmethod
    def prepare(cls, folder: Path) -> None:
        killed_owner(folder, cls.use)

    @classmethod
    def use(cls, folder: Path) -> None:
        client = cls.open(folder)
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        producer = client.create_producer("t", "p")
        for number, content in enumerate(cls.contents):
            producer.send(content, sequence_id=number)
        for _ in range(3):
            consumer.acknowledge(consumer.receive(WAIT_MS))

    def begin(self) -> None:
        self.truth.confirmed += self.contents
        self.truth.acknowledged.update(self.contents[:3])

    def act(self) -> None:
        self.client = self.attempt(self.opened)
        if self.client is None:
            return
        consumer = self.attempt(self.client.subscribe, "t", "s")
        message = self.attempt(consumer.receive, 100) if consumer else None
        if message is not None:
            assert message.data() == self.contents[3], message.data()
        producer = self.attempt(self.client.create_producer, "t", "p")
        if producer is not None:
            self.attempt(producer.send, self.contents[-1], sequence_id=len(self.contents) - 1)
            self.send(producer, b"first", sequence_id=len(self.contents))
        self.attempt(self.client.close)

    def close(self) -> None:
        with suppress(AlreadyClosed):
            super().close()

    def prove(self) -> None:
        with self.opened() as client:
            self.prove_all(client)


class Owner:
    """Another process that owns the folder."""

    def __init__(self, scene: type[Scene], folder: Path) -> None:
        said, says = os.pipe()
        told, self.tells = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.tells)
                with scene.open(folder) as client:
                    scene.fill(client, [b"owner"])
                    client.subscribe("t", "s", initial_position=EARLIEST).close()
                    os.write(says, b".")
                    os.read(told, 1)  # until the other process ends
            finally:
                os._exit(0)
        os.close(says)
        assert os.read(said, 1)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class TakingOver(Scene):
    """A guest becomes the owner when that is killed."""

    producer_options: ClassVar[dict[str, Any]] = {}

    def begin(self) -> None:
        self.owner = Owner(type(self), self.folder)
        self.truth.confirmed.append(b"owner")
        self.client = self.opened()
        self.producer = self.client.create_producer(
            "t", send_timeout_millis=TIMEOUT_MS, **self.producer_options
        )
        self.consumer = self.client.subscribe("t", "s")
        self.received: list[bytes] = []
        self.send(self.producer, b"guest")

    def act(self) -> None:
        self.owner.kill()
        for content in numbered(3):
            if not self.send(self.producer, content):
                break
        for _ in range(2):
            message = self.attempt(self.consumer.receive, 100)
            if message is not None and self.did(self.consumer.acknowledge, message):
                self.truth.acknowledged.add(message.data())
            elif message is not None:
                self.truth.in_doubt.add(message.data())

    def go_on(self) -> None:
        self.send_again(self.producer, b"then")
        if b"then" not in self.truth.confirmed:
            return
        with self.unless_poisoned():
            # What was received and acknowledged may be on its way to the next owner.
            content = b""
            while content != b"then":
                content = self.consumer.receive(WAIT_MS).data()
                assert content not in self.truth.acknowledged, content

    prove = Recovering.prove


class TakingOverNamed(TakingOver):
    """The name of its producer is the user's, so that no other one succeeds it."""

    producer_options: ClassVar[dict[str, Any]] = {"producer_name": "p"}


class TakingOverOnce(TakingOverNamed):
    """As before, with deduplication."""

    options = OPTIONS | {"broker_deduplication_enabled": True}


class Closing(Scene):
    """A client is closed that holds messages of batches, and acknowledgements."""

    def begin(self) -> None:
        self.client = self.opened()
        self.producer = self.client.create_producer(
            "t", batching_enabled=True, batching_max_publish_delay_ms=A_DAY_MS
        )
        self.consumer = self.client.subscribe("t", "s", initial_position=EARLIEST)
        for content in numbered(3):
            self.producer.send_async(content, None)
        self.producer.flush()
        self.truth.confirmed += numbered(3)
        self.consumer.acknowledge(self.consumer.receive(WAIT_MS))
        self.truth.acknowledged.add(b"m0")
        self.producer.send_async(b"held", None)
        self.truth.attempted.add(b"held")

    def act(self) -> None:
        if self.did(self.client.close):
            self.truth.confirmed.append(b"held")

    def close(self) -> None:
        """One that had no memory for it is not closed."""
        with suppress(AlreadyClosed):
            super().close()

    prove = Recovering.prove


# Transactions ---------------------------------------------------------------------------------


class Joined:
    """What was sent in one transaction, and what is known of its end. to_commit: that was asked
    for, and an abort was not."""

    def __init__(self, transaction: Any) -> None:
        self.transaction = transaction
        self.attempted: set[bytes] = set()
        self.confirmed: set[bytes] = set()
        self.to_commit = False
        self.outcome: bool | None = None  # whether it was committed; None: not known
        self.was_seen = False

    def look(self) -> None:
        """What its client says of it."""
        state = self.transaction.state()
        if state is TransactionState.COMMITTED:
            self.outcome = True
        elif state is TransactionState.ABORTED:
            self.outcome = False
            assert not self.was_seen, f"aborted, and was seen: {self.attempted}"

    def check(self, found: set[bytes], waits: bool) -> None:
        """All that was confirmed is seen or nothing, and once seen, always. waits: for an older
        one, whose end is not known."""
        there = found & self.attempted
        assert not there or self.to_commit or self.outcome, f"not committed, there are {there}"
        assert not there or self.outcome is not False, f"aborted, there are {there}"
        if waits:
            return
        self.was_seen = self.was_seen or bool(there)
        if self.was_seen or self.outcome:
            assert self.confirmed <= found, f"of {self.confirmed} there are {there}"


class Transacting(Scene):
    """Transactions over two topics, of which some are committed; others publish between."""

    topics = ("t", "u")

    def begin(self) -> None:
        self.client = self.opened()
        self.producers = {each: self.client.create_producer(each) for each in self.topics}
        self.plain: dict[str, list[bytes]] = {each: [] for each in self.topics}
        self.order: dict[str, list[bytes]] = {each: [] for each in self.topics}
        self.joined: list[Joined] = []
        self.send_plain("t", b"before")

    def send_plain(self, topic: str, content: bytes) -> None:
        self.order[topic].append(content)
        if self.attempt(self.producers[topic].send, content) is not None:
            self.plain[topic].append(content)

    def transact(self, name: str, transaction: Any) -> Joined:
        joined = Joined(transaction)
        self.joined.append(joined)
        for topic in ("t", "u", "t"):
            content = b"%s-%d" % (name.encode(), len(joined.attempted))
            joined.attempted.add(content)
            self.order[topic].append(content)
            send = self.producers[topic].send
            if self.attempt(send, content, transaction=transaction) is not None:
                joined.confirmed.add(content)
            self.send_plain(topic, b"plain-" + content)
        return joined

    def act(self) -> None:
        for number in range(4):
            transaction = self.attempt(self.client.new_transaction)
            if transaction is None:
                continue
            joined = self.transact(f"m{number}", transaction)
            joined.to_commit = number % 2 == 0
            end = joined.transaction.commit if joined.to_commit else joined.transaction.abort
            self.attempt(end)
            joined.look()
            self.attempt(self.look, self.client)
            if joined.transaction.state() is TransactionState.OPEN:  # there was no room for it
                joined.to_commit = False
                self.attempt(joined.transaction.abort)
                joined.look()

    def look(self, client: Client) -> dict[str, list[bytes]]:
        """What is seen of all topics now."""
        found = {each: self.read(client, each) for each in self.topics}
        for topic, contents in found.items():
            assert len(set(contents)) == len(contents), f"twice: {contents}"
            sent = [each for each in self.order[topic] if each in set(contents)]
            assert contents == sent, f"sent {self.order[topic]}, there is {contents}"
        everything = {each for contents in found.values() for each in contents}
        waits = False
        for joined in self.joined:
            joined.check(everything, waits)
            waits = waits or joined.outcome is None
        return found

    def go_on(self) -> None:
        for joined in self.joined:
            if joined.outcome is None:
                self.end_again(joined)
        with self.unless_poisoned():
            last = self.transact("then", self.client.new_transaction())
            last.to_commit = True
            last.transaction.commit()
            last.outcome = True
            self.check_all(self.look(self.client))

    def end_again(self, joined: Joined) -> None:
        transaction = joined.transaction
        aborts = not joined.to_commit or transaction.state() is TransactionState.ABORTING
        with self.unless_poisoned(), suppress(TransactionHasOperationFailed):
            (transaction.abort if aborts else transaction.commit)()
        joined.look()

    def check_all(self, found: dict[str, list[bytes]]) -> None:
        """Behind the last open one: nothing that was confirmed is missing."""
        for topic, contents in self.plain.items():
            missing = [each for each in contents if each not in found[topic]]
            assert not missing, f"{missing} of {topic} are lost, there is {found[topic]}"

    def prove(self) -> None:
        with self.opened() as client:
            self.check_all(self.look(client))
            with client.new_transaction() as transaction:
                for topic in self.topics:
                    client.create_producer(topic).send(b"last", transaction=transaction)
            assert [self.read(client, each)[-1] for each in self.topics] == [b"last"] * 2


class TransactingLater(Transacting):
    """What was sent is flushed with the end."""

    durability = "interval"

    def check_all(self, found: dict[str, list[bytes]]) -> None:
        """Others wait for the flush that comes with time, which may have failed."""


class RecoveringTransactions(Transacting):
    """The folder of an owner that was killed has transactions of each end, and open ones."""

    @classmethod
    def prepare(cls, folder: Path) -> None:
        killed_owner(folder, cls.use)

    @classmethod
    def use(cls, folder: Path) -> None:
        client = cls.open(folder)
        producers = [client.create_producer(each) for each in cls.topics]
        for end in ("commit", "abort", "open"):
            transaction = client.new_transaction()
            for producer in producers:
                producer.send(b"%s" % end.encode(), transaction=transaction)
                producer.send(b"behind " + end.encode())
            if end != "open":
                getattr(transaction, end)()

    def begin(self) -> None:
        sent = [b"commit", b"behind commit", b"abort", b"behind abort", b"open", b"behind open"]
        kept = [each for each in sent if each not in (b"abort", b"open")]
        self.order = {each: list(sent) for each in self.topics}
        self.plain = {each: list(kept) for each in self.topics}
        self.joined = []
        for name in (b"abort", b"open"):
            self.joined.append(Joined(None))
            self.joined[-1].attempted.add(name)
            self.joined[-1].outcome = False

    def act(self) -> None:
        self.client = self.attempt(self.opened)
        if self.client is None:
            return
        self.attempt(self.look, self.client)
        self.producers = self.attempt(self.make_producers)
        if self.producers is not None:
            super().act()

    def make_producers(self) -> dict[str, Any]:
        return {each: self.client.create_producer(each) for each in self.topics}

    def go_on(self) -> None:
        self.client = self.client or self.opened()
        with self.unless_poisoned():
            self.producers = self.make_producers()
            super().go_on()


class TakingUp(Scene):
    """An owner goes on with a transaction of a client of a network, which one that was killed has
    left open in two topics, with an acknowledgement in one."""

    topics = ("t", "u")
    sent = numbered(5)

    @classmethod
    def prepare(cls, folder: Path) -> None:
        killed_owner(folder, cls.use)

    @classmethod
    def use(cls, folder: Path) -> None:
        from peer import Peer, entry, serving

        client = cls.open(folder)
        peer = Peer(serving(client))
        peer.connect()
        for at, topic in enumerate(cls.topics):
            peer.say("PRODUCER", topic=topic, producer_id=at, request_id=0)
        peer.say("SEND", entry(b"before"), producer_id=0, sequence_id=1)
        peer.subscribe()
        (told,) = (
            each for each in peer.say("FLOW", consumer_id=0, permits=9) if each[0] == "MESSAGE"
        )
        peer.say("NEW_TXN", request_id=1, timeout_ms=A_DAY_MS, coordinator=0)
        ids = {"transaction_least": 0, "transaction_most": 0}
        peer.say(
            "ACK", consumer_id=0, ack_type=0, request_id=2, message_ids=[told[1]["message_id"]],
            **ids,
        )  # fmt: skip
        for content in cls.sent:
            for at in range(2):
                said = peer.say("SEND", entry(content), producer_id=at, sequence_id=1, **ids)
                assert [each[0] for each in said] == ["SEND_RECEIPT"], said
        peer.say("SEND", entry(b"behind"), producer_id=0, sequence_id=1)

    def begin(self) -> None:
        self.outcome: bool | None = None

    def act(self) -> None:
        self.client = self.attempt(self.opened)
        if self.client is not None:
            self.attempt(self.end)

    def end(self) -> None:
        coordinator = inspect(self.client).broker.runtime.transactions
        found = coordinator.find(0)
        try:
            if found is not None:
                coordinator.commit(found)
        except InvalidTxnStatusError:
            pass  # it could not go on
        if coordinator.find(0) is None:
            self.outcome = bool(coordinator.was_committed(0))

    def go_on(self) -> None:
        self.client = self.client or self.opened()
        with self.unless_poisoned():
            self.end()

    def prove(self) -> None:
        """All of it counts, or nothing."""
        with self.opened() as client:
            coordinator = inspect(client).broker.runtime.transactions
            found = {each: self.read(client, each) for each in self.topics}
            if coordinator.find(0) is not None:  # its end is not known
                assert self.outcome is None, (self.outcome, found)
                assert found == {"t": [b"before"], "u": []}, found
                coordinator.commit(coordinator.find(0))
                found = {each: self.read(client, each) for each in self.topics}
                self.outcome = True
            there = self.sent if found["u"] else []
            assert found == {"t": [b"before", *there, b"behind"], "u": there}, found
            assert self.outcome in (None, bool(there)), (self.outcome, found)
            left = [each.data() for each in self.drain(client.subscribe("t", "s"))]
            assert left == found["t"][1 if there else 0 :], left
            self.works(client)


# Whole folders --------------------------------------------------------------------------------


class Attaching(Scene):
    """Files that a job staged become ledgers of a topic, all of them or none."""

    contents = numbered(3)

    @classmethod
    def prepare(cls, folder: Path) -> None:
        with cls.open(folder) as client:
            client.admin.topics.create_non_partitioned_topic("t")
            cls.fill(client, [b"before"])

    def begin(self) -> None:
        from staged_ledgers import stage

        self.files = [stage(self.folder, "t", self.contents[:2]),
                      stage(self.folder, "t", self.contents[2:])]  # fmt: skip
        self.attached = False

    def act(self) -> None:
        transaction = Transaction("job", 0)
        self.attached = self.attempt(attach, self.folder, transaction, self.files) is not None

    def go_on(self) -> None:
        done = attach(self.folder, Transaction("job", 0), self.files)
        assert done.ledger_count == 2 and (done.already or not self.attached)

    def prove(self) -> None:
        with self.opened() as client:
            found = self.read(client)
            assert found == [b"before", *self.contents], found
            self.works(client)


class AttachingLive(Attaching):
    """As before, by an owner."""

    def begin(self) -> None:
        super().begin()
        self.client = self.opened()

    def go_on(self) -> None:
        with self.unless_poisoned():
            super().go_on()
            return
        self.close()
        self.client = None
        super().go_on()


class BackingUp(Scene):
    """A folder is copied beside its owner, and another one made of the copy."""

    contents = numbered(2 * ENTRIES + 2)

    @classmethod
    def prepare(cls, folder: Path) -> None:
        with cls.open(folder) as client:
            consumer = client.subscribe("t", "s", initial_position=EARLIEST)
            cls.fill(client, cls.contents)
            consumer.acknowledge(consumer.receive(WAIT_MS))

    def begin(self) -> None:
        self.truth.confirmed += self.contents
        self.truth.acknowledged.add(self.contents[0])
        self.client = self.opened()
        self.copy = self.folder.parent / "copy"
        self.restored = self.folder.parent / "restored"

    def act(self) -> None:
        self.done: Any = None
        self.copied = self.attempt(backup, self.folder, self.copy)
        if self.copied is not None:
            self.done = self.attempt(restore, self.copy, self.restored)

    def go_on(self) -> None:
        # What failed behind the moment in which it had its name is there, and `whole` looks at it.
        self.copied = self.copied or self.copy.exists() or None
        self.done = self.done or self.restored.exists() or None
        if self.copied is None:
            with self.unless_poisoned():
                backup(self.folder, self.copy)
                self.copied = True
        self.close()
        self.client = None
        if self.copied is None:
            backup(self.folder, self.copy)
        if self.done is None:
            restore(self.copy, self.restored)

    def whole(self) -> Iterable[Path]:
        return [self.folder, self.copy, self.restored]

    def prove(self) -> None:
        for folder in (self.folder, self.restored):
            with self.open(folder) as client:
                self.prove_all(client)


class Salvaging(BackingUp):
    """A folder is made of one that lost its marker and catalogue."""

    def begin(self) -> None:
        self.truth.confirmed += self.contents
        self.truth.acknowledged.add(self.contents[0])
        self.restored = self.folder.parent / "restored"
        (self.folder / "PULSARX").unlink()
        shutil.rmtree(self.folder / "catalogue")
        self.names = sorted(os.listdir(self.folder))

    def act(self) -> None:
        self.done = self.attempt(salvage, self.folder, self.restored)

    def go_on(self) -> None:
        if self.done is None and not self.restored.exists():
            self.done = salvage(self.folder, self.restored)

    def whole(self) -> Iterable[Path]:
        return [self.restored]

    def prove(self) -> None:
        assert sorted(os.listdir(self.folder)) == self.names
        with self.open(self.restored) as client:
            self.prove_all(client)


class Compacting(Scene):
    """The last value of each key is kept in a ledger of its own."""

    pairs: ClassVar = [(f"k{number % 3}", b"%d" % number) for number in range(2 * ENTRIES + 2)]

    @classmethod
    def prepare(cls, folder: Path) -> None:
        with cls.open(folder) as client, client.create_producer("t") as producer:
            for key, value in cls.pairs:
                producer.send(value, partition_key=key)

    def begin(self) -> None:
        self.client = self.opened()
        self.truth.confirmed += [value for _, value in self.pairs]

    def act(self) -> None:
        self.attempt(self.compact)
        self.attempt(self.look)

    def compact(self) -> Any:
        self.client.admin.topics.trigger_compaction("t")
        inspect(self.client).settle()
        return self.client.admin.topics.compaction_status("t")

    def look(self, client: Any = None) -> bool:
        found = []
        with (client or self.client).create_reader(
            "t", MessageId.earliest, is_read_compacted=True
        ) as reader:
            while reader.has_message_available():
                found.append(reader.read_next(WAIT_MS).data())
        everything = [value for _, value in self.pairs]
        latest = [each for each in everything if each in set(dict(self.pairs).values())]
        assert found in (latest, everything), found
        return found == latest

    def go_on(self) -> None:
        self.again(self.compact)
        self.look()

    def prove(self) -> None:
        with self.opened() as client:
            found = self.read(client)
            self.truth.check(found)
            assert self.look(client), "compacted, and not there any more"
            self.works(client)


class Offloading(Scene):
    """Sealed ledgers go to an object store, which is a folder, and are read there."""

    contents = numbered(2 * ENTRIES + 2)

    @classmethod
    def open(cls, folder: Path) -> Client:
        options = BrokerOptions(
            **cls.options,
            offload_url=(folder / "store").as_uri(),
            managed_ledger_offload_deletion_lag_ms=0,
        )
        return Client(folder, durability=cls.durability, broker_options=options)

    @classmethod
    def prepare(cls, folder: Path) -> None:
        with cls.open(folder) as client:
            cls.fill(client, cls.contents)

    def begin(self) -> None:
        self.truth.confirmed += self.contents
        self.client = self.opened()

    def offload(self) -> Any:
        self.client.admin.topics.offload("t", 0)
        inspect(self.client).settle()
        return self.client.admin.topics.offload_status("t")

    def act(self) -> None:
        self.attempt(self.offload)
        reader = self.attempt(self.client.create_reader, "t", MessageId.earliest)
        for content in self.contents if reader else ():
            message = self.attempt(reader.read_next, 1000)
            if message is None:
                break
            assert message.data() == content, (message.data(), content)

    def go_on(self) -> None:
        self.again(self.offload)


class Administering(Scene):
    """What administration does is on the device when it returns."""

    def begin(self) -> None:
        self.client = self.opened()
        self.truth.confirmed.append(b"before")
        self.fill(self.client, [b"before"])
        self.done: dict[str, bool] = {}

    def act(self) -> None:
        admin = self.client.admin
        for name, call, arguments in (
            ("tenant", admin.tenants.create_tenant, ("shop",)),
            ("namespace", admin.namespaces.create_namespace, ("public/orders",)),
            ("topic", admin.topics.create_partitioned_topic, ("parts", 2)),
            ("retention", admin.namespaces.set_retention, ("public/default", 10, 10)),
            ("subscription", admin.topics.create_subscription, ("t", "made")),
            ("made to go", admin.topics.create_non_partitioned_topic, ("gone",)),
            ("gone", admin.topics.delete, ("gone",)),
        ):
            self.done[name] = self.did(call, *arguments)

    def prove(self) -> None:
        with self.opened() as client:
            admin = client.admin
            there = {
                "tenant": "shop" in admin.tenants.get_tenants(),
                "namespace": "public/orders" in admin.namespaces.get_namespaces("public"),
                "topic": len(client.get_topic_partitions("parts")) == 2,
                "retention": admin.namespaces.get_retention("public/default") is not None,
                "subscription": "made" in admin.topics.get_subscriptions("t"),
                "gone": not any("gone" in each for each in admin.topics.get_list("public/default")),
            }
            lost = [name for name, is_there in there.items() if self.done[name] and not is_there]
            assert not lost, f"done, and not there any more: {lost}"
            self.truth.check(self.read(client))
            self.works(client)


SCENES: dict[str, type[Scene]] = {
    "open": Opening,
    "publish": Publishing,
    "publish-batches": PublishingBatches,
    "publish-chunks": PublishingChunks,
    "publish-once": PublishingOnce,
    "receive": Receiving,
    "acknowledge": Acknowledging,
    "recover": Recovering,
    "take-over": TakingOver,
    "take-over-named": TakingOverNamed,
    "take-over-once": TakingOverOnce,
    "close": Closing,
    "transact": Transacting,
    "transact-later": TransactingLater,
    "recover-transactions": RecoveringTransactions,
    "take-up": TakingUp,
    "attach": Attaching,
    "attach-live": AttachingLive,
    "back-up": BackingUp,
    "salvage": Salvaging,
    "compact": Compacting,
    "offload": Offloading,
    "administer": Administering,
}
