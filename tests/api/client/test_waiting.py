"""Facts about calls that wait, and signals that another thread is given.

The system wakes nobody then: the main thread looks, five times a second. Each call is struck twice,
first with a handler that returns, then with one that raises.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import run_program

PROGRAM = """
import _thread, os, signal, sys, threading, time, pulsarx
sys.path.append(sys.argv[2])
from datetime import timedelta
from sleeping_thread import until_asleep
from pulsarx import ConsumerType, MessageId, errors
from pulsarx.testing.faults import fault_plan

main = threading.current_thread()
raising, handled = False, threading.Event()
class Struck(Exception): pass
def handler(number, frame):
    handled.set()
    if raising:
        raise Struck
way = sys.argv[3]
number = signal.SIGINT if way == "interrupt_main" else signal.SIGUSR1
signal.signal(number, handler)
def strike():
    if way == "interrupt_main":
        _thread.interrupt_main()
    else:
        signal.raise_signal(number)

def seconds_until_it_ends(call):
    global raising
    raising, struck_at = False, []
    handled.clear()
    begun = threading.Event()
    def helper():
        global raising
        begun.wait()
        until_asleep(main)
        strike()
        assert handled.wait(60)
        until_asleep(main)
        raising = True
        struck_at.append(time.monotonic())
        strike()
    thread = threading.Thread(target=helper)
    thread.start()
    try:
        begun.set()
        call()
        ended = "returned"
    except Struck:
        ended = "interrupted"
    seconds = time.monotonic() - struck_at[0]
    raising = False
    thread.join()
    assert ended == "interrupted", ended
    return seconds

def check(name, call, before=lambda: None, after=lambda: None):
    # A busy machine may be late; not each of ten times.
    found = []
    while len(found) < 10 and (not found or min(found) > 0.25):
        before()
        try:
            found.append(seconds_until_it_ends(call))
        finally:
            after()
    assert min(found) <= 0.25, (name, found)
    print(name, flush=True)

client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t", max_pending_messages=1, block_if_queue_full=True)
producer.send(b"warm up")
"""
WAITS_FOR_MESSAGES = """
policy = pulsarx.ConsumerBatchReceivePolicy(10, -1, 60_000)
consumer = client.subscribe("t", "s", batch_receive_policy=policy)
shared = client.subscribe("t", "shared", ConsumerType.Shared)
several = client.subscribe(["t", "u"], "several", batch_receive_policy=policy)
reader = client.create_reader("t", MessageId.latest)
foreign = pulsarx.Client(sys.argv[1], read_only=True).create_reader("t", MessageId.latest)
check("receive", consumer.receive)
check("receive with a timeout", lambda: consumer.receive(60_000))
check("receive of a shared subscription", shared.receive)
check("receive_many", lambda: consumer.receive_many(10))
check("receive_arrow", lambda: consumer.receive_arrow(10, 60_000))
check("batch_receive", consumer.batch_receive)
check("receive of several", several.receive)
check("receive of several with a timeout", lambda: several.receive(60_000))
check("batch_receive of several", several.batch_receive)
check("a future", lambda: shared.receive_async().result())
check("a future with a timeout", lambda: several.receive_async().result(60))
check("read_next", reader.read_next)
check("read_next with a timeout", lambda: reader.read_next(60_000))
check("read_many", lambda: reader.read_many(5))
check("read_next of a read-only client", foreign.read_next)

clock = pulsarx.ManualClock()
clocked = pulsarx.Client("memory:clocked", clock=clock)
busy = threading.Event()
clocked.subscribe("t", "s", ConsumerType.Shared, message_listener=lambda *_: busy.wait(30))
delayed = clocked.create_producer("t")
def delay():
    busy.clear()
    delayed.send(b"x", deliver_after=timedelta(seconds=1))
check("advance", lambda: clock.advance(1), delay, busy.set)
clocked.close()
client.close()
"""
WAITS_FOR_THE_DISK = """
plan = None
def stall():
    global plan
    entered = fault_plan()
    plan = entered.__enter__()
    plan.stall("flush", sticky=True)
    plan.leave = lambda: entered.__exit__(None, None, None)
