"""Facts about forked children: clients and producers are the child's own at first use, all else is
a clear error at once; no hang, no damage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from child_process import run_program
from seeds import scaled
from topic_reading import numbers, whole_topic

import pulsarx
from pulsarx.ground.fork import BEFORE, IN_CHILD

FORK = """
import os, sys, signal, threading, pulsarx
from pulsarx import errors, MessageId
url, durability = sys.argv[1:3]
client = pulsarx.Client(url, durability=durability)
producer = client.create_producer("t", producer_name="p")
batched = client.create_producer("t", batching_enabled=True, batching_max_publish_delay_ms=10**6)
consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
several = client.subscribe(["u", "v"], "s")
reader = client.create_reader("t", MessageId.earliest)
for number in range(5):
    producer.send(b"%d" % number)
batched.send_async(b"5", None)
message = consumer.receive(0)
client.admin.topics.create_partitioned_topic("x", 2)
spread = client.create_producer("x", lazy_start_partitioned_producers=True)
calls = {
    "spread": lambda: spread.send(b"child"),
    "spread by key": lambda: spread.send_async(b"child", None, partition_key="k"),
    "spread list": lambda: spread.send_many([b"child"]),
    "flush spread": lambda: spread.flush(),
    "close spread": lambda: spread.close(),
    "send": lambda: producer.send(b"child"),
    "send_async": lambda: producer.send_async(b"child", None),
    "send_many": lambda: producer.send_many([b"child"]),
    "batched": lambda: batched.send_async(b"child", None),
    "flush": lambda: batched.flush(),
    "close producer": lambda: batched.close(),
    "receive": lambda: consumer.receive(),
    "receive_many": lambda: consumer.receive_many(10),
    "batch_receive": lambda: consumer.batch_receive(),
    "receive_async": lambda: consumer.receive_async(),
    "receive of several": lambda: several.receive(),
    "receive_many of several": lambda: several.receive_many(5),
    "receive_async of several": lambda: several.receive_async(),
    "has_message of several": lambda: several.has_message(),
    "close several": lambda: several.close(),
    "acknowledge": lambda: consumer.acknowledge(message),
    "acknowledge by id": lambda: consumer.acknowledge(message.message_id()),
    "cumulative": lambda: consumer.acknowledge_cumulative(message),
    "acknowledge_many": lambda: consumer.acknowledge_many([message]),
    "seek": lambda: consumer.seek(MessageId.earliest),
    "unsubscribe": lambda: consumer.unsubscribe(),
    "last id": lambda: consumer.get_last_message_id(),
    "redeliver": lambda: consumer.redeliver_unacknowledged_messages(),
    "close consumer": lambda: consumer.close(),
    "read_next": lambda: reader.read_next(),
    "available": lambda: reader.has_message_available(),
    "seek reader": lambda: reader.seek(MessageId.earliest),
    "close reader": lambda: reader.close(),
    "create_producer": lambda: client.create_producer("t"),
    "subscribe": lambda: client.subscribe("t", "s2"),
    "create_reader": lambda: client.create_reader("t", MessageId.earliest),
    "admin": lambda: client.admin,
    "close": lambda: client.close(),
}
"""

FORK += """
for name in ("close spread", "close producer", "close"):  # there is nothing to do
    del calls[name]
if url != "memory:":  # there clients and producers are the child's own; see tests/sharing
    for name in (
        "spread", "spread by key", "spread list", "flush spread", "send", "send_async",
        "send_many", "batched", "flush", "create_producer", "subscribe", "create_reader", "admin",
    ):
        del calls[name]
"""

CHILD_CALLS_EVERYTHING = (
    FORK
    + """
stop = threading.Event()
def busy():
    other = client.create_producer("u", block_if_queue_full=True)
    while not stop.is_set():
        other.send_async(b"x", lambda result, message_id: None)
        client.get_topic_partitions("u")
thread = threading.Thread(target=busy)
thread.start()
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    for name, call in calls.items():
        try:
            print(name, "returned", call())
        except errors.ForkedError:
            pass
        except BaseException as error:
            print(name, repr(error))
    assert message.data() == b"0"
    del calls, producer, batched, spread, consumer, reader, client
    sys.stdout.flush()
    sys.exit(0)
_, status = os.waitpid(pid, 0)
stop.set()
thread.join()
print("child", status)
consumer.acknowledge(message)
producer.send(b"6")
client.close()
"""
)


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_a_forked_child_gets_an_error_and_the_parent_goes_on(folder: Path, durability: str) -> None:
    assert run_program(CHILD_CALLS_EVERYTHING, folder, durability) == ["child 0"]
    with pulsarx.Client(folder) as client:
        # The open batch was the parent's: it is stored once, when the parent closes.
        assert sorted(whole_topic(client)) == numbers(7)
        consumer = client.subscribe("t", "s")
        assert len(consumer.receive_many(100, 0)) == 6


def test_a_forked_child_of_memory_gets_an_error_as_well() -> None:
    assert run_program(CHILD_CALLS_EVERYTHING, "memory:", "sync") == ["child 0"]


MANY_CHILDREN = (
    FORK
    + """
