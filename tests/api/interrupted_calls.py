"""All public calls, as what an interrupted program does with them; for interrupted_run.py.

Each is a generator over a World. It yields what is to be interrupted and gets an Outcome, and looks
then at what must hold: nothing is in the way of the same call once more. What was confirmed is
written down; `World.end` looks for it.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, errors
from pulsarx.schema import AutoConsumeSchema, BytesSchema, StringSchema

PATIENCE_MS = 20_000


@dataclass
class Outcome:
    """value: what the call returned, None when it was interrupted."""

    interrupted: bool
    value: Any = None


@dataclass
class Waiting:
    """A call that ends by the interrupt only."""

    call: Callable[[], Any]


Steps = Generator["Callable[[], Any] | Waiting", Outcome, None]
OPTIONS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=20)
TYPES = {
    "ex": ConsumerType.Exclusive,
    "fo": ConsumerType.Failover,
    "sh": ConsumerType.Shared,
    "ks": ConsumerType.KeyShared,
}


class World:
    """A client with a folder, and what is known of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.confirmed: set[bytes] = set()
        self.parts_confirmed: set[bytes] = set()
        self.acknowledged: dict[str, set[bytes]] = {name: set() for name in TYPES}
        self.maybe_acknowledged: dict[str, set[bytes]] = {name: set() for name in TYPES}
        self.main = path / "main"
        self.client = self.open()
        self.producer = self.client.create_producer("t")
        self.client.create_reader("t", MessageId.earliest).close()
        for name, kind in TYPES.items():
            self.subscribe(name, kind).close()
        self.subscribe("keep", ConsumerType.Exclusive).close()
        self.client.admin.topics.create_partitioned_topic("parts", 3)
        self.client.subscribe("parts", "keep").close()
        self.probe_producer = self.client.create_producer("probe")
        self.probe = self.client.subscribe(
            "probe", "p", ConsumerType.Shared, negative_ack_redelivery_delay_ms=1
        )
        self.clock = pulsarx.ManualClock(settle_seconds=PATIENCE_MS / 1000)
        self.clocked = pulsarx.Client("memory:clocked", clock=self.clock)
        self.delayed = self.clocked.create_producer("d")
        self.delayed_to = self.clocked.subscribe("d", "s", ConsumerType.Shared)

    def open(self) -> pulsarx.Client:
        return pulsarx.Client(self.main, durability="os", broker_options=OPTIONS)

    def subscribe(self, name: str, kind: ConsumerType) -> pulsarx.Consumer:
        return self.client.subscribe(
            "t",
            name,
            kind,
            initial_position=InitialPosition.Earliest,
            negative_ack_redelivery_delay_ms=1,
        )

    def payload(self) -> bytes:
        self.count += 1
        return b"%d" % self.count

    def sent(self) -> bytes:
        data = self.payload()
        self.producer.send(data, partition_key="k")
        self.confirmed.add(data)
        return data

    # What must hold -------------------------------------------------------------------------------

    def check(self) -> None:
        """After every interrupt: a message goes through, and comes again when it is refused, by a
        timer."""
        self.probe_producer.send(b"probe")
        message = self.probe.receive(PATIENCE_MS)
        self.probe.negative_acknowledge(message)
        message = self.probe.receive(PATIENCE_MS)
        assert message.redelivery_count() == 1
        self.probe.acknowledge(message)

    def check_locks(self) -> None:
        """Another thread gets everything that takes locks."""
        done: list[BaseException | None] = []

        def work() -> None:
            try:
                names = self.client.admin.topics.get_list()
                for name in names:
                    self.client.admin.topics.stats(name)
                self.client.create_producer("t", "locks").close()
                self.client.subscribe("t", "locks").unsubscribe()
                done.append(None)
            except BaseException as error:
                done.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(PATIENCE_MS / 1000)
        assert done, "a lock is left"
        if done[0] is not None:
            raise done[0]

    def end(self) -> Steps:
        """Close, interrupted; and look for everything in this process and in another."""
        outcome = yield self.clocked.close
        if outcome.interrupted:
            closed_again(self.clocked)
        outcome = yield self.client.close
        if outcome.interrupted:
            closed_again(self.client)
        in_a_child(self.check_contents)
        self.check_contents()
        shutil.rmtree(self.path)

    def check_contents(self) -> None:
        client = pulsarx.Client(self.main, durability="interval", broker_options=OPTIONS)
        lost = self.confirmed - read_all(client, "t")
        assert not lost, f"confirmed and not there: {sorted(lost)}"
        found: set[bytes] = set()
        for name in client.get_topic_partitions("parts"):
            found |= read_all(client, name)
        lost = self.parts_confirmed - found
        assert not lost, f"confirmed and in no partition: {sorted(lost)}"
        for name, kind in TYPES.items():
            consumer = client.subscribe("t", name, kind)
            received: list[bytes] = []
            while batch := consumer.receive_many(10_000, 0 if received else 1):
                received += [each.data() for each in batch]
            lost = self.confirmed - self.maybe_acknowledged[name] - set(received)
            assert not lost, f"{name}: neither acknowledged nor received: {sorted(lost)}"
            again = self.acknowledged[name] & set(received)
            assert not again, f"{name}: acknowledged and received again: {sorted(again)}"
        client.close()


def read_all(client: pulsarx.Client, topic: str) -> set[bytes]:
    reader = client.create_reader(topic, MessageId.earliest)
    found: set[bytes] = set()
    while batch := reader.read_many(10_000, 0):
        found.update(each.data() for each in batch)
    return found


