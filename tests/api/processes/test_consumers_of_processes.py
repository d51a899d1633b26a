"""Facts about consumers of one subscription that are in different processes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from topic_reading import OpenClient

import pulsarx
from pulsarx import ConsumerType, InitialPosition, errors

pytestmark = pytest.mark.standard

PATIENCE_MS = 60_000
SHORT_MS = 200  # for what does not come, however long one waits

# Subscribes, and does what its lines of input say.
CONSUMER = """
import json, select, sys
import pulsarx
folder, kind, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
client = pulsarx.Client(folder)
consumer = client.subscribe(
    options.pop("topic", "t"), "s", getattr(pulsarx.ConsumerType, kind),
    initial_position=pulsarx.InitialPosition.Earliest, **options)
held = []
print("ready", flush=True)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "receive":
        for _ in range(int(rest)):
            held.append(consumer.receive(60000))
        print(json.dumps([each.data().decode() for each in held[-int(rest):]]), flush=True)
    elif word == "drain":
        found = []
        while True:
            try:
                found.append(consumer.receive(int(rest)))
            except pulsarx.Timeout:
                break
            consumer.acknowledge(found[-1])
        print(json.dumps([each.data().decode() for each in found]), flush=True)
    elif word == "share":  # one, and from the next line on until another comes
        found = [consumer.receive()]
        consumer.acknowledge(found[0])
        print("done", flush=True)
        sys.stdin.readline()
        while not select.select([sys.stdin], [], [], 0)[0]:
            try:
                found.append(consumer.receive(int(rest)))
            except pulsarx.Timeout:
                continue
            consumer.acknowledge(found[-1])
        print(json.dumps([each.data().decode() for each in found]), flush=True)
    elif word == "acknowledge":
        consumer.acknowledge(held[int(rest)])
        print("done", flush=True)
    elif word == "acknowledge_cumulative":
        consumer.acknowledge_cumulative(held[int(rest)])
        print("done", flush=True)
    elif word == "refuse":
        consumer.negative_acknowledge(held[int(rest)])
        print("done", flush=True)
    elif word == "seek":
        consumer.seek(pulsarx.MessageId.earliest)
        print("done", flush=True)
    elif word == "send":
        producer = client.create_producer("t")
        producer.send(rest.encode())
        print("done", flush=True)
    elif word == "close":
        client.close()
        break
"""

TYPES = ["Exclusive", "Shared", "Failover", "KeyShared"]
all_types = pytest.mark.parametrize("kind", TYPES)


class Consumer(ChildProcess):
    """A consumer in a process of its own."""

    def __init__(self, folder: Path, kind: str, **options: object) -> None:
        super().__init__(CONSUMER, folder, kind, json.dumps(options))
        assert self.line() == "ready"

    def receive(self, count: int) -> list[str]:
        self.tell(f"receive {count}")
        found: list[str] = json.loads(self.line())
        return found

    def stop(self) -> None:
        """Return when none of its threads runs any more."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def do(self, what: str) -> None:
        self.tell(what)
        assert self.line() == "done"


def publish(client: pulsarx.Client, count: int, topic: str = "t") -> list[str]:
    texts = [str(number) for number in range(count)]
    with_keys = client.create_producer(topic)
    for text in texts:
        with_keys.send(text.encode(), partition_key=text)
    with_keys.close()
    return texts


def subscribe(client: pulsarx.Client, kind: str, **options: Any) -> pulsarx.Consumer:
    start = InitialPosition.Earliest
    return client.subscribe(
        "t", "s", getattr(ConsumerType, kind), initial_position=start, **options
    )


def next_texts(consumer: pulsarx.Consumer, count: int) -> list[str]:
    return [consumer.receive(PATIENCE_MS).data().decode() for _ in range(count)]


@all_types
def test_what_the_owner_publishes_is_received_and_acknowledged_in_another_process(
    open_client: OpenClient, folder: Path, kind: str
) -> None:
    client = open_client()
    texts = publish(client, 5)
    with Consumer(folder, kind) as consumer:
        assert consumer.receive(5) == texts
        for number in range(3):
            consumer.do(f"acknowledge {number}")
        consumer.tell("close")
        consumer.end()
    stats = client.admin.topics.stats("t")["subscriptions"]["s"]
    assert stats["msg_backlog"] == 2
    assert next_texts(subscribe(client, kind), 2) == texts[3:]


@all_types
def test_what_a_killed_process_had_comes_to_the_next_one_but_for_what_it_acknowledged(
    open_client: OpenClient, folder: Path, kind: str
) -> None:
    client = open_client()
    texts = publish(client, 5)
    with Consumer(folder, kind) as killed:
        assert killed.receive(3) == texts[:3]
        killed.do("acknowledge 1")
        killed.kill()
        while True:
            try:
                after = subscribe(client, kind)
                break
            except errors.ConsumerBusy:  # of an Exclusive one: until its end is seen
                pass
        assert next_texts(after, 4) == ["0", "2", "3", "4"]


