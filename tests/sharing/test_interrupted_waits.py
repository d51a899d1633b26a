"""Facts about calls that wait for an owner that is stopped, and are interrupted there."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess

pytestmark = pytest.mark.standard

PROGRAM = """
import signal

class Cut(BaseException): pass

def cut(*_): raise Cut

signal.signal(signal.SIGALRM, cut)

def is_cut(call, seconds):
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
    except Cut:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False

def always(call):
    while True:
        call()

def sees():
    found = client.admin.topics.stats('t')
    there = found['subscriptions'].items()
    return len(found['publishers']), {name: len(each['consumers']) for name, each in there}

producer = client.create_producer('t')
batches = client.create_producer('t', batching_enabled=True)
consumer = client.subscribe('t', 's')
queueless = client.subscribe('t', 'q', receiver_queue_size=0)
reader = client.create_reader('t', MessageId.earliest)
producer.send(b'1')
message = consumer.receive(60000)
reader.read_next(60000)
"""
MADE = (2, {"s": 1, "q": 1})
CALLS: dict[str, tuple[Any, ...]] = {
    "client.create_producer('t')": MADE,
    "client.subscribe('t', 'n')": MADE,
    "client.create_producer('another')": MADE,
    "client.create_table_view('another')": MADE,
    "client.admin.topics.stats('t')": MADE,
    "consumer.seek(MessageId.earliest)": MADE,
    "always(consumer.receive)": MADE,
    "always(lambda: consumer.receive_many(5, 0))": MADE,
    "always(queueless.receive)": MADE,
    "always(reader.read_next)": MADE,
    "producer.send(b'2')": MADE,
    "(batches.send_async(b'3', None), batches.flush())": MADE,
    "batches.close()": (1, {"s": 1, "q": 1}),
    "queueless.close()": (1, {"s": 1, "q": 0}),
    "consumer.unsubscribe()": (1, {"q": 0}),
}


def test_each_wait_for_a_stopped_owner_is_ended_by_a_signal(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """What the call had asked for is done, or given back, when the owner goes on."""
    owner = SharingProcess(folder)
    processes.append(owner)
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run(PROGRAM)
    for call, expected in CALLS.items():
        os.kill(owner.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
        # What changes something has to have asked for it by then, on a busy machine too.
        seconds = 0.2 if expected == MADE else 2
        assert guest.run(f"is_cut(lambda: {call}, {seconds})"), call
        os.kill(owner.pid, signal.SIGCONT)
        pause = threading.Event()
        for _ in range(1200):  # what was made for it is closed in the background
            if guest.run("sees()") == expected:
                break
            pause.wait(0.05)
        assert guest.run("sees()") == expected, call
