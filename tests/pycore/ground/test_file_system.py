"""Facts about the checksum and the lock of small files. Names and folders: tests of the broker."""

from __future__ import annotations

import os
import random
import zlib
from pathlib import Path

import pytest

from pulsarx._pycore.ground.file_system import crc32, is_file_locked, lock_file, unlock_file


def test_the_checksum_is_that_of_zlib() -> None:
    chance = random.Random(1)
    for size in (0, 1, 7, 8, 9, 15, 64, 1000, 100_003):
        data = chance.randbytes(size)
        assert crc32(data) == zlib.crc32(data)
        start = chance.getrandbits(32)
        assert crc32(data, start) == zlib.crc32(data, start)


def test_a_lock_is_that_of_one_opening(tmp_path: Path) -> None:
    path = tmp_path / "locked"
    path.touch()
    first, second = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    try:
        assert not is_file_locked(first)
        assert lock_file(first) and lock_file(first)
        assert not lock_file(second)
        assert is_file_locked(second) and not is_file_locked(first)
        unlock_file(first)
        assert not is_file_locked(second)
        assert lock_file(second)
    finally:
        os.close(first)
        os.close(second)
    with pytest.raises(OSError, match="Bad file descriptor"):
        lock_file(first)
    unlock_file(first)
