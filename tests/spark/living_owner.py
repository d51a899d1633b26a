"""An owner of a folder that publishes and consumes while drivers die, and the two queries of those
drivers: a copy of a topic, and the counts of its keys as a table. Run as a program by the owner:

    python living_owner.py FOLDER NOTES

It ends publishing when NOTES/stop is there, and tells NOTES/count how much that was; it lives on
until NOTES/end, and tells NOTES/found what it has received of the copy.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsarx

KEYS = 5
COPY = "persistent://public/default/copy"
_MERGED_EVERY = 200  # messages


def source(spark: Any, folder: Path, **options: str) -> Any:
    given = {"root": str(folder), "topic": "in", "startingOffsets": "earliest", **options}
    return spark.readStream.format("pulsarx").options(**given).load()


def start_copy(
    spark: Any,
    folder: Path,
    checkpoints: Path,
    *,
    sink_format: str = "pulsarx",
    sink_options: dict[str, str] | None = None,
    **trigger: Any,
) -> Any:
    """From topic to topic, which it creates."""
    # Small batches are killed more often; the last run works off what is left.
    most, each = ("2000", "500") if trigger else ("50", "20")
    frame = source(spark, folder, maxMessagesPerTrigger=most, maxRecordsPerPartition=each)
    given = {"root": str(folder), "topic": "copy", "createTopic": "true", **(sink_options or {})}
    return start(
        frame.writeStream.format(sink_format).options(**given), checkpoints / "copy", trigger
    )


def start_counts(
    spark: Any,
    folder: Path,
    checkpoints: Path,
    *,
    behind: Callable[[], None] = lambda: None,
    **trigger: Any,
) -> Any:
    """Of the keys, as a table, which it creates. behind: what comes when a batch is written."""
    from pulsarx.spark import upsert_topic

    def upsert(frame: Any, batch: int) -> None:
        upsert_topic(
            frame, "counts", root=folder, application="counts", version=batch, create_topic=True
        )
        behind()

    counts = source(spark, folder).groupBy("__key").count()
    rows = counts.selectExpr("__key", "string(count) AS value")
    writer = rows.writeStream.outputMode("update").foreachBatch(upsert)
    return start(writer, checkpoints / "counts", trigger)


def start(writer: Any, checkpoint: Path, trigger: dict[str, Any]) -> Any:
    writer = writer.option("checkpointLocation", str(checkpoint))
    return writer.trigger(**trigger or {"processingTime": "0 seconds"}).start()


QUERIES = {"copy": start_copy, "counts": start_counts}


def leave(path: Path, found: Any) -> None:
    """Make a file at once as a whole."""
    path.with_suffix(".new").write_text(json.dumps(found))
    os.rename(path.with_suffix(".new"), path)


def main(folder: Path, notes: Path) -> None:
    found: list[tuple[str | None, int]] = []
    pause = threading.Event()
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
        client.admin.topics.create_non_partitioned_topic("in")
        producer = client.create_producer("in", batching_enabled=True, batching_max_messages=7)
        consumer: Any = None
        number = merged = 0

        def look() -> None:
            nonlocal consumer, merged
            if consumer is None and COPY in client.admin.topics.get_list():
                start = pulsarx.InitialPosition.Earliest
                consumer = client.subscribe(COPY, "s", initial_position=start)
            while consumer is not None and (some := consumer.receive_many(1000, 0)):
                found.extend((each.partition_key(), int(each.data())) for each in some)
                for each in some:
                    consumer.acknowledge(each)
            if len(found) - merged > _MERGED_EVERY:
                client.admin.topics.merge_ledgers(COPY)
                merged = len(found)

        leave(notes / "lives", True)
        while not (notes / "end").exists():
            if not (notes / "stop").exists():
                producer.send(b"%d" % number, partition_key=str(number % KEYS))
                number += 1
            elif not (notes / "count").exists():
                leave(notes / "count", number)
            look()
            pause.wait(0.02)
        look()
    leave(notes / "found", found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