def release():
    plan.release()
    plan.leave()
def fill():
    stall()
    producer.send_async(b"x", None)
    while not plan.stalled():
        os.sched_yield()
def emptied():
    release()
    producer.flush()
# Behind a flush that another thread is in; one's own is a single call of the system.
unlimited = client.create_producer("t")
check("send", lambda: unlimited.send(b"y"), fill, emptied)
check("send with a full queue", lambda: producer.send(b"y"), fill, emptied)
check("send_async with a full queue", lambda: producer.send_async(b"y", None), fill, emptied)
check("send_many", lambda: unlimited.send_many([b"y", b"z"]), fill, emptied)
check("flush", producer.flush, fill, emptied)
names = iter("abcdefghijklmnopqrstuvwxyz")
check("create_producer", lambda: client.create_producer(next(names)), stall, release)
check("subscribe", lambda: client.subscribe("t", next(names)), stall, release)
topics = client.admin.topics
check("create_topic", lambda: topics.create_partitioned_topic(next(names), 2), stall, release)
consumer = client.subscribe("t", "s")
check("seek", lambda: consumer.seek(MessageId.earliest), stall, release)

closing = None
def one_to_close():
    global closing
    closing = client.create_producer("t", batching_enabled=True)
    stall()
    closing.send_async(b"z", None)
def closed():
    release()
    closing.close()
check("close of a producer", lambda: closing.close(), one_to_close, closed)
def unsubscribed():
    release()
    client.subscribe("t", "gone").unsubscribe()
check("unsubscribe", lambda: gone.unsubscribe(), lambda: (globals().update(
    gone=client.subscribe("t", "gone")), stall()), unsubscribed)

second = None
def open_second():
    global second
    second = pulsarx.Client(sys.argv[1] + "2")
    second.create_producer("t").send_async(b"z", None)
    stall()
def close_second():
    release()
    second.close()
check("close of a client", lambda: second.close(), open_second, close_second)
client.close()
"""
HERE = Path(__file__).parent.parent


@pytest.mark.standard
@pytest.mark.parametrize("way", ["raise_signal", "interrupt_main"])
def test_every_wait_for_messages_ends_soon_whoever_got_the_signal(folder: Path, way: str) -> None:
    said = run_program(PROGRAM + WAITS_FOR_MESSAGES, folder, HERE, way)
    assert len(said) == 16 and said[-1] == "advance"


@pytest.mark.standard
@pytest.mark.parametrize("way", ["raise_signal", "interrupt_main"])
def test_every_wait_for_the_disk_ends_soon_whoever_got_the_signal(folder: Path, way: str) -> None:
    said = run_program(PROGRAM + WAITS_FOR_THE_DISK, folder, HERE, way)
    assert len(said) == 12 and said[-1] == "close of a client"


@pytest.mark.standard
def test_looking_for_signals_costs_nearly_nothing_and_only_the_main_thread_does(
    folder: Path,
) -> None:
    program = """
import os, resource, sys, threading, time, pulsarx
sys.path.insert(0, sys.argv[2])
from sleeping_thread import until_asleep
client = pulsarx.Client(sys.argv[1])
consumer = client.subscribe("t", "s")
other = client.subscribe("t", "other")
producer = client.create_producer("t")
waiting = threading.Thread(target=other.receive)
waiting.start()
def switches():
    with open(f"/proc/self/task/{waiting.native_id}/status") as file:
        text = file.read()
    return text[text.index("voluntary_ctxt"):]
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
def watch():
    until_asleep(waiting)
    found = []
    # A look costs more on a busy machine; not in each of ten times.
    while len(found) < 3 or (len(found) < 10 and min(found) >= 0.001):
        before, switched, began = used(), switches(), time.monotonic()
        time.sleep(1.5)
        assert switches() == switched, "a thread that is not the main one looked"
        found.append((used() - before) / (time.monotonic() - began))
    print(min(found), flush=True)
    producer.send(b"end")
threading.Thread(target=watch).start()
consumer.receive()
waiting.join()
client.close()
"""
    (share,) = run_program(program, folder, HERE)
    assert float(share) < 0.001
