"""The connection of a client that has no folder: what a guest's is, and what only such a one asks
and keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx.processes.guest.connection import MESSAGE_SIZE_MAX, Connection
from pulsarx.results import Result, result_of


class ClientConnection(Connection):
    """A Connection with queues of its own. Any thread may call."""

    ANSWERS = Connection.ANSWERS | {
        "GET_LAST_MESSAGE_ID_RESPONSE",
        "GET_SCHEMA_RESPONSE",
        "GET_OR_CREATE_SCHEMA_RESPONSE",
        "ACK_RESPONSE",
    }

    def __init__(
        self,
        write: Callable[[bytes], object],
        hang_up: Callable[[], object],
        timeout_seconds: float,
    ) -> None:
        completions = CompletionQueue(Result.Ok, result_of)
        background = JobQueue("pulsarx-background")
        super().__init__(write, hang_up, lambda: timeout_seconds, completions, background)
        self._kept: dict[int, Any] = {}  # consumers that somebody is told of

    @property
    def message_size_max(self) -> int:
        """How large a message the broker takes, when it has said so."""
        return self._connected.values.get("max_message_size") or MESSAGE_SIZE_MAX

    def close(self) -> None:
        super().close()
        self.completions.close()
        self.background.close()

    def has_producer(self, number: int) -> bool:
        """Whether it was neither closed here nor by the broker."""
        return number in self._producers

    def keep_consumer(self, number: int, member: Any) -> None:
        """Refer to it, because somebody is told of its messages; None: not any more."""
        with self._lock:
            if member is None:
                self._kept.pop(number, None)
            else:
                self._kept[number] = member

    def forget_consumer(self, number: int) -> None:
        super().forget_consumer(number)
        self.keep_consumer(number, None)
