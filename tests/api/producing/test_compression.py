"""Compression of payloads: what comes back, and what bombs and garbage get."""

from __future__ import annotations

import importlib
import threading
import zlib
from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import scaled

import pulsarx
from pulsarx import compression
from pulsarx.compression import NAMES, compress, decompress
from pulsarx.errors import CorruptDataError, InvalidConfiguration, UnreadableEntryError

KINDS = range(len(NAMES))
LIMIT = 1 << 20
ZLIB, ZSTD = 2, 3
OLDER = {
    1: "tG1lc3NhZ2UgMCwgCwAWMQsAFjILABYzCwAWNAsAFjULABY2CwAWNwsAFjgLABY5CwAYMW8AB3AAFzFxABcx"
    "cgAXMXMAFzF0ABcxdQAXMXYAFzF3ABcxeAAXMngAFzJ4ABcyeAAXMngAFzJ4ABcyeAAXMngAFzJ4ABcyeAAX"
    "MngAFzN4ABczeAAXM3gAFzN4ABczeAAXM3gAFzN4ABczeAAWM3gAUCAzOSwg",
    ZLIB: "eJxN0LkNgEAUA9FWKIAA25zlEKyINtr+JQiQ/mSTPdm9jXE/bVrmqf+pSlemcq3cKvfKo/KsvECQgyeAgiiQ"
    "gimggiqwgmu45k64hmu4hmu4hmu4hhu4gRseDDdwAzdwAzdw87kvZQOSuQ==",
    ZSTD: "KLUv/WDWAMUDAEQDbWVzc2FnZSAwLCAxMjM0NTY3ODkxMTExMTExMTEyMjIyMjIyMjIyMzMzMzMzMzMzMzks"
    "ICcggJPSA0bMNcwIc4Y1Yo5hRpgzjBFzhjVijmEb2TGnZ1ieETxzd4bZGakzR2d4zjCZs1v23WyLfZvZso9t"
    "ZiLOAQ==",
    4: "1gMobWVzc2FnZSAwLCARCwAxGQsAMhkLADMZCwA0GQsANRkLADYZCwA3GQsAOBkLADkZCwAxLm8AHXAAMR1x"
    "ADEdcgAxHXMAMR10ADEddQAxHXYAMR13ADEdeAAyHXgAMh14ADIdeAAyHXgAMh14ADIdeAAyHXgAMh14ADId"
    "eAAyHXgAMx14ADMdeAAzHXgAMx14ADMdeAAzHXgAMx14ADMdeDwzOCwgbWVzc2FnZSAzOSwg",
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.binary(max_size=2000), repeated=st.integers(1, 20))
@settings(max_examples=scaled(50), deadline=None)
def test_what_was_compressed_comes_back(kind: int, data: bytes, repeated: int) -> None:
    plain = data * repeated
    packed = compress(kind, plain)
    assert compress(kind, memoryview(plain)) == packed
    assert decompress(kind, packed, len(plain), LIMIT) == plain
    assert decompress(kind, memoryview(packed), len(plain), len(plain)) == plain


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("off", [-100, -1, 1, 5000])
def test_a_wrong_size_is_corrupt(kind: int, off: int) -> None:
    packed = compress(kind, b"pulsar" * 100)
    with pytest.raises(CorruptDataError, match=NAMES[kind]):
        decompress(kind, packed, 600 + off, LIMIT)


@pytest.mark.parametrize("kind", KINDS)
def test_a_claimed_size_of_zero_holds_for_nothing_else(kind: int) -> None:
    assert decompress(kind, compress(kind, b""), 0, LIMIT) == b""
    with pytest.raises(CorruptDataError):
        decompress(kind, compress(kind, b"pulsar"), 0, LIMIT)


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_comes_before_the_work(kind: int) -> None:
    packed = compress(kind, bytes(1000))
    with pytest.raises(CorruptDataError, match="1000 bytes are claimed, 999 are allowed"):
        decompress(kind, packed, 1000, 999)
    with pytest.raises(CorruptDataError):
        decompress(kind, packed, -1, LIMIT)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_a_bomb_is_not_unpacked(kind: int) -> None:
    bomb = compress(kind, bytes(50_000_000))
    with pytest.raises(CorruptDataError):
        decompress(kind, bomb, 1000, LIMIT)


def test_a_zstandard_bomb_that_states_no_size_is_not_unpacked() -> None:
    zstd = importlib.import_module(compression._ZSTD)
    options = {zstd.CompressionParameter.content_size_flag: 0}
    with pytest.raises(CorruptDataError, match="more than 1000 are there"):
        decompress(3, zstd.compress(bytes(50_000_000), options=options), 1000, LIMIT)
    assert decompress(3, zstd.compress(b"pulsar", options=options), 6, LIMIT) == b"pulsar"


