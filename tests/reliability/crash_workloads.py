"""What programs do while they are recorded: short, each with a part of the library in which a crash
could lose something. What is begun and what is confirmed is marked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from crash_history import mark
from crash_session import opened

import pulsarx
from pulsarx.broker.requests.attach import Transaction
from pulsarx.broker.requests.attach import attach as attach_files
from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.staging.staging import make_staging
from pulsarx.testing import inspect

LONG = 4000  # words: a message of several chunks


class Program:
    """One client of a folder, which marks what it does."""

    def __init__(self, folder: Path, durability: str) -> None:
        self.folder = folder
        self.durability = durability
        self.client = opened(folder, durability)
        self.count = 0

    def reopen(self) -> None:
        self.client.close()
        if self.durability != "os":
            mark("flushed")
        self.client = opened(self.folder, self.durability)

    def texts(self, count: int, letter: str = "m") -> list[str]:
        first, self.count = self.count, self.count + count
        return [f"{letter}{number}" for number in range(first, first + count)]

    def producer(self, topic: str = "t", **options: Any) -> Any:
        mark("create", topic)
        made = self.client.create_producer(topic, **options)
        mark("created", topic, False)
        return made

    def send(
        self, producer: Any, count: int = 1, topic: str = "t", size: int = 1, entries: int = 1
    ) -> None:
        """One message after the other."""
        for text in self.texts(count):
            mark("send", topic, [text], entries)
            producer.send(" ".join([text] * size).encode())
            mark("sent", topic, [text])

    def send_many(self, producer: Any, count: int, topic: str = "t") -> None:
        """All are confirmed together."""
        texts = self.texts(count)
        mark("send", topic, texts)
        producer.send_many([text.encode() for text in texts])
        mark("sent", topic, texts)

    def send_together(self, producer: Any, count: int, topic: str = "t", size: int = 1) -> None:
        """Entries that are flushed together."""
        texts = self.texts(count)
        mark("send", topic, texts)
        for text in texts:
            producer.send_async(" ".join([text] * size).encode(), lambda result, message_id: None)
        producer.flush()
        mark("sent", topic, texts)

    def begin(self) -> tuple[str, Any]:
        """A transaction, by the name that marks have for it."""
        opened = self.client.new_transaction()
        return str(opened.txn_id()[1]), opened

    def join(
        self, transaction: tuple[str, Any], producer: Any, count: int = 1, topic: str = "t",
        **named: Any,
    ) -> None:  # fmt: skip
        """One message after the other, in a transaction."""
        name, opened = transaction
        for text in self.texts(count):
            mark("join", name, topic, [text])
            producer.send(text.encode(), transaction=opened, **named)

    def acknowledge_in(
        self, transaction: tuple[str, Any], consumer: Any, *messages: Any, topic: str = "t"
    ) -> None:
        name, opened = transaction
        for each in messages:
            mark("acknowledge_in", name, topic, "s", each.data().decode())
            consumer.acknowledge(each, transaction=opened)

    def commit(self, transaction: tuple[str, Any]) -> None:
        name, opened = transaction
        mark("commit", name)
        opened.commit()
        mark("committed", name)

    def subscribe(self, name: str = "s", topic: str = "t", **options: Any) -> Any:
        mark("create", topic)
        mark("subscribe", topic, name, [])
        made = self.client.subscribe(
            topic, name, initial_position=pulsarx.InitialPosition.Earliest, **options
        )
        mark("subscribed", topic, name)
        return made

    def receive(self, consumer: Any, count: int) -> list[Any]:
        return [consumer.receive(60_000) for _ in range(count)]

    def acknowledge(self, consumer: Any, *messages: Any, name: str = "s", topic: str = "t") -> None:
        for each in messages:
            mark("acknowledge", topic, name, [each.data().decode().split()[0]])
            consumer.acknowledge(each)
            mark("acknowledged", topic, name, [each.data().decode().split()[0]])

    def settle(self) -> None:
        inspect(self.client).settle()

    def end_interval(self) -> None:
        """The flush interval is over, for everything."""
        inspection: Any = inspect(self.client)
        inspection.runtime._catalogue_flush.due()
        for topic in inspection.broker.topics.open_topics():
            if topic.tail.flush is not None:
                topic.tail.flush.due()
            for subscription in topic.subscriptions.values():
                subscription.flush.due()
        self.settle()
        if self.durability != "os":
            mark("flushed")


def publish_one_by_one(program: Program) -> None:
    producer = program.producer()
    program.send(producer, 3)
    program.end_interval()
    program.send(producer, 1)


def publish_batches(program: Program) -> None:
    producer = program.producer(batching_enabled=True, batching_max_messages=3)
    program.send_many(producer, 7)
    program.send_many(producer, 2)


def publish_together(program: Program) -> None:
    """Entries of more than a page that share a flush."""
    producer = program.producer()
    program.send_together(producer, 3, size=700)
    program.send_together(producer, 2)


def publish_chunks(program: Program) -> None:
    producer = program.producer(chunking_enabled=True)
    program.send(producer, 1)
    program.send(producer, 1, size=LONG, entries=2)
    program.send(producer, 1)


def roll_over(program: Program) -> None:
    producer = program.producer()
    program.send(producer, 5)
    program.settle()
    program.send_together(producer, 6)
    program.settle()


def acknowledge(program: Program) -> None:
    producer = program.producer()
    consumer = program.subscribe(consumer_type=pulsarx.ConsumerType.Shared)
    program.send_many(producer, 4)
    first, second, third, _ = program.receive(consumer, 4)
    program.acknowledge(consumer, second)
    program.end_interval()
    program.acknowledge(consumer, first, third)


def acknowledge_cumulatively(program: Program) -> None:
    producer = program.producer()
    consumer = program.subscribe()
    program.send(producer, 4)
    messages = program.receive(consumer, 3)
    texts = [each.data().decode() for each in messages]
    mark("acknowledge", "t", "s", texts)
    consumer.acknowledge_cumulative(messages[-1])
    mark("acknowledged", "t", "s", texts)
    program.end_interval()
    program.send(producer, 1)


def seek(program: Program) -> None:
    producer = program.producer()
    consumer = program.subscribe()
    program.send(producer, 4)
    messages = program.receive(consumer, 4)
    program.acknowledge(consumer, *messages[:3])
    mark("seek", "t", "s", ["m0", "m1"])
    consumer.seek(messages[1].message_id())
    mark("sought", "t", "s")
    program.acknowledge(consumer, *program.receive(consumer, 1))


def trim(program: Program) -> None:
    producer = program.producer()
    consumer = program.subscribe()
    other = program.subscribe("other")
    program.send(producer, 9)
    program.settle()
    messages = program.receive(consumer, 9)
    program.acknowledge(consumer, *messages[:7])
    program.acknowledge(other, *program.receive(other, 5), name="other")
    program.settle()
    program.send(producer, 1)
    program.end_interval()


def deduplicate(program: Program) -> None:
    def sent(producer: Any, number: int, is_new: bool = True) -> None:
        if is_new:
            mark("send", "t", [f"d{number}"])
        producer.send(b"d%d" % number, sequence_id=number)
        if is_new:
            mark("sent", "t", [f"d{number}"])

    producer = program.producer(producer_name="p")
    mark("limit", "t", 9)
    program.client.admin.topics.set_max_producers_per_topic("t", 9)
    mark("limited", "t")
    program.client.admin.topics.set_deduplication("t", True)
    mark("deduplicate", "t")
    for number in range(4):
        sent(producer, number)
    program.settle()
    sent(producer, 2, is_new=False)
    sent(producer, 4)
    program.end_interval()
    sent(producer, 5)
    program.settle()


def reopen(program: Program) -> None:
    producer = program.producer()
    consumer = program.subscribe()
    program.send(producer, 2)
    program.acknowledge(consumer, *program.receive(consumer, 1))
    program.reopen()
    program.send(program.producer(), 1)
    consumer = program.client.subscribe("t", "s")
    program.acknowledge(consumer, *program.receive(consumer, 1))


def administer(program: Program) -> None:
    admin = program.client.admin
    for topic in ("a", "b"):
        mark("create", topic)
        admin.topics.create_non_partitioned_topic(topic)
        mark("created", topic, True)
    for limit in (3, 4):
        mark("limit", "a", limit)
        admin.topics.set_max_producers_per_topic("a", limit)
        mark("limited", "a")
    mark("subscribe", "a", "s", [])
    admin.topics.create_subscription("a", "s")
    mark("subscribed", "a", "s")
    program.send(program.producer("b"), 1, topic="b")
    mark("delete", "b")
    admin.topics.delete("b", force=True)
    mark("deleted", "b")


def compact(program: Program) -> None:
    producer = program.producer()
    program.subscribe()
    for key in "aba":
        for text in program.texts(2):
            mark("send", "t", [text])
            producer.send(text.encode(), partition_key=key)
            mark("sent", "t", [text])
    program.client.admin.topics.trigger_compaction("t")
    program.settle()
    program.send(producer, 1)
    program.client.admin.topics.trigger_compaction("t")
    program.settle()


def deduplicate_together(program: Program) -> None:
    """Entries that share a flush, of which a power cut may take some in the middle."""
    producer = program.producer(producer_name="p")
    program.client.admin.topics.set_deduplication("t", True)
    mark("deduplicate", "t")
    for first in (0, 3):
        texts = [f"d{number}" for number in range(first, first + 3)]
        mark("send", "t", texts)
        for text in texts:
            data = " ".join([text] * 700).encode()
            producer.send_async(data, lambda result, message_id: None, sequence_id=int(text[1:]))
        producer.flush()
        mark("sent", "t", texts)
    program.settle()


def deduplicate_chunks(program: Program) -> None:
    producer = program.producer(producer_name="p", chunking_enabled=True)
    program.client.admin.topics.set_deduplication("t", True)
    mark("deduplicate", "t")
    texts = [f"d{number}" for number in range(3)]
    mark("send", "t", texts, 2)
    for text in texts:
        data = " ".join([text] * LONG).encode()
        producer.send_async(data, lambda result, message_id: None, sequence_id=int(text[1:]))
    producer.flush()
    mark("sent", "t", texts)


def attach(program: Program) -> None:
    """Files that another process has written, in one commit; an open ledger ends for it."""
    program.send(program.producer("a"), 1, topic="a")
    program.producer("b")
    staged: list[list[Any]] = [[topic, program.texts(2)] for topic in ("a", "b")]
    area = make_staging(program.folder, "job")
    folder_id = inspect(program.client).directory.folder_id
    for topic, texts in staged:
        with SealedLedgerWriter(f"{area}/{topic}.ledger", folder_id, topic=topic) as writer:
            for text in texts:
                writer.append(text.encode())
            writer.seal()
    mark("attach", staged)
    files = [
        StagedFile.of_file(str(program.folder), folder_id, topic, "job", f"{topic}.ledger")
        for topic, _ in staged
    ]
    attach_files(program.folder, Transaction("query", 0), files)
    mark("attached", staged)
    program.send(program.producer("a"), 1, topic="a")


def create_many(program: Program) -> None:
    """With durability os and interval commits that are not flushed, until a checkpoint has them."""
    for number in range(6):
        program.producer(f"t{number}").close()
    program.end_interval()
    for number in range(6, 24):
        program.producer(f"t{number}").close()
    program.send(program.producer("t3"), 1, topic="t3")
    program.producer("last").close()


def partition(program: Program) -> None:
    """A topic that grows, and with it its subscriptions."""
    topics = program.client.admin.topics
    names = [f"p-partition-{number}" for number in range(3)]
    for name in names[:2]:
        mark("create", name)
    topics.create_partitioned_topic("p", 2)
    for name in names[:2]:
        mark("created", name, True)
        mark("subscribe", name, "s", [])
    topics.create_subscription("p", "s")
    for name in names[:2]:
        mark("subscribed", name, "s")
        program.send(program.producer(name), 1, topic=name)
    mark("create", names[2])
    mark("subscribe", names[2], "s", [])
    topics.update_partitioned_topic("p", 3)
    mark("created", names[2], True)
    mark("subscribed", names[2], "s")
    program.send(program.producer(names[2]), 1, topic=names[2])


def delete_behind_others(program: Program) -> None:
    """A topic that has ledgers and a subscription goes; one of its name comes."""
    program.send(program.producer(), 5)
    program.subscribe()
    program.settle()
    mark("delete", "t")
    program.client.admin.topics.delete("t", force=True)
    mark("deleted", "t")
    program.send(program.producer(), 1)


def transact(program: Program) -> None:
    """Two topics, whose ledgers are full soon: one transaction is committed, one aborted, one is
    open when the owner leaves; others publish between."""
    a, b = program.producer("a"), program.producer("b")
    program.subscribe(topic="a")
    program.send(a, 1, topic="a")
    first = program.begin()
    program.join(first, a, 2, topic="a")
    program.send(a, 1, topic="a")
    program.join(first, b, 1, topic="b")
    program.commit(first)
    second = program.begin()
    program.join(second, b, 2, topic="b")
    program.join(second, a, 1, topic="a")
    program.send(b, 1, topic="b")
    second[1].abort()
    program.settle()
    program.send(a, 2, topic="a")
    program.end_interval()
    third = program.begin()
    program.join(third, a, 1, topic="a")
    program.join(third, b, 1, topic="b")
    program.send(b, 1, topic="b")


def transact_at_once(program: Program) -> None:
    """Of three that are open at the same time, over several ledgers of two topics, the younger ones
    end first; the folder is opened anew behind them."""
    a, b = program.producer("a"), program.producer("b")
    program.subscribe(topic="b")
    old, young, doomed = program.begin(), program.begin(), program.begin()
    for _ in range(3):
        program.join(old, a, 1, topic="a")
        program.join(doomed, b, 1, topic="b")
        program.join(young, a, 1, topic="a")
        program.join(young, b, 1, topic="b")
        program.send(b, 1, topic="b")
        program.join(doomed, a, 1, topic="a")
    program.settle()
    program.commit(young)
    doomed[1].abort()
    program.end_interval()
    program.join(old, b, 1, topic="b")
    program.commit(old)
    program.settle()
    program.reopen()
    a, b = program.producer("a"), program.producer("b")
    last = program.begin()
    program.join(last, a, 1, topic="a")
    program.join(last, b, 1, topic="b")
    program.commit(last)


def transact_and_compact(program: Program) -> None:
    """Messages of a transaction count for their keys if it was committed; another batch of them is
    open, and goes with its owner."""
    producer = program.producer()
    for end in ("commit", "abort"):
        for key in "ab":
            for text in program.texts(1):
                mark("send", "t", [text])
                producer.send(text.encode(), partition_key=key)
                mark("sent", "t", [text])
        transaction = program.begin()
        for key in "abc":
            program.join(transaction, producer, 1, partition_key=key)
        if end == "commit":
            program.commit(transaction)
        else:
            transaction[1].abort()
        program.settle()
        program.client.admin.topics.trigger_compaction("t")
        program.settle()
        program.reopen()
        producer = program.producer(batching_enabled=True)
    name, opened = program.begin()
    texts = program.texts(3)
    mark("join", name, "t", texts)
    producer.send_many([text.encode() for text in texts], keys=list("aab"), transaction=opened)
    program.client.admin.topics.trigger_compaction("t")
    program.settle()


def transact_acknowledgements(program: Program) -> None:
    """What is taken from one topic and sent to another counts together, with each end; what is
    acknowledged may not be flushed itself."""
    a, b = program.producer("a"), program.producer("b")
    consumer = program.subscribe(topic="a", consumer_type=pulsarx.ConsumerType.Shared)
    program.send_many(a, 9, topic="a")
    messages = program.receive(consumer, 9)
    for number, end in enumerate(("commit", "abort", "commit", "")):
        transaction = program.begin()
        program.acknowledge_in(transaction, consumer, *messages[2 * number :][:2], topic="a")
        program.join(transaction, b, 2, topic="b")
        if end == "commit":
            program.commit(transaction)
        elif end:
            transaction[1].abort()
        if number == 1:
            program.end_interval()
            program.send(a, 1, topic="a")


def transact_deduplicated(program: Program) -> None:
    """What was aborted is new when it is sent again, and what was committed is not."""

    def join(transaction: tuple[str, Any], letter: str, *numbers: int) -> None:
        for number in numbers:
            text = f"{letter}{number}"
            mark("join", transaction[0], "t", [text])
            producer.send(text.encode(), sequence_id=number, transaction=transaction[1])

    def send(*numbers: int) -> None:
        for number in numbers:
            mark("send", "t", [f"d{number}"])
            producer.send(b"d%d" % number, sequence_id=number)
            mark("sent", "t", [f"d{number}"])

    producer = program.producer(producer_name="p")
    program.client.admin.topics.set_deduplication("t", True)
    mark("deduplicate", "t")
    send(0, 1)
    aborted = program.begin()
    join(aborted, "x", 2, 3, 4)
    aborted[1].abort()
    program.settle()
    committed = program.begin()
    join(committed, "d", 2, 3)
    program.commit(committed)
    producer.send(b"d3", sequence_id=3)
    send(4)
    program.end_interval()
    join(program.begin(), "x", 5, 6)
    program.settle()


Workload = Callable[[Program], None]
WORKLOADS: dict[str, Workload] = {
    each.__name__: each
    for each in (
        publish_one_by_one, publish_batches, publish_together, publish_chunks, roll_over,
        acknowledge, acknowledge_cumulatively, seek, trim, deduplicate, deduplicate_together,
        deduplicate_chunks,
        reopen, administer, delete_behind_others, compact, attach,
        create_many, partition,
        transact, transact_at_once, transact_and_compact, transact_deduplicated,
        transact_acknowledgements,
    )
}  # fmt: skip
