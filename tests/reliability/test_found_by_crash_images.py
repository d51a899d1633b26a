"""Facts that images of crashes showed not to be so."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_session import opened, read

import pulsarx

HEADER_SIZE = 4096


def deduplicating(folder: Path, durability: str = "os") -> pulsarx.Client:
    client = opened(folder, durability)
    client.create_producer("t").close()
    client.admin.topics.set_deduplication("t", True)
    return client


def send_all(client: pulsarx.Client, count: int, **options: int) -> None:
    producer = client.create_producer("t", "p", chunking_enabled=True)
    for number in range(count):
        data = " ".join([f"d{number}"] * options.get("words", 1))
        producer.send(data.encode(), sequence_id=number)
    producer.close()


def forget_snapshots(folder: Path) -> None:
    for each in (folder / "deduplication").iterdir():
        each.unlink()


def damage(folder: Path, text: bytes) -> None:
    """Turn the first bit of it in the ledger that has it."""
    for path in folder.glob("ledgers/*/*.ledger"):
        data = bytearray(path.read_bytes())
        at = data.find(text, HEADER_SIZE)
        if at >= 0:
            data[at] ^= 1
            path.write_bytes(data)
            return
    raise AssertionError(f"no ledger has {text!r}")


@pytest.mark.parametrize("words", [1, 4000])
def test_what_is_sent_again_of_damaged_messages_is_stored(tmp_path: Path, words: int) -> None:
    """It was taken for a duplicate of what the damage had taken: a message that was never confirmed
    and sent again after a power cut got lost so. words: 4000 are a message of two chunks, of which
    the second one is whole."""
    with deduplicating(tmp_path) as client:
        send_all(client, 4, words=words)
    forget_snapshots(tmp_path)
    damage(tmp_path, b"d2" if words == 1 else b"d2 d2")
    with opened(tmp_path, "os") as client:
        send_all(client, 5, words=words)
        messages, _ = read(client, "t")
        assert messages == ["d0", "d1", "d3", "d2", "d4"]
        send_all(client, 5, words=words)
        assert read(client, "t")[0] == messages
    with opened(tmp_path, "os") as client:
        send_all(client, 5, words=words)
        assert read(client, "t")[0] == messages
