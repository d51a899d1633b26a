"""A Kafka broker of one node with its own settings, but for one replica of everything; it ends with
this process."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from peers.get import run
from peers.peer import Missing, free_port, started, stop
from spark_peers.get import BROKER, BUILD, CONNECTOR, PYTHON, missing_jars
from spark_peers.values import PARTS

SECONDS_MAX = 60


class Broker:
    """Missing: it cannot be had."""

    def __init__(self, folder: Path, java: str) -> None:
        absent = missing_jars(BROKER, CONNECTOR)
        if absent:
            raise Missing(absent)
        if not (PYTHON / "confluent_kafka").is_dir():
            raise Missing("not fetched: confluent-kafka")
        folder.mkdir(parents=True)
        self.port, control = free_port(), free_port()
        self.servers = f"127.0.0.1:{self.port}"
        settings = {
            "process.roles": "broker,controller", "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{control}",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": f"PLAINTEXT://{self.servers}",
            "controller.listener.names": "CONTROLLER", "log.dirs": folder / "logs",
            "num.partitions": PARTS, "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
            "offsets.topic.num.partitions": 1, "log.segment.delete.delay.ms": 1000,
            "group.initial.rebalance.delay.ms": 0,
        }  # fmt: skip
        file = folder / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        identity = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        base = [java, "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-cp", f"{BUILD / BROKER}/*"]
        run(*base, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(file))
        self.log = folder / "log"
        self._process = started(["sh", "-c", 'exec "$@" >"$0" 2>&1', str(self.log), *base,
                                 "kafka.Kafka", str(file)])  # fmt: skip
        self._wait()

    def _wait(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        for _ in range(SECONDS_MAX):
            try:
                self.admin.list_topics(timeout=1)
                return
            except KafkaException:
                if self._process.poll() is not None:
                    break
        stop(self._process)
        raise Missing(f"its broker does not answer: {self.log.read_text()[-300:]}")

    def create(self, topic: str, **settings: str) -> None:
        from confluent_kafka.admin import NewTopic

        made = self.admin.create_topics([NewTopic(topic, PARTS, 1, config=settings)])
        made[topic].result(SECONDS_MAX)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(SECONDS_MAX)

    def close(self) -> None:
        stop(self._process)
