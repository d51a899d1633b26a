"""The official client over loopback, on a served folder and on a real Pulsar (as `make oracle`
starts it, which does not flush). It has no lists: the best batches are those of send_async."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulsar
from fresh_process import TREE
from peers.peer import OVER_TCP, Missing, Peer, Talker, chunks, stop

ROOT = Path(__file__).resolve().parent.parent.parent
WARM_UP = 30_000  # messages until the JVM has compiled
SERVED = """
import sys, pulsarx
from pulsarx.server import serve
with pulsarx.Client(sys.argv[1], durability=sys.argv[2]) as client:
    with serve(client, port=0) as service:
        print(service.service_url, flush=True)
        sys.stdin.read()
"""


def served(folder: Path, flushed: bool) -> tuple[subprocess.Popen[bytes], str]:
    """The folder, served by a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(TREE)}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVED, str(folder), "sync" if flushed else "os"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
    )  # fmt: skip
    assert process.stdout is not None
    url = process.stdout.readline().decode().strip()
    if not url:
        stop(process)
        raise Missing("pulsarx serve does not start: pip install 'pulsarx[serve]'")
    return process, url


def started_pulsar() -> tuple[Any, str]:
    sys.path.append(str(ROOT / "tests" / "oracle"))
    import real_pulsar

    try:
        broker = real_pulsar.RealPulsar()
    except (real_pulsar.Missing, RuntimeError) as error:
        raise Missing(str(error)) from error
    return broker, broker.url


class Served(Peer):
    name = "PulsarX, served"
    place = OVER_TCP
    ways = ("publish_each", "publish_stream", "consume_each", "consume_batch")

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.process, url = self.start(folder, flushed)
        quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
        self.client = pulsar.Client(url, logger=quiet)
        self.single = self.client.create_producer("measured", batching_enabled=False)
        self.batching = self.client.create_producer(
            "measured", batching_enabled=True, batching_max_messages=1000,
            batching_max_publish_delay_ms=10, batching_max_allowed_size_in_bytes=1 << 20,
            block_if_queue_full=True,
        )  # fmt: skip
        self.consumer = self.client.subscribe(
            "measured", "worker", initial_position=pulsar.InitialPosition.Earliest,
            batch_receive_policy=pulsar.ConsumerBatchReceivePolicy(1000, 1 << 20, 10),
        )  # fmt: skip

    def start(self, folder: Path, flushed: bool) -> tuple[Any, str]:
        return served(folder, flushed)

    def publish_each(self, payloads: list[bytes]) -> None:
        send = self.single.send
        for payload in payloads:
            send(payload)

    def publish_stream(self, payloads: list[bytes]) -> None:
        def failed(result: pulsar.Result, _: object) -> None:
            assert result == pulsar.Result.Ok, result

        for chunk in chunks(payloads, self.batch):
            for payload in chunk:
                self.batching.send_async(payload, failed)
            self.batching.flush()

    def consume_each(self, count: int) -> None:
        receive, acknowledge = self.consumer.receive, self.consumer.acknowledge
        for _ in range(count):
            message = receive()
            message.data()
            acknowledge(message)

    def consume_batch(self, count: int) -> None:
        while count > 0:
            messages = self.consumer.batch_receive()
            for message in messages:
                message.data()
            if messages:
                self.consumer.acknowledge_cumulative(messages[-1])
            count -= len(messages)

    def close(self) -> None:
        self.client.close()
        stop(self.process)


class RealPulsar(Served):
    """Asked for by name: it takes half a minute and two GB to start."""

    name = "Apache Pulsar"
    modes = ("page cache",)

    def __init__(self, folder: Path, flushed: bool) -> None:
        super().__init__(folder, flushed)
        self.publish_stream([bytes(100)] * WARM_UP)
        self.consume_batch(WARM_UP)

    def start(self, folder: Path, flushed: bool) -> tuple[Any, str]:
        return started_pulsar()

    def close(self) -> None:
        self.client.close()
        self.process.stop()


class Talk(Talker):
    name = "PulsarX, served"
    between = ("over TCP",)

    def __init__(self, address: str, speaks_first: bool) -> None:
        self.process: Any = None
        place = Path(address + ".url")
        if speaks_first:
            self.process, url = self.start(Path(address))
            place.write_text(url)
        quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
        self.client = pulsar.Client(place.read_text(), logger=quiet)
        sends, hears = ("there", "back") if speaks_first else ("back", "there")
        self.producer = self.client.create_producer(sends, batching_enabled=False)
        self.consumer = self.client.subscribe(
            hears, "worker", initial_position=pulsar.InitialPosition.Earliest
        )

    def start(self, folder: Path) -> tuple[Any, str]:
        return served(folder, flushed=False)

    def stop(self) -> None:
        stop(self.process)

    def send(self, payload: bytes) -> None:
        self.producer.send(payload)

    def receive(self) -> bytes:
        message = self.consumer.receive(60_000)
        self.consumer.acknowledge(message)
        return message.data()

    def close(self) -> None:
        self.client.close()
        if self.process is not None:
            self.stop()


class RealTalk(Talk):
    name = "Apache Pulsar"

    def start(self, folder: Path) -> tuple[Any, str]:
        return started_pulsar()

    def stop(self) -> None:
        self.process.stop()
