"""Facts about what a forked child needs: it is loaded before the fork, as nobody could load there
what another thread of the parent was just loading."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from child_process import ChildProcess, run_program
from sharing_process import SharingProcess

import pulsarx
from pulsarx.client import _PACKAGES_OF_CHILDREN

# All kinds of calls on what is inherited, and on what is made by it.
CALLS = """
import os, re, signal, sys, threading, traceback
import pulsarx
from pulsarx import (
    BatchingType, CompressionType, ConsumerDeadLetterPolicy, ConsumerKeySharedPolicy, ConsumerType,
    InitialPosition, MessageId, PartitionsRoutingMode, ProducerAccessMode, SubscriptionMode,
    errors, schema,
)
signal.alarm(170)

class Order(schema.Record):
    item = schema.String()

def produce():
    own, spread, texts = inherited
    own.send(b"1", properties={"a": "b"}, partition_key="k", event_timestamp=1)
    own.send_async(b"2", lambda result, message_id: done.append(result))
    own.send_many([b"3", b"4"])
    own.flush()
    spread.send(b"1")
    texts.send("text")
    for options in (
        {"batching_enabled": True, "batching_type": BatchingType.KeyBased},
        {"chunking_enabled": True},
        {"compression_type": CompressionType.ZLib},
        {"schema": schema.JsonSchema(Order)},
        {"access_mode": ProducerAccessMode.Exclusive},
        {"access_mode": ProducerAccessMode.WaitForExclusive},
        {"producer_name": "named", "initial_sequence_id": 5},
        {"message_routing_mode": PartitionsRoutingMode.RoundRobinDistribution},
    ):
        with client.create_producer(f"made-{next(numbered)}", **options) as made:
            made.send(Order(item="x") if "schema" in options else bytes(7_000_000)
                      if "chunking_enabled" in options else b"1")
    client.create_producer("spread").send(b"2", partition_key="k")
    client.create_producer("non-persistent://public/default/n").send(b"1")
    refused = []
    for topic, options in (
        ("texts", {"schema": schema.JsonSchema(Order)}), ("no/such/name/here/x", {}), ("", {}),
    ):
        try:
            client.create_producer(topic, **options)
        except (errors.PulsarException, ValueError) as error:
            refused.append(str(error))

def consume():
    turn = next(numbered)
    first = {"initial_position": InitialPosition.Earliest}
    for number, kind in enumerate(ConsumerType.__members__.values()):
        consumer = client.subscribe("t", f"s{number}-{turn}", kind, **first)
        message = consumer.receive(60_000)
        consumer.negative_acknowledge(message)
        consumer.acknowledge(message)
        consumer.receive_async().result()
        consumer.batch_receive()
        consumer.redeliver_unacknowledged_messages()
        consumer.get_last_message_id()
        consumer.seek(MessageId.earliest)
        consumer.close()
    shared, keyed = ConsumerType.Shared, ConsumerType.KeyShared
    client.subscribe(["t", "spread"], f"several-{turn}", shared, **first).receive(60_000)
    client.subscribe(re.compile("public/default/t.*"), f"pattern-{turn}", **first).receive(60_000)
    client.subscribe("spread", f"partitions-{turn}", keyed, **first).receive(60_000)
    heard = threading.Event()
    client.subscribe("t", f"heard-{turn}", message_listener=lambda *_: heard.set(), **first)
    heard.wait()
    letters = client.subscribe(
        "t", f"letters-{turn}", ConsumerType.Shared, retry_enable=True,
        negative_ack_redelivery_delay_ms=1,
        dead_letter_policy=ConsumerDeadLetterPolicy(1), **first,
    )
    letters.reconsume_later(letters.receive(60_000), 1)
    dead = client.subscribe(f"public/default/t-letters-{turn}-DLQ", f"dead-{turn}", **first)
    while True:
        try:
            dead.receive(10)
            break
        except errors.Timeout:
            pass
        try:
            letters.negative_acknowledge(letters.receive(10))
        except errors.Timeout:
            pass
    briefly = SubscriptionMode.NonDurable
    client.subscribe("t", f"gone-{turn}", subscription_mode=briefly).unsubscribe()
    client.subscribe("non-persistent://public/default/n", "s").close()