def consumers_of(client: pulsarx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.admin.topics.stats("t")["subscriptions"]["s"]["consumers"]
    return found


@pytest.mark.parametrize("kind", ["Shared", "KeyShared"])
def test_processes_share_the_messages_of_a_subscription(
    open_client: OpenClient, folder: Path, kind: str
) -> None:
    client = open_client()
    client.create_producer("t").close()
    with Consumer(folder, kind) as first, Consumer(folder, kind) as second:
        mine = subscribe(client, kind)
        # What each has room for comes over its connection: without it all may go to the others.
        while not all(each["available_permits"] for each in consumers_of(client)):
            pass
        texts = publish(client, 300)
        for each in (first, second):
            each.do(f"share {SHORT_MS}")
        message = mine.receive(PATIENCE_MS)
        mine.acknowledge(message)
        found = [message.data().decode()]
        for each in (first, second):
            each.tell("go on")  # each has got something
        while client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"]:
            try:
                message = mine.receive(SHORT_MS)
            except errors.Timeout:
                continue
            mine.acknowledge(message)
            found.append(message.data().decode())
        for each in (first, second):
            each.tell("stop")
        parts = [found, json.loads(first.line()), json.loads(second.line())]
    assert sorted((text for part in parts for text in part), key=int) == texts
    assert all(part == sorted(part, key=int) for part in parts)


def test_a_deposed_consumer_that_is_stopped_holds_its_successor_back(
    open_client: OpenClient, folder: Path
) -> None:
    """It has messages in its queue, which it may hand out when it goes on."""
    client = open_client()
    texts = publish(client, 5)
    with Consumer(folder, "Failover", priority_level=1) as stopped:
        assert stopped.receive(1) == texts[:1]
        stopped.stop()
        successor = subscribe(client, "Failover", priority_level=0)
        with pytest.raises(errors.Timeout):
            successor.receive(SHORT_MS)
        stopped.signal(signal.SIGCONT)
        assert next_texts(successor, 5) == texts
        stopped.tell(f"drain {SHORT_MS}")
        assert json.loads(stopped.line()) == []


def test_the_successor_of_a_stopped_consumer_goes_on_when_that_is_killed(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client()
    texts = publish(client, 5)
    with Consumer(folder, "Failover", priority_level=1) as stopped:
        assert stopped.receive(1) == texts[:1]
        stopped.stop()
        successor = subscribe(client, "Failover", priority_level=0)
        with pytest.raises(errors.Timeout):
            successor.receive(SHORT_MS)
        stopped.kill()
        assert next_texts(successor, 5) == texts


@all_types
def test_a_seek_of_another_process_brings_everything_again(
    open_client: OpenClient, folder: Path, kind: str
) -> None:
    client = open_client()
    texts = publish(client, 5)
    with Consumer(folder, kind) as consumer:
        assert consumer.receive(5) == texts
        for number in range(5):
            consumer.do(f"acknowledge {number}")
        consumer.do("seek")
        assert consumer.receive(5) == texts


@pytest.mark.parametrize("kind", ["Exclusive", "Failover"])
def test_a_cumulative_acknowledgement_of_another_process_counts(
    open_client: OpenClient, folder: Path, kind: str
) -> None:
    client = open_client()
    texts = publish(client, 5)
    with Consumer(folder, kind) as consumer:
        assert consumer.receive(4) == texts[:4]
        consumer.do("acknowledge_cumulative 2")
        consumer.tell("close")
        consumer.end()
    assert next_texts(subscribe(client, kind), 2) == texts[3:]


@all_types
def test_a_message_that_is_refused_comes_again(
    open_client: OpenClient, folder: Path, kind: str
) -> None:
    client = open_client()
    publish(client, 1)
    with Consumer(folder, kind, negative_ack_redelivery_delay_ms=1) as consumer:
        assert consumer.receive(1) == ["0"]
        consumer.do("refuse 0")
        assert consumer.receive(1) == ["0"]


def test_the_consumer_of_a_partitioned_topic_gets_new_partitions_in_another_process(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("p", 2)
    with Consumer(folder, "Shared", topic="p") as consumer:
        texts = publish(client, 10, "p")
        assert sorted(consumer.receive(10), key=int) == texts
        client.admin.topics.update_partitioned_topic("p", 3)
        client.create_producer("p-partition-2").send(b"new")
        assert consumer.receive(1) == ["new"]


@all_types
def test_consumers_go_on_when_another_process_becomes_the_owner(
    open_client: OpenClient, folder: Path, kind: str
) -> None:
    """What was handed out stays so, and what was acknowledged is acknowledged."""
    owner_program = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1], durability="os")
producer = client.create_producer("t")
for number in range(6):
    producer.send(b"%d" % number, partition_key=str(number))
print("ready", flush=True)
sys.stdin.readline()
"""
    with ChildProcess(owner_program, folder) as owner:
        assert owner.line() == "ready"
        client = open_client(durability=None)
        consumer = subscribe(client, kind)
        held = [consumer.receive(PATIENCE_MS) for _ in range(3)]
        consumer.acknowledge(held[0])
        owner.kill()
        consumer.acknowledge(held[1])
        assert next_texts(consumer, 3) == ["3", "4", "5"]
        with pytest.raises(errors.Timeout):
            consumer.receive(0)
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 4
        consumer.close()
        assert next_texts(subscribe(client, kind), 4) == ["2", "3", "4", "5"]


WAYS = {
    "receive_many": "print([m.data() for m in subscribe().receive_many(3, 60000)][:1])",
    "arrow": """
consumer = subscribe()
columns = consumer.receive_arrow(3, 60000)
consumer.acknowledge_many(columns)
print([columns.to_arrow()["value"][0].as_py()])
""",
    "batch_receive": "print([m.data() for m in subscribe().batch_receive()][:1])",
    "iteration": "print([next(iter(subscribe())).data()])",
    "listener": """
import threading
found, came = [], threading.Event()
def listen(consumer, message):
    found.append(message.data())
    came.set()
subscribe(message_listener=listen)
came.wait(60)
print(found[:1])
""",
    "receive_async": "print([subscribe().receive_async().result(60).data()])",
    "several topics": "print([subscribe(['t', 'empty']).receive(60000).data()])",
    "pattern": """
import re
print([subscribe(re.compile('public/default/t.*')).receive(60000).data()])
""",
    "asyncio": """
import asyncio
from pulsarx import aio
async def main():
    async with aio.Client(folder) as client:
        consumer = await client.subscribe("t", "s", initial_position=EARLIEST)
        print([(await consumer.receive()).data()])
asyncio.run(main())
""",
    "interceptor": """
class Seen(pulsarx.ConsumerInterceptor):
    def before_consume(self, consumer, message):
        return message
print([subscribe(interceptors=[Seen()]).receive(60000).data()])
""",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_every_way_to_receive_works_in_another_process(
    open_client: OpenClient, folder: Path, way: str
) -> None:
    publish(open_client(), 3)
    head = """
import sys, pulsarx
folder, EARLIEST = sys.argv[1], pulsarx.InitialPosition.Earliest
client = pulsarx.Client(folder)
def subscribe(topic="t", **options):
    return client.subscribe(topic, "s", initial_position=EARLIEST, **options)
"""
    with ChildProcess(head + way, folder) as child:
        assert child.end() == ["[b'0']"]


def test_dead_letters_of_another_process_are_kept(open_client: OpenClient, folder: Path) -> None:
    program = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
consumer = client.subscribe(
    "t", "s", pulsarx.ConsumerType.Shared, negative_ack_redelivery_delay_ms=1,
    initial_position=pulsarx.InitialPosition.Earliest,
    dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(1))
for _ in range(2):
    message = consumer.receive(60000)
    consumer.negative_acknowledge(message)
letters = client.subscribe("t-s-DLQ", "d", initial_position=pulsarx.InitialPosition.Earliest)
print(message.redelivery_count(), letters.receive(60000).data())
client.close()  # finishes what is under way: a letter is acknowledged after it was published
"""
    client = open_client()
    publish(client, 1)
    with ChildProcess(program, folder) as child:
        assert child.end() == ["1 b'0'"]
    assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0


def test_a_topic_that_comes_is_attached_to_a_pattern_in_another_process(
    open_client: OpenClient, folder: Path
) -> None:
    program = """
import re, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
consumer = client.subscribe(re.compile("public/default/new.*"), "s")
print("ready", flush=True)
print(consumer.receive(60000).data())
"""
    client = open_client()
    publish(client, 1)
    with ChildProcess(program, folder) as child:
        assert child.line() == "ready"
        publish(client, 1, "new-topic")
        assert child.end() == ["b'0'"]


def test_a_forked_child_of_another_process_cannot_use_its_consumer(
    open_client: OpenClient, folder: Path
) -> None:
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
message = consumer.receive(60000)
child = os.fork()
if not child:
    refused = 0
    for call in (lambda: consumer.receive(0), lambda: consumer.acknowledge(message)):
        try:
            call()
        except pulsarx.errors.ForkedError:
            refused += 1
    os._exit(refused)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
consumer.acknowledge(message)
print(consumer.receive(60000).data())
"""
    client = open_client()
    publish(client, 2)
    with ChildProcess(program, folder) as child:
        assert child.end() == ["2", "b'1'"]
    assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 1
