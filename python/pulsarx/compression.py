"""Compression of entry payloads as Pulsar's clients do it. Anybody may call; what a codec needs is
loaded by its first use.

kind  name    form
   0  NONE    as it is
   1  LZ4     raw block without a size: the metadata's uncompressed size is needed
   2  ZLIB    zlib stream with its header; Java's client flushes it and writes no end
   3  ZSTD    one frame
   4  SNAPPY  raw, without framing

A Python that was built without zstd raises ImportError, whose text says what to do. Nothing at all
is what some clients make of an empty payload, of each kind. LZ4 and SNAPPY are
compiled in, ZLIB and ZSTD are Python's; Python has the latter from 3.14 on, and `backports.zstd`,
which is the same module, before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.errors import InvalidConfiguration, UnreadableEntryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")
_BLOCKS = "pulsarx._pycore.message.payload_blocks"
_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def compress(kind: int, data: bytes | memoryview) -> bytes:
    """Compress one payload. `InvalidConfiguration` when the kind is none of the table."""
    if not 0 <= kind < len(NAMES):
        raise InvalidConfiguration(
            detail=f"compression kind {kind} is unknown; use 0 to {len(NAMES) - 1}"
        )
    return _COMPRESS[kind](data)


def decompress(kind: int, data: bytes | memoryview, uncompressed_size: int, limit: int) -> bytes:
    """Undo what any client does as `compress`: what gives uncompressed_size bytes is whole. Never
    makes more than these, nor more than limit.

    `UnreadableEntryError` when that is not exactly what the data holds. A checksum said before that
    the data is what its producer sent, so another version, or another client, may read it.
    """
    if not 0 <= kind < len(NAMES):
        raise UnreadableEntryError(detail=f"compression kind {kind} is unknown to this version")
    if not 0 <= uncompressed_size <= limit:
        raise UnreadableEntryError(
            detail=f"decompress {len(data)} bytes of {NAMES[kind]}: {uncompressed_size} bytes are "
            f"claimed, {limit} are allowed"
        )
    if not data and uncompressed_size == 0:
        return b""
    result = _DECOMPRESS[kind](data, uncompressed_size)
    if len(result) != uncompressed_size:
        found = f"more than {uncompressed_size}" if len(result) > uncompressed_size else len(result)
        raise _wrong(kind, data, f"{uncompressed_size} bytes are claimed, {found} are there")
    return result


def _wrong(kind: int, data: bytes | memoryview, what: str) -> UnreadableEntryError:
    return UnreadableEntryError(detail=f"decompress {len(data)} bytes of {NAMES[kind]}: {what}")


def _plain(data: bytes | memoryview) -> bytes:
    return bytes(data)


def _plain_back(data: bytes | memoryview, size: int) -> bytes:
    return bytes(data[: size + 1])


def _lz4(data: bytes | memoryview) -> bytes:
    control_plane.load(_BLOCKS)
    from pulsarx._pycore.message.payload_blocks import lz4_compress

    return lz4_compress(data)


def _lz4_back(data: bytes | memoryview, size: int) -> bytes:
    control_plane.load(_BLOCKS)
    from pulsarx._pycore.message.payload_blocks import lz4_decompress

    if (result := lz4_decompress(data, size)) is None:
        raise _wrong(1, data, f"not a block of {size} bytes")
    return result


def _zlib(data: bytes | memoryview) -> bytes:
    control_plane.load("zlib")
    import zlib

    return zlib.compress(data)


def _zlib_back(data: bytes | memoryview, size: int) -> bytes:
    control_plane.load("zlib")
    import zlib

    try:
        return zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise _wrong(2, data, str(error)) from error


def _zstd_module() -> Any:
    try:
        control_plane.load(_ZSTD)
    except ImportError as error:
        raise ImportError(_without_zstd()) from error
    return sys.modules[_ZSTD]


def _without_zstd() -> str:
    if _ZSTD.startswith("backports."):
        return (
            "ZSTD needs the package backports.zstd, which is not installed: "
            "pip install backports.zstd"
        )
    return (
        f"ZSTD needs Python's module {_ZSTD}, which {sys.executable} was built without: use a "
        "Python that was built where libzstd and its headers are; or have producers compress by "
        "another kind, such as LZ4"
    )


# Made once for each thread that compresses at the same time: each is some hundred KiB large.
_zstd_compressors: list[Any] = []


def _zstd(data: bytes | memoryview) -> bytes:
    zstd = _zstd_module()
    try:
        compressor = _zstd_compressors.pop()
    except IndexError:
        compressor = zstd.ZstdCompressor()
    result: bytes = compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
    _zstd_compressors.append(compressor)
    return result


def _zstd_back(data: bytes | memoryview, size: int) -> bytes:
    zstd = _zstd_module()
    try:
        stated = zstd.get_frame_info(data).decompressed_size
        if stated not in (None, size):
            raise _wrong(3, data, f"{size} bytes are claimed, the frame states {stated}")
        stream = zstd.ZstdDecompressor()
        # One byte too many shows up in the comparison afterwards.
        result: bytes = stream.decompress(data, size + 1)
    except zstd.ZstdError as error:
        raise _wrong(3, data, str(error)) from error
    # Clients that state no size may flush a frame and not end it.
    ends = stream.eof or stated is None
    if len(result) <= size and (not ends or stream.unused_data):
        raise _wrong(3, data, "the frame does not end where the data does")
    return result


def _snappy(data: bytes | memoryview) -> bytes:
    control_plane.load(_BLOCKS)
    from pulsarx._pycore.message.payload_blocks import snappy_compress

    return snappy_compress(data)


def _snappy_back(data: bytes | memoryview, size: int) -> bytes:
    control_plane.load(_BLOCKS)
    from pulsarx._pycore.message.payload_blocks import snappy_decompress

    stated = _snappy_stated_size(data)
    if stated != size:
        raise _wrong(4, data, f"{size} bytes are claimed, the block states {stated}")
    if (result := snappy_decompress(data, size)) is None:
        raise _wrong(4, data, f"not a block of {size} bytes")
    return result


def _snappy_stated_size(data: bytes | memoryview) -> int:
    """The varint in front of a raw block; -1 when there is none."""
    size = 0
    for index, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    return -1


_COMPRESS: tuple[Callable[[bytes | memoryview], bytes], ...] = (_plain, _lz4, _zlib, _zstd, _snappy)
_DECOMPRESS: tuple[Callable[[bytes | memoryview, int], bytes], ...] = (
    _plain_back,
    _lz4_back,
    _zlib_back,
    _zstd_back,
    _snappy_back,
)
