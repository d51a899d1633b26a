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


class HeardResponse(StreamingResponse):
    """Is sent for as long as its client listens. Called by the loop.

    Starlette's way, by a group of tasks, leaves a cycle behind every answer: a cancellation, the
    tasks and the loop. Where they are collected, in whatever call of the main thread, asyncio's
    callbacks run in Python, and what a signal handler raises there is lost.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        sending = asyncio.ensure_future(self.stream_response(send))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait((sending, leaving))
        try:
            if not sending.cancelled():
                sending.result()
            if not leaving.cancelled():
                leaving.result()
        finally:
            del sending, leaving  # what is raised refers to this frame


class PiecesResponse(HeardResponse):
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
            try:
                while not (await asyncio.wait([making], timeout=PULSE_SECONDS))[0]:
                    yield PULSE
                piece = making.result()
            finally:
                making.cancel()  # when nobody waits for it any more: it and its loop are a cycle
            if piece is None:
                return
            yield piece

    def _renew_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_after(RENEW_MS, self._renew_soon)

    def _renew_soon(self) -> None:
        """By the clock. However slowly its client takes it, what is to be sent is kept."""
        self._folder.post(self._renew)

    def _renew(self) -> None:
        if self in self._begun:
            try:
                self._stream.renew()
            finally:
                self._renew_later()