def read():
    reader = client.create_reader("t", MessageId.earliest)
    reader.read_next(60_000)
    reader.has_message_available()
    reader.seek(MessageId.latest)
    client.create_reader("spread", MessageId.earliest).read_next(60_000)
    client.create_reader("texts", MessageId.earliest, schema.StringSchema()).read_next().value()
    as_it_is = schema.AutoConsumeSchema()
    client.create_reader("texts", MessageId.earliest, as_it_is).read_next().value()
    with client.create_table_view("t") as view:
        view.get("k")
    client.get_topic_partitions("spread")

def administer():
    admin, turn = client.admin, next(numbered)
    admin.tenants.create_tenant(f"acme{turn}")
    admin.namespaces.create_namespace(f"acme{turn}/orders")
    admin.namespaces.set_retention(f"acme{turn}/orders", 10, 10)
    admin.namespaces.get_policies(f"acme{turn}/orders")
    admin.topics.create_partitioned_topic(f"acme{turn}/orders/p", 2)
    admin.topics.update_partitioned_topic(f"acme{turn}/orders/p", 3)
    admin.topics.delete_partitioned_topic(f"acme{turn}/orders/p")
    admin.topics.set_deduplication("t", True)
    own = client.create_producer("t", "deduplicated")
    own.send(b"5", sequence_id=4)
    asked = "stats get_subscriptions get_last_message_id unload trigger_compaction"
    for name in asked.split():
        getattr(admin.topics, name)("t")
    admin.topics.partitioned_stats("spread")
    admin.topics.create_subscription("t", f"looked-at-{turn}")
    admin.topics.peek_messages("t", f"looked-at-{turn}", 1)
    admin.topics.expire_messages("t", f"looked-at-{turn}", 1)
    admin.topics.skip_messages("t", f"looked-at-{turn}", 1)
    admin.topics.reset_cursor("t", f"looked-at-{turn}", 1)
    admin.topics.merge_ledgers("t")
    admin.schemas.get_all_schemas("texts")
    admin.brokers.healthcheck()
    admin.topics.create_non_partitioned_topic(f"gone-{turn}")
    admin.topics.truncate(f"gone-{turn}")
    admin.topics.terminate(f"gone-{turn}")
    admin.topics.delete(f"gone-{turn}")

def work():
    produce()
    consume()
    read()
    administer()

numbered, done = iter(range(1, 100)), []
client = pulsarx.Client(sys.argv[1])
client.admin.topics.create_partitioned_topic("spread", 2)
inherited = (
    client.create_producer("t"), client.create_producer("spread"),
    client.create_producer("texts", schema=schema.StringSchema()),
)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    try:
        before = set(sys.modules)
        work()
        if sys.argv[2] != "0":
            os.read(reading, 1)  # the parent has closed the folder
            os.kill(int(sys.argv[2]), signal.SIGKILL)  # the owner: now this process is it
            work()
        print("new:", *sorted(set(sys.modules) - before), flush=True)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
client.close()
os.write(writing, b"x")
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.standard
@pytest.mark.parametrize("parent", ["owner", "guest"])
def test_a_child_loads_nothing_for_what_it_does_with_what_it_inherited(
    parent: str, folder: Path, processes: list[SharingProcess]
) -> None:
    """It waited for ever for a module that another thread was loading when it was forked, and could
    own the folder then, so that nobody else could use that any more."""
    pid = 0
    if parent == "guest":
        processes.append(SharingProcess(folder))
        pid = processes[0].pid
    assert run_program(CALLS, folder, pid) == ["new:"]


# Of extras, which a program that uses them has loaded or loads itself, and of what no inherited
# client or producer does.
NOT_LOADED = re.compile(
    r"cryptography|fastavro|google|lz4|mmh3|numpy|pyarrow|snappy|zstandard|uvloop"  # extras
    r"|http|ssl"  # a channel to another server
    r"|pulsarx\.(tables|access|compat|producing\.numpy_columns|server\.broker_service)"
    r"|pulsarx\._pycore\.(arrow|ranges|publish\.producer_arrow|consume\.consumer_arrow)"
)
PLACES = (*_PACKAGES_OF_CHILDREN, "client.py", "ground/client_owner.py")


