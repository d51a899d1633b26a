"""How many connections there may be, and which have to go where more come."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import pytest
from served import Served
from speaker import Speaker

from pulsarx.access import connection_bound
from pulsarx.server import network_service

OpenServed = Callable[..., Served]


@pytest.mark.parametrize(
    ("files", "connections"), [(1024, 512), (1, 1), (resource.RLIM_INFINITY, 1 << 19)]
)
def test_connections_take_half_of_the_files(
    monkeypatch: pytest.MonkeyPatch, files: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert connection_bound.connections_max() == connections


def test_who_is_known_stays(
    monkeypatch: pytest.MonkeyPatch, open_served: OpenServed, caplog: pytest.LogCaptureFixture
) -> None:
    most = 20
    monkeypatch.setattr(network_service, "connections_max", lambda: most)
    served = open_served()
    known = Speaker(served)
    known.greet()
    silent = [Speaker(served) for _ in range(most)]
    assert silent[0].is_hung_up_on()
    assert len(served.network.connections) == most
    for each in silent[1:]:
        each.greet()
    for _ in range(2):  # nobody is unknown but the one that comes
        assert Speaker(served).is_hung_up_on()
    known.produce()
    assert caplog.text.count(f"there are more than {most} connections") == 1
    silent[1].socket.close()
    while len(served.network.connections) == most:
        pass
    Speaker(served).greet()


WITHOUT_FILES = """
import os, resource, socket, sys
import pulsarx
from pulsarx.server import serve

resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
client = pulsarx.Client(sys.argv[1])
service = serve(client, port=0)
client.create_producer("before").send(b"")
goes, stays = os.pipe()
child = os.fork()
if not child:
    os.dup2(goes, 0)  # at its end when this process has gone
    for each in range(3, 200):
        try:
            os.close(each)
        except OSError:
            pass
    held = [socket.create_connection((service.host, service.port)) for _ in range(180)]
    last = held[-1]
    last.settimeout(60)
    # The first ones are hung up on when all have come.
    held[0].settimeout(60)
    try:
        assert held[0].recv(1) == b""
    except ConnectionResetError:
        pass
    os.write(1, b"held\\n")
    sys.stdin.read()
    os._exit(0)
assert os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG) is None
while len(service._network.connections) < 100:
    pass
for name in ("a", "b", "c"):
    client.create_producer(name).send(b"x")
print("published", flush=True)
os._exit(0)
"""


@pytest.mark.standard
def test_connections_leave_files_to_topics(tmp_path: object) -> None:
    """They used to take all files that the process may open, after which nobody could publish, nor
    this process itself."""
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_FILES, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "published" in found.stdout, found.stderr
