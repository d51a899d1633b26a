"""What a connection costs that has not proved who it is."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from administered import Administered
from certificates import Authority

from pulsarx import errors
from pulsarx.access import AccessSettings, TlsSettings, password_queue
from pulsarx.access.basic_users import BasicUsers

# Requests with a password that is not checked yet, and as much of a body as is taken.
KNOWN_MAX = 64 << 10  # bytes of a connection, until it is known whose it is
CLIENTS = """
import socket, ssl, sys

context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
head = b"PUT /admin/v2/tenants/x HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Basic YTph\\r\\n"
head += b"X: " + b"a" * 7000 + b"\\r\\nContent-Length: 4000000\\r\\n\\r\\n"
held = []
for _ in range(int(sys.argv[2])):
    held.append(context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[1])))))
    held[-1].sendall(head)
    held[-1].setblocking(False)
    try:
        held[-1].send(b"x" * 200_000)
    except (BlockingIOError, ssl.SSLWantWriteError):
        pass
print("held", flush=True)
sys.stdin.read()
"""


def resident() -> int:
    """Bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.standard
def test_a_request_of_somebody_unknown_costs_little(
    open_administered: Callable[..., Administered], tmp_path: Path, monkeypatch: Any
) -> None:
    """A body of 64 KiB, and a head of 32, used to be kept until it was known who sends them."""
    may_go, came = threading.Event(), threading.Semaphore(0)
    identify = password_queue.PasswordQueue.identify

    def count(queue: Any, data: bytes, host: str) -> Any:
        found = identify(queue, data, host)
        came.release()
        return found

    monkeypatch.setattr(password_queue.PasswordQueue, "identify", count)

    def refuse(*_: Any) -> None:
        assert may_go.wait(120)
        raise errors.AuthenticationError(detail="unknown name, or wrong password")

    monkeypatch.setattr(BasicUsers, "verify", refuse)
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"admin:{hashed}\n")
    administered = open_administered(
        access=AccessSettings(basic_auth_conf=str(tmp_path / "users")),
        tls=TlsSettings(*Authority(tmp_path).sign("server", "localhost")),
    )

    def hold(count: int) -> Any:
        arguments = [sys.executable, "-c", CLIENTS, str(administered.service.port), str(count)]
        made = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert made.stdout is not None
        assert made.stdout.readline() == b"held\n"
        for _ in range(count):
            assert came.acquire(timeout=60)
        return made

    before = hold(30)  # what is made once
    start, count_held = resident(), 150
    made = hold(count_held)
    used = (resident() - start) / count_held
    may_go.set()
    for each in (before, made):
        each.communicate(timeout=60)
    assert used < KNOWN_MAX
