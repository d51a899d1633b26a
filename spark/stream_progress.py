"""Shows how far the queries are that read topics: what is left, how fast it goes, what holds it.

Spark's API for Python sources has no metrics (`sources[].metrics` stays empty). But it shows the
latest offset of a source in the progress of its query, and there the stream reader says more.
"""

from __future__ import annotations

import json

from pyspark.sql.streaming.listener import StreamingQueryListener

from pulsarx.spark.stream_offsets import STATUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class StreamProgress:
    """One source of a query, as of when a batch of it was planned. A value."""

    __slots__ = (
        "query", "query_id", "batch_id", "timestamp", "root", "topics", "backlog_messages",
        "backlog_entries", "backlog_bytes", "backlog_seconds", "ledgers_left", "input_rows",
        "input_rows_per_second",
        "processed_rows_per_second", "lease", "lease_expires_ms", "subscription",
    )  # fmt: skip

    def __init__(self, progress: Any, source: Any, status: dict[str, Any]) -> None:
        """Read the progress of one source; see progress.

        Args:
            progress: The progress of the query, as Spark tells it.
            source: The part of it about the source.
            status: What the source said of itself.
        """
        self.query: str | None = progress["name"]
        self.query_id: str = str(progress["id"])
        self.batch_id: int = int(progress["batchId"])
        self.timestamp: str = str(progress["timestamp"])  # when the batch began, ISO
        self.root: str = str(status["root"])
        self.topics: int = int(status["topics"])  # partitions count by themselves
        # Behind the batch: messages, bytes of files, age of the first, ledgers that have some. A
        # cluster tells no messages but entries, and the age of a few topics alone: None else.
        self.backlog_messages: int | None = status["messages"]
        self.backlog_entries: int | None = status.get("entries")
        self.backlog_bytes: int = int(status["bytes"])
        self.backlog_seconds: float | None = status["seconds"]
        self.ledgers_left: int = int(status["ledgers"])
        self.input_rows: int = int(source["numInputRows"])  # of the batch
        # NaN where Spark has nothing to divide by.
        self.input_rows_per_second: float = float(source["inputRowsPerSecond"])
        self.processed_rows_per_second: float = float(source["processedRowsPerSecond"])
        # For which retention spares messages, and when it ends unless it is renewed. None: the
        # subscription does, or nothing does (leaseSeconds 0), or the first batch is to take it.
        self.lease: str | None = status["lease"]
        self.lease_expires_ms: int | None = status["lease_expires_ms"]
        self.subscription: str | None = status["subscription"]

    def line(self) -> str:
        """Return the progress as a line for a log."""
        held = f"subscription {self.subscription}" if self.subscription else "no subscription"
        left = [
            f"{count:,}{unit}"
            for count, unit in (
                (self.backlog_messages, " messages"),
                (self.backlog_entries, " entries"),
                (self.backlog_bytes, " bytes"),
                (None if self.backlog_seconds is None else round(self.backlog_seconds), " s"),
            )
            if count is not None
        ]
        return (
            f"query {self.query or self.query_id} batch {self.batch_id}: {self.input_rows} rows, "
            f"{self.processed_rows_per_second:,.0f} a second; left {', '.join(left)}, "
            f"{self.ledgers_left} ledgers of {self.topics} topics in {self.root}; {held}, "
            f"{'lease ' + self.lease if self.lease else 'no lease'}"
        )

    def __repr__(self) -> str:
        return f"StreamProgress({self.line()})"


def progress(query: Any) -> list[StreamProgress]:
    """Return the progress of each pulsarx source of a query, as of the planning of its last batch;
    empty before its first batch has ended.

    Args:
        query: A StreamingQuery, or a progress of one.
    """
    found = getattr(query, "lastProgress", query)
    if found is None:
        return []
    made = []
    for source in found["sources"]:
        status = _status_of(source)
        if status is not None:
            made.append(StreamProgress(found, source, status))
    return made


def _status_of(source: Any) -> dict[str, Any] | None:
    text = source["latestOffset"]
    if not isinstance(text, str) or STATUS not in text:
        return None
    found = json.loads(text)
    return found.get(STATUS) if isinstance(found, dict) else None


class ProgressListener(StreamingQueryListener):
    """Reports every batch of every query of a session: `spark.streams.addListener(...)`."""

    def __init__(self, report: Callable[[StreamProgress], object] | None = None) -> None:
        """Report to a function.

        Args:
            report: Called in a thread of Spark's, for each source that is ours; None: the line goes
                to the logger pulsarx.spark, as info.
        """
        self._report = report or _log

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report a batch. Spark calls it.

        Args:
            event: As Spark tells it.
        """
        for found in progress(event.progress):
            self._report(found)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing. Spark calls it.

        Args:
            event: As Spark tells it.
        """

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing. Spark calls it.

        Args:
            event: As Spark tells it.
        """

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing. Spark calls it.

        Args:
            event: As Spark tells it.
        """


def _log(found: StreamProgress) -> None:
    import logging

    logging.getLogger("pulsarx.spark").info("%s", found.line())
