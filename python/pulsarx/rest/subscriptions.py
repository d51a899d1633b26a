"""Routes of the subscriptions of a topic."""

from __future__ import annotations

import json
from base64 import b64decode

from pulsarx import errors
from pulsarx.options.argument_check import INT64_MAX
from pulsarx.rest.call import Answer, Refusal, read_form, whole
from pulsarx.rest.policies import TOPIC
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call

_SUBSCRIPTION = f"{TOPIC}/subscription/{{subscription}}"
_LATEST = {"ledgerId": INT64_MAX, "entryId": INT64_MAX}
_PEEK_MAX = 1000  # of the verb


def _list(call: Call) -> list[str]:
    found: list[str] = call.perform("topics.get_subscriptions", topic=call.topic)
    return found


def _perform(call: Call, verb: str, **more: object) -> Any:
    name = call.subscription
    return call.perform(f"topics.{verb}", topic=call.topic, name=name, **more)


def _create(call: Call) -> None:
    place = call.json(_LATEST)
    if place in ("latest", "earliest"):
        place = _LATEST if place == "latest" else {"ledgerId": -1, "entryId": -1}
    properties = place.get("properties") if isinstance(place, dict) else None
    if properties:
        raise errors.OperationNotSupported(
            detail="properties of a subscription are not supported by PulsarX yet"
        )
    _perform(call, "create_subscription", position=read_form("ResetCursorData", place))


def _expire_all(call: Call) -> None:
    seconds = call.number("seconds")
    for name in _list(call):
        call.perform("topics.expire_messages", topic=call.topic, name=name, seconds=seconds)


def _reset_to_time(call: Call) -> None:
    _perform(call, "reset_cursor", position={"publish_time_ms": call.number("timestamp")})


def _properties(call: Call) -> dict[str, str]:
    if call.subscription not in _list(call):
        raise errors.missing_subscription(call.subscription, call.topic)
    return {}


# Peeking ------------------------------------------------------------------------------------------


def _peek(call: Call) -> Answer:
    count = whole("the position of a message", call.part("position"))
    if not 1 <= count <= _PEEK_MAX:
        raise Refusal(412, f"the position of a message is from 1 to {_PEEK_MAX}, not {count}")
    found = _perform(call, "peek_messages", count=count)
    if len(found) < count:
        raise Refusal(404, "Message not found")
    return message_answer(found[-1])


def message_answer(message: dict[str, Any]) -> Answer:
    """A message as Pulsar answers it: the payload, and the rest in headers. What a header cannot
    say is left out, and counted in X-PulsarX-Left-Out."""
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
    return Answer(b64decode(message["data"] or ""), "application/octet-stream", headers=told)


_VALUE_MAX = 16 << 10


def _is_sayable(value: str) -> bool:
    """Whether a header can carry it, so that it comes as it was."""
    return (
        value.isascii()
        and (value.isprintable() or not value)
        and value == value.strip()
        and len(value) <= _VALUE_MAX
    )


def _time(milliseconds: int) -> str:
    """As Pulsar writes times; those that no calendar has as they are."""
    from datetime import UTC, datetime, timedelta

    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return f"{found:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


OWN = {"topics.create_subscription": _create, "topics.peek_messages": _peek}
ROUTES = [
    Route(
        "POST",
        f"{TOPIC}/all_subscription/expireMessages/{{seconds}}",
        _expire_all,
        "Expire older messages of all subscriptions of a topic.",
    ),
    Route(
        "POST",
        f"{_SUBSCRIPTION}/resetcursor/{{timestamp}}",
        _reset_to_time,
        "Move a subscription to a time (ms).",
    ),
    Route(
        "GET", f"{_SUBSCRIPTION}/properties", _properties, "Get the properties of a subscription."
    ),
]
