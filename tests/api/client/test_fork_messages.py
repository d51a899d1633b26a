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
child = os.fork()
if child == 0:
    for call in (lambda: producer.send(b"x"), consumer.receive, lambda: client.subscribe("t", "u"),
                 lambda: pulsarx.Client(sys.argv[1])):
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
