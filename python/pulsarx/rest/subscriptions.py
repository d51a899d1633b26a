"""Routes of the subscriptions of a topic."""

from __future__ import annotations

from pulsarx.admin.http_messages import message_shown
from pulsarx.options.argument_check import INT64_MAX
from pulsarx.rest.call import Answer, Refusal, read_form, whole
from pulsarx.rest.policies import TOPIC
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.rest.call import Call

_SUBSCRIPTION = f"{TOPIC}/subscription/{{subscription}}"
_LATEST = {"ledgerId": INT64_MAX, "entryId": INT64_MAX}
_PEEK_MAX = 1000  # of the verb
_DELAYED_COUNT = 100  # where the query does not say


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
    position = read_form("ResetCursorData", place)
    given = read_form("properties", properties or {})
    _perform(call, "create_subscription", position=position, properties=given)


def _expire_all(call: Call) -> None:
    seconds = call.number("seconds")
    for name in _list(call):
        call.perform("topics.expire_messages", topic=call.topic, name=name, seconds=seconds)


def _reset_to_time(call: Call) -> None:
    _perform(call, "reset_cursor", position={"publish_time_ms": call.number("timestamp")})


def _delayed(call: Call) -> Any:
    count = whole("count", call.query.get("count") or str(_DELAYED_COUNT))
    behind = call.query.get("behind")
    more = {"behind": behind} if behind else {}
    return _perform(call, "get_delayed_messages", count=count, **more)


def _cancel(call: Call) -> Any:
    return call.perform(
        "topics.cancel_message", topic=call.topic, message_id=call.part("message_id")
    )


def _cancel_for_one(call: Call) -> Any:
    return _perform(call, "cancel_message", message_id=call.part("message_id"))


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
    """A message as Pulsar answers it: the payload, and the rest in headers."""
    payload, headers = message_shown(message)
    return Answer(payload, "application/octet-stream", headers=headers)


OWN: dict[str, Callable[[Call], Any]] = {
    "topics.create_subscription": _create,
    "topics.peek_messages": _peek,
    "topics.get_delayed_messages": _delayed,
    "topics.cancel_message": _cancel,
}
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
        "DELETE",
        f"{_SUBSCRIPTION}/delayed/{{message_id}}",
        _cancel_for_one,
        "Cancel a message of a subscription before it is due.",
        refused=412,
    ),
]