def in_a_child(work: Callable[[], object]) -> None:
    """In a forked process: nothing of what this one has open is there."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, "another process found it otherwise"


def closed_again(member: Any) -> None:
    """A second close ends what an interrupted one began; or it had ended."""
    try:
        member.close()
    except errors.AlreadyClosed:
        pass
    try:
        member.close()
    except errors.AlreadyClosed:
        return
    raise AssertionError(f"{member!r} was closed twice after an interrupt, and again")


# Clients -----------------------------------------------------------------------------------------


def open_and_close(w: World) -> Steps:
    folder = w.path / f"side{w.count % 3}"
    outcome = yield lambda: pulsarx.Client(folder, durability="os")
    client = outcome.value
    if client is not None:
        outcome = yield client.close
        if outcome.interrupted:
            closed_again(client)
    # With another durability: InvalidConfiguration if anything has it open.
    pulsarx.Client(folder, durability="interval").close()


def open_and_shut_down(w: World) -> Steps:
    folder = w.path / f"side{w.count % 3}"
    client = pulsarx.Client(folder, durability="os")
    producer = client.create_producer("t", batching_enabled=True)
    producer.send_async(b"x", None)
    outcome = yield client.shutdown
    if outcome.interrupted:
        client.shutdown()
    pulsarx.Client(folder, durability="interval").close()


def read_only(w: World) -> Steps:
    outcome = yield lambda: pulsarx.Client(w.main, read_only=True)
    client = outcome.value or pulsarx.Client(w.main, read_only=True)
    outcome = yield lambda: client.create_reader("t", MessageId.earliest)
    if outcome.value is not None:
        outcome = yield outcome.value.close
    outcome = yield client.close
    if outcome.interrupted:
        closed_again(client)


# Producers ---------------------------------------------------------------------------------------


def create_and_close_producer(w: World) -> Steps:
    outcome = yield lambda: w.client.create_producer("t", "named")
    producer = outcome.value or w.client.create_producer("t", "named")
    outcome = yield producer.close
    if outcome.interrupted:
        closed_again(producer)
    w.client.create_producer("t", "named").close()


def take_a_topic(w: World) -> Steps:
    """However often it is interrupted, the topic is to be had again."""
    mode = pulsarx.ProducerAccessMode
    for each in (mode.Exclusive, mode.ExclusiveWithFencing, mode.WaitForExclusive):
        outcome = yield lambda each=each: w.client.create_producer("taken", access_mode=each)
        producer = outcome.value or w.client.create_producer("taken", access_mode=mode.Exclusive)
        producer.send(b"x")
        outcome = yield producer.close
        if outcome.interrupted:
            closed_again(producer)
    w.client.create_producer("taken").close()


def wait_for_a_topic(w: World) -> Steps:
    mode = pulsarx.ProducerAccessMode.WaitForExclusive
    for topic in ("taken", "parts"):
        there = w.client.create_producer(topic)
        yield Waiting(lambda topic=topic: w.client.create_producer(topic, access_mode=mode))
        w.client.create_producer(topic).close()  # nobody waits
        there.close()
        w.client.create_producer(topic, access_mode=mode).close()


def deduplicate(w: World) -> Steps:
    """However often turning it on and off is interrupted: what has its own ids is stored once."""
    topics = w.client.admin.topics
    producer = w.client.create_producer("once")
    yield lambda: topics.set_deduplication("once", True)
    topics.set_deduplication("once", True)
    number = int(w.payload())  # no other message has it
    outcome = yield lambda: producer.send(b"%d" % number, sequence_id=number)
    producer.send(b"%d" % number, sequence_id=number)
    found = [each.sequence_id() for each in topic_messages(w.client, "once")]
    assert found.count(number) == 1
    outcome = yield lambda: topics.get_deduplication("once")
    if not outcome.interrupted:
        assert outcome.value is True
    yield lambda: topics.remove_deduplication("once")
    yield lambda: w.client.admin.namespaces.set_deduplication("public/default", False)
    yield lambda: w.client.admin.namespaces.remove_deduplication("public/default")
    w.client.admin.namespaces.remove_deduplication("public/default")
    message = producer.new_message().value(b"x").key_bytes(b"k")
    yield message.send
    producer.close()


def topic_messages(client: pulsarx.Client, topic: str) -> list[Any]:
    reader = client.create_reader(topic, MessageId.earliest)
    found: list[Any] = []
    while batch := reader.read_many(10_000, 0):
        found += batch
    return found


def send(w: World) -> Steps:
    data = w.payload()
    outcome = yield lambda: w.producer.send(data)
    if not outcome.interrupted:
        w.confirmed.add(data)


def send_to_a_new_topic(w: World) -> Steps:
    producer = w.client.create_producer(f"new{w.count % 5}")
    outcome = yield lambda: producer.send(w.payload())
    if outcome.interrupted:
        producer.send(w.payload())
    producer.close()


def send_in_batches(w: World) -> Steps:
    producer = w.client.create_producer(
        "t", batching_enabled=True, batching_max_messages=5, batching_max_publish_delay_ms=2
    )
    told: list[bytes] = []
    for _ in range(7):
        data = w.payload()

        def tell(result: Any, _: Any, data: bytes = data) -> None:
            if result == pulsarx.Result.Ok:
                told.append(data)

        outcome = yield lambda data=data, tell=tell: producer.send_async(data, tell)
    outcome = yield producer.flush
    if outcome.interrupted:
        producer.flush()
    outcome = yield producer.close
    if outcome.interrupted:
        closed_again(producer)
    w.confirmed.update(told)


def send_many(w: World) -> Steps:
    contents = [w.payload() for _ in range(5)]
    outcome = yield lambda: w.producer.send_many(contents)
    if not outcome.interrupted:
        w.confirmed.update(contents)


def send_delayed(w: World) -> Steps:
    """The message of the system clock comes, whatever was interrupted."""
    consumer = w.client.subscribe("later", "s", ConsumerType.Shared)
    producer = w.client.create_producer("later")
    outcome = yield lambda: producer.send(b"later", deliver_after=pulsarx_ms(3))
    if not outcome.interrupted:
        consumer.acknowledge(consumer.receive(PATIENCE_MS))
    consumer.unsubscribe()
    producer.close()


def cancel_delayed(w: World) -> Steps:
    """It was cancelled, or is cancelled by the next call."""
    consumer = w.client.subscribe("cancelled", "s", ConsumerType.Shared)
    producer = w.client.create_producer("cancelled")
    sent = producer.send(b"later", deliver_after=pulsarx_ms(3_600_000))
    outcome = yield lambda: producer.cancel(sent)
    if outcome.interrupted:
        try:
            producer.cancel(sent)
        except errors.NotAllowedError as error:
            assert "acknowledged" in errors.detail_of(error), errors.detail_of(error)
    assert w.client.admin.topics.get_delayed_messages("cancelled", "s") == []
    producer.close()
    consumer.unsubscribe()


def pulsarx_ms(milliseconds: int) -> Any:
    from datetime import timedelta

    return timedelta(milliseconds=milliseconds)


def send_to_partitions(w: World) -> Steps:
    def make() -> Any:
        return w.client.create_producer("parts", "named", batching_enabled=True)

    outcome = yield make
    producer = outcome.value or make()
    for _ in range(3):
        data = w.payload()
        outcome = yield lambda data=data: producer.send(data)
        if not outcome.interrupted:
            w.parts_confirmed.add(data)
    outcome = yield lambda: producer.send_async(w.payload(), None)
    outcome = yield producer.flush
    contents = [w.payload() for _ in range(5)]
    outcome = yield lambda: producer.send_many(contents)
    if not outcome.interrupted:
        w.parts_confirmed.update(contents)
    outcome = yield producer.close
    if outcome.interrupted:
        closed_again(producer)


def send_to_lazy_partitions(w: World) -> Steps:
    producer = w.client.create_producer("parts", "lazy", lazy_start_partitioned_producers=True)
    for _ in range(3):
        yield lambda: producer.send(w.payload())
    producer.close()
    w.client.create_producer("parts", "lazy").close()


# Consumers ---------------------------------------------------------------------------------------


def subscribe_and_close(name: str) -> Callable[[World], Steps]:
    def steps(w: World) -> Steps:
        outcome = yield lambda: w.subscribe(name, TYPES[name])
        # At once: an Exclusive one is not held by what was interrupted.
        consumer = outcome.value or w.subscribe(name, TYPES[name])
        stats = w.client.admin.topics.stats("t")["subscriptions"][name]
        assert len(stats["consumers"]) == 1, stats
        outcome = yield consumer.close
        if outcome.interrupted:
            closed_again(consumer)
        stats = w.client.admin.topics.stats("t")["subscriptions"][name]
        assert not stats["consumers"], stats

    return steps


def subscribe_anew(w: World) -> Steps:
    """A subscription that is made by the call goes when it is interrupted, or is there in full."""
    outcome = yield lambda: w.client.subscribe("t", "anew")
    consumer = outcome.value or w.client.subscribe("t", "anew")
    outcome = yield consumer.unsubscribe
    if outcome.interrupted:
        try:
            consumer.unsubscribe()
        except errors.AlreadyClosed:
            pass
    assert "anew" not in w.client.admin.topics.stats("t")["subscriptions"]


def subscribe_to_several(w: World) -> Steps:
    def make() -> pulsarx.Consumer:
        return w.client.subscribe(["t", "parts"], "several")

    outcome = yield make
    consumer = outcome.value or make()
    w.sent()
    outcome = yield lambda: consumer.receive(PATIENCE_MS)
    if outcome.value is not None:
        message = outcome.value
        yield lambda: consumer.acknowledge(message)
        yield lambda: consumer.negative_acknowledge(message)
    yield consumer.redeliver_unacknowledged_messages
    yield lambda: consumer.receive_many(1, 0)
    yield lambda: consumer.seek(MessageId.latest)
    outcome = yield consumer.close
    if outcome.interrupted:
        closed_again(consumer)
    make().close()


def subscribe_with_a_listener(w: World) -> Steps:
    got = threading.Event()

    def listener(consumer: Any, message: Any) -> None:
        consumer.acknowledge(message)
        got.set()

    consumer = w.client.subscribe("t", "listened", message_listener=listener)
    outcome = yield w.sent
    w.sent()
    assert got.wait(PATIENCE_MS / 1000), "the listener is not called"
    yield consumer.pause_message_listener
    yield consumer.resume_message_listener
    outcome = yield consumer.close
    if outcome.interrupted:
        closed_again(consumer)


def taking(name: str, take: Callable[[pulsarx.Consumer], Any]) -> Callable[[World], Steps]:
    """Take what is there and acknowledge it; everything is interrupted."""

    def steps(w: World) -> Steps:
        w.sent()
        w.sent()
        consumer = w.subscribe(name, TYPES[name])
        outcome = yield lambda: take(consumer)
        found = outcome.value if isinstance(outcome.value, list) else [outcome.value]
        for message in found if not outcome.interrupted else ():
            data = message.data()
            w.maybe_acknowledged[name].add(data)
            outcome = yield lambda message=message: consumer.acknowledge(message)
            if not outcome.interrupted:
                w.acknowledged[name].add(data)
        consumer.close()

    return steps


def acknowledge_otherwise(w: World) -> Steps:
    w.sent()
    consumer = w.subscribe("ex", ConsumerType.Exclusive)
    message = consumer.receive(PATIENCE_MS)
    before = {b"%d" % number for number in range(int(message.data()) + 1)}
    w.maybe_acknowledged["ex"] |= before
    outcome = yield lambda: consumer.acknowledge_cumulative(message)
    if not outcome.interrupted:
        w.acknowledged["ex"].add(message.data())
    w.sent()
    messages = consumer.receive_many(5, PATIENCE_MS)
    w.maybe_acknowledged["ex"].update(each.data() for each in messages)
    outcome = yield lambda: consumer.acknowledge_many(messages)
    if not outcome.interrupted:
        w.acknowledged["ex"].update(each.data() for each in messages)
    consumer.close()


def refuse(name: str) -> Callable[[World], Steps]:
    def steps(w: World) -> Steps:
        w.sent()
        consumer = w.subscribe(name, TYPES[name])
        message = consumer.receive(PATIENCE_MS)
        outcome = yield lambda: consumer.negative_acknowledge(message)
        if not outcome.interrupted:
            while consumer.receive(PATIENCE_MS).message_id() != message.message_id():
                pass
        yield consumer.redeliver_unacknowledged_messages
        consumer.redeliver_unacknowledged_messages()
        consumer.receive(PATIENCE_MS)
        consumer.close()

    return steps


def wait_for_a_message(w: World) -> Steps:
    consumer = w.client.subscribe("quiet", "s")
    several = w.client.subscribe(["quiet", "silent"], "several")
    reader = w.client.create_reader("quiet", MessageId.latest)
    calls: list[Callable[[], Any]] = [
        consumer.receive,
        lambda: consumer.receive(PATIENCE_MS),
        lambda: consumer.receive_many(3),
        several.receive,
        lambda: several.receive_many(3, PATIENCE_MS),
        reader.read_next,
        lambda: reader.read_next(PATIENCE_MS),
        lambda: consumer.receive_async().result(),
    ]
    outcome = yield Waiting(calls[w.count % len(calls)])
    assert outcome.interrupted
    for each in (consumer, several, reader):
        each.close()


def receive_in_futures(w: World) -> Steps:
    consumer = w.subscribe("sh", ConsumerType.Shared)
    w.sent()
    outcome = yield consumer.receive_async
    if outcome.value is not None:
        future = outcome.value
        outcome = yield lambda: future.result(PATIENCE_MS / 1000)
        assert future.result(PATIENCE_MS / 1000) is not None
    outcome = yield consumer.receive_async
    if outcome.value is not None:
        future = outcome.value
        outcome = yield future.cancel
        future.cancel()
        assert future.cancelled() or future.result(PATIENCE_MS / 1000) is not None
    # No future that nobody has takes what the next call waits for.
    outcome = None  # type: ignore[assignment]
    consumer.redeliver_unacknowledged_messages()
    w.sent()
    consumer.receive(PATIENCE_MS)
    consumer.close()


def look_and_seek(w: World) -> Steps:
    consumer = w.client.subscribe("t", "seeking")
    message_id = MessageId.deserialize(w.producer.send(w.payload()).serialize())
    yield consumer.get_last_message_id
    for target in (message_id, MessageId.earliest, MessageId.latest, 1):
        outcome = yield lambda target=target: consumer.seek(target)
        if outcome.interrupted:
            consumer.seek(target)
    consumer.receive(PATIENCE_MS)
    consumer.close()


def letters(w: World) -> Steps:
    policy = pulsarx.ConsumerDeadLetterPolicy(1, "dead", initial_subscription_name="s")

    def make() -> pulsarx.Consumer:
        return w.client.subscribe(
            "lettered",
            "s",
            ConsumerType.Shared,
            dead_letter_policy=policy,
            retry_enable=True,
            negative_ack_redelivery_delay_ms=0,
        )

    outcome = yield make
    consumer = outcome.value or make()
    producer = w.client.create_producer("lettered")
    producer.send(b"letter")
    message = consumer.receive(PATIENCE_MS)
    outcome = yield lambda: consumer.reconsume_later(message, 0)
    if outcome.interrupted:
        consumer.redeliver_unacknowledged_messages()
    again = consumer.receive(PATIENCE_MS)
    outcome = yield lambda: consumer.negative_acknowledge(again)
    outcome = yield lambda: consumer.receive_many(1, 5)
    outcome = yield consumer.close
    if outcome.interrupted:
        closed_again(consumer)
    producer.close()
    consumer = make()
    consumer.seek(MessageId.latest)
    consumer.close()


# Readers -----------------------------------------------------------------------------------------


def read(w: World) -> Steps:
    def make() -> pulsarx.Reader:
        return w.client.create_reader("t", MessageId.earliest)

    w.sent()
    outcome = yield make
    reader = outcome.value or make()
    yield reader.has_message_available
    outcome = yield lambda: reader.read_next(PATIENCE_MS)
    yield lambda: reader.read_many(2, 0)
    yield reader.get_last_message_id
    outcome = yield lambda: reader.seek(MessageId.earliest)
    if outcome.interrupted:
        reader.seek(MessageId.earliest)
    reader.read_next(PATIENCE_MS)
    outcome = yield reader.close
    if outcome.interrupted:
        closed_again(reader)


def read_partitions(w: World) -> Steps:
    def make() -> pulsarx.Reader:
        return w.client.create_reader("parts", MessageId.earliest)

    with w.client.create_producer("parts", "filling") as producer:
        data = w.payload()
        message_id = producer.send(data)
        w.parts_confirmed.add(data)
    outcome = yield make
    reader = outcome.value or make()
    yield reader.has_message_available
    outcome = yield lambda: reader.read_next(PATIENCE_MS)
    yield lambda: reader.read_many(2, 0)
    for target in (message_id, 1, MessageId.latest, MessageId.earliest):
        outcome = yield lambda target=target: reader.seek(target)
    reader.seek(MessageId.earliest)
    reader.read_next(PATIENCE_MS)
    outcome = yield reader.close
    if outcome.interrupted:
        closed_again(reader)


def use_a_non_persistent_topic(w: World) -> Steps:
    """What an interrupted call had taken is lost; what is sent afterwards comes."""
    topic = "non-persistent://public/default/n"

    def subscribe() -> pulsarx.Consumer:
        return w.client.subscribe(topic, "s", ConsumerType.Failover)

    outcome = yield lambda: w.client.create_producer(topic)
    producer = outcome.value or w.client.create_producer(topic)
    outcome = yield subscribe
    consumer = outcome.value or subscribe()
    outcome = yield lambda: w.client.create_reader(topic, MessageId.latest)
    reader = outcome.value or w.client.create_reader(topic, MessageId.latest)
    yield lambda: producer.send(b"x")
    producer.send(b"y")
    yield lambda: consumer.receive(PATIENCE_MS)
    yield lambda: reader.read_next(PATIENCE_MS)
    producer.send_many([b"last", b"of all"])
    for receive in (consumer.receive, reader.read_next):
        while receive(PATIENCE_MS).data() != b"of all":
            pass
    for each in (producer, reader, consumer):
        outcome = yield each.close
        if outcome.interrupted:
            closed_again(each)
    yield lambda: w.client.admin.topics.stats(topic)
    assert w.client.admin.topics.get_subscriptions(topic) == []


def subscribe_a_pattern(w: World) -> Steps:
    def make() -> pulsarx.Consumer:
        return w.client.subscribe(re.compile("pattern-.*"), "p")

    outcome = yield make
    consumer = outcome.value or make()
    topic = f"pattern-{w.payload().hex()}"
    yield lambda: w.client.create_producer(topic)
    producer = w.client.create_producer(topic)
    producer.send(b"x")
    message = consumer.receive(PATIENCE_MS)
    assert message.topic_name().endswith(topic)
    consumer.acknowledge(message)
    outcome = yield consumer.close
    if outcome.interrupted:
        closed_again(consumer)


def view_a_table(w: World) -> Steps:
    def make() -> pulsarx.TableView:
        return w.client.create_table_view("t")

    w.sent()
    outcome = yield make
    view = outcome.value or make()
    told: list[str] = []
    outcome = yield lambda: view.for_each_and_listen(lambda key, value: told.append(key))
    if outcome.interrupted:
        view.for_each_and_listen(lambda key, value: told.append(key))
    assert len(told) >= len(view)
    outcome = yield view.to_arrow
    assert outcome.interrupted or outcome.value.num_rows >= len(told)
    outcome = yield view.close
    if outcome.interrupted:
        closed_again(view)


def send_and_read_rows(w: World) -> Steps:
    topic = f"rows-{w.payload().hex()}"

    def send() -> Any:
        return w.client.send_rows(topic, [{"n": 1}, {"n": 2}])

    outcome = yield send
    if outcome.interrupted:
        send()
    columns = pyarrow.schema([("n", pyarrow.int64())])
    for schema in (None, columns):
        outcome = yield lambda schema=schema: w.client.read_table(topic, schema=schema)
        if outcome.interrupted:
            outcome.value = w.client.read_table(topic, schema=schema)
        assert outcome.value["n"].to_pylist()[-2:] == [1, 2]
        outcome = yield lambda schema=schema: w.client.scan(topic, schema=schema)
        scan = outcome.value or w.client.scan(topic, schema=schema)
        for read in (scan.to_arrow, lambda scan=scan: scan.to_reader().read_all()):
            outcome = yield read
            if outcome.interrupted:
                outcome.value = read()
            assert outcome.value["n"].to_pylist()[-2:] == [1, 2]


# Administration ----------------------------------------------------------------------------------


def create_topics(w: World) -> Steps:
    topics = w.client.admin.topics
    name = w.payload().decode()
    for verb in (
        partial(topics.create_non_partitioned_topic, f"plain{name}"),
        partial(topics.create_partitioned_topic, f"parted{name}", 2),
        partial(topics.update_partitioned_topic, f"parted{name}", 3),
    ):
        outcome = yield verb
        if outcome.interrupted:
            try:
                verb()
            except errors.NotAllowedError:
                pass  # it was done
    assert topics.get_partitioned_topic_metadata(f"parted{name}") == {"partitions": 3}
    assert topics.stats(f"plain{name}")["subscriptions"] == {}


def create_and_delete(w: World) -> Steps:
    admin = w.client.admin
    tenant = f"tenant{w.payload().decode()}"
    namespace = f"{tenant}/ns"
    for verb in (
        partial(admin.tenants.create_tenant, tenant),
        partial(admin.namespaces.create_namespace, namespace),
        partial(admin.topics.create_partitioned_topic, f"{namespace}/p", 2),
    ):
        outcome = yield verb
        if outcome.interrupted:
            try:
                verb()
            except errors.NotAllowedError:
                pass  # it was done
    topic = f"{namespace}/t"
    yield partial(admin.tenants.update_tenant, tenant, ["role"])
    yield partial(admin.tenants.get_tenant_info, tenant)
    yield partial(admin.namespaces.set_auto_topic_creation, namespace, True)
    with w.client.create_producer(topic) as producer:
        producer.send(b"1")
    producer = w.client.create_producer(topic)
    for verb in (
        partial(admin.topics.delete, topic, force=True),
        partial(admin.topics.delete_partitioned_topic, f"{namespace}/p", force=True),
        partial(admin.namespaces.delete_namespace, namespace, force=True),
        partial(admin.tenants.delete_tenant, tenant, force=True),
    ):
        outcome = yield verb
        if outcome.interrupted:
            try:
                verb()
            except errors.TopicNotFound:
                pass  # it was done
    assert not producer.is_connected()
    assert tenant not in admin.tenants.get_tenants()
    yield admin.tenants.get_tenants


def move_subscriptions(w: World) -> Steps:
    topics = w.client.admin.topics
    name = w.payload().decode()
    topic = f"moved{name}"
    producer = w.client.create_producer(topic)
    ids = [producer.send(b"%d" % number) for number in range(50)]
    create = partial(topics.create_subscription, topic, "s", ids[0])
    outcome = yield create
    if outcome.interrupted:
        try:
            create()
        except errors.NotAllowedError:
            pass  # it was done
    consumer = w.client.subscribe(topic, "s", ConsumerType.Shared)
    yield partial(topics.get_subscriptions, topic)
    yield partial(topics.get_last_message_id, topic)
    yield partial(topics.skip_messages, topic, "s", 3)
    for verb, left in (
        (partial(topics.reset_cursor, topic, "s", ids[10]), 40),
        (partial(topics.unload, topic), 40),
        (partial(topics.skip_all_messages, topic, "s"), 0),
        (partial(topics.reset_cursor, topic, "s", 0), None),
        (partial(topics.expire_messages, topic, "s", -1), 0),
        (partial(topics.trigger_compaction, topic), 0),
        (partial(topics.merge_ledgers, topic), None),
        (partial(topics.truncate, topic), 0),
    ):
        outcome = yield verb
        if outcome.interrupted:
            try:
                verb()
            except errors.NotAllowedError:
                assert "compact" in repr(verb)  # it was begun, and goes on
        if left is not None:
            assert len(topics.peek_messages(topic, "s", 100)) == left
    yield partial(topics.peek_messages, topic, "s")
    consumer.close()
    yield partial(topics.compaction_status, topic)
    yield partial(topics.set_compaction_threshold, topic, 1)
    yield partial(topics.get_compaction_threshold, topic)
    yield partial(topics.remove_compaction_threshold, topic)
    yield partial(topics.set_auto_subscription_creation, topic, False)
    for final in (
        partial(topics.delete_subscription, topic, "s"),
        partial(topics.terminate, topic),
    ):
        outcome = yield final
        if outcome.interrupted:
            try:
                final()
            except errors.SubscriptionNotFound:
                pass  # it was done
    assert topics.stats(topic)["terminated"]
    yield w.client.admin.brokers.get_storage_size
    yield w.client.admin.brokers.healthcheck


def administer(w: World) -> Steps:
    yield lambda: w.client.admin
    topics, namespaces = w.client.admin.topics, w.client.admin.namespaces
    yield topics.get_list
    yield topics.get_partitioned_topic_list
    yield lambda: topics.stats("t")
    yield lambda: topics.partitioned_stats("parts")
    yield lambda: topics.get_partitioned_topic_metadata("parts")
    yield lambda: w.client.get_topic_partitions("parts")
    yield namespaces.get_namespaces
    for minutes in (1, 2):
        outcome = yield lambda m=minutes: namespaces.set_retention("public/default", m, 10)
        if not outcome.interrupted:
            assert namespaces.get_retention("public/default") == (minutes, 10)
    yield lambda: namespaces.get_retention("public/default")
    for group, target in ((topics, "t"), (namespaces, "public/default")):
        yield from change_policies(group, target)


NOBODY_SUBSCRIBED = "delete_when_no_subscriptions"


def change_policies(group: Any, target: str) -> Steps:
    """None of them changes what the topics of the world do."""
    yield partial(group.set_message_ttl, target, 100_000)
    yield partial(group.get_message_ttl, target)
    yield partial(group.set_backlog_quota, target, limit_time=100_000, type="message_age")
    yield partial(group.get_backlog_quotas, target)
    yield partial(group.set_delayed_delivery_policies, target, True, 1000)
    yield partial(group.get_delayed_delivery_policies, target)
    yield partial(group.set_inactive_topic_policies, target, NOBODY_SUBSCRIBED, 100_000, True)
    yield partial(group.get_inactive_topic_policies, target)
    yield partial(group.set_subscription_expiration_time, target, 100_000)
    yield partial(group.get_subscription_expiration_time, target)
    for remove in (
        group.remove_message_ttl,
        partial(group.remove_backlog_quota, type="message_age"),
        group.remove_delayed_delivery_policies,
        group.remove_inactive_topic_policies,
        group.remove_subscription_expiration_time,
    ):
        outcome = yield partial(remove, target)
        if outcome.interrupted:
            remove(target)


def administer_without_a_client(w: World) -> Steps:
    from pulsarx.admin import Admin

    folder = w.path / f"side{w.count % 3}"
    pulsarx.Client(folder).close()
    yield Admin.at(w.main).topics.get_list
    yield Admin.at(folder).topics.get_list
    pulsarx.Client(folder, durability="interval").close()


def back_up(w: World) -> Steps:
    from pulsarx.backups import backup, restore

    w.sent()
    copy, restored = w.path / "copy", w.path / "restored"
    yield lambda: backup(w.main, copy)
    if not copy.exists():
        backup(w.main, copy)
    yield lambda: restore(copy, restored)
    if not restored.exists():
        restore(copy, restored)
    with pulsarx.Client(restored, read_only=True) as client:
        found = {each.data() for each in client.create_reader("t", MessageId.earliest)}
    assert found >= w.confirmed
    for each in w.path.iterdir():
        assert not each.name.endswith(".unfinished"), each
    shutil.rmtree(copy)
    shutil.rmtree(restored)


def back_up_over_http(w: World) -> Steps:
    from pulsarx.backups import backup, check
    from pulsarx.rest import serve_http

    w.sent()
    copy = w.path / "copy"
    with serve_http(w.client, port=0) as service:
        yield lambda: backup(service.url, copy)
        if not copy.exists():
            backup(service.url, copy)
        yield lambda: check(service.url)
        assert check(service.url).damage == []
    with pulsarx.Client(copy, read_only=True) as client:
        found = {each.data() for each in client.create_reader("t", MessageId.earliest)}
    assert found >= w.confirmed
    for each in w.path.iterdir():
        assert not each.name.endswith(".unfinished"), each
    shutil.rmtree(copy)


def serve_a_folder(w: World) -> Steps:
    from pulsarx.server import serve

    outcome = yield lambda: serve(w.client, port=0)
    service = outcome.value or serve(w.client, port=0)
    port = service.port
    outcome = yield service.close
    if outcome.interrupted:
        service.close()
    serve(w.client, port=port).close()


def serve_a_folder_over_http(w: World) -> Steps:
    from pulsarx.rest import serve_http

    outcome = yield lambda: serve_http(w.client, port=0)
    service = outcome.value or serve_http(w.client, port=0)
    port = service.port
    outcome = yield service.close
    if outcome.interrupted:
        service.close()
    serve_http(w.client, port=port).close()


def forward_a_topic(w: World) -> Steps:
    """A forwarder that is left has no subscription in use."""
    from pulsarx.forwarding import Forwarder

    name = f"forwarded{w.payload().decode()}"
    target = pulsarx.Client(f"memory:{name}", durability="os")
    found = target.subscribe(name, "s")
    w.client.create_producer(name).send(b"1")

    def make() -> Forwarder:
        return Forwarder(w.client, target, name)

    forwarder = make()
    outcome = yield forwarder.start
    if outcome.interrupted:
        forwarder.stop()
        forwarder = make().start()
    assert found.receive(PATIENCE_MS).data() == b"1"
    yield forwarder.status
    yield Waiting(forwarder.wait)
    yield forwarder.ask_to_stop
    outcome = yield forwarder.stop
    if outcome.interrupted:
        forwarder.stop()
    stats = w.client.admin.topics.stats(name)["subscriptions"]["forward"]
    assert (stats["consumers"], stats["msg_backlog"]) == ([], 0)
    assert found.receive_many(1, 0) == []
    target.shutdown()


def run_a_function(w: World) -> Steps:
    """A runner that is left is no consumer of its inputs, and has no state open."""
    from pulsarx.functions import FunctionRunner

    name = f"function{w.payload().decode()}"
    source, results = w.client.create_producer(f"{name}-in"), w.client.subscribe(name, "s")

    def make() -> FunctionRunner:
        return FunctionRunner(
            w.client,
            counted,
            name=name,
            inputs=[f"{name}-in"],
            output=name,
            retain_ordering=True,
            subs_position="Earliest",
        )

    runner = make()
    outcome = yield runner.start
    if outcome.interrupted:
        runner.stop()
        runner = make().start()
    outcome = yield lambda: runner.get_counter("calls")
    source.send(b"1")
    assert results.receive(PATIENCE_MS).data() == b"1"
    assert runner.get_counter("calls") == 1
    yield Waiting(runner.wait)
    yield runner.ask_to_stop
    outcome = yield runner.stop
    if outcome.interrupted:
        runner.stop()
    with make() as runner:
        source.send(b"2")
        assert results.receive(PATIENCE_MS).data() == b"2"
        assert runner.get_counter("calls") == 2
    (found,) = w.client.admin.topics.stats(f"{name}-in")["subscriptions"].values()
    assert found["consumers"] == []
    results.close()
    source.close()


def counted(value: Any, context: Any) -> Any:
    context.incr_counter("calls", 1)
    return value


# Clocks ------------------------------------------------------------------------------------------


def advance_a_clock(w: World) -> Steps:
    outcome = yield lambda: w.delayed.send(b"delayed", deliver_after=pulsarx_ms(1000))
    began_ms = w.clock.now_ms()
    outcome = yield lambda: w.clock.advance(2)
    w.clock.advance(0)
    assert w.clock.now_ms() - began_ms in ((2000,) if not outcome.interrupted else (0, 2000))
    w.delayed.send(b"delayed", deliver_after=pulsarx_ms(1000))
    w.clock.advance(2)
    w.delayed_to.acknowledge(w.delayed_to.receive(PATIENCE_MS))
    while w.delayed_to.receive_many(10, 0):
        pass


def create_with_a_schema(w: World) -> Steps:
    topic = f"typed{w.count % 7}"
    outcome = yield lambda: w.client.subscribe(topic, "typed", schema=StringSchema())
    consumer = outcome.value or w.client.subscribe(topic, "typed", schema=StringSchema())
    outcome = yield lambda: w.client.create_producer(topic, "typed", schema=StringSchema())
    producer = outcome.value or w.client.create_producer(topic, "typed", schema=StringSchema())
    outcome = yield lambda: producer.use_schema(BytesSchema())
    producer.use_schema(StringSchema())
    producer.send("x")
    outcome = yield lambda: consumer.receive(PATIENCE_MS)
    outcome = yield lambda: w.client.create_reader(
        topic, MessageId.earliest, schema=AutoConsumeSchema()
    )
    producer.close()
    consumer.unsubscribe()
    assert [each.version() for each in w.client.admin.schemas.get_all_schemas(topic)] == [0]


def administer_schemas(w: World) -> Steps:
    admin = w.client.admin
    admin.topics.create_non_partitioned_topic(topic := f"described{w.count}")
    outcome = yield lambda: admin.schemas.create_schema(topic, StringSchema().schema_info())
    admin.schemas.create_schema(topic, StringSchema().schema_info())
    outcome = yield lambda: admin.schemas.get_schema_info(topic)
    outcome = yield lambda: admin.schemas.delete_schema(topic)
    admin.schemas.delete_schema(topic)
    assert admin.schemas.get_all_schemas(topic) == []
    outcome = yield lambda: admin.topics.set_schema_compatibility_strategy(topic, "FORWARD")
    if not outcome.interrupted:
        assert admin.topics.get_schema_compatibility_strategy(topic) == "FORWARD"
    w.count += 1


def administer_transactions(w: World) -> Steps:
    group, made = w.client.admin.transactions, w.client.new_transaction()
    yield group.get_transactions
    yield lambda: group.get_transaction_metadata(*made.txn_id())
    outcome = yield lambda: group.abort_transaction(*made.txn_id())
    if outcome.interrupted:
        try:
            group.abort_transaction(*made.txn_id())
        except errors.TransactionNotFound:
            pass  # it was done
    assert group.get_transactions() == []


CALLS: dict[str, Callable[[World], Steps]] = {
    "open_and_close": open_and_close,
    "open_and_shut_down": open_and_shut_down,
    "read_only": read_only,
    "create_and_close_producer": create_and_close_producer,
    "take_a_topic": take_a_topic,
    "wait_for_a_topic": wait_for_a_topic,
    "deduplicate": deduplicate,
    "send": send,
    "send_to_a_new_topic": send_to_a_new_topic,
    "send_in_batches": send_in_batches,
    "send_many": send_many,
    "send_delayed": send_delayed,
    "cancel_delayed": cancel_delayed,
    "send_to_partitions": send_to_partitions,
    "send_to_lazy_partitions": send_to_lazy_partitions,
    "subscribe_exclusive": subscribe_and_close("ex"),
    "subscribe_failover": subscribe_and_close("fo"),
    "subscribe_shared": subscribe_and_close("sh"),
    "subscribe_key_shared": subscribe_and_close("ks"),
    "subscribe_anew": subscribe_anew,
    "subscribe_to_several": subscribe_to_several,
    "subscribe_with_a_listener": subscribe_with_a_listener,
    "receive": taking("ex", lambda consumer: consumer.receive(PATIENCE_MS)),
    "receive_failover": taking("fo", lambda consumer: consumer.receive()),
    "receive_shared": taking("sh", lambda consumer: consumer.receive()),
    "receive_key_shared": taking("ks", lambda consumer: consumer.receive(PATIENCE_MS)),
    "receive_many": taking("sh", lambda consumer: consumer.receive_many(10)),
    "batch_receive": taking("ks", lambda consumer: consumer.batch_receive()),
    "acknowledge_otherwise": acknowledge_otherwise,
    "refuse_exclusive": refuse("ex"),
    "refuse_shared": refuse("sh"),
    "refuse_key_shared": refuse("ks"),
    "wait_for_a_message": wait_for_a_message,
    "receive_in_futures": receive_in_futures,
    "look_and_seek": look_and_seek,
    "letters": letters,
    "read": read,
    "read_partitions": read_partitions,
    "use_a_non_persistent_topic": use_a_non_persistent_topic,
    "view_a_table": view_a_table,
    "send_and_read_rows": send_and_read_rows,
    "subscribe_a_pattern": subscribe_a_pattern,
    "create_topics": create_topics,
    "create_with_a_schema": create_with_a_schema,
    "administer_schemas": administer_schemas,
    "administer_transactions": administer_transactions,
    "create_and_delete": create_and_delete,
    "move_subscriptions": move_subscriptions,
    "administer": administer,
    "administer_without_a_client": administer_without_a_client,
    "back_up": back_up,
    "back_up_over_http": back_up_over_http,
    "serve_a_folder": serve_a_folder,
    "serve_a_folder_over_http": serve_a_folder_over_http,
    "run_a_function": run_a_function,
    "forward_a_topic": forward_a_topic,
    "advance_a_clock": advance_a_clock,
}
