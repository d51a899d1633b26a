"""Publishing compressed 1 KiB messages with `send_many`, against the codec alone on the payloads of
the same batches: what encoding, storing and the ids cost besides."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from measurement import Measurement
from topic_in_folder import DrainBefore, TopicInFolder

import pulsarx
from pulsarx import compression

KIB = 1024
MANY = 1000


def records(count: int) -> list[bytes]:
    """JSON with text in it, which compresses to a half or a third."""
    chance = random.Random(1)
    words = [bytes(chance.choices(range(97, 123), k=chance.randint(3, 9))) for _ in range(400)]
    found = []
    for number in range(count):
        text = b'{"id":%d,"at":%d,"text":"' % (number, 1_600_000_000_000 + 37 * number)
        while len(text) < KIB:
            text += chance.choice(words) + b" "
        found.append(text[: KIB - 2] + b'"}')
    return found


def lz4_codec() -> Callable[[bytes], bytes]:
    import lz4.block

    return lambda data: lz4.block.compress(data, store_size=False)  # type: ignore[no-any-return]


def zstd_codec() -> Callable[[bytes], bytes]:
    import zstandard

    compress: Callable[[bytes], bytes] = zstandard.ZstdCompressor().compress
    return compress


CODECS: dict[str, tuple[str, Callable[[], Callable[[bytes], bytes]]]] = {
    "lz4_send_many": ("LZ4", lz4_codec),
    "zstd_send_many": ("ZSTD", zstd_codec),
}


@pytest.mark.parametrize("row", CODECS)
def bench_codec(measurement: Measurement, scratch: Path, row: str) -> None:
    name, make_codec = CODECS[row]
    messages = records(measurement.sizes.codec_messages)
    lists = [messages[at : at + MANY] for at in range(0, len(messages), MANY)]
    with TopicInFolder(scratch / row) as topic:
        producer: Any = topic.client.create_producer(
            "measured",
            batching_enabled=True,
            compression_type=getattr(pulsarx.CompressionType, name),
        )
        batches = payloads_of_batches(topic, producer, lists)
        codec = make_codec()

        def floor() -> None:
            for batch in batches:
                codec(batch)

        def path() -> None:
            for thousand in lists:
                producer.send_many(thousand)

        measurement.pairs(
            row,
            floor,
            path,
            before=DrainBefore(topic, len(messages)),
            floor_count=len(messages),
            path_count=len(messages),
            names=(f"1 KiB of {name}", "a message"),
            note=lambda: (
                f"batches of {len(messages) // len(batches)}, compressed to "
                f"{sum(map(len, map(codec, batches))) / sum(map(len, batches)):.0%}"
            ),
        )


def payloads_of_batches(
    topic: TopicInFolder, producer: Any, lists: list[list[bytes]]
) -> list[bytes]:
    """What is compressed when these lists are sent."""
    found: list[bytes] = []

    def noting(compress: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
        def noted(data: Any) -> bytes:
            found.append(bytes(data))
            return compress(data)

        return noted

    functions = tuple(map(noting, compression._COMPRESS))
    with patch.object(compression, "_COMPRESS", functions):
        for each in lists:
            producer.send_many(each)
    topic.drain(sum(map(len, lists)))
    return found
