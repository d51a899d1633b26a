"""Facts about clients and producers that a forked child inherited: they are its own at first use,
as another process's; consumers and readers are left to the parent."""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import run_program
from sharing_process import SharingProcess

import pulsarx
from pulsarx import MessageId

_BEGIN = """
import multiprocessing, os, signal, sys, threading
import pulsarx
from pulsarx import MessageId, errors
client = pulsarx.Client(sys.argv[1])
signal.alarm(170)
"""


def contents(folder: Path, topic: str) -> list[bytes]:
    with (
        pulsarx.Client(folder) as client,
        client.create_reader(topic, MessageId.earliest) as reader,
    ):
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).data())
        return found


CALLS = (
    _BEGIN
    + """
client.admin.topics.create_partitioned_topic("spread", 2)
producer = client.create_producer("t")
batched = client.create_producer(
    "t", batching_enabled=True, batching_max_publish_delay_ms=10**6, initial_sequence_id=41
)
texts = client.create_producer("texts", schema=pulsarx.schema.StringSchema())
spread = client.create_producer("spread")
reader = client.create_reader("t", MessageId.earliest)
batched.send_async(b"parent's batch", None)
producer.send(b"parent")
child = os.fork()
if child == 0:
    producer.send(b"child")
    batched.send_async(b"child's batch", None)
    batched.flush()
    print(batched.last_sequence_id())
    texts.send("text")
    spread.send(b"1")
    spread.send(b"2")
    print(reader.read_next(60000).data() if False else "")
    try:
        reader.read_next(0)
    except errors.ForkedError:
        print("the reader is the parent's")
    print(producer.producer_name() != sys.argv[2], client.create_producer("t").is_connected())
    client.admin.topics.create_non_partitioned_topic("made by the child")
    client.close()
    try:
        producer.send(b"closed")
    except errors.AlreadyClosed:
        print("closed")
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
producer.send(b"parent again")
client.close()
"""
)


@pytest.mark.parametrize("parent", ["owner", "guest"])
def test_a_child_uses_what_it_inherited_as_its_own(
    folder: Path, processes: list[SharingProcess], parent: str
) -> None:
    if parent == "guest":
        processes.append(SharingProcess(folder))
    told = run_program(CALLS, folder, "-")
    assert told == ["42", "", "the reader is the parent's", "True True", "closed"]
    # The open batch is the parent's: it is stored once, when the parent closes.
    assert contents(folder, "t") == [
        b"parent", b"child", b"child's batch", b"parent again", b"parent's batch",
    ]  # fmt: skip
    assert contents(folder, "texts") == [b"text"]
    assert sorted(contents(folder, "spread")) == [b"1", b"2"]


def test_a_name_that_was_given_stays_with_the_parent(folder: Path) -> None:
    program = (
        _BEGIN
        + """
producer = client.create_producer("t", producer_name="n")
child = os.fork()
if child == 0:
    try:
        producer.send(b"child")
    except errors.ProducerBusy:
        print("busy", flush=True)
    os._exit(0)
os.waitpid(child, 0)
producer.send(b"parent")
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.read(reading, 1)
    producer.send(b"child")
    client.close()
    os._exit(0)
client.close()
os.write(writing, b"x")
print(os.waitpid(child, 0)[1])
"""
    )
    assert run_program(program, folder) == ["busy", "0"]
    assert contents(folder, "t") == [b"parent", b"child"]


POOL = (
    _BEGIN
    + """
producer = client.create_producer("t")
def work(number):
    producer.send(b"%d" % number)
    return os.getpid()
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with context.Pool(4) as pool:
        found = pool.map(work, range(40), chunksize=1)
    print(os.getpid() in found)
    client.close()
"""
)


@pytest.mark.parametrize("parent", ["owner", "guest"])
def test_workers_of_multiprocessing_publish_by_one_producer(
    folder: Path, processes: list[SharingProcess], parent: str
) -> None:
    if parent == "guest":
        processes.append(SharingProcess(folder))
    assert run_program(POOL, folder) == ["False"]
    assert sorted(map(int, contents(folder, "t"))) == list(range(40))


