"""An answer that is made piece by piece, while its client takes it."""

from __future__ import annotations

import asyncio

from starlette.responses import StreamingResponse

from pulsarx.backups.copying import RENEW_MS
from pulsarx.backups.records import PULSE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from concurrent.futures import Executor
    from typing import Any

    from pulsarx.backups.streams import Stream
    from pulsarx.clock import Timer
    from pulsarx.rest.call import Host

STREAMS_MAX = 4  # at a time, of all clients
PULSE_SECONDS = 10.0  # a piece that takes longer is announced, so that its client waits on


class PiecesResponse(StreamingResponse):
    """Makes the next piece when the one before is sent. Called by the loop."""

    def __init__(
        self, stream: Stream, kind: str, host: Host, executor: Executor, begun: set[Any]
    ) -> None:
        """begun: those of the service that are being sent."""
        super().__init__(self._pieces(), 200, None, kind)
        self._stream = stream
        self._clock = host.folder.clock
        self._folder = host.folder
        self._executor = executor
        self._begun = begun
        self._timer: Timer | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._begun.add(self)
        self._renew_later()
        try:
            await super().__call__(scope, receive, send)
        finally:
            # Also when its client has gone, or the service ends.
            self._begun.discard(self)
            if self._timer is not None:
                self._timer.cancel()
            self._executor.submit(self._stream.end)

    async def _pieces(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        while True:
            making = loop.run_in_executor(self._executor, self._stream.next)
            while not (await asyncio.wait([making], timeout=PULSE_SECONDS))[0]:
                yield PULSE
            piece = making.result()
            if piece is None:
                return
            yield piece

    def _renew_later(self) -> None:
        self._timer = self._clock.call_after(RENEW_MS, self._renew_soon)

    def _renew_soon(self) -> None:
        """By the clock. However slowly its client takes it, what is to be sent is kept."""
        self._folder.post(self._renew)

    def _renew(self) -> None:
        if self in self._begun:
            self._stream.renew()
            self._renew_later()
