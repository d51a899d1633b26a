"""Facts about the two ends of a connection between processes that share a folder."""

from __future__ import annotations

import pytest
from child_process import run_program

pytestmark = pytest.mark.standard

# Sends to an end that reads nothing until no memory is left, and then lets that read.
PROGRAM = """
import resource, socket
from pulsarx._pycore.ground.owner_link import OwnerLink
here, there = socket.socketpair()
here.setblocking(False)
link = OwnerLink(here.fileno())
frame = bytes(30_000_000)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 200_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
for _ in range(20):
    link.write(frame)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(link.wait(bytearray(10), True))
came = 0
while data := there.recv(1 << 20):
    came += len(data)
print(came < len(frame))
"""


def test_a_connection_that_has_no_memory_for_what_waits_ends() -> None:
    """Half a frame had gone out, and what came next was taken for its rest."""
    assert run_program(PROGRAM) == ["-1", "True"]
