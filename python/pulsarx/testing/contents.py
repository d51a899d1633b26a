"""Reads the contents of topics, for the assertions of a test. Looking changes nothing: no topic or
subscription is made, nothing is acknowledged or delivered less often."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.client import Client
from pulsarx.message_id import MessageId
from pulsarx.schema.schema import BytesSchema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.peeked_message import PeekedMessage
    from pulsarx.message import Message
    from pulsarx.schema.schema import Schema

PEEKED_MAX = 1000


def messages(client: Client, topic: str, schema: Schema[Any] | None = None) -> list[Message[Any]]:
    """Return all messages that a topic holds, oldest first, on a partitioned topic one partition
    after the other: acknowledged or not, delayed ones too. Messages that retention has removed are
    not there, nor those of a batch that is still open.

    Args:
        client: One that has the topic's folder open.
        topic: A name.
        schema: Decodes values; None: they are bytes.

    Raises:
        TopicNotFound: The topic does not exist.
        AlreadyClosed: The client is closed.

    Example:
        from pulsarx.testing import messages

        assert messages(client, "orders")[0].data() == b"one"
    """
    found = []
    with _looking(client) as looking:
        for name in client.get_topic_partitions(topic):
            reader = looking.create_reader(name, MessageId.earliest, schema or BytesSchema())
            while reader.has_message_available():
                found.append(reader.read_next())
            reader.close()
    return found


def unacknowledged(client: Client, topic: str, subscription_name: str) -> list[PeekedMessage]:
    """Return the unacknowledged messages of a subscription, delivered or not, oldest first.

    Args:
        client: One that has the topic's folder open.
        topic: A name.
        subscription_name: The name of a durable subscription.

    Raises:
        TopicNotFound: The topic does not exist.
        SubscriptionNotFound: It has no such subscription.
        AlreadyClosed: The client is closed.
    """
    found: dict[tuple[str, str], PeekedMessage] = {}  # an encrypted batch may come with two pages
    for name in client.get_topic_partitions(topic):
        skip, count = 0, PEEKED_MAX
        while True:
            try:
                page = client.admin.topics._peeked(name, subscription_name, count, skip)
            except errors.NotAllowedError:  # they are too large together
                if count == 1:
                    raise
                count = max(count // 4, 1)
                continue
            if not page:
                break
            for each in page:
                found.setdefault((name, each.message_id().to_text()), each)
            skip, count = skip + count, PEEKED_MAX
    return list(found.values())


def dead_letters(
    client: Client, topic: str, subscription_name: str, schema: Schema[Any] | None = None
) -> list[Message[Any]]:
    """Return the dead letters of a subscription, from the topic that is used when the policy names
    none: `<topic>-<subscription>-DLQ`. For one of another name, see messages.

    Args:
        client: One that has the topic's folder open.
        topic: The topic that the letters were published to first.
        subscription_name: The one that could not process them.
        schema: Decodes values; None: they are bytes.

    Returns:
        The letters, oldest first; empty when there were none.

    Raises:
        AlreadyClosed: The client is closed.
    """
    try:
        return messages(client, f"{topic}-{subscription_name}-DLQ", schema)
    except errors.TopicNotFound:
        return []


def _looking(client: Client) -> Client:
    """A client of the same broker that makes nothing."""
    client._require_open()
    return Client(client._url.folder or client._url.text, read_only=True)
