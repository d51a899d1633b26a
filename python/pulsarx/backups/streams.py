"""Streams a check or a copy of a server's folder to a client elsewhere: in pieces, made when they
are asked for.
"""

from __future__ import annotations

import logging
from dataclasses import asdict

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.backups.copying import Copying
from pulsarx.backups.folder_view import FolderView
from pulsarx.backups.proof import Proof
from pulsarx.backups.records import error_record, record
from pulsarx.backups.stream_target import StreamTarget
from pulsarx.broker.offload.stored_object import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pulsarx.backups.folder_view import Ask

_log = logging.getLogger("pulsarx")


class Stream:
    """Streams one answer of the server. Any thread may call but the main one; one at a time makes a
    piece."""

    def __init__(self, what: str) -> None:
        """what: is done, for the log."""
        self._what = what
        self._lock = Lock()
        self._is_over = False
        self._steps = self._pieces()

    def next(self) -> bytes | None:
        """The next piece; None: that was all. What fails is told in the last one."""
        with self._lock:
            if self._is_over:
                return None
            try:
                found = next(self._steps, None)
            except Exception as error:
                found = error_record(self._told(error))
                self._is_over = True
            return found

    def end(self) -> None:
        """End the stream, because nobody wants any more of it. Waits for the piece that is being
        made."""
        self._is_over = True
        with self._lock:
            self._steps.close()

    def renew(self) -> None:
        """Keep what is still to be sent."""

    def _pieces(self) -> Generator[bytes, None, None]:
        raise NotImplementedError

    def _told(self, error: Exception) -> Exception:
        """Return the error that a client is told."""
        if isinstance(error, errors.AlreadyClosed):
            return errors.ServiceUnitNotReady(detail="the folder is being closed")
        if not isinstance(error, (errors.PulsarException, Stopped)):
            _log.exception("%s failed, because of a bug", self._what)
            return errors.UnknownError(detail=f"{type(error).__name__}: {error}")
        return error

    def _check(self) -> None:
        if self._is_over:
            raise Stopped


class CheckStream(Stream):
    """Streams the findings of a check."""

    def __init__(self, folder: str) -> None:
        super().__init__("a check over HTTP")
        self._folder = folder

    def _pieces(self) -> Generator[bytes, None, None]:
        proof = Proof(self._folder)
        steps = proof.steps()
        done = told = 0
        try:
            for size in steps:
                done += size
                fresh, told = proof.found.damage[told:], len(proof.found.damage)
                lines = [record({"damage": asdict(each)}) for each in fresh]
                lines.append(record({"progress": [done, max(proof.size, done + 1)]}))
                yield b"".join(lines)
        finally:
            steps.close()
        lines = [record({"damage": asdict(each)}) for each in proof.found.damage[told:]]
        counts = asdict(proof.found)
        del counts["damage"]
        yield b"".join([*lines, record({"contents": counts}), record({"end": 0})])


class CopyStream(Stream):
    """Streams the files of a copy."""

    def __init__(self, folder: str, ask: Ask) -> None:
        """ask: see FolderView."""
        super().__init__("a backup over HTTP")
        self._folder = folder
        self._ask = ask
        self._copying: Copying | None = None

    def renew(self) -> None:
        copying = self._copying
        if copying is None or self._is_over:
            return
        try:
            copying.renew_lease()
        except errors.PulsarException as error:
            # Over, or given back meanwhile: what has gone is noticed where it is copied.
            _log.info("%s: %s", self._what, errors.detail_of(error))

    def _pieces(self) -> Generator[bytes, None, None]:
        view = FolderView(self._folder, self._ask)
        try:
            target = StreamTarget(view.path, self._check)
            self._copying = Copying(view, target)
            steps = self._copying.steps()
            try:
                yield from steps
            finally:
                steps.close()
            yield target.end()
        finally:
            view.close()