def imported_in_functions() -> dict[str, str]:
    """Modules that functions of what a child uses import, and where."""
    found = {}
    root = Path(pulsarx.__file__).parent
    for place in PLACES:
        path = root / place
        for file in [path] if path.is_file() else path.rglob("*.py"):
            for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    for node in ast.walk(function):
                        if isinstance(node, ast.Import):
                            names = [each.name for each in node.names]
                        elif isinstance(node, ast.ImportFrom):
                            names = [str(node.module)]
                        else:
                            continue
                        found.update({name: str(file.relative_to(root)) for name in names})
    return found


def test_all_that_functions_import_is_loaded_when_a_process_with_a_folder_forks(
    folder: Path,
) -> None:
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
child = os.fork()
if child == 0:
    print(*sys.modules, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    loaded = set(run_program(program, folder)[0].split())
    missing = {
        name: place
        for name, place in imported_in_functions().items()
        if name not in loaded and not NOT_LOADED.match(name)
    }
    assert not missing
    assert not [name for name in loaded if re.match("numpy|pyarrow|fastavro|ssl$|asyncio", name)]


LOADING = """
import importlib.machinery, os, sys, threading
import pulsarx
name = sys.argv[2]
loading, forked = threading.Event(), threading.Event()

def is_awaited():
    "Whether another thread waits for the module."
    frames = [each for ident, each in sys._current_frames().items()
              if ident != threading.get_ident()]
    return any("importlib" in each.f_code.co_filename and each.f_code.co_name == "acquire"
               for each in frames)

class Slow:
    "Loads a module until the process was forked, or cannot be before it is loaded."
    def find_spec(self, name, path=None, target=None):
        if name != sys.argv[2]:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        load = spec.loader.exec_module
        def exec_module(module):
            load(module)
            loading.set()
            while not (forked.is_set() or is_awaited()):
                forked.wait(0.01)
        spec.loader.exec_module = exec_module
        return spec

client = pulsarx.Client(sys.argv[1])
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: client.create_producer("t").send(b"parent"))
thread.start()
loading.wait()
child = os.fork()
if child == 0:
    client.create_producer("t").send(b"child")
    os._exit(0)
forked.set()
thread.join()
print(os.waitpid(child, 0)[1])
client.close()
"""


def test_a_child_of_a_process_whose_other_thread_loads_a_module_works(folder: Path) -> None:
    assert run_program(LOADING, folder, "pulsarx.producing.producer_steps") == ["0"]


def test_a_fork_with_a_folder_open_leaves_no_word_about_locks(folder: Path) -> None:
    """The module logging, loaded for the child, gives back a lock behind the fork."""
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
assert "logging" not in sys.modules
child = os.fork()
if child == 0:
    import logging
    logging.getLogger("x").error("from the child")
    os._exit(0)
os.waitpid(child, 0)
import logging, threading
thread = threading.Thread(target=lambda: logging.getLogger("x").error("from the parent"))
thread.start()
thread.join()
os.dup2(2, 1)
"""
    with ChildProcess(program, folder) as child:
        child.rest()
        assert "Exception ignored" not in child.last_words()
        assert "from the parent" in child.last_words()


@pytest.mark.parametrize("first", ["MessageId", "Client", "Client(sys.argv[1])", "client"])
def test_logging_may_be_loaded_behind_the_library(first: str, folder: Path) -> None:
    """In front of a fork logging took its lock, and the modules that are loaded for the child
    waited for it for ever."""
    program = """
import os, sys
import pulsarx
if sys.argv[2] == "client":
    client = pulsarx.Client(sys.argv[1])
else:
    first = eval("pulsarx." + sys.argv[2])
import logging, threading
if sys.argv[2] != "client":
    if isinstance(first, pulsarx.Client):
        first.close()
    client = pulsarx.Client(sys.argv[1])
child = os.fork()
if child == 0:
    logging.getLogger("x").error("from the child")
    client.create_producer("t").send(b"child")
    os._exit(0)
print(os.waitpid(child, 0)[1])
thread = threading.Thread(target=lambda: logging.getLogger("x").error("from the parent"))
thread.start()
thread.join()
client.close()
"""
    assert run_program(program, folder, first) == ["0"]
