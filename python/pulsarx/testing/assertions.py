"""Assertions about topics and subscriptions, which say what is missing and what was there. Looking
changes nothing, as in `contents`."""

from __future__ import annotations

from datetime import UTC, datetime

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event
from pulsarx.clock import Deadline, ManualClock
from pulsarx.testing.contents import messages, unacknowledged
from pulsarx.testing.drain import LOOK_SECONDS
from pulsarx.testing.inspection import inspect
from pulsarx.testing.matching import matched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from pulsarx.client import Client
    from pulsarx.message import Message
    from pulsarx.schema.schema import Schema

    R = TypeVar("R")

SHOWN = 20  # messages in the text of a failure
SHOWN_BYTES = 200  # of a value


def published(
    client: Client,
    topic: str,
    *expected: Any,
    key: str | None = None,
    properties: dict[str, str] | None = None,
    schema: Schema[Any] | None = None,
    only: bool = False,
) -> list[Message[Any]]:
    """Assert that a topic has these messages, in whatever order.

    Args:
        client: A client of the broker.
        topic: A name.
        *expected: Bytes, or with a schema values; or functions of a message that return whether it
            is the one. None is given: any message.
        key: Only messages with this key are looked at.
        properties: Only messages that have these properties among theirs.
        schema: The one by which values are decoded.
        only: There is no further one of them.

    Returns:
        The messages, in the order of the topic.

    Raises:
        AssertionError: Some are missing, or not expected; the text lists them and what was there.
    """
    found = [each for each in _messages(client, topic, schema) if _is_of(each, key, properties)]
    taken, missing = _taken(found, expected, schema)
    if not expected and not found:
        missing = ["any message"]
    spare = [each for each in found if expected and each not in taken]
    if not missing and not (only and spare):
        return taken if expected else found
    told = [f"{topic}{_of(key, properties)}:"]
    if missing:
        told.append(f"missing {len(missing)} of {max(len(expected), 1)}:")
        told += [f"  {_shown(each)}" for each in missing]
    if only and spare:
        told.append(f"not expected {len(spare)}:")
        told += _listed(spare, schema)
    told.append(f"there {'were' if len(found) != 1 else 'was'} {len(found) or 'none'}:")
    told += _listed(found, schema)
    if key is not None or properties is not None:
        others = len(_messages(client, topic, schema)) - len(found)
        told.append(f"and {others} with other keys or properties")
    raise AssertionError("\n".join([*told, *_hints(client)]))


def acknowledged(
    client: Client,
    topic: str,
    subscription_name: str,
    *expected: Any,
    key: str | None = None,
    properties: dict[str, str] | None = None,
    schema: Schema[Any] | None = None,
) -> None:
    """Assert that a subscription has acknowledged messages. A message that the topic does not have,
    never or not any more, is missing.

    Args:
        client: A client of the broker.
        topic: A name.
        subscription_name: The name of a subscription of the topic.
        *expected: The messages, as of published. None is given: all that the topic has.
        key: Only messages with this key are looked at.
        properties: Only messages that have these properties among theirs.
        schema: The one by which values are decoded.

    Raises:
        AssertionError: It has not acknowledged some, which the text lists with who has them; or
            there is no such subscription.
    """
    found = [each for each in _messages(client, topic, schema) if _is_of(each, key, properties)]
    taken, missing = _taken(found, expected, schema)
    try:
        left = unacknowledged(client, topic, subscription_name)
    except errors.SubscriptionNotFound:
        there = ", ".join(client.admin.topics.get_subscriptions(topic)) or "none"
        raise AssertionError(
            f"{topic} has no subscription {subscription_name!r}; it has {there}"
        ) from None
    pending = {str(each.message_id()) for each in left}
    open_ones = [
        each for each in (taken if expected else found) if str(each.message_id()) in pending
    ]
    if not missing and not open_ones:
        return
    told = [f"{topic}, subscription {subscription_name!r}{_of(key, properties)}:"]
    if open_ones:
        told.append(f"not acknowledged {len(open_ones)}:")
        told += _listed(open_ones, schema)
    if missing:
        told.append(f"not on the topic {len(missing)}:")
        told += [f"  {_shown(each)}" for each in missing]
    told.append(
        f"{len(pending)} are not acknowledged in all; "
        + _consumers(client, topic, subscription_name)
    )
    raise AssertionError("\n".join([*told, *_hints(client)]))


def eventually(
    clock: ManualClock,
    check: Callable[[], R],
    *,
    seconds: float = 60.0,
    timeout_seconds: float = 10.0,
) -> R:
    """Let time pass on the clock, from one thing that is due to the next, until the check holds.

    What the clock sets off in listeners and callbacks has happened when the check is called; for
    threads of the program's own, `drain` before time passes.

    Args:
        clock: The clock of the broker.
        check: A function. It fails by AssertionError, by an error of PulsarX, or by returning
            False.
        seconds: How many seconds the clock goes at most.
        timeout_seconds: Seconds of real time for threads of the program that are still at work
            when the clock has gone so far.

    Returns:
        The answer of the check.

    Raises:
        AssertionError: It failed to the end; the text says why it failed last, and what is due
            next.
    """
    steps = Steps(clock, seconds)
    while True:
        failure, result = _attempt(check)
        if failure is None:
            return result  # type: ignore[return-value]  # it was returned
        span = steps.next_seconds()
        if span is None:
            break
        clock.advance(span)
    deadline = Deadline(timeout_seconds * 1000)
    while not deadline.expired():
        Event().wait(LOOK_SECONDS)
        clock.advance(0)
        failure, result = _attempt(check)
        if failure is None:
            return result  # type: ignore[return-value]
    raise steps.failed(failure, timeout_seconds) from failure


