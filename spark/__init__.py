"""PulsarX on Spark: topics as tables, tables as topics. Extra `pulsarx[spark]`.

Nothing of Spark is imported before it is used, so workers load only what their task needs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.spark.data_source import register
    from pulsarx.spark.partition_reader import (
        map_topic,
        plan_frame,
        read_partitions,
        read_topic,
        topic_rdd,
    )
    from pulsarx.spark.partition_writer import (
        message_accumulator,
        message_batches,
        save_rdd,
        write_partitions,
        write_topic,
    )
    from pulsarx.spark.spark_session import session
    from pulsarx.spark.stream_progress import ProgressListener, StreamProgress, progress
    from pulsarx.spark.subscription_sync import sync_subscription
    from pulsarx.spark.topic_plan import plan_topic
    from pulsarx.spark.topic_tables import tables, tables_version
    from pulsarx.spark.topic_upsert import upsert_topic
    from pulsarx.spark.write_commit import abort_write, commit_write
    from pulsarx.spark.write_job import plan_write
    from pulsarx.spark.write_transaction import WriteTransaction

# Where each name is. No module has the name of what it gives: importing it would hide that.
_PLACES = {
    "session": "spark_session",
    "register": "data_source",
    "sync_subscription": "subscription_sync",
    "map_topic": "partition_reader",
    "read_topic": "partition_reader",
    "topic_rdd": "partition_reader",
    "plan_topic": "topic_plan",
    "plan_frame": "partition_reader",
    "read_partitions": "partition_reader",
    "write_topic": "partition_writer",
    "upsert_topic": "topic_upsert",
    "save_rdd": "partition_writer",
    "tables": "topic_tables",
    "tables_version": "topic_tables",
    "progress": "stream_progress",
    "ProgressListener": "stream_progress",
    "StreamProgress": "stream_progress",
    "plan_write": "write_job",
    "write_partitions": "partition_writer",
    "message_batches": "partition_writer",
    "message_accumulator": "partition_writer",
    "commit_write": "write_commit",
    "abort_write": "write_commit",
    "WriteTransaction": "write_transaction",
}

__all__ = [
    "session",
    "register",
    "sync_subscription",
    "map_topic",
    "read_topic",
    "topic_rdd",
    "plan_topic",
    "plan_frame",
    "read_partitions",
    "write_topic",
    "upsert_topic",
    "save_rdd",
    "tables",
    "tables_version",
    "progress",
    "ProgressListener",
    "StreamProgress",
    "plan_write",
    "write_partitions",
    "message_batches",
    "message_accumulator",
    "commit_write",
    "abort_write",
    "WriteTransaction",
]


def __getattr__(name: str) -> Any:
    import importlib

    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(importlib.import_module(f"{__name__}.{place}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("pyspark", "pyarrow", "pandas", "numpy"):
            raise
        raise ImportError(
            f"pulsarx.spark.{name} needs {error.name}: pip install 'pulsarx[spark]'"
        ) from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