stop = threading.Event()
fenced = client.create_producer("fenced")
client.create_producer("fenced", access_mode=pulsarx.ProducerAccessMode.ExclusiveWithFencing)
own = {"fenced": fenced}
def publish(number):
    mine = client.create_producer("u", batching_enabled=number == 0, block_if_queue_full=True)
    own[f"busy {number}"] = mine
    while not stop.is_set():
        mine.send_async(b"x", lambda result, message_id: None)
        mine.flush()
def consume():
    mine = client.subscribe("u", "storm", pulsarx.ConsumerType.Shared)
    while not stop.is_set():
        mine.acknowledge_many(mine.receive_many(50, 5))
def come_and_go():
    while not stop.is_set():
        client.create_reader("u", MessageId.earliest).close()
        client.admin.topics.stats("u")
threads = [threading.Thread(target=publish, args=(number,)) for number in range(2)]
threads += [threading.Thread(target=call) for call in (consume, come_and_go)]
for thread in threads:
    thread.start()
for _ in range(int(sys.argv[3])):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        for name, call in dict(calls).items():
            try:
                print(name, "returned", call())
            except errors.ForkedError:
                pass
        for name, each in dict(own).items():
            try:
                each.send(b"child")
            except errors.ProducerBusy:
                if name != "fenced":
                    print(name, "is busy")
        with pulsarx.Client("memory:") as mine:
            mine.create_producer("t").send(b"child")
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        print("child", status)
    producer.send(b"6")
    print(".", flush=True)
stop.set()
for thread in threads:
    thread.join()
client.close()
"""
)


@pytest.mark.standard
@pytest.mark.parametrize("durability", ["sync", "os"])
def test_many_children_are_forked_while_all_threads_work(folder: Path, durability: str) -> None:
    """Whatever lock a thread holds at that moment, no child waits for it. One that sent by a
    producer of such a thread, or closed one that was fenced, did."""
    count = scaled(15)
    assert run_program(MANY_CHILDREN, folder, durability, count) == ["."] * count
    with pulsarx.Client(folder) as client:
        assert sorted(whole_topic(client)) == numbers(6) + [b"6"] * count


def test_a_child_may_open_a_client_of_its_own(folder: Path) -> None:
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.create_producer("t").send(b"parent")
pid = os.fork()
if pid == 0:
    try:
        pulsarx.Client(sys.argv[1], exclusive=True)
    except pulsarx.errors.FolderOwnedError as error:
        print(str(os.getppid()) in str(error), flush=True)
    with pulsarx.Client("memory:") as own:
        own.create_producer("t").send(b"child")
    with pulsarx.Client(sys.argv[1], read_only=True) as beside:
        reader = beside.create_reader("t", pulsarx.MessageId.earliest)
        print(reader.read_next(0).data(), flush=True)
    sys.exit(0)
os.waitpid(pid, 0)
client.close()
"""
    assert run_program(program, folder) == ["True", "b'parent'"]


def test_a_child_that_outlives_its_parent_does_not_hold_the_folder(folder: Path) -> None:
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.create_producer("t").send(b"x")
reading, writing = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(reading, 1)
    os._exit(0)
client.close()
with pulsarx.Client(sys.argv[1]) as again:
    print(again.create_reader("t", pulsarx.MessageId.earliest).read_next(0).data())
os.write(writing, b"x")
os.waitpid(pid, 0)
"""
    assert run_program(program, folder) == ["b'x'"]


def test_a_reader_of_a_read_only_client_is_left_to_the_parent(folder: Path) -> None:
    program = """
import os, sys, signal, pulsarx
from pulsarx import errors, MessageId
client = pulsarx.Client(sys.argv[1], read_only=True)
reader = client.create_reader("t", MessageId.earliest)
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    for call in (reader.read_next, reader.has_message_available, reader.close):
        try:
            print("returned", call())
        except errors.ForkedError:
            pass
    with client.create_reader("t", MessageId.earliest) as own:
        print(own.read_next(0).data())
    sys.stdout.flush()
    sys.exit(0)
os.waitpid(pid, 0)
print(reader.read_next(0).data())
"""
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"x")
        assert run_program(program, folder) == ["b'x'"] * 2


STEPS = """
import os
import pulsarx
from pulsarx.ground import fork

def fail():
    raise ValueError("of one step")

fork._renew.update({place: lambda place=place: print("child", place) for place in fork.IN_CHILD})
fork._before.update({place: lambda place=place: print("parent", place) for place in fork.BEFORE})
fork._renew["clock"] = fail
fork._abandon.clear()
child = os.fork()
if child == 0:
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
"""


def test_the_steps_of_a_fork_are_taken_in_their_order_whatever_was_loaded_first() -> None:
    program = "import sys\n" + STEPS
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    lines = told.stdout.split("\n")
    children = [f"child {each}" for each in IN_CHILD if each != "clock"]
    assert lines[: len(BEFORE)] == [f"parent {each}" for each in BEFORE]
    assert [each for each in lines if each.startswith("child")] == children
    assert "ValueError: of one step" in told.stderr
