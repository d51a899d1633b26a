"""The records by which a server sends what it finds in its folder, and a copy of it.

Each is a line with a JSON object; a file is cut into blocks, whose bytes follow their line.

record                             says
{"total": N}                       about so many bytes of files come
{"file": PATH}                     what follows is this file, in the place of what came of it before
{"data": N, "crc32": CRC} N bytes  the next block of it
{"remove": [PATH, ...]}            those files are no part of the copy
{"progress": [DONE, TOTAL]}        bytes that were checked, of about so many
{"damage": {...}}                  a Damage
{"contents": {...}}                Contents, without their damage
{}                                 it takes a while
{"error": KIND, "text": TEXT}      the last one: it failed
{"end": SIZE}                      the last one: it is whole; of a copy the bytes of all its files
"""

from __future__ import annotations

import json
import zlib

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    Fields = dict[str, Any]

    class Source(Protocol):
        def readline(self, limit: int) -> bytes: ...
        def read(self, size: int) -> bytes: ...


# Media types, without files and with them.
LINES, FILES = "application/x-ndjson", "application/vnd.pulsarx.records"
PULSE = b"{}\n"
BLOCK = 256 << 10  # bytes of a file that a record has
_BLOCK_MAX = 16 << 20  # that is read, whoever sends it
_LINE_MAX = 1 << 20


def record(fields: Fields, data: bytes = b"") -> bytes:
    """data: what follows the line."""
    if data:
        fields = {**fields, "data": len(data), "crc32": zlib.crc32(data)}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n" + data


def error_record(error: Exception) -> bytes:
    kind = type(error).__name__
    return record({"error": kind, "text": errors.detail_of(error)[: _LINE_MAX // 8]})


def records(source: Source, what: str) -> Iterator[tuple[Fields, bytes]]:
    """Each record, and the bytes behind it, up to the last one. what: for errors.

    ConnectError: it ended before. CorruptDataError: other bytes came than were sent. UnknownError:
    they are no such records. What the server failed with is raised as one of pulsarx.errors.
    """
    while True:
        fields = _fields(source, what)
        data = b""
        if "data" in fields:
            size = fields["data"]
            if not isinstance(size, int) or not 0 < size <= _BLOCK_MAX:
                raise errors.UnknownError(detail=f"{what}: a block of {size!r:.50} bytes came")
            data = source.read(size)
            if len(data) < size:
                raise _cut_off(what)
            if zlib.crc32(data) != fields.get("crc32"):
                raise errors.CorruptDataError(
                    detail=f"{what}: {size} bytes came otherwise than sent"
                )
        if "error" in fields:
            raise _error_of(fields, what)
        yield fields, data
        if "end" in fields:
            return


def _fields(source: Source, what: str) -> Fields:
    line = source.readline(_LINE_MAX)
    if not line.endswith(b"\n"):
        if len(line) < _LINE_MAX:
            raise _cut_off(what)
        raise errors.UnknownError(detail=f"{what}: a record of more than {_LINE_MAX} bytes came")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise errors.UnknownError(detail=f"{what}: {line[:100]!r} came, which is no record")
    return found


def _cut_off(what: str) -> errors.ConnectError:
    return errors.ConnectError(detail=f"{what}: the server hung up before the end")


def _error_of(fields: Fields, what: str) -> Exception:
    kind: Any = getattr(errors, str(fields["error"]), None)
    known = isinstance(kind, type) and issubclass(kind, errors.PulsarException)
    if not known or issubclass(kind, KeyboardInterrupt):
        kind = errors.UnknownError
    return errors.remade(kind, f"{what}: {fields.get('text')!s}", None)
