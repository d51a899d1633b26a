"""Messages as Pulsar's admin REST API writes them, a payload and headers, and back: for client and
server."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode

from pulsarx.admin.batch_payload import messages_of_batch
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

_VALUE_MAX = 16 << 10  # bytes of a header

# Written ------------------------------------------------------------------------------------------


def message_shown(message: Json) -> tuple[bytes, dict[str, str]]:
    """The payload, and the rest in headers. What a header cannot say is left out, and counted in
    X-PulsarX-Left-Out."""
    ledger_id, entry_id, _, *batch = message["message_id"].rpartition(";")[2].split(":")
    place = ":".join([ledger_id, entry_id, *batch])
    headers = {
        "X-Pulsar-Message-ID": place,
        "X-Pulsar-publish-time": _time(message["publish_timestamp"]),
        "X-Pulsar-producer-name": message["producer_name"],
    }
    if message["event_timestamp"]:
        headers["X-Pulsar-event-time"] = _time(message["event_timestamp"])
    if message["partition_key"]:
        headers["X-Pulsar-partition-key"] = message["partition_key"]
    if message["data"] is None:
        headers["X-Pulsar-null-value"] = "true"
    headers["X-Pulsar-PROPERTY"] = json.dumps(message["properties"])
    told = {name: value for name, value in headers.items() if _is_sayable(value)}
    if len(told) < len(headers):
        told["X-PulsarX-Left-Out"] = str(len(headers) - len(told))
    return b64decode(message["data"] or ""), told


def _is_sayable(value: str) -> bool:
    """Whether a header can carry it, so that it comes as it was."""
    return (
        value.isascii()
        and (value.isprintable() or not value)
        and value == value.strip()
        and len(value) <= _VALUE_MAX
    )


def _time(milliseconds: int) -> str:
    """A time as Pulsar writes it; one that no calendar has stays a number."""
    from datetime import UTC, datetime, timedelta

    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return f"{found:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


# Read ---------------------------------------------------------------------------------------------


def messages_read(topic: str, headers: Any, body: bytes) -> list[Json]:
    """The messages of an entry, as the verb describes them."""
    partition = TopicName.of(topic).partition_index
    ledger_id, entry_id, *batch = headers.get("X-Pulsar-Message-ID", "-1:-1").split(":")
    place = f"{ledger_id}:{entry_id}:{partition}"
    common = {
        "publish_timestamp": milliseconds_of(headers.get("X-Pulsar-publish-time")),
        "producer_name": headers.get("X-Pulsar-producer-name") or "",
    }
    if headers.get("X-Pulsar-num-batch-message") is not None:
        return [
            {"message_id": f"{place}:{index}", **common, **each}
            for index, each in enumerate(messages_of_batch(body))
        ]
    null = headers.get("X-Pulsar-null-value") == "true"
    return [
        {
            "message_id": ":".join([place, *batch]),
            **common,
            "data": None if null else b64encode(body).decode(),
            "properties": _properties(headers),
            "partition_key": headers.get("X-Pulsar-partition-key") or "",
            "ordering_key": "",
            "event_timestamp": milliseconds_of(headers.get("X-Pulsar-event-time")),
        }
    ]


def _properties(headers: Any) -> dict[str, str]:
    """Brokers before 2.9 have a header for each."""
    whole = headers.get("X-Pulsar-PROPERTY")
    try:
        found = json.loads(whole) if whole else {}
    except ValueError:
        found = {}
    prefix = "x-pulsar-property-"
    for name, value in headers.items():
        if name.lower().startswith(prefix):
            found[name[len(prefix) :]] = value
    return {str(name): str(value) for name, value in found.items()}


def milliseconds_of(text: str | None) -> int:
    """A time as Pulsar writes it, in milliseconds since 1970; 0: there is none."""
    from datetime import UTC, datetime, timedelta

    if not text:
        return 0
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return int(text) if text.isdecimal() else 0
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
