"""The service: where it listens, who gets in, when it ends."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from administered import Administered
from certificates import Authority
from collected import nothing_collected
from signing import SECRET_TEXT

import pulsarx
from pulsarx.access import AccessSettings, TlsSettings
from pulsarx.access.basic_users import BasicUsers
from pulsarx.access.password_queue import PasswordQueue
from pulsarx.rest import http_service, loop_server, serve_http


def connect(administered: Administered) -> socket.socket:
    address = (administered.service.host, administered.service.port)
    return socket.create_connection(address, timeout=60)


def on_loop(administered: Administered, act: Any) -> Any:
    """What a function answers that the loop calls."""
    done = threading.Event()
    found: list[Any] = []

    def run() -> None:
        found.append(act())
        done.set()

    administered.server.loop.call_soon_threadsafe(run)
    assert done.wait(60)
    return found[0]


def connections(administered: Administered) -> list[Any]:
    return list(administered.server._server.server_state.connections)


def test_it_listens_until_it_is_closed(open_administered: Any):
    administered: Administered = open_administered()
    assert administered.service.host == "127.0.0.1"
    idle = connect(administered)
    administered.service.close()
    administered.service.close()
    assert is_dropped(idle)
    with pytest.raises(OSError):
        connect(administered)
    administered.client.create_producer("t").send(b"x")  # the folder stays open


def test_what_it_needs_is_loaded_when_the_call_returns(monkeypatch: pytest.MonkeyPatch):
    """Its thread loaded a module some time later; where that failed nobody was told."""
    loaded_by: list[str] = []
    load = uvicorn.Config.load

    def noting(config: uvicorn.Config) -> None:
        loaded_by.append(threading.current_thread().name)
        load(config)

    monkeypatch.setattr(uvicorn.Config, "load", noting)
    with pulsarx.Client("memory:") as client, serve_http(client, port=0) as service:
        (thread,) = loaded_by
        assert thread != "pulsarx-http"
        with urllib.request.urlopen(f"{service.url}/status.html", timeout=60) as answer:
            assert answer.read() == b"OK"
    assert loaded_by == [thread]


def test_it_ends_with_the_folder(open_administered: Any):
    administered: Administered = open_administered()
    administered.client.close()
    with pytest.raises(OSError):
        connect(administered)


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_connection_that_is_reset_leaves_nothing_that_runs_python_where_it_is_collected(
    open_administered: Any, tmp_path: Path, encrypted: bool
):
    """asyncio's transport waited for the collector, in a cycle of its own, of uvicorn's timer, or
    of TLS; the collector runs in any call of the main thread."""
    authority = Authority(tmp_path)
    tls = TlsSettings(*authority.sign("server", "localhost")) if encrypted else None
    administered: Administered = open_administered(tls=tls)
    with nothing_collected() as collect:
        client = connect(administered)
        if encrypted:
            context = ssl.create_default_context(cafile=authority.file)
            client = context.wrap_socket(client, server_hostname="localhost")
        client.sendall(b"GET /status.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"OK"):
            answer += client.recv(4096)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        while connections(administered):
            pass
        administered.service.close()
        assert not collect()


def test_threads_that_checked_passwords_run_no_python_where_they_are_collected(tmp_path: Path):
    (tmp_path / "users").touch()
    users = BasicUsers(str(tmp_path / "users"))
    with nothing_collected() as collect:
        holder: list[Any] = [PasswordQueue(users)]
        holder.append(holder)  # as the application that has it
        future = holder[0].identify(b"name:password", "host")
        assert isinstance(future, Future)
        future.exception(60)
        threads = [each for each in threading.enumerate() if each.name.startswith("pulsarx-pass")]
        holder[0].close()
        while threads:
            threads.pop().join()
        del future, holder
        assert not collect()


def test_it_ends_when_it_is_forgotten():
    with pulsarx.Client("memory:") as client:
        service = serve_http(client, port=0)
        server, address = service._server, (service.host, service.port)
        del service
        assert server._ended.wait(60)
        with pytest.raises(OSError):
            socket.create_connection(address, timeout=60)


def test_a_request_that_is_being_done_is_answered(open_administered: Any):
    administered: Administered = open_administered()
    topics = administered.client.admin.topics
    topics.create_non_partitioned_topic("t")
    entered, may_go = threading.Event(), threading.Event()
    perform = administered.server.perform

    def slow(verb: str, arguments: dict[str, Any]) -> Any:
        entered.set()
        assert may_go.wait(60)
        return perform(verb, arguments)

    administered.server.perform = slow  # type: ignore[method-assign]
    replies: list[Any] = []
    asking = threading.Thread(
        target=lambda: replies.append(administered.ask("GET", "/persistent/public/default"))
    )
    asking.start()
    assert entered.wait(60)
    closing = threading.Thread(target=administered.service.close)
    closing.start()
    may_go.set()
    closing.join()
    asking.join()
    assert replies[0].body == ["persistent://public/default/t"]


def test_others_cannot_reach_it_unless_that_is_allowed():
    with pulsarx.Client("memory:") as client:
        with pytest.raises(pulsarx.InvalidConfiguration):
            serve_http(client, host="0.0.0.0", port=0)
        with serve_http(client, host="0.0.0.0", port=0, allow_anonymous=True) as service:
            url = f"http://127.0.0.1:{service.port}/status.html"
            asked = urllib.request.Request(url, headers={"Host": "myhost:80"})
            assert urllib.request.urlopen(asked, timeout=60).read() == b"OK"


def test_a_port_that_is_taken_is_told():
    with (
        pulsarx.Client("memory:") as client,
        serve_http(client, port=0) as service,
        pytest.raises(pulsarx.ConnectError),
    ):
        serve_http(client, port=service.port)


def test_a_client_that_reads_only_serves_nobody(tmp_path: Any):
    pulsarx.Client(tmp_path).close()
    with (
        pulsarx.Client(tmp_path, read_only=True) as client,
        pytest.raises(pulsarx.OperationNotSupported),
    ):
        serve_http(client, port=0)


WITHOUT_STARLETTE = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "starlette":
            raise ModuleNotFoundError(f"No module named {name!r}", name="starlette")
sys.meta_path.insert(0, Missing())
from pulsarx.cli import main
sys.exit(main(["serve", "memory:", "--port=0"]))
"""


