"""The official Java client over TCP: one program, for what it alone does. Skipped where there is no
Java 17 or Maven, or where neither Maven Central nor a local repository has the client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import maven
import pytest
from served import Served
from support.ports import port_to_come_back_to

import pulsarx
from pulsarx.rest import serve_http

SOURCES = Path(__file__).parent / "java_client"
RUN_SECONDS = 600

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return maven.libraries(SOURCES, tmp_path_factory.mktemp("java"))


def command_of(libraries: Path, program: str, *arguments: str) -> list[str]:
    return ["java", "-Xmx400m", "-cp", f"{libraries}/*", str(SOURCES / program), *arguments]


def run(libraries: Path, *arguments: str) -> None:
    command = command_of(libraries, "Official.java", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]


def test_what_only_the_java_client_does(
    libraries: Path, open_served: Callable[..., Served]
) -> None:
    options = pulsarx.BrokerOptions(
        broker_entry_metadata_interceptors=[
            "AppendBrokerTimestampMetadataInterceptor",
            "AppendIndexMetadataInterceptor",
        ],
        exposing_broker_entry_metadata_to_client_enabled=True,
    )
    served = open_served(broker_options=options)
    served.client.admin.topics.create_partitioned_topic("partitions", 3)
    served.client.admin.topics.create_partitioned_topic("partitions-sink", 2)
    served.client.create_producer("terminated").send(b"last")
    served.client.admin.topics.terminate("terminated")
    url = served.service.service_url
    assert url is not None
    with serve_http(served.client, port=0) as web:
        run(libraries, url, web.url)
    # What it compressed is read here, too: five kinds, single and in batches, three texts.
    reader = served.client.create_reader("compression", pulsarx.MessageId.earliest)
    found = [each.data() for each in reader.read_many(100, 0)]
    assert found == [b"compressible " * 1000, b"a", b""] * 10


def test_without_a_coordinator_no_client_with_transactions_is_opened(
    libraries: Path, open_served: Callable[..., Served]
) -> None:
    options = pulsarx.BrokerOptions(transaction_coordinator_enabled=False)
    url = open_served(broker_options=options).service.service_url
    assert url is not None
    run(libraries, url, "without-coordinator")


def test_a_transaction_goes_on_when_its_server_was_killed(libraries: Path, tmp_path: Path) -> None:
    folder, port = tmp_path / "folder", str(port_to_come_back_to())
    with serving(folder, port) as server:
        command = command_of(libraries, "Restarted.java", f"pulsar://127.0.0.1:{port}")
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as program:
            try:
                assert program.stdout is not None
                said = program.stdout.readline()
                assert said == "open\n", program.communicate()[1][-4000:]
                server.kill()
                server.wait()
                with serving(folder, port):
                    _, failed = program.communicate("\n", timeout=RUN_SECONDS)
                assert program.returncode == 0, failed[-4000:]
            finally:
                program.kill()


@contextmanager
def serving(folder: Path, port: str) -> Iterator[subprocess.Popen[str]]:
    """A server as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)}
    command = [sys.executable, "-m", "pulsarx", "serve", str(folder), "--port", port]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            assert "is served at" in server.stdout.readline()
            yield server
        finally:
            server.kill()
