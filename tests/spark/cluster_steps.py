"""A cluster for the tests of Spark: a folder in memory, served as `pulsarx serve` does, which the
official client and the admin REST API reach."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pulsarx
from pulsarx.rest import serve_http
from pulsarx.server import serve

PREFIX = "persistent://public/default/"


class ServedCluster:
    """Tests publish and look through `client`, and Spark comes over the network."""

    def __init__(self) -> None:
        self.client = pulsarx.Client("memory:", durability="os")
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
            found.append(reader.read_next(30_000).data())
        reader.close()
        return found

    def new_ledger(self, topic: str) -> None:
        self.client.admin.topics.unload(topic)

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


def _texts(options: dict[str, Any]) -> dict[str, str]:
    return {
        name: each if isinstance(each, str) else json.dumps(each) for name, each in options.items()
    }


def served_cluster() -> Iterator[ServedCluster]:
    cluster = ServedCluster()
    yield cluster
    cluster.close()
