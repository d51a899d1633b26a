"""Facts about Ctrl-C: it ends every blocking call.

Each call waits for ever or for a minute; the answer must come while the test has patience, which is
seconds. No time is measured: a busy machine is no failure.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from child_process import ChildProcess, run_program

SETUP = """
import os, signal, sys, threading, time, pulsarx
from pulsarx import MessageId, errors
from pulsarx.testing.faults import fault_plan
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t", max_pending_messages=1, block_if_queue_full=True)
producer.send(b"warm up")
policy = pulsarx.ConsumerBatchReceivePolicy(10, -1, 60_000)
consumer = client.subscribe("t", "s", batch_receive_policy=policy)
several = client.subscribe(["t", "u"], "several")
reader = client.create_reader("t", MessageId.latest)
"""
TELL_ONCE_ASLEEP = f"""
import sys, threading
sys.path.append({str(Path(__file__).parents[1])!r})
from sleeping_thread import until_asleep
def tell_once_asleep():
    until_asleep(threading.main_thread())
    print("waiting", flush=True)
"""
WAIT_AND_TELL = (
    TELL_ONCE_ASLEEP
    + """
try:
    threading.Thread(target=tell_once_asleep).start()
    {call}
    print("returned", flush=True)
except KeyboardInterrupt as error:
    assert isinstance(error, errors.InterruptedByKeyboard), type(error)
    assert isinstance(error, errors.Interrupted)
    print("interrupted", flush=True)
"""
)
AND_GO_ON = """
producer.send(b"after")
assert consumer.receive(60_000).data() == b"after"
client.close()
"""
STALLED = """
with fault_plan() as plan:
    plan.stall("flush", sticky=True)
    producer.send_async(b"x", None)
    while not plan.stalled():
        os.sched_yield()
    threading.Timer(20, plan.release).start()
"""


def interrupt(child: ChildProcess) -> None:
    """Send SIGINT once the child sleeps in the call, and see that it hears it."""
    assert child.line() == "waiting"
    child.signal(signal.SIGINT)
    assert child.line() == "interrupted"


@pytest.mark.parametrize(
    "call",
    [
        "consumer.receive()",
        "consumer.receive(60_000)",
        "consumer.receive_many(10)",
        "consumer.receive_many(10, 60_000)",
        "consumer.batch_receive()",
        "several.receive()",
        "several.receive(60_000)",
        "several.receive_many(10)",
        "several.receive_arrow(10)",
        "reader.read_next()",
        "reader.read_next(60_000)",
        "reader.read_many(5)",
    ],
)
def test_ctrl_c_ends_a_waiting_call(folder: Path, call: str) -> None:
    with ChildProcess(SETUP + WAIT_AND_TELL.format(call=call) + AND_GO_ON, folder) as child:
        interrupt(child)
        child.end()


@pytest.mark.parametrize(
    "call", ['producer.send(b"y")', 'producer.send_async(b"y", None)', "producer.flush()"]
)
def test_ctrl_c_ends_a_call_that_waits_for_a_stalled_flush(folder: Path, call: str) -> None:
    wait = WAIT_AND_TELL.format(call=call).replace("\n", "\n    ")
    program = SETUP + STALLED + wait + "\n    plan.release()\nos._exit(0)\n"
    with ChildProcess(program, folder) as child:
        interrupt(child)


def test_ctrl_c_ends_a_waiting_call_of_a_read_only_client(folder: Path) -> None:
    run_program(SETUP + "client.close()", folder)
    program = """
