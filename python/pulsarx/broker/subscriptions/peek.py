"""Reads messages of a subscription that are not acknowledged, and leaves them as they are."""

from __future__ import annotations

from itertools import islice

from pulsarx import errors
from pulsarx.encryption import AS_STORED
from pulsarx.schema import BytesSchema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.faces import TopicView
    from pulsarx.broker.ledgers.ledger_list import Position

SIZE_MAX = 16 << 20  # bytes of one answer; more than a request may have


def peek(
    topic: TopicView,
    start: Position,
    is_acknowledged: Callable[[int, int], bool],
    count: int,
    skip: int = 0,
) -> list[dict[str, Any]]:
    """The next messages from start on that are not acknowledged, behind skip of them up to count,
    as JSON says them.

    is_acknowledged: of a ledger id and an ordinal in it. Damaged messages are passed over, which
    the log says. NotAllowedError: they are too large together.
    """
    found: list[dict[str, Any]] = []
    size = 0
    last = None
    wanted = next_messages(topic, start, is_acknowledged, skip + count)
    for _, message in islice(wanted, skip, None):
        if message is last:
            continue  # an encrypted batch is shown once
        last = message
        size += len(message.data())
        if size > SIZE_MAX:
            raise errors.NotAllowedError(
                detail=f"peek {count} messages of {topic.name}: the first {len(found) + 1} have "
                f"more than {SIZE_MAX} bytes; ask for {len(found)} at most"
            )
        found.append(described(message))
    return found


def next_messages(
    topic: TopicView,
    start: Position,
    is_acknowledged: Callable[[int, int], bool],
    count: int,
) -> Iterator[tuple[Position, Message]]:
    """The next messages from start on that are not acknowledged, up to count, and where they are.
    An encrypted batch, which is read as it is stored, comes once for each of its messages. See
    peek."""
    cursor = topic.reader_cursor(BytesSchema(), decryption=AS_STORED)
    reader = cursor.attach(start)
    try:
        while count > 0:
            try:
                message = reader.take_now()
            except errors.CorruptDataError as error:
                if not getattr(error, "logged", False):
                    logger().error("%s: peek: %s", topic.name, errors.detail_of(error))
                continue
            if message is None:
                return
            ledger_id, first, extent = topic.ledger.locate(message.message_id())
            for ordinal in range(first, first + extent):
                if count > 0 and not is_acknowledged(ledger_id, ordinal):
                    count -= 1
                    yield (ledger_id, ordinal), message
    finally:
        reader.shut()


def described(message: Message) -> dict[str, Any]:
    """A message as JSON says it."""
    from base64 import b64encode

    null = message.has_null_value()
    return {
        "message_id": message.message_id().to_text(),
        "data": None if null else b64encode(message.data()).decode(),
        "properties": message.properties(),
        "partition_key": message.partition_key(),
        "ordering_key": message.ordering_key(),
        "publish_timestamp": message.publish_timestamp(),
        "event_timestamp": message.event_timestamp(),
        "producer_name": message.producer_name(),
    }


def logger() -> Any:
    import logging

    return logging.getLogger("pulsarx")
