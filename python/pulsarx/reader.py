"""A reader: what `Client.create_reader` returns. It reads a topic from a position that its caller
chooses and acknowledges nothing."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.signals import signals_raised
from pulsarx.consuming.seek_position import check_seek_target, reader_position
from pulsarx.ground.closing import Closing
from pulsarx.ground.owner import client_is_closing, perform_for
from pulsarx.ground.replaced_calls import replaceable
from pulsarx.listening.listener_loop import ListenerLoop
from pulsarx.listening.listener_pool import SerialWork
from pulsarx.message_id import MessageId, MessageIndex
from pulsarx.schema.schema import T, Typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn, Protocol, Self

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.consume.multi_consumer import MultiConsumerCore
    from pulsarx._pycore.message.message import Message
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.members import ReaderOptions

    class TopicCursor(Protocol):
        """The place of a reader in its topic."""

        def seek(self, position: tuple[int, int]) -> object: ...
        def end(self) -> object:
            """Give back what it has mapped."""


@replaceable
class Reader(Typed[T]):
    """Reads the messages of one topic in order, or of all partitions of one. Any thread may call.
    It keeps no ledger from being trimmed, and goes on behind what was trimmed. It lives as long as
    its client, until it is closed."""

    owner: MemberOwner | None = None
    is_let_go = False  # its client keeps it no more
    calls_of_core: tuple[str, ...] = ("read_next", "read_many")  # over the methods of the class

    def __init__(
        self,
        core: ConsumerCore | MultiConsumerCore,
        cursor: TopicCursor | None,
        name: str,
        options: ReaderOptions,
        pool: ListenerPool,
    ) -> None:
        """Use `Client.create_reader`.

        Args:
            core: What receives.
            cursor: The place in its topic; None: of a reader of several topics.
            name: The name of the topic.
            options: As they were given to the client.
            pool: The threads of the client's listeners.
        """
        self._core = core
        self._cursor: Any = cursor
        self._name = name
        self._options = options
        self._closing = Closing()
        # Over the methods of the class: a read of this object enters the core without a frame.
        setattr(self, "read_next", core.receive)  # noqa: B010  # mypy: a method is no attribute
        setattr(self, "read_many", core.receive_many)  # noqa: B010
        if options.reader_listener is not None:
            for name in ("read_next", "read_many", "read_arrow"):
                setattr(self, name, _refuse_beside_listener)
            self.calls_of_core = ()
            pool.grow()
            self._loop = ListenerLoop(pool, core, options.reader_listener, None)
            self._work = SerialWork(pool, self._step, f"the listener of a reader on {name}")

    def start_listener(self) -> None:
        """Begin to call the listener. The client does when everything is in place. It keeps the
        reader until closed."""
        if self._options.reader_listener is not None:
            self._core.watch(self._work.due)
            self._work.due()

    def _step(self) -> bool:
        try:
            return self._loop.turn(self)
        except errors.AlreadyClosed:
            self._core.unwatch(self._work.due)
            return False

    def read_next(self, timeout_millis: int | None = None) -> Message[T]:
        """Return the next message; wait until there is one.

        Args:
            timeout_millis: How many real milliseconds to wait at most; None: for ever; 0 or less:
                not at all.

        Raises:
            Timeout: No message came in time.
            AlreadyClosed: The reader is closed, also while it waits.
            CorruptDataError: An entry is damaged; the next call goes on behind it.
            UnreadableEntryError: An entry cannot be decompressed here, or is too large.
            InterruptedByKeyboard: Ctrl-C was pressed.
            InvalidConfiguration: The reader has a listener.

        Example:
            reader = client.create_reader("orders", pulsarx.MessageId.earliest)
            print(reader.read_next(timeout_millis=5000).data())
        """
        return self._core.receive(timeout_millis)

    def read_many(self, max_messages: int, timeout_millis: int | None = None) -> list[Message[T]]:
        """Return up to max_messages messages: wait for the first like read_next, then take the
        available ones.

        Args:
            max_messages: Messages at most, from 1.
            timeout_millis: How many real milliseconds to wait for the first one; None: for ever; 0
                or less: not at all.

        Returns:
            The messages, in order; an empty list when none came in time.

        Raises:
            AlreadyClosed: The reader is closed, also while it waits.
            CorruptDataError: An entry is damaged and no message came before it; the next call goes
                on behind it.
            InterruptedByKeyboard: Ctrl-C was pressed.
            InvalidConfiguration: The reader has a listener.
            ValueError: max_messages is below 1.
        """
        return self._core.receive_many(max_messages, timeout_millis)

    def read_arrow(self, max_messages: int, timeout_millis: int | None = None) -> Any:
        """Return up to max_messages messages as columns; all of one partition. See ArrowMessages.

        Args:
            max_messages: Messages at most, from 1.
            timeout_millis: How many real milliseconds to wait for the first one; None: for ever; 0
                or less: not at all.

        Returns:
            The columns; of no rows when none came in time.

        Raises:
            AlreadyClosed: The reader is closed, also while it waits.
            CorruptDataError: As read_many.
            InterruptedByKeyboard: Ctrl-C was pressed.
            InvalidConfiguration: The reader has a listener.
            ValueError: max_messages is below 1.
        """
        return self._core.receive_arrow(max_messages, timeout_millis)

    def __iter__(self) -> Iterator[Message[T]]:
        """The messages up to the end of the topic: ends as soon as none is available, as a loop of
        has_message_available and read_next does. Iterating again goes on with what came since. Not
        in the official client."""
        self._core.require_open()
        if self._options.reader_listener is not None:
            _refuse_beside_listener()
        return self._messages()

    def _messages(self) -> Iterator[Message[T]]:
        raised = signals_raised()
        while self.has_message_available():
            try:
                message = self.read_next(100)
            except errors.Timeout:  # another thread took it, or the dispatch rate holds it back
                if signals_raised() != raised:
                    raise
                continue
            yield message

    def has_message_available(self) -> bool:
        """Tell whether read_next returns at once, or waits for the dispatch rate alone.

        Raises:
            AlreadyClosed: The reader is closed.
        """
        return self._core.has_message()

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._name

    def is_connected(self) -> bool:
        """Tell whether the reader can still be used."""
        return self._core.is_open

    def get_last_message_id(self) -> MessageId:
        """Return the id of the last message of the topic; (-1,-1,-1,-1) when it has none.

        Raises:
            OperationNotSupported: On a partitioned topic, as in the official client, and on
                non-persistent ones.
            AlreadyClosed: The reader is closed.
        """
        self._core.require_open()
        found: MessageId = perform_for(self.owner, self._cursor.positions.last_message_id)
        return found

    def seek(self, messageid: MessageId | MessageIndex | int) -> None:
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
        self._core.require_open()
        check_seek_target(messageid)
        perform_for(self.owner, self._seek, (messageid,))

    def _seek(self, messageid: MessageId | MessageIndex | int) -> None:
        positions: Any = self._cursor.positions
        self._cursor.seek(
            reader_position(positions, messageid, self._options.start_message_id_inclusive)
        )

    def close(self) -> None:
        """Stop reading. It does not wait for a listener that runs.

        Raises:
            AlreadyClosed: A second call, unless the client closed it.
        """
        if self._core.is_forked or (self._closing.told and not client_is_closing(self.owner)):
            self._core.require_open()
        self._closing.close(self._take_leave, self.owner)

    def close_with_client(self) -> None:
        """Close it like close, when the client closes. A call of the control plane."""
        self._closing.finish(self._take_leave, self.owner)

    def _take_leave(self) -> None:
        if self.owner is not None:
            self.owner.let_go(self)
        self._leave()

    def _leave(self) -> None:
        self._core.shut()
        if self._cursor is not None:
            self._cursor.end()  # what it has mapped is given back

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_connected():
            self.close()

    def _repr_html_(self) -> str:
        """Show the reader in a notebook."""
        control_plane.load("pulsarx.tables.notebook")
        from pulsarx.tables.notebook import facts_html

        return facts_html("Reader", {"topic": self.topic(), "open": self.is_connected()})

    def __repr__(self) -> str:
        return f"Reader(topic={self.topic()!r}, open={self.is_connected()})"


def _refuse_beside_listener(*_: object, **__: object) -> NoReturn:
    raise errors.InvalidConfiguration(
        detail="a reader with a reader_listener does not read besides"
    )
