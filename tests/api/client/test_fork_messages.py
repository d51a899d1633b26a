"""Facts about what a forked process is told: its parent is the owner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t")
consumer = client.subscribe("t", "s")
producer.send(b"x")
message = consumer.receive()
child = os.fork()
if child == 0:
    for call in (consumer.receive, consumer.close, lambda: consumer.acknowledge(message),
                 lambda: pulsarx.Client(sys.argv[1], exclusive=True)):
        try:
            call()
        except (pulsarx.ForkedError, pulsarx.FolderOwnedError) as error:
            print(type(error).__name__, error)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
print(os.getpid())
"""


def test_the_message_names_the_parent(tmp_path: Path) -> None:
    """It used to speak of another process, and of none at all."""
    folder = os.fspath(tmp_path / "data")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder], capture_output=True, text=True, timeout=60
    )
    *told, pid = ran.stdout.split("\n")[:-1]
    assert len(told) == 4, ran.stderr
    for each in told[:3]:
        assert each.startswith("ForkedError")
        assert f"opened by the parent of this process (process {pid}), which owns it" in each
    assert told[3].startswith("FolderOwnedError")
    assert f"owned by the parent of this process (pid {pid}, epoch 1)" in told[3]


TWICE = """
import os, sys, pulsarx
client = pulsarx.Client("memory:")
producer = client.create_producer("t")
consumer = client.subscribe("t", "s")
print(os.getpid(), flush=True)
child = os.fork()
if child == 0:
    own = pulsarx.Client("memory:own")
    of_child = own.create_producer("t")
    print(os.getpid(), flush=True)
    grandchild = os.fork()
    if grandchild == 0:
        for call in (lambda: producer.send(b"x"), consumer.receive,
                     lambda: client.subscribe("t", "u"), lambda: of_child.send(b"x")):
            try:
                call()
            except pulsarx.ForkedError as error:
                print(error)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(grandchild, 0)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_after_two_forks_the_message_names_the_process_that_opened_it(tmp_path: Path) -> None:
    """It named the parent, which had been told itself that it was not the owner."""
    folder = os.fspath(tmp_path / "data")
    ran = subprocess.run(
        [sys.executable, "-c", TWICE, folder], capture_output=True, text=True, timeout=60
    )
    first, second, *told = ran.stdout.split("\n")[:-1]
    assert len(told) == 4, ran.stderr
    for each in told[:3]:
        assert f"opened by an ancestor of this process (process {first}), which owns it" in each
    assert f"opened by the parent of this process (process {second}), which owns it" in told[3]
