"""A reader of asyncio: what `aio.Client.create_reader` returns."""

from __future__ import annotations

from pulsarx.aio.control_call import perform
from pulsarx.aio.receiving import Receiving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.message.message import Message
    from pulsarx.message_id import MessageId, MessageIndex

READING = ("read_next",)


class Reader(Receiving):
    """Reads the messages of one topic in order. It may be used in several loops at once.

    `async for message in reader` goes on until the reader is closed.
    """

    def __init__(self, reader: Any) -> None:
        """Use `Client.create_reader`.

        Args:
            reader: The one behind it.
        """
        super().__init__(reader._core)
        self._reader = reader

    async def read_next(self) -> Message:
        """Return the next message; wait until there is one. Cancelling it loses nothing.

        Raises:
            AlreadyClosed: The reader is closed, also while it waits.
            CorruptDataError: An entry is damaged; the next call goes on behind it.
            UnreadableEntryError: An entry cannot be decompressed here, or is too large.
            InvalidConfiguration: The reader has a listener.

        Example:
            reader = await client.create_reader("orders", pulsarx.MessageId.earliest)
            print((await reader.read_next()).data())
        """
        message: Message = await self._next()
        return message

    async def has_message_available(self) -> bool:
        """Tell whether read_next returns at once, or waits for the dispatch rate alone.

        Raises:
            AlreadyClosed: The reader is closed.
        """
        return bool(self._reader.has_message_available())

    async def seek(self, messageid: MessageId | MessageIndex | int) -> None:
        """Continue behind a message id, at the message of an index, or at the first one published
        at a time.

        Args:
            messageid: A MessageId; with `start_message_id_inclusive=True` reading continues at it,
                and `MessageId.latest` means the last message. Or a MessageIndex, at which it
                continues, or a publish time in milliseconds since 1970.

        Raises:
            OperationNotSupported: A non-persistent topic; an id that is of no partition of the
                topic; or an index on several partitions, of which each has its own.
            ValueError: messageid is neither an id, an index nor an int.
            TypeError: The time is out of bounds.
            AlreadyClosed: The reader is closed.
        """
        await perform(self._reader.seek, messageid)

    async def get_last_message_id(self) -> MessageId:
        """Return the id of the last message of the topic; (-1,-1,-1,-1) when it has none.

        Raises:
            OperationNotSupported: On a partitioned topic, as in the official client, and on
                non-persistent ones.
            AlreadyClosed: The reader is closed.
        """
        found: MessageId = await perform(self._reader.get_last_message_id)
        return found

    async def close(self) -> None:
        """Stop reading. Reads that wait get AlreadyClosed.

        Raises:
            AlreadyClosed: A second call, unless the client closed it.
        """
        await perform(self._reader.close)

    def topic(self) -> str:
        """Return the full name of the topic."""
        name: str = self._reader.topic()
        return name

    def is_connected(self) -> bool:
        """Tell whether the reader can still be used."""
        return bool(self._reader.is_connected())

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Message:
        message: Message = await self._next_of_iteration()
        return message

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.is_connected():
            await self.close()

    def __repr__(self) -> str:
        return f"aio.{self._reader!r}"
