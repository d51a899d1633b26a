"""Tells asynchronous sends how they ended: flushes what they stored, then runs their callbacks in
one thread of its own.

Callbacks never run in the thread that sends, so a callback may take the locks its sender holds.
"""

from __future__ import annotations

from collections.abc import Callable

from pulsarx._pycore.message.message_id import message_id_in_batch
from pulsarx.broker.background import Background
from pulsarx.enumerations import Result
from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.publish.producer_core import ProducerCore

    Callback = Callable[[Any, MessageId | None], None]


class Completions:
    """Any thread may call."""

    def __init__(self) -> None:
        self._background = Background("pulsarx-callbacks")
        self._expected: set[ProducerCore] = set()

    def post(
        self,
        callbacks: list[tuple[int, Callback]],
        ledger_id: int,
        entry_id: int,
        message_count: int,
        error: Exception | None,
        partition: int,
    ) -> None:
        """Run the callbacks of one entry; error: why it failed, None for success."""
        self._background.put(
            lambda: run_callbacks(callbacks, ledger_id, entry_id, message_count, error, partition)
        )

    def expect(self, producer: ProducerCore) -> None:
        """Flush what the producer stored, for nobody waits for it."""
        if producer in self._expected:
            return
        self._expected.add(producer)
        self._background.put(lambda: self._flush(producer))

    def _flush(self, producer: ProducerCore) -> None:
        self._expected.discard(producer)
        producer.flush_pending()

    def wait(self) -> None:
        """Return when every callback posted before has run."""
        self._background.wait()

    def close(self) -> None:
        self._background.close()


def run_callbacks(
    callbacks: list[tuple[int, Callback]],
    ledger_id: int,
    entry_id: int,
    message_count: int,
    error: Exception | None,
    partition: int,
) -> None:
    result = Result.Ok if error is None else result_of(error)
    for index, callback in callbacks:
        message_id = None
        if error is None:
            batch_index = -1 if message_count == 1 else index
            size = 0 if message_count == 1 else message_count
            message_id = message_id_in_batch(ledger_id, entry_id, batch_index, size, partition)
        try:
            callback(result, message_id)
        except Exception:
            import logging

            logging.getLogger("pulsarx").exception("a send_async callback raised")


def result_of(error: Exception) -> Any:
    """The Result the official client would give for an exception: that of its nearest official
    class."""
    for kind in type(error).__mro__:
        found = getattr(Result, kind.__name__, None)
        if found is not None:
            return found
    return Result.UnknownError
