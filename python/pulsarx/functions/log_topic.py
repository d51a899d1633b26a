"""Publishes what a function logs to its log topic."""

from __future__ import annotations

import logging

from pulsarx.functions.pending_sends import PendingSends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.client import Client

_FORMAT = "[%(asctime)s] [%(levelname)s]: %(message)s"


class LogTopicHandler(logging.Handler):
    """Publishes the log of one function. Properties of a message: loglevel; fqn, the function's
    full name."""

    def __init__(self, client: Client, topic: str, full_name: str) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(_FORMAT, "%Y-%m-%d %H:%M:%S %z"))
        self._full_name = full_name
        self._sends = PendingSends()
        self._closed = False
        self._producer: Any = client.create_producer(topic, block_if_queue_full=True)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record).encode()
            properties = {"loglevel": record.levelname, "fqn": self._full_name}
            self._sends.begin()
            try:
                self._producer.send_async(text, self._sends.end, properties=properties)
            except BaseException as error:
                self._sends.fail(error)
                raise
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Wait for what is on its way. logging calls it once more when the process ends."""
        super().close()
        if self._closed:
            return
        self._closed = True
        self._producer.flush()
        self._sends.wait()
        self._producer.close()
