"""Facts about folders, clocks and locks after signals whose handlers raise.

All of them were found broken once: the broker's Python ran in the main thread, where a handler may
raise between any two instructions.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import ChildProcess
from seeds import new_seed, scaled

# Handlers that raise once for each time they are armed; arm(seconds) and disarmed().
ALARMS = """
import logging, os, random, signal, sys, threading, pulsarx
from pulsarx import ConsumerType, MessageId, errors
class Alarm(BaseException): pass
armed = False
def handler(number, frame):
    global armed
    if armed:
        armed = False
        raise Alarm
signal.signal(signal.SIGALRM, handler)
draw = random.Random(int(sys.argv[2]))
count = int(sys.argv[3])
def interrupted(seconds_max, work):
    "Whether the work was interrupted, which may be at any of its instructions."
    global armed
    raised = False
    try:
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, seconds_max))
            work()
        finally:
            armed = False
    except Alarm:
        raised = True
    armed = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    return raised
"""
READ = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1], read_only="ro" in sys.argv)
reader = client.create_reader("t", pulsarx.MessageId.earliest)
while found := reader.read_many(1000, 0):
    print(*(int(each.data()) for each in found), flush=True)
client.close()
"""


def run(program: str, folder: Path, count: int) -> list[str]:
    with ChildProcess(ALARMS + program, folder, new_seed(), count) as child:
        return child.end()


def read_by_another(folder: Path, *options: str) -> set[int]:
    with ChildProcess(READ, folder, *options) as child:
        return {int(word) for line in child.end() for word in line.split()}


def test_ctrl_c_in_the_middle_of_a_commit_leaves_a_folder_that_opens(folder: Path) -> None:
    """The commit was in its file and half in memory; closing wrote that down, and nobody could
    open the folder any more: CatalogueError, the topic has the ledger already."""
    program = """
import signal, sys, pulsarx
from pulsarx.broker.catalogue import draft
options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)
client = pulsarx.Client(sys.argv[1], durability="os", broker_options=options)
producer = client.create_producer("t")
for number in range(10):
    producer.send(b"%d" % number)
publish = draft._publish_into
struck = []
def publish_and_strike(known, changes):
    publish(known, changes)
    if changes and not struck:
        struck.append(True)
        signal.raise_signal(signal.SIGINT)
draft._publish_into = publish_and_strike
try:
    for number in range(10, 20):
        producer.send(b"%d" % number)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", struck)
try:
    client.close()
except KeyboardInterrupt:
    client.close()
"""
    with ChildProcess(program, folder) as child:
        assert child.end() == ["interrupted [True]"]
    assert read_by_another(folder, "ro") >= set(range(10))
    assert read_by_another(folder) >= set(range(10))


@pytest.mark.standard
def test_interrupts_while_ledgers_roll_over_lose_nothing(folder: Path) -> None:
    """The catalogue in memory or on disk was left inconsistent: every later send failed."""
    program = """
options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
client = pulsarx.Client(sys.argv[1], durability="os", broker_options=options)
consumer = client.subscribe("t", "s")
producer = client.create_producer("t")
confirmed, sent, times = [], 0, 0
def send():
    global sent
    for _ in range(10):
        sent += 1
        producer.send(b"%d" % sent)
        confirmed.append(sent)
while times < count:
    times += interrupted(2e-3, send)
received = set()
while found := consumer.receive_many(1000, 0):
    received.update(int(each.data()) for each in found)
assert not set(confirmed) - received, set(confirmed) - received
client.close()
print(*confirmed)
"""
    (line,) = run(program, folder, scaled(300))
    assert not {int(word) for word in line.split()} - read_by_another(folder)


@pytest.mark.standard
def test_an_interrupted_close_is_finished_by_a_second_one(tmp_path: Path) -> None:
    """The folder could not be opened again in this process, or messages were missing."""
    program = """
times = number = 0
while times < count:
    number += 1
    folder = f"{sys.argv[1]}/{number}"
    client = pulsarx.Client(folder, durability="os")
    consumer = client.subscribe("t", "s")
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=10_000
    )
    for _ in range(20):
        producer.send_async(b"x", None)
    if interrupted(4e-3, client.close):
        times += 1
        try:
            client.close()
        except errors.AlreadyClosed:
            pass
    # With other options: it would be refused if anything had it open.
    client = pulsarx.Client(folder, durability="interval")
    found = client.subscribe("t", "s").receive_many(100, 0)
    assert len(found) == 20, len(found)
    client.close()
print("done")
"""
    assert run(program, tmp_path / "many", scaled(40)) == ["done"]


@pytest.mark.standard
def test_interrupts_while_timers_are_armed_leave_the_clock_alive(folder: Path) -> None:
    """The clock's lock stayed taken: no timer of the process fired any more, and the interpreter
    hung when it ended."""
    program = """
client = pulsarx.Client(sys.argv[1], durability="os")
consumer = client.subscribe(
    "t", "s", ConsumerType.Shared, negative_ack_redelivery_delay_ms=5
)
producer = client.create_producer("t")
for _ in range(5):
    producer.send(b"x")
def refuse():
    for _ in range(40):
        for message in consumer.receive_many(5, 0):
            consumer.negative_acknowledge(message)
times = 0
while times < count:
    times += interrupted(6e-4, refuse)
consumer.redeliver_unacknowledged_messages()
consumer.negative_acknowledge(consumer.receive(60_000))
for _ in range(5):
    consumer.receive(20_000)
fired = threading.Event()
def arm():
    pulsarx.clock.system_clock().call_after(1, fired.set)
threading.Thread(target=arm).start()
assert fired.wait(60)
print("alive")  # and the interpreter ends, with the client open
"""
    assert run(program, folder, scaled(2000)) == ["alive"]