# As gunicorn does it: a master that forks workers and forks others for those that died; each
# answers requests, here numbers that come through a pipe.
PRE_FORK = """
import os, signal, sys, traceback
import pulsarx
preload = sys.argv[2] == "preload"
signal.alarm(170)
def load():
    global client, producer
    client = pulsarx.Client(sys.argv[1])
    producer = client.create_producer("requests")
if preload:
    load()
reading, writing = os.pipe()
def worker():
    if not preload:
        load()
    os.close(writing)
    while True:
        request = os.read(reading, 4)
        if not request:
            break
        if request == b"die.":
            os.kill(os.getpid(), signal.SIGKILL)
        producer.send(request)
    client.close()
    os._exit(0)
def start():
    pid = os.fork()
    if pid == 0:
        try:
            worker()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return pid
workers = [start() for _ in range(4)]
for number in range(60):
    os.write(writing, b"%04d" % number)
    if number in (20, 40):
        os.write(writing, b"die.")
        pid, status = os.wait()
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        workers.remove(pid)
        workers.append(start())
os.close(writing)
for pid in workers:
    assert os.waitpid(pid, 0)[1] == 0
print("done")
"""


@pytest.mark.parametrize("how", ["preload", "lazily"])
def test_workers_of_a_web_server_answer_all_requests(folder: Path, how: str) -> None:
    """Of 40 requests to a server with 4 workers 32 failed."""
    assert run_program(PRE_FORK, folder, how) == ["done"]
    assert sorted(map(int, contents(folder, "requests"))) == list(range(60))


# As celery does it: a parent with threads of its own that forks a worker for some tasks, then
# another one; the tasks use the client of the module.
TASKS = (
    _BEGIN
    + """
stop = threading.Event()
def publish():
    mine = client.create_producer("parent")
    while not stop.is_set():
        mine.send(b"x")
thread = threading.Thread(target=publish)
thread.start()
def task(number):
    with_callback = []
    producer = client.create_producer("tasks", batching_enabled=True)
    for part in range(5):
        payload = b"%d" % (5 * number + part)
        producer.send_async(payload, lambda result, _: with_callback.append(result))
    producer.flush()
    producer.close()
    return with_callback == [pulsarx.Result.Ok] * 5
context = multiprocessing.get_context("fork")
with context.Pool(2, maxtasksperchild=2) as pool:
    print(all(pool.map(task, range(12), chunksize=1)))
stop.set()
thread.join()
client.close()
"""
)


def test_tasks_of_workers_that_come_and_go_use_the_parents_client(folder: Path) -> None:
    assert run_program(TASKS, folder) == ["True"]
    assert sorted(map(int, contents(folder, "tasks"))) == list(range(60))


def test_a_child_goes_on_when_its_parent_dies(folder: Path) -> None:
    program = (
        _BEGIN
        + """
from pulsarx.testing import inspect
producer = client.create_producer("t")
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.close(reading)
    producer.send(b"1")
    os.write(writing, b"x")
    while os.getppid() == int(sys.argv[2]) or True:
        producer.send(b"2")
        if inspect(client).owns_folder:
            break
    client.close()
    os.write(writing, b"y")
    os._exit(0)
os.read(reading, 1)
if os.fork() == 0:  # watches, as the parent dies
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    import subprocess
    import sys

    process = subprocess.run(
        [sys.executable, "-c", program, folder, "0"], capture_output=True, timeout=60
    )
    assert process.returncode == -9, process.stderr
    # The pipes of the run end with the last of its children.
    found = contents(folder, "t")
    assert found[0] == b"1"
    assert set(found[1:]) == {b"2"}


def test_what_was_not_used_costs_a_child_nothing(folder: Path) -> None:
    program = (
        _BEGIN
        + """
producer = client.create_producer("t")
child = os.fork()
if child == 0:
    producer.close()
    client.close()
    os._exit(0)
print(os.waitpid(child, 0)[1])
producer.send(b"1")
print(len(client.admin.topics.stats("t")["publishers"]))
client.close()
"""
    )
    assert run_program(program, folder) == ["0", "1"]


def test_a_child_of_a_child_is_a_process_as_any_other(folder: Path) -> None:
    program = (
        _BEGIN
        + """
producer = client.create_producer("t")
producer.send(b"parent")
child = os.fork()
if child == 0:
    producer.send(b"child")
    grandchild = os.fork()
    if grandchild == 0:
        producer.send(b"grandchild")
        client.close()
        os._exit(0)
    os.waitpid(grandchild, 0)
    producer.send(b"child again")
    client.close()
    os._exit(0)
os.waitpid(child, 0)
client.close()
"""
    )
    assert run_program(program, folder) == []
    assert contents(folder, "t") == [b"parent", b"child", b"grandchild", b"child again"]


def test_memory_stays_in_its_process() -> None:
    program = """
import os, pulsarx
client = pulsarx.Client("memory:")
producer = client.create_producer("t")
child = os.fork()
if child == 0:
    for call in (lambda: producer.send(b"x"), lambda: client.create_producer("t")):
        try:
            call()
        except pulsarx.ForkedError:
            print("the parent's", flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert run_program(program) == ["the parent's"] * 2
