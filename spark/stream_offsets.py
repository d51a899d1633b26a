"""The offsets of a stream as Spark keeps them in the checkpoint. For stream_reader,
subscription_sync and given_offsets; imports no Spark.

    {"persistent://public/default/t":[12,5120],"stream/folder":"5f0c..."}

The offsets of broker.offsets, sorted by name, and which data directory they are of: another one
under the same path has other messages at the same places. The offset that ends the very first batch
also says where that batch began, under START: Spark notes it nowhere, and asks for the initial
offset again when it repeats the first batch; by then the latest message is another one.

What Spark only shows, as the latest offset of a query's progress, has the backlog, too, under
STATUS: the API for Python has no metrics of sources. See stream_progress.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.scan.offsets import Offsets

    SparkOffset = dict[str, Any]

# No topic has such a name.
FOLDER, START, STATUS = "stream/folder", "stream/start", "stream/status"
_OURS = (FOLDER, START, STATUS)


def to_spark(offsets: Offsets, folder_id: str = "", start: Offsets | None = None) -> SparkOffset:
    """The one form: sorted, so that equal places are equal texts. start: in the first batch."""
    found: SparkOffset = {name: list(offsets[name]) for name in sorted(offsets)}
    if folder_id:
        found[FOLDER] = folder_id
    if start is not None:
        found[START] = to_spark(start)
    return found


def of_spark(offset: SparkOffset) -> Offsets:
    return {name: (int(at[0]), int(at[1])) for name, at in offset.items() if name not in _OURS}


def start_of(offset: SparkOffset) -> Offsets | None:
    """Return where the batch began that ends there; None: it is not a first one."""
    start = offset.get(START)
    return None if start is None else of_spark(start)


def only_offsets(text: str) -> str:
    """The offsets in a text that was taken from the progress of a query, or its checkpoint."""
    if "stream/" not in text:
        return text
    document = json.loads(text)
    if isinstance(document, dict):
        document = {name: at for name, at in document.items() if name not in _OURS}
    return json.dumps(document)
