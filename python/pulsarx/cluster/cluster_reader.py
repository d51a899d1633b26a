"""A reader of a topic of a cluster."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx.cluster import official
from pulsarx.cluster.cluster_consumer import seek_target
from pulsarx.cluster.cluster_message import ClusterMessage, ValueReader
from pulsarx.cluster.handle import Handle, no_columns
from pulsarx.ground.closing import Closing
from pulsarx.listening.listener_pool import log_exception
from pulsarx.reader import Reader
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx.message_id import MessageId, MessageIndex
    from pulsarx.options.members import ReaderOptions


class ClusterReader(Handle, Reader[T]):
    """Reads the messages of a topic of a cluster. Any thread may call."""

    _native: Any = None

    def __init__(
        self,
        client: Any,
        state: OpenState,
        options: ReaderOptions,
    ) -> None:
        """client: the native one. A call of the control plane. OperationNotSupported: a
        selector."""
        official.refuse(
            "create_reader",
            {"selector": bool(options.selector)},
            "the official client has no such option",
        )
        self._state = state
        self._core: Any = self  # what Reader asks whether it is open
        self._options = options
        self._name = options.topic
        self._where = f"reader on {options.topic}"
        self._closing = Closing()
        self._values = ValueReader(client, options.schema)
        conf = official.reader_configuration(options)
        if options.reader_listener is not None:
            conf.reader_listener(partial(self._listen, options.reader_listener))
        start = official.native_id_of(options.start_message_id)
        options.schema.attach_client(client)
        self._native = self._call(client.create_reader, options.topic, start, conf)
        self._name = str(self._native.topic())

    def start_listener(self) -> None:
        """The official client calls it."""

    def _listen(self, listener: Callable[..., object], native: Any, message: Any) -> None:
        """Call the listener, in a thread of the official client."""
        if self._native is None:
            self._native = native
        try:
            listener(self, ClusterMessage(message, self._values))
        except Exception:
            log_exception("%s: the reader listener raised", self._where)

    def read_next(self, timeout_millis: int | None = None) -> Any:
        """Like Reader.read_next."""
        self._require_reading()
        if timeout_millis is None:
            return ClusterMessage(self._call(self._native.read_next), self._values)
        if not isinstance(timeout_millis, int):
            raise ValueError(
                f"timeout_millis must be int or None, not {type(timeout_millis).__name__}"
            )
        return ClusterMessage(self._call(self._native.read_next, timeout_millis), self._values)

    def read_many(self, max_messages: int, timeout_millis: int | None = None) -> list[Any]:
        """Like Consumer.receive_many."""
        if not isinstance(max_messages, int) or max_messages < 1:
            raise ValueError(f"max_messages must be 1 or more, not {errors.shown(max_messages)}")
        found: list[Any] = []
        try:
            found.append(self.read_next(timeout_millis))
            while len(found) < max_messages:
                found.append(self.read_next(0))
        except errors.Timeout:
            pass
        return found

    def _require_reading(self) -> None:
        self.require_open()
        if self._options.reader_listener is not None:
            raise errors.InvalidConfiguration(
                detail="a reader with a reader_listener does not read besides"
            )

    def read_arrow(self, *_: Any, **__: Any) -> NoReturn:
        """OperationNotSupported."""
        raise no_columns("read_arrow")

    def has_message_available(self) -> bool:
        """Tell whether there is a message behind the last one that was read."""
        return bool(self._open_call(self._native.has_message_available))

    def is_connected(self) -> bool:
        """Tell whether it is connected to its broker."""
        return self.is_open and bool(self._native.is_connected())

    def get_last_message_id(self) -> NoReturn:
        """OperationNotSupported."""
        raise errors.OperationNotSupported(
            detail="get_last_message_id of a reader on a cluster: the official client has none"
        )

    def seek(self, messageid: MessageId | MessageIndex | int) -> None:
        """Like Reader.seek."""
        self._open_call(self._native.seek, seek_target(messageid))

    def _leave(self) -> None:
        self._call(self._native.close)