@pytest.mark.parametrize("kind", OLDER)
def test_what_older_versions_compressed_is_read(kind: int) -> None:
    """They used the packages lz4, zstandard and python-snappy."""
    plain = b"".join(b"message %d, " % number for number in range(40))
    packed = b64decode(OLDER[kind])
    assert decompress(kind, packed, len(plain), LIMIT) == plain
    assert len(compress(kind, plain)) <= len(packed)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_every_truncation_that_costs_a_byte_is_unreadable(kind: int) -> None:
    plain = bytes(range(256))
    packed = compress(kind, plain)
    behind = 4 if kind == ZLIB else 0  # a sum
    for cut in range(len(packed) - behind):
        with pytest.raises(UnreadableEntryError):
            decompress(kind, packed[:cut], 256, LIMIT)
    for cut in range(len(packed) - behind, len(packed)):
        assert decompress(kind, packed[:cut], 256, LIMIT) == plain


@pytest.mark.parametrize("plain", [b"", b"a", b"hello " * 50, bytes(100_000)])
def test_a_zlib_stream_that_is_flushed_and_not_ended_is_whole(plain: bytes) -> None:
    """As the Java client writes it."""
    stream = zlib.compressobj()
    packed = stream.compress(plain) + stream.flush(zlib.Z_SYNC_FLUSH)
    assert decompress(ZLIB, packed, len(plain), LIMIT) == plain
    with pytest.raises(UnreadableEntryError, match="bytes are claimed"):
        decompress(ZLIB, packed, len(plain) + 1, LIMIT)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_an_empty_payload(kind: int) -> None:
    """Zstandard of the Go client makes no frame of one."""
    assert decompress(kind, b"", 0, LIMIT) == b""


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@given(garbage=st.binary(max_size=100), size=st.integers(0, 2000))
@settings(max_examples=scaled(300), deadline=None)
def test_garbage_is_corrupt_or_has_the_size(kind: int, garbage: bytes, size: int) -> None:
    try:
        assert len(decompress(kind, garbage, size, LIMIT)) == size
    except CorruptDataError as error:
        assert NAMES[kind] in str(error)


def test_bytes_behind_the_end_are_what_the_clients_take_them_for() -> None:
    assert decompress(ZLIB, compress(ZLIB, b"pulsar") + b"more", 6, LIMIT) == b"pulsar"
    with pytest.raises(UnreadableEntryError):
        decompress(ZSTD, compress(ZSTD, b"pulsar") + b"more", 6, LIMIT)


def test_bytes_behind_a_zstandard_frame_are_refused_whether_or_not_it_states_its_size() -> None:
    """They were passed over where it does not."""
    zstd = importlib.import_module(compression._ZSTD)
    for flag in (0, 1):
        options = {zstd.CompressionParameter.content_size_flag: flag}
        packed = zstd.compress(b"pulsar", options=options)
        assert decompress(ZSTD, packed, 6, LIMIT) == b"pulsar"
        for more in (b"more", packed):
            with pytest.raises(UnreadableEntryError, match="does not end where the data does"):
                decompress(ZSTD, packed + more, 6, LIMIT)


@pytest.mark.border(left_out="the inside is changed")
@pytest.mark.parametrize(
    "module, said",
    [
        ("backports.zstd_gone", "pip install backports.zstd"),
        ("compression.zstd_gone", "was built without"),
    ],
)
def test_without_zstd_it_is_said_what_is_missing_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, said: str
) -> None:
    """Python may be built without it. It was a ModuleNotFoundError of _zstd."""
    with pulsarx.Client(tmp_path / "data", durability="os") as client:
        producer = client.create_producer("t", compression_type=pulsarx.CompressionType.ZSTD)
        consumer = client.subscribe("t", "s")
        producer.send(b"pulsar" * 100)
        with monkeypatch.context() as patch:
            patch.setattr(compression, "_ZSTD", module)
            with pytest.raises(ImportError, match=said):
                producer.send(b"lost" * 100)
            for _ in range(2):
                with pytest.raises(ImportError, match=said):
                    consumer.receive(1000)
        stats = client.admin.topics.stats("t")
        assert stats["messages"] == stats["subscriptions"]["s"]["msg_backlog"] == 1
        assert consumer.receive(60_000).data() == b"pulsar" * 100


def test_unknown_kinds() -> None:
    with pytest.raises(InvalidConfiguration, match="kind 5"):
        compress(5, b"")
    with pytest.raises(CorruptDataError, match="kind 5"):
        decompress(5, b"", 0, LIMIT)


def test_zlib_is_the_plain_stream() -> None:
    assert zlib.decompress(compress(2, b"pulsar")) == b"pulsar"


def test_lz4_is_a_block_without_its_size() -> None:
    assert compress(1, b"abc") == b"\x30abc"


@pytest.mark.parametrize("kind", KINDS)
def test_threads_compress_at_the_same_time(kind: int) -> None:
    """What one of them has in hand no other one takes."""
    texts = [b"%d, " % number * 20_000 for number in range(4)]
    packed: list[tuple[bytes, bytes]] = []
    start = threading.Barrier(4)

    def work(text: bytes) -> None:
        start.wait()
        packed.extend((text, compress(kind, memoryview(text))) for _ in range(20))

    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(packed) == 80
    for text, data in packed:
        assert decompress(kind, data, len(text), LIMIT) == text
