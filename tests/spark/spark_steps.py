"""What the tests of format("pulsarx") do again and again. Imported by child processes as well."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pulsarx

PREFIX = "persistent://public/default/"
# For a Java that lives for a minute: it is done before its second compiler has paid for itself, it
# need not collect before it has loaded its classes, and Spark's classes are not checked.
SMALL_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms400m -Xmn256m -XX:MetaspaceSize=256m "
    "-XX:-UsePerfData -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


def small_session(application: str, master: str, **settings: str) -> Any:
    """That of a driver of its own, whose Java is small."""
    from pulsarx.spark import session

    options = {"spark.driver.extraJavaOptions": SMALL_JAVA, "spark.sql.shuffle.partitions": "1"}
    return session(application, master, options | settings)


def make_topics(folder: Path, *names: str, partitions: int = 0) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        for name in names:
            if partitions:
                client.admin.topics.create_partitioned_topic(name, partitions)
            else:
                client.admin.topics.create_non_partitioned_topic(name)


def send(client: Any, topic: str, values: Iterable[bytes], key: str | None = None) -> None:
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=7,
        batching_max_publish_delay_ms=60_000,  # a slow machine makes the same entries
        block_if_queue_full=True,
    )
    for value in values:
        producer.send_async(value, None, partition_key=key)
    producer.close()


def messages(folder: Path, topic: str, partitions: int = 0) -> list[tuple[str | None, bytes]]:
    """(key, value) of all messages as plain Python reads them, partition by partition."""
    names = [f"{topic}-partition-{index}" for index in range(partitions)] or [topic]
    found = []
    with pulsarx.Client(folder, read_only=True) as client:
        for name in names:
            reader = client.create_reader(name, pulsarx.MessageId.earliest)
            while batch := reader.read_many(1000, 0):
                found += [(each.partition_key(), each.data()) for each in batch]
    return found


def values(folder: Path, topic: str, partitions: int = 0) -> list[bytes]:
    return [value for _, value in messages(folder, topic, partitions)]


def ledger_count(folder: Path, topic: str) -> int:
    from pulsarx.broker.read_only_broker import ReadOnlyBroker

    broker = ReadOnlyBroker(str(folder))
    found = len(broker.catalogue.state.topics[PREFIX + topic].ledgers)
    broker.close()
    return found


def catalogue_number(folder: Path) -> int:
    """Of the last commit."""
    from pulsarx.broker.read_only_broker import ReadOnlyBroker

    broker = ReadOnlyBroker(str(folder))
    broker.close()
    return int(broker.catalogue.state.number)


def staged(folder: Path) -> list[str]:
    area = folder / "staging"
    return sorted(str(path.relative_to(area)) for path in area.rglob("*") if path.is_file())


def read(spark: Any, folder: Path, topic: str, **options: Any) -> Any:
    given = {"root": str(folder), "topic": topic, **options}
    return spark.read.format("pulsarx").options(**given).load()


def write(frame: Any, folder: Path, topic: str | None = None, **options: Any) -> None:
    given = {"root": str(folder), **({"topic": topic} if topic else {}), **options}
    frame.write.format("pulsarx").options(**given).mode("append").save()


def run_stream(
    spark: Any,
    folder: Path,
    source: str,
    sink: str,
    checkpoint: Path,
    *,
    sink_format: str = "pulsarx",
    sink_options: dict[str, str] | None = None,
    **options: Any,
) -> list[Any]:
    """Everything there is, from topic to topic; what each batch was."""
    given = {"root": str(folder), "topic": source, "startingOffsets": "earliest", **options}
    query = (
        spark.readStream.format("pulsarx")
        .options(**given)
        .load()
        .writeStream.format(sink_format)
        .options(root=str(folder), topic=sink, checkpointLocation=str(checkpoint))
        .options(**(sink_options or {}))
        .trigger(availableNow=True)
        .start()
    )
    if not query.awaitTermination(200):
        query.stop()
        raise AssertionError("the stream did not end")
    return list(query.recentProgress)