class Steps:
    """The steps in which a clock goes from one thing that is due to the next."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        if not isinstance(clock, ManualClock):
            raise TypeError(f"eventually: a ManualClock is advanced, not {type(clock).__name__}")
        self._clock = clock
        self._seconds = seconds
        self._end_ms = clock.now_ms() + round(seconds * 1000)
        clock.advance(0)  # returns when listeners and callbacks have

    def next_seconds(self) -> float | None:
        """Return how far the clock goes next; None: it has gone as far as it may."""
        now_ms, due_ms = self._clock.now_ms(), self._clock.next_due_ms()
        if now_ms >= self._end_ms:
            return None
        target_ms = self._end_ms if due_ms is None else min(due_ms, self._end_ms)
        return max(target_ms - now_ms, 0) / 1000

    def failed(self, failure: BaseException | None, timeout_seconds: float) -> AssertionError:
        """Make the error of a check that did not hold to the end."""
        now_ms, due_ms = self._clock.now_ms(), self._clock.next_due_ms()
        now = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat()
        due = "nothing is due" if due_ms is None else f"next is due in {due_ms - now_ms} ms"
        why = str(failure) or type(failure).__name__
        return AssertionError(
            f"not within {self._seconds:g} s of the clock, which is at {now} ({due}), and "
            f"{timeout_seconds:g} s of real time: {why}"
        )


def _attempt(check: Callable[[], R]) -> tuple[Exception | None, R | None]:
    try:
        return failure_of(result := check()), result
    except (AssertionError, errors.PulsarException) as error:
        return error, None


def failure_of(result: object) -> AssertionError | None:
    """Return the failure of a check that returned False."""
    return AssertionError("the check returned False") if result is False else None


# What is said of messages -------------------------------------------------------------------------


def _messages(client: Client, topic: str, schema: Schema[Any] | None) -> list[Message[Any]]:
    try:
        return messages(client, topic, schema)
    except errors.TopicNotFound:
        names = [
            name
            for tenant in client.admin.tenants.get_tenants()
            for namespace in client.admin.namespaces.get_namespaces(tenant)
            for name in client.admin.topics.get_list(namespace)
        ]
        there = ", ".join(names) or "none"
        raise AssertionError(f"there is no topic {topic}; there are {there}") from None


def _taken(
    found: list[Message[Any]], expected: Iterable[Any], schema: Schema[Any] | None
) -> tuple[list[Message[Any]], list[Any]]:
    """The messages that are expected, each once, and what is missing: as few as can be, in whatever
    order they are expected."""
    wanted = list(expected)

    def fits(place: int, at: int) -> bool:
        each, message = wanted[place], found[at]
        if callable(each):
            return bool(each(message))
        return bool((message.data() if schema is None else message.value()) == each)

    # Values first: a message is equal to all that equal one of them, so none is given up for them.
    places = sorted(range(len(wanted)), key=lambda place: callable(wanted[place]))
    taken, missing = matched(places, len(found), fits)
    return [found[taken[each]] for each in sorted(taken)], [
        wanted[each] for each in sorted(missing)
    ]


def _is_of(message: Message[Any], key: str | None, properties: dict[str, str] | None) -> bool:
    if key is not None and not (message.has_key() and message.partition_key() == key):
        return False
    return properties is None or properties.items() <= message.properties().items()


def _of(key: str | None, properties: dict[str, str] | None) -> str:
    parts = []
    if key is not None:
        parts.append(f"key {key!r}")
    if properties is not None:
        parts.append(f"properties {properties!r}")
    return f" with {' and '.join(parts)}" if parts else ""


def _listed(found: list[Message[Any]], schema: Schema[Any] | None) -> list[str]:
    lines = [_line(each, schema) for each in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"  ... and {len(found) - SHOWN} more")
    return lines


def _line(message: Message[Any], schema: Schema[Any] | None) -> str:
    value: Any = message.data()
    if schema is not None:
        try:
            value = message.value()
        except Exception as error:  # of whatever schema
            value = f"{message.data()!r:.100}, which the schema refuses: {error}"
    key = f" key {message.partition_key()!r}" if message.has_key() else ""
    properties = f" properties {message.properties()!r}" if message.properties() else ""
    return f"  {message.message_id()}{key}{properties} {_shown(value)}"


def _shown(value: Any) -> str:
    text = getattr(value, "__name__", None) if callable(value) else None
    text = repr(value) if text is None else f"a message for which {text} holds"
    return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}..."


def _consumers(client: Client, topic: str, subscription_name: str) -> str:
    told = []
    for name in client.get_topic_partitions(topic):
        stats = client.admin.topics.stats(name)["subscriptions"].get(subscription_name, {})
        told += [
            f"consumer {each['consumer_name']!r} has {each['unacked_messages']}"
            for each in stats.get("consumers", ())
        ]
    return ", ".join(told) or "it has no consumer"


def _hints(client: Client) -> list[str]:
    # A client opened read_only has no clock.
    clock = getattr(getattr(inspect(client).broker, "runtime", None), "clock", None)
    if not isinstance(clock, ManualClock):
        return []
    due_ms = clock.next_due_ms()
    if due_ms is None:
        return []
    return [f"the clock stands still; what is due next comes in {due_ms - clock.now_ms()} ms"]
