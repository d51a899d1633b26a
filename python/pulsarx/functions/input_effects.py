"""Collects what a function does with one input, until that counts."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import Lock
from pulsarx.functions.state_changes import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.functions.state_changes import Change, Changes
    from pulsarx.message import Message


class Publication:
    """A message that waits to be sent. A value."""

    __slots__ = ("callback", "is_kept", "options", "payload", "producer", "topic")

    def __init__(
        self,
        topic: str,
        producer: Any,
        payload: bytes,
        options: dict[str, Any],
        callback: Callable[..., object] | None = None,
        *,
        is_kept: bool = True,
    ) -> None:
        self.topic: str = topic
        self.producer: Any = producer
        self.payload: bytes = payload
        self.options: dict[str, Any] = options  # of Producer.send_async
        self.callback: Callable[..., object] | None = callback
        # False: no transaction takes it, as its topic is not persistent.
        self.is_kept: bool = is_kept


class InputEffects:
    """Collects while the function has the input. Any thread may call."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.publications: list[Publication] = []
        self.changes: Changes = {}
        self.byte_count: int = 0
        self.milliseconds: int = 0  # that the function took
        self._lock = Lock()  # of the above
        self._is_closed = False

    def publish(self, publication: Publication) -> bool:
        """False: the function has returned, so it does not belong to this input."""
        with self._lock:
            if not self._is_closed:
                self.publications.append(publication)
                self.byte_count += len(publication.payload)
            return not self._is_closed

    def change(self, key: str, change: Change) -> bool:
        """False: as of publish. ValueError: as of counter_of."""
        with self._lock:
            if not self._is_closed:
                join(self.changes, {key: change})
                self.byte_count += len(change[1]) if isinstance(change[1], bytes) else 0
            return not self._is_closed

    def close(self) -> None:
        """The function has returned."""
        with self._lock:
            self._is_closed = True