@pytest.mark.standard
def test_a_missing_package_is_told_with_what_installs_it():
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_STARLETTE], capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 1
    assert "pip install 'pulsarx[serve]'; or serve with --no-http" in found.stderr


def test_there_are_no_more_connections_than_that(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_service, "CONNECTIONS_MAX", 3)
    administered = Administered()
    held = [connect(administered) for _ in range(8)]
    for each in held[:5]:
        assert is_dropped(each)
    assert len(connections(administered)) == 3
    # Who says nothing, or half of something, used to keep out all others: they were told 503.
    assert administered.get("/tenants") == ["public", "pulsar"]
    for each in held:
        each.close()
    administered.close()


def is_dropped(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def look(administered: Administered) -> None:
    on_loop(administered, lambda: [each.look() for each in connections(administered)])


@pytest.mark.parametrize("sent", [b"", b"GET /status.html HTT", b"POST / HTTP/1.1\r\nHost: "])
def test_a_client_that_sends_no_request_is_dropped(administered: Administered, sent: bytes):
    with connect(administered) as connection:
        connection.sendall(sent)
        while not connections(administered):
            on_loop(administered, lambda: None)
        for _ in range(loop_server._IDLE_MAX + 1):
            look(administered)
        assert is_dropped(connection)


def test_a_client_that_sends_no_body_is_dropped(administered: Administered):
    with connect(administered) as connection:
        head = b"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
        connection.sendall(head)
        while not any(each.cycle is not None for each in connections(administered)):
            on_loop(administered, lambda: None)
        for _ in range(2):
            look(administered)
        assert is_dropped(connection)
    assert administered.get("/tenants") == ["public", "pulsar"]


def test_a_client_that_is_served_is_not_dropped(administered: Administered):
    with connect(administered) as connection:
        for _ in range(2 * loop_server._IDLE_MAX):
            connection.sendall(b"GET /status.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
            found = b""
            while not found.endswith(b"OK"):
                found += connection.recv(4096)
            look(administered)


def test_a_head_is_bounded(administered: Administered):
    with connect(administered) as connection:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\n" + b"A: " + b"x" * (40 << 10))
            found = connection.recv(4096)
        except ConnectionError:  # it hung up while it was still being sent to
            found = b""
    assert found.startswith(b"HTTP/1.1 4") or not found


@pytest.mark.standard
def test_a_forked_child_leaves_the_service_to_its_parent(open_administered: Any):
    administered: Administered = open_administered()
    with connect(administered) as connection:
        connection.sendall(b"GET /status.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
        found = b""
        while not found.endswith(b"OK"):
            found += connection.recv(4096)
        child = os.fork()
        if child == 0:
            administered.service.close()
            try:
                connect(administered)
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert administered.ask("GET", "//status.html").body == "OK"
        administered.service.close()
        assert connection.recv(4096) == b""


WITH_ANONYMOUS = {"token_secret_key": SECRET_TEXT, "anonymous_user_role": "anybody"}


@pytest.mark.parametrize(
    "asks",
    [{"allow_anonymous": True}, {"access": AccessSettings(**WITH_ANONYMOUS)}],
    ids=["nobody is asked", "anonymous clients have a role"],
)
def test_no_strange_name_leads_to_a_server_that_lets_in_who_proves_nothing(asks: dict[str, Any]):
    """A web page of somebody who owns such a name used to administer the folder, through the
    browser of anybody in the network."""
    with (
        pulsarx.Client("memory:") as client,
        serve_http(client, host="0.0.0.0", port=0, **asks) as service,
    ):
        client.admin.tenants.update_tenant("public", ["anybody"])
        own = {"Host": "evil.example", "Origin": "http://evil.example"}
        url = f"http://127.0.0.1:{service.port}/admin/v2/namespaces/public/mine"
        asked = urllib.request.Request(url, b"{}", own, method="PUT")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(asked, timeout=60)
        assert caught.value.status == 403
        assert client.admin.namespaces.get_namespaces("public") == ["public/default"]
        asked.remove_header("Host")
        asked.remove_header("Origin")
        urllib.request.urlopen(asked, timeout=60).close()
