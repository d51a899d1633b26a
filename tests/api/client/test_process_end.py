"""Facts about the end of a process: clients work as long as hooks of others run, and what producers
hold is sent, in children of multiprocessing too, which end without the interpreter's hooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import run_program
from topic_reading import numbers, whole_topic

import pulsarx

# Each is registered before pulsarx is imported, as what frameworks have is, and sends with what is
# there when it runs.
HOOKS = {
    "atexit": "import atexit\natexit.register(lambda: send())\n",
    "weakref.finalize": "import weakref\nweakref.finalize(sys, lambda: send())\n",
    "logging": """
import logging.handlers
class ToTopic(logging.handlers.MemoryHandler):
    def flush(self):
        if self.buffer:
            self.buffer.clear()
            send()
handler = ToTopic(1000)
logging.getLogger().addHandler(handler)
logging.getLogger().warning("kept until logging.shutdown")
""",
}
SENDS = """
import pulsarx
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t")
batches = client.create_producer("t", batching_enabled=True, batching_max_publish_delay_ms=10**6)
def send():
    producer.send(b"0")
    batches.send_async(b"1", lambda result, _: print(result))
    client.create_producer("t").send(b"2")
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    print(reader.read_next(60_000).data().decode())
"""


@pytest.mark.parametrize("where", ["folder", "beside the owner"])
@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_of_others_use_clients_when_the_interpreter_ends(
    hook: str, where: str, folder: Path
) -> None:
    """They found all clients closed, if they were registered before pulsarx was imported."""
    program = "import sys\n" + HOOKS[hook] + SENDS
    if where == "folder":
        told = run_program(program, folder)
    else:
        with pulsarx.Client(folder):
            told = run_program(program, folder)
    assert told == ["0", "Result.Ok"]
    with pulsarx.Client(folder) as client:
        assert sorted(whole_topic(client)) == numbers(3)


def test_threads_that_live_on_use_clients_when_the_main_thread_has_ended(folder: Path) -> None:
    """Python 3.12 and later start no thread from then on: clients could do next to nothing."""
    program = """
import sys, threading
def work():
    threading.main_thread().join()
    with pulsarx.Client(sys.argv[1]) as client:
        producer = client.create_producer("t")
        producer.send_async(b"0", lambda result, _: print(result))
        producer.flush()
        listened = threading.Event()
        client.subscribe(
            "t", "s", initial_position=pulsarx.InitialPosition.Earliest,
            message_listener=lambda consumer, message: listened.set(),
        )
        print(listened.wait(60))
import pulsarx
threading.Thread(target=work).start()
"""
    assert run_program(program, folder) == ["Result.Ok", "True"]


def test_what_hooks_of_others_open_is_closed_behind_them(folder: Path) -> None:
    program = """
import atexit, sys
def late():
    client = pulsarx.Client(sys.argv[1])
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=10**6
    )
    producer.send_async(b"0", None)
    held.append(producer)
held = []
atexit.register(late)
import pulsarx
pulsarx.Client("memory:").close()
"""
    run_program(program, folder)
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == numbers(1)


# A module that children import, and what they do: each sends ten messages, and ends.
CHILDREN = '''
import concurrent.futures, multiprocessing, multiprocessing.util, threading
import pulsarx

def produce(folder):
    client = pulsarx.Client(folder)
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=10**6
    )
    for number in range(10):
        producer.send_async(b"%d" % number, None)
    return client, producer

def dropped(folder):
    produce(folder)

def held(folder):
    global kept
    kept = produce(folder)

def raised(folder):
    global kept
    kept = produce(folder)
    raise SystemExit(0)

def by_thread(folder):
    """In a thread that goes on when the function of the process has returned."""
    client = pulsarx.Client(folder)
    returned = threading.Event()
    multiprocessing.util.Finalize(None, returned.set, exitpriority=0)
    threading.Thread(target=lambda: client and returned.wait() and held(folder)).start()

def main(kind, how, folder):
    context = multiprocessing.get_context(kind)
    if how == "executor":
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
            executor.submit(held, folder).result()
        return
    if how == "pool":
        pool = context.Pool(1)
        pool.apply(held, (folder,))
        pool.close()
        pool.join()
        return
    child = context.Process(target=globals()[how], args=(folder,))
    child.start()
    child.join()
    assert child.exitcode == 0, child.exitcode
'''

METHODS = [
    "fork",
    pytest.param("forkserver", marks=pytest.mark.standard),
    pytest.param("spawn", marks=pytest.mark.standard),
]


@pytest.mark.parametrize("where", ["owner", "beside the owner"])
@pytest.mark.parametrize("how", ["dropped", "held", "raised", "by_thread", "executor", "pool"])
@pytest.mark.parametrize("method", METHODS)
def test_a_child_of_multiprocessing_sends_what_its_producers_hold(
    method: str, how: str, where: str, folder: Path, tmp_path: Path
) -> None:
    """One that was forked ended by os._exit with all of it, without a word."""
    (tmp_path / "children.py").write_text(CHILDREN)
    program = """
import os, sys
sys.path.insert(0, sys.argv[1])
import children, pulsarx
method, how, folder, where = sys.argv[2:]
owner = pulsarx.Client(folder) if where != "owner" else None
children.main(method, how, folder)
"""
    run_program(program, tmp_path, method, how, folder, where)
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == numbers(10)


def test_a_forked_child_sends_by_the_producer_it_inherited_what_that_holds_at_its_end(
    folder: Path,
) -> None:
    program = """
import multiprocessing, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t", batching_enabled=True, batching_max_publish_delay_ms=10**6)
def work():
    for number in range(10):
        producer.send_async(b"%d" % number, None)
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
"""
    run_program(program, folder)
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == numbers(10)


@pytest.mark.standard
def test_hooks_of_a_spawned_child_use_its_clients(folder: Path, tmp_path: Path) -> None:
    """It ends as every program does, so it must not be closed before, as a forked one is."""
    (tmp_path / "hooked.py").write_text("""
import atexit
producer = None
atexit.register(lambda: producer and producer.send(b"0"))
import pulsarx
def work(folder):
    global client, producer
    client = pulsarx.Client(folder)
    producer = client.create_producer("t")
""")
    program = """
import multiprocessing, sys
sys.path.insert(0, sys.argv[1])
import hooked
child = multiprocessing.get_context("spawn").Process(target=hooked.work, args=(sys.argv[2],))
child.start()
child.join()
"""
    run_program(program, tmp_path, folder)
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == numbers(1)
