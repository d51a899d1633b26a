"""A cluster for the tests of Spark: a folder in memory, served as `pulsarx serve` does, which the
official client and the admin REST API reach. Or a real Pulsar, whose service URL and web URL stand
in PULSARX_TEST_CLUSTER, a blank between them: all topics of public/default are deleted there."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pulsarx
from pulsarx.admin import Admin
from pulsarx.rest import serve_http
from pulsarx.server import serve

PREFIX = "persistent://public/default/"


class ServedCluster:
    """Tests publish and look through `client` and `admin`, and Spark comes over the network."""

    def __init__(self) -> None:
        self.client = pulsarx.Client("memory:", durability="os")
        self.admin = self.client.admin
        self._service = serve(self.client, port=0)
        self._http = serve_http(self.client, port=0, broker_port=self._service.port)
        self.options = {"root": self._service.service_url, "adminUrl": self._http.url}

    def publish(self, topic: str, count: int, first: int = 0, batch: int = 7) -> None:
        """Numbered messages, whose keys are k0 to k4, so many in an entry."""
        producer = self.client.create_producer(
            topic, batching_enabled=True, batching_max_messages=batch, block_if_queue_full=True
        )
        for number in range(first, first + count):
            producer.send_async(
                b"%d" % number,
                None,
                partition_key=f"k{number % 5}",
                properties={"number": str(number)},
                event_timestamp=1_700_000_000_000 + number,
            )
        producer.flush()
        producer.close()

    def contents(self, topic: str) -> list[bytes]:
        """The values of a topic or partition, in order."""
        reader = self.client.create_reader(topic, pulsarx.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).data())
        reader.close()
        return found

    def new_ledger(self, topic: str) -> None:
        self.admin.topics.unload(topic)

    def deduplicate(self, topic: str) -> None:
        """Enable deduplication of a topic."""
        self.admin.topics.set_deduplication(topic, True)

    def snapshot(self, topic: str) -> None:
        """The brokers have noted how far the producers of a topic are."""

    def remove_messages(self, topic: str) -> None:
        """Nobody can read any more what is in the topic."""
        self.admin.topics.truncate(topic)

    def read(self, spark: Any, topic: str, **options: Any) -> Any:
        return (
            spark.read.format("pulsarx").options(**self.options, topic=topic, **_texts(options))
        ).load()

    def write(self, frame: Any, topic: str | None = None, **options: Any) -> None:
        named = {} if topic is None else {"topic": topic}
        writer = frame.write.format("pulsarx").mode("append")
        writer.options(**self.options, **named, **_texts(options)).save()

    def close(self) -> None:
        self._http.close()
        self._service.close()
        self.client.shutdown()


class RealCluster(ServedCluster):
    """A real Pulsar, which no other test uses meanwhile."""

    def __init__(self, service_url: str, web_url: str) -> None:
        self.admin = Admin.at(web_url)
        self.options = {"root": service_url, "adminUrl": web_url}
        topics = self.admin.topics
        partitioned = topics.get_partitioned_topic_list("public/default")
        for name in partitioned:
            topics.delete_partitioned_topic(name, force=True)
        for name in topics.get_list("public/default"):
            topics.delete(name, force=True)
        self.admin.namespaces.remove_deduplication("public/default")
        self.admin.namespaces.remove_auto_topic_creation("public/default")
        self.client = pulsarx.Client(service_url)

    def deduplicate(self, topic: str) -> None:
        # Pulsar's topics learn their policies behind the answer, one by one.
        super().deduplicate(topic)
        base = f"{self.options['adminUrl']}/admin/v2/persistent/public/default"
        known = [name.rpartition("/")[2] for name in self.admin.topics.get_list("public/default")]
        for url in [
            f"{base}/{name}/stats"
            for name in known
            if name == topic or name.startswith(f"{topic}-partition-")
        ]:
            self._wait(lambda url=url: _json(url)["deduplicationStatus"] == "Enabled", url)

    def snapshot(self, topic: str) -> None:
        # Pulsar does every two minutes, or after a thousand entries.
        base = f"{self.options['adminUrl']}/admin/v2/persistent/public/default"
        for part in self.client.get_topic_partitions(topic):
            self.publish(part, 2200, batch=2)
            url = f"{base}/{part.rpartition('/')[2]}/internalStats"
            self._wait(lambda url=url: _json(url)["cursors"]["pulsar.dedup"]["properties"], url)

    def remove_messages(self, topic: str) -> None:
        # Pulsar keeps the ledger that is written to, and trims behind its answer.
        self.admin.topics.unload(topic)

        def is_empty() -> bool:
            self.admin.topics.truncate(topic)
            return not self.contents(topic)

        self._wait(is_empty, f"{topic} to be empty")

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        ends, pause = time.monotonic() + 60, threading.Event()
        while not holds():
            if time.monotonic() > ends:
                raise RuntimeError(f"waited 60 s for {what}")
            pause.wait(0.1)

    def close(self) -> None:
        self.client.close()


def _json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def _texts(options: dict[str, Any]) -> dict[str, str]:
    return {
        name: each if isinstance(each, str) else json.dumps(each) for name, each in options.items()
    }


def served_cluster() -> Iterator[ServedCluster]:
    urls = os.environ.get("PULSARX_TEST_CLUSTER", "").split()
    cluster = RealCluster(*urls) if urls else ServedCluster()
    yield cluster
    cluster.close()