import sys, pulsarx
from pulsarx import errors
client = pulsarx.Client(sys.argv[1], read_only=True)
reader = client.create_reader("t", pulsarx.MessageId.latest)
"""
    with ChildProcess(program + WAIT_AND_TELL.format(call="reader.read_next()"), folder) as child:
        interrupt(child)


STEPS = Path(__file__).parents[1]
CALLS = [
    "consumer.receive()",
    "consumer.receive(60_000)",
    "consumer.receive_many(10, 60_000)",
    "consumer.receive_arrow(10)",
    "consumer.batch_receive()",
    "several.receive()",
    "several.receive_many(10)",
    "several.batch_receive()",
    "several.receive_arrow(10)",
    "reader.read_next()",
    "reader.read_many(5)",
]
STALLED_CALLS = [
    'producer.send(b"y")',
    'producer.send_async(b"y", None)',
    'producer.send_async(b"y", told.append)',
    'producer.send_async(b"y", told.append, properties={"a": "b"})',
    'producer.send_many([b"y", b"z"])',
    "producer.flush()",
]
LIMITED = """
sys.path.append(sys.argv[2])
from sleeping_thread import until_asleep
told = []
def until_limited(make, call):
    limit = make("on purpose")
    main = threading.main_thread()
    def handler(number, frame):
        raise limit
    def interrupt():
        until_asleep(main)
        signal.pthread_kill(main.ident, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        call()
    except BaseException as error:
        assert error is limit, repr(error)
        assert error.__cause__ is None
        facts, expected = vars(error), vars(make("on purpose"))
        for each in (facts, expected):
            each.pop("__notes__", None)  # send_many says how many were published
        assert facts == expected
    else:
        raise AssertionError("it returned")
    thread.join()
    assert told == []

class Limit(Exception): ...
class Exit(BaseException): ...
class Stop(KeyboardInterrupt): ...
RAISED = [Limit, Exit, Stop, TimeoutError, errors.Timeout, errors.Interrupted, errors.StorageError,
          MemoryError, ImportError]
"""


@pytest.mark.standard
def test_what_a_signal_handler_raises_comes_out_of_a_waiting_call_as_it_is(folder: Path) -> None:
    """It was replaced by Interrupted, so a time limit was not seen for what it was, and a loop that
    tries again after a PulsarException swallowed it."""
    checks = "\n".join(f"for make in RAISED: until_limited(make, lambda: {call})" for call in CALLS)
    run_program(SETUP + LIMITED + checks + AND_GO_ON, folder, STEPS)


@pytest.mark.standard
@pytest.mark.parametrize("call", STALLED_CALLS)
def test_what_a_signal_handler_raises_comes_out_of_a_stalled_call_as_it_is(
    folder: Path, call: str
) -> None:
    """What had been sent is stored all the same, and the next flush tells nothing of it."""
    program = f"""
with fault_plan() as plan:
    plan.stall("flush", sticky=True)
    producer.send_async(b"x", None)
    while not plan.stalled():
        os.sched_yield()
    for make in RAISED:
        until_limited(make, lambda: {call})
    plan.release()
producer.flush()
client.close()
"""
    run_program(SETUP + LIMITED + program, folder, STEPS)


def test_a_signal_whose_handler_returns_ends_nothing(folder: Path) -> None:
    program = (
        SETUP
        + TELL_ONCE_ASLEEP
        + """
signal.signal(signal.SIGUSR1, lambda number, frame: print("handled", flush=True))
def publish_when_told():
    sys.stdin.readline()
    producer.send(b"told")
threading.Thread(target=tell_once_asleep).start()
threading.Thread(target=publish_when_told).start()
print(consumer.receive(60_000).data(), flush=True)
"""
        + AND_GO_ON
    )
    with ChildProcess(program, folder) as child:
        assert child.line() == "waiting"
        child.signal(signal.SIGUSR1)
        assert child.line() == "handled"
        child.tell()
        assert child.line() == "b'told'"
        child.end()


def test_an_interrupted_receive_loses_no_message(folder: Path) -> None:
    program = (
        SETUP
        + WAIT_AND_TELL.format(call="consumer.receive()")
        + """
producer.send(b"0")
producer.send(b"1")
print([message.data() for message in consumer.receive_many(10)])
client.close()
"""
    )
    with ChildProcess(program, folder) as child:
        interrupt(child)
        assert child.end() == ["[b'0', b'1']"]
