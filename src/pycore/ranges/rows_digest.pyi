from typing import Any

def rows_digest(
    data: Any,
    topic: bytes,
    value: str,
    key: str | None = None,
    event_time: str | None = None,
    properties: str | None = None,
) -> int:
    """The digest of the rows of a table that go to a topic; sums modulo 2^64 are those of tables
    together. Columns as of Producer.send_arrow, and so are errors; 0: no rows."""
