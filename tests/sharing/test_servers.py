"""Programs under servers that fork: gunicorn, with and without --preload, and celery's workers use
one folder with nothing done for it."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import pulsarx
from pulsarx import InitialPosition

pytestmark = pytest.mark.standard

TREE = Path(pulsarx.__file__).parent.parent
PATIENCE_S = 170
PATIENCE_MS = 120_000

# What it is asked for it publishes, and answers with its process.
APPLICATION = """
import os
import pulsarx
client = pulsarx.Client(os.environ["FOLDER"], durability="os")
producer = client.create_producer("t")

def application(environ, start_response):
    producer.send(environ["PATH_INFO"].encode())
    body = b"%d" % os.getpid()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""

# What it is asked for it publishes, or it answers with the next message.
GREENLETS = """
import os
import pulsarx
client = pulsarx.Client(os.environ["FOLDER"], durability="os")
producer = client.create_producer("t")
consumer = client.subscribe("t", "s", pulsarx.ConsumerType.Shared)

def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/receive":
        message = consumer.receive()
        consumer.acknowledge(message)
        path = message.data().decode()
    else:
        producer.send(path.encode())
    body = path.encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""

TASKS = """
import os
import celery
import pulsarx
queue = {"data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control"}
app = celery.Celery("tasks", broker="filesystem://")
app.conf.update(broker_transport_options=queue, worker_prefetch_multiplier=1)
client = pulsarx.Client(os.environ["FOLDER"], durability="os")
producer = client.create_producer("t")

@app.task
def publish(number):
    producer.send(b"%d" % number)
"""


@contextmanager
def program(folder: Path, place: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A server that is asked to end, and to do that by itself."""
    child = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=place,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "FOLDER": str(folder), "PYTHONPATH": str(TREE)},
    )
    try:
        yield child
        child.send_signal(signal.SIGTERM)
        child.wait(PATIENCE_S)
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.communicate()


def require(*packages: str) -> None:
    for name in packages:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"no {name}: pip install {name}")


def ask(address: Path, what: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(str(address))
        connection.sendall(f"GET /{what} HTTP/1.0\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    head, _, body = answer.decode().partition("\r\n\r\n")
    assert " 200 " in head.splitlines()[0], answer
    return body


def received(folder: Path, count: int) -> list[bytes]:
    """So many messages of the topic, as a process beside those that publish."""
    with pulsarx.Client(folder, durability="os") as client:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        found = []
        for _ in range(count):
            message = consumer.receive(PATIENCE_MS)
            consumer.acknowledge(message)
            found.append(message.data())
        return found


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["gunicorn", "preload"])
def test_workers_of_gunicorn_answer_all_requests(
    folder: Path, tmp_path: Path, preload: list[str]
) -> None:
    require("gunicorn")
    (tmp_path / "web.py").write_text(APPLICATION)
    address = tmp_path / "socket"
    arguments = ["gunicorn", *preload, "-w", "4", "-b", f"unix:{address}", "web:application"]
    with program(folder, tmp_path, *arguments) as server:
        assert server.stderr is not None
        booted = 0
        while booted < 4:
            line = server.stderr.readline()
            assert line, "gunicorn has ended"
            booted += bool(re.search("Booting worker", line))
        with ThreadPoolExecutor(8) as pool:
            pids = list(pool.map(lambda number: ask(address, str(number)), range(40)))
        found = received(folder, 40)
    assert sorted(found) == sorted(b"/%d" % number for number in range(40))
    assert str(server.pid) not in pids
    assert server.returncode == 0


def test_workers_of_gunicorn_whose_requests_are_greenlets_answer(
    folder: Path, tmp_path: Path
) -> None:
    """A request that waits for the next one does not keep it out."""
    require("gunicorn", "gevent")
    (tmp_path / "web.py").write_text(GREENLETS)
    address = tmp_path / "socket"
    arguments = ["gunicorn", "-k", "gevent", "-w", "1", "-b", f"unix:{address}", "web:application"]
    with program(folder, tmp_path, *arguments) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if "Booting worker" in line:
                break
        with ThreadPoolExecutor(9) as pool:
            waiting = [pool.submit(ask, address, "receive") for _ in range(4)]
            list(pool.map(lambda number: ask(address, str(number)), range(4)))
            found = sorted(each.result() for each in waiting)
    assert found == ["/0", "/1", "/2", "/3"]
    assert server.returncode == 0


def test_tasks_of_celery_that_are_greenlets_publish(folder: Path, tmp_path: Path) -> None:
    require("celery", "gevent")
    publish_tasks(folder, tmp_path)
    options = ["--pool=gevent", "--concurrency=4", "-l", "CRITICAL"]
    with program(folder, tmp_path, "celery", "-A", "tasks", "worker", *options):
        found = received(folder, 20)
    assert sorted(found, key=int) == [b"%d" % number for number in range(20)]


def test_tasks_of_celery_publish(folder: Path, tmp_path: Path) -> None:
    """Of workers that are forked for four tasks each, from a parent that has the client."""
    require("celery")
    publish_tasks(folder, tmp_path)
    options = ["--pool=prefork", "--concurrency=2", "--max-tasks-per-child=4", "-l", "CRITICAL"]
    with program(folder, tmp_path, "celery", "-A", "tasks", "worker", *options):
        found = received(folder, 20)
    assert sorted(found, key=int) == [b"%d" % number for number in range(20)]


def publish_tasks(folder: Path, tmp_path: Path) -> None:
    """For workers to come."""
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "queue").mkdir()
    (tmp_path / "control").mkdir()
    asking = "import tasks\nfor number in range(20): tasks.publish.delay(number)"
    subprocess.run(
        [sys.executable, "-c", asking],
        cwd=tmp_path,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, "FOLDER": str(folder), "PYTHONPATH": str(TREE)},
    )
