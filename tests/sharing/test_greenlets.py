"""Programs of gevent: threads and locks of the library are the system's, and a call that waits lets
the other greenlets of its thread run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pulsarx

pytestmark = pytest.mark.standard

TREE = Path(pulsarx.__file__).parent.parent
PATIENCE_S = 170

PATCHED = """
from gevent import monkey
monkey.patch_all()
import os, threading
import gevent
import pulsarx
from pulsarx import ConsumerType, InitialPosition
FOLDER = os.environ["FOLDER"]
"""
AFTER = """
import os, threading
import gevent
import pulsarx
from gevent import monkey
monkey.patch_all()
from pulsarx import ConsumerType, InitialPosition
FOLDER = os.environ["FOLDER"]
"""
UNPATCHED = PATCHED.replace("monkey.patch_all()", "")

# The receiver waits first, each time: only the other greenlet can end that.
PING_PONG = """
client = pulsarx.Client(FOLDER)

def player(mine, other, begins):
    consumer = client.subscribe(mine, "s")
    producer = client.create_producer(other)
    ready.append(mine)
    while len(ready) < 2:
        gevent.sleep(0)
    if begins:
        producer.send(b"0")
    while True:
        message = consumer.receive()
        consumer.acknowledge(message)
        number = int(message.data())
        if number < 50:
            producer.send(b"%d" % (number + 1))
        if number >= 49:
            return number

ready = []
players = [gevent.spawn(player, "a", "b", True), gevent.spawn(player, "b", "a", False)]
print(sorted(each.get() for each in players))
client.close()
"""

# More greenlets than one thread can sleep for at once.
MANY = """
client = pulsarx.Client(FOLDER)
consumers = [client.subscribe(f"t{number}", "s") for number in range(150)]
waiting = [gevent.spawn(consumer.receive) for consumer in consumers]
gevent.sleep(0)
for number in range(150):
    client.create_producer(f"t{number}").send(b"%d" % number)
print([int(each.get().data()) for each in waiting] == list(range(150)))
client.close()
"""

ENDED = """
client = pulsarx.Client(FOLDER)
consumer = client.subscribe("t", "s")
waiting = gevent.spawn(consumer.receive)
gevent.sleep(0)
waiting.kill()
try:
    with gevent.Timeout(0.001):
        consumer.receive()
except gevent.Timeout:
    print("over")
try:
    consumer.receive(timeout_millis=1)
except pulsarx.Timeout:
    print("timeout")
client.create_producer("t").send(b"x")
print(consumer.receive().data())
client.close()
"""

# Each takes the lock of the program, which is gevent's, in a thread of the library.
CALLED_BACK = """
client = pulsarx.Client(FOLDER)
lock, came = threading.Lock(), []
def listen(consumer, message):
    with lock:
        came.append(message.data())
    consumer.acknowledge(message)
consumer = client.subscribe("t", "s", message_listener=listen)
producer = client.create_producer("t", batching_enabled=True)
def send(number):
    producer.send(b"%d" % number)
gevent.joinall([gevent.spawn(send, number) for number in range(20)], raise_error=True)
while len(came) < 20:
    gevent.sleep(0.001)
print(sorted(came, key=int) == [b"%d" % number for number in range(20)])
client.close()
"""

# A producer waits for another one to go, and a send for memory that a receive gives back.
WAITING = """
client = pulsarx.Client(FOLDER)
first = client.create_producer("t", access_mode=pulsarx.ProducerAccessMode.Exclusive)
second = gevent.spawn(
    client.create_producer, "t", access_mode=pulsarx.ProducerAccessMode.WaitForExclusive
)
gevent.sleep(0)
first.close()
second.get().send(b"x")
print("in turn")
client.close()
"""

# What is waited for comes while the wait is being begun, and is told before it has begun.
AT_ONCE = """
from pulsarx._pycore.ground.locks import Event
event = Event()
sleep = monkey.get_original("time", "sleep")
told = []

class Watcher:
    def __init__(self, real):
        self.real = real
    def send(self, *_):
        told.append(True)
        self.real.send()
    def start(self, *arguments):
        for _ in range(100):  # time for the thread that tells, should it know of this wait
            if told:
                break
            sleep(0.001)
        self.real.start(*arguments)
    def __getattr__(self, name):
        return getattr(self.real, name)

class Loops:
    def __init__(self, real):
        self.real = real
    def async_(self, *arguments, **named):
        event.set()
        self.async_ = self.real.async_
        return Watcher(self.real.async_(*arguments, **named))
    def __getattr__(self, name):
        return getattr(self.real, name)

waiting = gevent.spawn(event.wait)
loop = gevent.get_hub().loop
gevent.get_hub().loop = Loops(loop)
keeps = gevent.spawn(gevent.sleep, 60)  # else the loop tells that nothing can wake it
print(waiting.get(timeout=30))
"""


def require(package: str) -> None:
    """Not imported: what they do to forks is not for the process of the tests."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"no {package}: pip install {package}")


def run(program: str, folder: Path) -> str:
    require("gevent")
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "FOLDER": str(folder), "PYTHONPATH": str(TREE)},
    )
    assert not done.returncode and not done.stderr, done.stderr
    return done.stdout


@pytest.fixture(params=["owner", "beside"])
def place(request: pytest.FixtureRequest, folder: Path) -> Path:
    """A folder that the program owns, or another process, which is this one."""
    if request.param == "beside":
        request.getfixturevalue("owner")
    return folder


@pytest.fixture
def owner(folder: Path) -> Iterator[pulsarx.Client]:
    client = pulsarx.Client(folder)
    yield client
    client.close()


@pytest.mark.parametrize("start", [PATCHED, AFTER, UNPATCHED], ids=["before", "after", "never"])
def test_greenlets_that_wait_for_each_other_go_on(place: Path, start: str) -> None:
    assert run(start + PING_PONG, place) == "[49, 50]\n"


def test_any_number_of_greenlets_wait(place: Path) -> None:
    assert run(PATCHED + MANY, place) == "True\n"


def test_a_greenlet_that_waits_is_ended_by_others(place: Path) -> None:
    assert run(PATCHED + ENDED, place) == "over\ntimeout\nb'x'\n"


def test_what_comes_while_a_greenlet_begins_to_wait_is_heard(folder: Path) -> None:
    assert run(PATCHED + AT_ONCE, folder) == "True\n"


def test_threads_of_the_library_and_greenlets_share_locks(place: Path) -> None:
    assert run(PATCHED + CALLED_BACK, place) == "True\n"


def test_a_producer_waits_for_its_turn_in_a_greenlet(place: Path) -> None:
    assert run(PATCHED + WAITING, place) == "in turn\n"


def test_eventlet_is_refused_by_name(folder: Path) -> None:
    require("eventlet")
    program = """
import warnings
warnings.simplefilter("ignore")
import eventlet
eventlet.monkey_patch()
import os, pulsarx
try:
    pulsarx.Client(os.environ["FOLDER"])
except pulsarx.errors.NotAllowedError as error:
    print(error.detail)
"""
    said = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "FOLDER": str(folder), "PYTHONPATH": str(TREE)},
    ).stdout
    assert "eventlet has replaced the threads" in said and "use gevent" in said
