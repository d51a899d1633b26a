"""`pulsarx tail` and `pulsarx read`: messages of a topic, read beside its owner, or from a
cluster."""

from __future__ import annotations

from collections import deque

from pulsarx import errors
from pulsarx.cli.command import FAILED, command, message_id_of, topic_argument
from pulsarx.cli.declared import Exit, Whole, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.admin import Admin
    from pulsarx.cli.folder import Folder
    from pulsarx.cli.output import Output
    from pulsarx.client import Client
    from pulsarx.message_id import MessageId
    from pulsarx.reader import Reader

_AT_ONCE = 1000  # messages between two flushes of the output
_TURN_MS = 100  # how long one of several partitions is waited for


class Damage:
    """Damaged and missing messages are told where they are met; the others follow."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._met = False

    def take(
        self, receive: Callable[[int | None], Any], count: int, timeout_ms: int | None
    ) -> list[Any]:
        """Up to count messages: waits for the first, then takes what is there."""
        found: list[Any] = []
        while len(found) < count:
            try:
                found.append(receive(0 if found else timeout_ms))
            except errors.Timeout:
                break
            except (errors.CorruptDataError, errors.DataLossError) as error:
                self._met = True
                self._output.note(f"{type(error).__name__}: {errors.detail_of(error)}")
        return found

    def check(self) -> None:
        if self._met:
            raise Exit(FAILED)


@command("pulsarx tail -n 100 -f orders")
@topic_argument
@option(
    "-n", "--num-messages", "count", type=Whole(min=0), default=10, show_default=True,
    help="How many of the last messages.",
)  # fmt: skip
@option("-f", "--follow", is_flag=True, help="Wait for new messages and print them.")
def tail(folder: Folder, topic: str, count: int, follow: bool) -> None:
    """Print the last messages of a topic.

    Those of several partitions come in the order of their publish times. Nothing is acknowledged.
    With --follow, partitions that a topic gets later are not followed.
    """
    output, damage = folder.output, Damage(folder.output)
    if folder.is_cluster and not folder.is_http:
        raise errors.InvalidUrl(
            detail=f"{folder.place!r}: where a topic ends the admin REST API tells; give its "
            "http:// URL"
        )
    if folder.is_cluster:  # which would make it
        folder.admin().topics.get_partitioned_topic_metadata(topic)
    with folder.reading() as client:
        readers, found = [], []
        for name in client.get_topic_partitions(topic):
            if folder.is_cluster:
                reader, last = _last_there(folder.admin(), client, damage, name, count)
            else:
                reader, last = _last(client, damage, name, count)
            readers.append(reader)
            found += last
        if len(readers) > 1:
            found.sort(key=lambda message: message.publish_timestamp())
        for message in found[max(0, len(found) - count) :]:
            output.message(message)
        output.flush()
        while follow:
            for reader in readers:
                timeout_ms = None if len(readers) == 1 else _TURN_MS
                if len(readers) > 1 and reader is not readers[0]:
                    timeout_ms = 0
                for message in damage.take(reader.read_next, _AT_ONCE, timeout_ms):
                    output.message(message)
                output.flush()
    damage.check()


def _last(client: Client, damage: Damage, topic: str, count: int) -> tuple[Reader, list[Any]]:
    """The last messages of a topic without partitions, and a reader behind them."""
    from pulsarx.message_id import MessageId

    ledgers = client.admin.topics.stats(topic)["ledgers"]
    entries = count
    while True:
        start = _start(ledgers, entries)
        begin = MessageId.earliest if start is None else start
        reader = _reader(client, topic, begin, inclusive=begin != MessageId.latest)
        end = reader.get_last_message_id()
        found: deque[Any] = deque(maxlen=count)
        # To where it ended a moment ago: a busy producer may be faster.
        while begin != MessageId.latest and reader.has_message_available():
            found += (read := damage.take(reader.read_next, _AT_ONCE, _TURN_MS))
            if read and read[-1].message_id() >= end:
                break
        if start is None or len(found) >= count:
            return reader, list(found)
        # Some entries were parts of a message, or are gone.
        reader.close()
        entries *= 2


def _last_there(
    admin: Admin, client: Client, damage: Damage, topic: str, count: int
) -> tuple[Reader, list[Any]]:
    """Like _last, for a topic of a cluster."""
    from pulsarx.message_id import MessageId

    begin = MessageId.latest
    if count:
        try:
            begin = admin.topics.examine_message(topic, "latest", count).message_id()
        except (errors.NotAllowedError, errors.OperationNotSupported, errors.UnknownError):
            # There are fewer, in which case Pulsar fails inside; or chunks.
            begin = MessageId.earliest
    reader = _reader(client, topic, begin, inclusive=begin != MessageId.latest)
    found: deque[Any] = deque(maxlen=count)
    end = admin.topics.get_last_message_id(topic)
    while begin != MessageId.latest and reader.has_message_available():
        found += (read := damage.take(reader.read_next, 1, _TURN_MS))
        # To where it ended a moment ago: a busy producer may be faster.
        if read and _place(read[-1]) > (end.ledger_id(), end.entry_id()):
            break
    return reader, list(found)


def _place(message: Any) -> tuple[int, int]:
    found = message.message_id()
    return found.ledger_id(), found.entry_id()


def _start(ledgers: list[dict[str, Any]], entries: int) -> MessageId | None:
    """Find the place behind which so many entries are left; None: nowhere, there are fewer."""
    from pulsarx.message_id import MessageId

    if not entries:
        return MessageId.latest
    for ledger in reversed(ledgers):
        if ledger["entries"] >= entries:
            return MessageId(-1, ledger["ledger_id"], ledger["entries"] - entries, -1)
        entries -= ledger["entries"]
    return None


def _reader(client: Client, topic: str, start: MessageId, inclusive: bool) -> Reader:
    """Messages whose key is missing are shown as they are stored."""
    from pulsarx.enumerations import ConsumerCryptoFailureAction

    return client.create_reader(
        topic,
        start,
        start_message_id_inclusive=inclusive,
        crypto_failure_action=ConsumerCryptoFailureAction.CONSUME,
    )


@command("pulsarx read orders -m earliest --to-end > orders.jsonl")
@topic_argument
@option(
    "-m",
    "--start-message-id",
    "start",
    default="latest",
    show_default=True,
    help="Start behind this message: earliest, latest or ledger:entry.",
)
@option(
    "-i",
    "--start-message-id-inclusive",
    "inclusive",
    is_flag=True,
    help="Start at that message itself.",
)
@option(
    "-n",
    "--num-messages",
    "count",
    type=Whole(min=0),
    help="How many; 0: without end.  [default: 1, with --to-end 0]",
)
@option("--to-end", is_flag=True, help="End where the topic ends, instead of waiting.")
def read(
    folder: Folder, topic: str, start: str, inclusive: bool, count: int | None, to_end: bool
) -> None:
    """Print the messages of a topic from a position on, and wait for them; nothing is acknowledged.

    As pulsar-client read; --to-end is ours.
    """
    if count is None:
        count = 0 if to_end else 1
    output, damage = folder.output, Damage(folder.output)
    done = 0
    with folder.reading() as client:
        reader = _reader(client, topic, message_id_of(start), inclusive)
        with output.progress("Reading", count or None) as advance:
            while not count or done < count:
                if to_end and not reader.has_message_available():
                    break
                wanted = min(count - done, _AT_ONCE) if count else _AT_ONCE
                found = damage.take(reader.read_next, wanted, _TURN_MS if to_end else None)
                for message in found:
                    output.message(message)
                output.flush()
                done += len(found)
                advance(len(found))
    damage.check()
