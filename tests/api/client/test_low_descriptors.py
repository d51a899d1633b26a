"""Facts about descriptors 0, 1 and 2 in programs that closed them: nothing of ours gets one."""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import ChildProcess, run_program

import pulsarx

# `step` runs with all three closed, and says what they are afterwards: "/" is what occupies them,
# which can be neither read nor written.
STEPS = """
import asyncio, http.client, os, socket, sys
import pulsarx
import pulsarx.backups
from pulsarx import MessageId
report, sys.stderr = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(2), "w")
folder = sys.argv[1]

def low():
    found = []
    for number in range(3):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            found.append("closed")
    return found

def step(name, run):
    for number in range(3):
        try:
            os.close(number)
        except OSError:
            pass
    run()
    if set(low()) - {"/", "closed"}:
        print(name, low(), file=report, flush=True)
    for number in (1, 2):
        try:
            os.write(number, b"a warning of some C library" * 100)
            print(name, "could be written over", file=report, flush=True)
        except OSError:
            pass
"""

OWNER = """
step("open", lambda: globals().update(client=pulsarx.Client(folder)))
step("producer", lambda: globals().update(producer=client.create_producer("t")))
step("subscribe", lambda: globals().update(consumer=client.subscribe("t", "s")))
step("send", lambda: producer.send(b"confirmed"))
step("receive", lambda: consumer.acknowledge(consumer.receive(60_000)))
step("roll over", lambda: [client.create_producer(f"t{n}").send(b"confirmed") for n in range(3)])
step("memory", lambda: pulsarx.Client("memory:").create_producer("t").send(b"1"))
step("reader", lambda: client.create_reader("t", MessageId.earliest).read_next(60_000))
step("partitions", lambda: client.admin.topics.create_partitioned_topic("p", 4))
step("backup", lambda: pulsarx.backups.backup(folder, folder + ".copy"))
step("beside", lambda: pulsarx.Client(folder, read_only=True).close())
"""

GUEST = """
step("open", lambda: globals().update(client=pulsarx.Client(folder)))
step("producer", lambda: globals().update(producer=client.create_producer("t")))
step("subscribe", lambda: globals().update(consumer=client.subscribe("t", "s")))
step("send", lambda: producer.send(b"confirmed"))
step("receive", lambda: consumer.acknowledge(consumer.receive(60_000)))
step("admin", lambda: client.admin.topics.get_list("public/default"))
step("close", lambda: client.close())
"""


@pytest.mark.parametrize("role", ["owner", "guest"])
def test_nothing_that_a_client_opens_gets_a_descriptor_of_standard_streams(
    role: str, folder: Path
) -> None:
    """A ledger did, and what a library wrote to standard error then was written over confirmed
    messages."""
    if role == "owner":
        told = run_program(STEPS + OWNER, folder)
    else:
        with pulsarx.Client(folder):
            told = run_program(STEPS + GUEST, folder)
    assert told == []
    with pulsarx.Client(folder) as client:
        for topic in ["t", "t0", "t1", "t2"] if role == "owner" else ["t"]:
            with client.create_reader(topic, pulsarx.MessageId.earliest) as reader:
                assert reader.read_next(60_000).data() == b"confirmed"


def test_an_owner_gives_other_processes_none_of_them(folder: Path) -> None:
    program = (
        STEPS
        + """
client = pulsarx.Client(folder)
lines = os.fdopen(os.dup(0))
def guest():
    print("ready", file=report, flush=True)
    lines.readline()
step("guest", guest)
print("over", file=report, flush=True)
lines.readline()
"""
    )
    with ChildProcess(program, folder) as owner:
        assert owner.line() == "ready"
        with pulsarx.Client(folder) as client:
            producer = client.create_producer("t")
            producer.send(b"confirmed")
            owner.tell()
            assert owner.line() == "over"
            producer.send(b"confirmed")
            with client.create_reader("t", pulsarx.MessageId.earliest) as reader:
                assert [reader.read_next(60_000).data() for _ in range(2)] == [b"confirmed"] * 2


@pytest.mark.needs("starlette", "uvicorn")
def test_servers_and_coroutines_get_none_of_them(folder: Path) -> None:
    """What they open is opened by asyncio, too."""
    program = (
        STEPS
        + """
import pulsarx.aio
from pulsarx.rest import serve_http
from pulsarx.server import serve
from pulsarx.wire.frames import frame_encode
client = pulsarx.Client(folder)
loop = asyncio.new_event_loop()
visitors = [socket.socket(), socket.socket()]
services = []
step("serve", lambda: services.append(serve(client, port=0)))
step("serve_http", lambda: services.append(serve_http(client, port=0)))
def visit(visitor, service, data):
    visitor.connect(("127.0.0.1", service.port))
    visitor.sendall(data)
    assert visitor.recv(1)
hello = frame_encode("CONNECT", {"client_version": "t", "protocol_version": 19})
step("connection", lambda: visit(visitors[0], services[0], hello))
get = b"GET /admin/v2/clusters HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"
step("request", lambda: visit(visitors[1], services[1], get))
async def send():
    producer = await pulsarx.aio.Client(folder).create_producer("t")
    await producer.send(b"confirmed")
step("coroutine", lambda: loop.run_until_complete(send()))
"""
    )
    assert run_program(program, folder) == []


def test_what_a_program_had_there_stays(folder: Path) -> None:
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.create_producer("t").send(b"1")
print("seen", flush=True)
os.close(0)
client.create_producer("u").send(b"1")
assert os.open(os.devnull, os.O_RDWR) > 2  # it is occupied, as by any other thread
os.dup2(1, 0)
os.write(0, b"seen too\\n")
"""
    assert run_program(program, folder) == ["seen", "seen too"]
